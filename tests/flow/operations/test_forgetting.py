"""Somebody is forgotten: in no table and no live file, while streams go on and the ledger balances."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from demux.core.causes import Cause
from demux.operations.erasure.requests import ErasureRequest, carry_out, unfinished_requests, write_down
from demux.operations.erasure.search import SearchScope, search_game, session_of
from demux.operations.predicate.parser import parse
from demux.operations.quarantine.drop import drop
from demux.operations.quarantine.filter import QuarantineFilter
from demux.pipeline.read_offsets import read_batch
from tests.support.flow import crash
from tests.support.flow.fleet import without_errors
from tests.support.flow.forgetting import (
    ANN,
    BOB,
    EVENT,
    HOSTILE,
    WHERE,
    all_files,
    balanced,
    everybody,
    holding,
    live_files,
    payload,
    quoted,
    send_everybody,
)
from tests.support.flow.process import Command, Said
from tests.support.flow.root import Root, rows, wrapper

Forget = Callable[..., Said]
NOW = datetime.now(timezone.utc)
LATER = NOW + timedelta(days=1)


@pytest.fixture
def forget(command: Command) -> Forget:
    """Runs `demux forget` on a root, by its engine."""

    def once(root: Root, *words: str, where: str = WHERE) -> Said:
        engine = f"run.engine={root.settings.run.engine.value}"
        return command("forget", "--where", where, "--root", str(root.folder), "--set", engine, *words)

    return once


def names(root: Root, game: str) -> list[str]:
    return sorted(row["player"]["name"] for row in root.silver(game))


def offsets(found: list[dict[str, Any]]) -> list[int]:
    return sorted(row["offset"] for row in found)


def written_about(root: Root, text: str) -> list[str]:
    """What is written beside the tables of records, and has the text."""
    files = [file for part in ("control", "logs") for file in (root.folder / part).rglob("*") if file.is_file()]
    plain = [file.name for file in files if text.encode() in file.read_bytes()]
    return plain + holding((file for file in files if file.suffix == ".parquet"), text)


def lines(said: Said) -> list[list[str]]:
    """The lines of its tables that have numbers, by word."""
    return [words for line in said.out.splitlines() if (words := line.split()) and words[-1].isdigit()]


# the fleet reads bronze's log by itself
@pytest.mark.parametrize("engine", [pytest.param("stream", marks=pytest.mark.oldest), "fleet"])
def test_somebody_is_in_no_table_and_no_live_file_and_the_stream_goes_on(
    root: Root, forget: Forget, command: Command, engine: str
) -> None:
    root = Root.at(root.spark, root.folder, run={"engine": engine, "retry_wait_s": 0.0})
    schema_id = send_everybody(root, HOSTILE)
    place = root.workplace()
    without_errors(root.run(place))
    assert names(root, HOSTILE) == [ANN, BOB, BOB]
    assert offsets(root.quarantine()) == [2, 3, 4, 5, 6]
    # what waits is decoded to be searched
    root.send(everybody(root, HOSTILE, schema_id), 8)
    place.ingest()
    assert len(holding(live_files(root), ANN)) > 3
    said = forget(root, "--yes", "--unreadable-too")
    # one whose name is cut off is unreadable, and one of a schema that nobody knows, and one without a wrapper
    assert lines(said) == [
        [*HOSTILE.split(), "2", "6", "4", "4", "2"],
        ["(no", "game)", "0", "0", "2", "2", "2"],
        [*HOSTILE.split(), "2", "6", "4"],
        ["(no", "game)", "0", "0", "2"],
        ["rows", "removed", "2", "6", "6"],
    ]
    assert said.code == 0
    assert holding(live_files(root), ANN) == []
    assert (offsets(root.quarantine()), offsets(root.bronze())) == ([3, 4, 11, 12], [1, 3, 4, 7, 9, 11, 12, 15])

    assert holding(all_files(root), ANN) != []
    done = command("maintain", "--root", str(root.folder), "--set", "maintain.keep=0s", "--force")
    assert (done.code, holding(all_files(root), ANN), written_about(root, ANN)) == (0, [], [])
    # the same process goes on
    root.send(everybody(root, HOSTILE, schema_id), 16)
    without_errors(root.run(place))
    assert names(root, HOSTILE) == [ANN, *[BOB] * 6]
    ledger = balanced(root)
    assert ledger.intake is not None
    assert (ledger.intake.source, ledger.intake.forgotten) == (24, 8)
    assert [account.waiting for account in ledger.accounts] == [0]


def test_a_request_that_dies_after_each_of_its_writes_is_finished_and_what_it_removed_does_not_come_back(
    root: Root, forget: Forget, command: Command
) -> None:
    send_everybody(root, "chess")
    without_errors(root.run())
    # bronze has its bytes still
    drop(root.spark, root.layout, QuarantineFilter("chess", causes=(Cause.UNKNOWN_SCHEMA,), before=LATER), NOW)
    before = root.everything()
    request, last = ErasureRequest("a", "chess"), read_batch(root.spark, root.layout, "chess")
    scope = SearchScope(
        session_of(root.spark), root.layout, root.workplace().schemas, parse(WHERE), unreadable_too=True
    )
    with search_game(scope, "chess", last) as search:
        assert search.rows is not None
        with crash.after_writes(1), pytest.raises(crash.Crash):
            write_down(root.spark, root.layout, request, search.rows, NOW)
    assert root.everything() == before
    balanced(root)
    for number, table in enumerate(("silver", "quarantine", "dropped", "bronze")):
        assert unfinished_requests(root.spark, root.layout) == (request,)
        with crash.after_writes(1), pytest.raises(crash.Crash):
            carry_out(root.spark, root.layout, request, last)
        there = (
            ANN in names(root, "chess"),
            2 in offsets(root.quarantine()),
            rows(root.layout.dropped) != [],
            {0, 2, 5} <= set(offsets(root.bronze())),
        )
        assert there == tuple(at > number for at in range(4)), table
        if table == "quarantine":
            balanced(root, table)
    # another one finishes it, whomever it means itself, and says so
    said = forget(root, "--game", "chess", where="player.name = 'nobody'")
    assert (said.code, lines(said)[-2:]) == (0, [["chess", "0", "0", "0"], ["rows", "removed", "0", "0", "0"]])
    assert unfinished_requests(root.spark, root.layout) == ()
    assert [row["request"] for row in rows(root.layout.forget)] == ["a"]
    assert (offsets(root.quarantine()), offsets(root.bronze())) == ([3, 4, 6], [1, 3, 4, 7])
    balanced(root)

    # the source still has them
    again = ("rebuild", "--bronze", "--root", str(root.folder))
    refused = command(*again)
    assert (refused.code, refused.err.split()[0]) == (1, "FORGOTTEN_WOULD_RETURN")
    assert (offsets(root.bronze()), offsets(rows(root.layout.removed))) == ([1, 3, 4, 7], [0, 2, 5])
    assert command(*again, "--accept-return").code == 0
    assert (offsets(root.bronze()), rows(root.layout.removed)) == ([*range(6), 7], [])


def test_what_means_everybody_or_nobody_or_cannot_be_meant_removes_nothing(root: Root, forget: Forget) -> None:
    schema_id = root.register("chess", EVENT)
    strange = "x' OR '1'='1"
    people = [payload(root, schema_id, name) for name in (strange, ANN, BOB)]
    root.send([*(wrapper("chess", schema_id, one) for one in people), wrapper("chess", 999, people[0])])
    without_errors(root.run())
    # of a game that nobody has admitted yet, and that may have anybody
    root.register(HOSTILE, EVENT)
    root.send([wrapper(HOSTILE, schema_id, people[0])], 4)
    root.workplace().ingest()
    before = root.everything()
    for where, words in (
        ("player.name LIKE '%'", "PREDICATE_MATCHES_ALL The predicate means every row of chess."),
        ("1 = 1", "PREDICATE_MATCHES_ALL The predicate names no column, so it means all rows or none."),
        ("player.name = x' OR '1'='1", "PREDICATE_INVALID The predicate cannot be read from its line 1, character 16"),
        ("lower(name) = 'x'", "PREDICATE_INVALID The predicate has something that is not allowed (LOWER) at its"),
        ("player.nam = 'x'", "PREDICATE_INVALID No table that is meant has the column player.nam. Did you mean"),
        ("score = 'x'", "PREDICATE_INVALID Of the game chess: In the predicate at its character 9, the column score"),
    ):
        said = forget(root, "--yes", where=where)
        assert (said.code, said.err.splitlines()[0][: len(words)]) == (2, words)
    assert forget(root, "--game", "ches").err.startswith("GAME_UNKNOWN No game 'ches' is known. Did you mean")
    looked = forget(root, "--dry-run", where=f"player.name = {quoted(strange)}")
    assert (looked.code, lines(looked)) == (0, [["chess", "1", "1", "0", "1", "1"]])
    assert "nothing was removed" in looked.out.splitlines()
    assert (root.everything(), rows(root.layout.removed)) == (before, [])

    said = forget(root, "--yes", where=f"player.name = {quoted(strange)}")
    assert (said.code, names(root, "chess"), offsets(root.bronze())) == (7, [ANN, BOB], [1, 2, 3, 4])
    waits, suspect = said.out.splitlines()[-2:]
    assert waits.startswith("1 row of bronze could not be searched, as they are not decoded yet")
    assert suspect.startswith("Unreadable, with one of the texts in the bytes: 1 row of quarantine.")
    balanced(root)
