"""Metrics, read back by a strict reader of the text format."""

from __future__ import annotations

import re

import pytest

from demux.operations.status.facts import BronzeFile, Facts, TableFacts
from demux.operations.status.model import Status
from demux.operations.status.prometheus import ServerCounts, metrics
from demux.operations.status.summary import status_of
from tests.support.data.statuses import HOSTILE, NOW, busy, key, known, record

Series = tuple[str, frozenset[tuple[str, str]]]

_LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"'
_SAMPLE = re.compile(rf"([a-z_]+)(?:\{{({_LABEL}(?:,{_LABEL})*)\}})? (-?[0-9.]+(?:e[+-]?[0-9]+)?)")


def read(text: str) -> dict[Series, float]:
    """Every sample; fails on what the format or its conventions do not allow."""
    found: dict[Series, float] = {}
    kinds: dict[str, str] = {}
    family = ""
    assert text.endswith("\n")
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            family, _, sentence = line.removeprefix("# HELP ").partition(" ")
            assert sentence.endswith(".")
            assert family not in kinds
        elif line.startswith("# TYPE "):
            name, kind = line.removeprefix("# TYPE ").split(" ")
            assert name == family
            kinds[name] = kind
            # the conventions: counters end in _total, and nothing else does
            assert (kind == "counter") == name.endswith("_total")
        else:
            sample = _SAMPLE.fullmatch(line)
            assert sample, line
            assert sample[1] == family
            labels = {name: unescaped(value) for name, value in re.findall(_LABEL, sample[2] or "")}
            series = family, frozenset(labels.items())
            assert series not in found, "the same series twice"
            found[series] = float(sample[7])
    return found


def unescaped(value: str) -> str:
    return re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], value)


def of(status: Status, most_games: int = 1000, counts: ServerCounts = ServerCounts()) -> dict[Series, float]:  # noqa: B008
    return read(metrics(status, counts, most_games))


def series(name: str, **labels: str) -> Series:
    return name, frozenset(labels.items())


def test_a_game_has_its_rows_its_lag_and_its_last_success() -> None:
    facts = Facts(
        games={"go": known("go")},
        records=[record("go", 59, error=("X", "Y.")), record("go", 60, seconds=1.5)],
        bronze={"go": (BronzeFile(NOW, 10),)},
        silver={"go": TableFacts(3, 4096, 4)},
    )
    found = of(status_of("/root", facts, NOW))
    names = (
        "bronze_rows",
        "silver_rows",
        "lag_rows",
        "lag_seconds",
        "failed",
        "table_bytes",
        "table_files",
        "last_task_seconds",
    )
    values = [found[series(f"demux_game_{name}", game="go", table="go")] for name in names]
    assert values == [10, 4, 6, 0, 0, 4096, 3, 1.5]
    assert found[series("demux_game_last_success_timestamp_seconds", game="go", table="go")] == NOW.timestamp()
    assert found[series("demux_games", state="behind")] == 1


@pytest.mark.parametrize("name", [*HOSTILE, 'a",b="c', "line\nline", "\\", 'x\\"'])
def test_a_hostile_name_is_a_value_of_its_label_and_nothing_else(name: str) -> None:
    found = of(status_of("/root", Facts(records=[record(name)]), NOW))
    assert found[series("demux_game_failed", game=name, table=key(name))] == 0


def test_games_beyond_the_most_are_summed_under_a_label_that_no_game_can_have() -> None:
    names = ["other", *(f"g{number}" for number in range(9))]
    facts = Facts(
        bronze={name: (BronzeFile(NOW, 100 - at),) for at, name in enumerate(names)},
        records=[record(name, at) for at, name in enumerate(names)],
    )
    found = of(status_of("/root", facts, NOW), most_games=4)
    rows = {dict(labels)["table"]: value for (name, labels), value in found.items() if name == "demux_game_bronze_rows"}
    assert rows == {"other": 100, "g0": 99, "g1": 98, "g2": 97, "": 96 + 95 + 94 + 93 + 92 + 91}
    oldest = found[series("demux_game_last_success_timestamp_seconds", game="other", table="")]
    assert oldest == record("g3", 4).finished_at.timestamp()


def test_how_many_series_there_are_does_not_depend_on_how_many_games() -> None:
    few, many = (len(of(busy(games, rounds=3), most_games=100)) for games in (500, 5000))
    assert few == many < 1400


def test_what_is_not_known_has_no_series_rather_than_a_zero() -> None:
    found = of(status_of("/root", Facts(games={"go": known("go")}, bronze=None, notes=("It is not readable.",)), NOW))
    assert series("demux_game_lag_rows", game="go", table="go") not in found
    assert found[series("demux_unreadable_tables")] == 1


def test_a_root_without_anything_has_metrics_of_the_server_alone() -> None:
    found = of(status_of("/root", Facts(), NOW), counts=ServerCounts(7, 2, 0.25))
    assert found[series("demux_status_reads_total")] == 7
    assert found[series("demux_status_read_failures_total")] == 2
    assert found[series("demux_status_read_duration_seconds")] == 0.25
    assert not [name for name, _ in found if name.startswith("demux_game_")]
