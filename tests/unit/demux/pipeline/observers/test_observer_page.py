"""docs/observability.md has what is sent, as the code has it."""

from __future__ import annotations

import re
from pathlib import Path

from demux.core.extras import EXTRA_OF
from demux.pipeline.observers.instruments import INSTRUMENTS, MOST_GAMES, OTHER
from demux.pipeline.observers.lineage_sender import PATIENCE_S as LINEAGE_PATIENCE_S
from demux.pipeline.observers.observer import RoundStage
from demux.pipeline.observers.signals import LAST_SEND_S
from demux.pipeline.observers.spans import MOST_GAME_SPANS

PAGE = (Path(__file__).parents[5] / "docs" / "observability.md").read_text(encoding="utf-8")


def section(head: str) -> str:
    return PAGE.partition(f"\n## {head}\n")[2].partition("\n## ")[0]


def test_the_table_of_metrics_is_the_instruments() -> None:
    rows = [
        f"| `{one.name}` | {one.kind.value} | `{one.unit}` | "
        f"{', '.join(f'`{name}`' for name in one.attributes)} | {one.meaning} |"
        for one in INSTRUMENTS
    ]
    assert re.findall(r"^\| `demux.*$", section("Metrics"), re.MULTILINE) == rows


def test_the_table_of_spans_has_every_stage_and_the_limits() -> None:
    text = section("Spans")
    spans = set(re.findall(r"`(demux\.stage\.\w+)`", text))
    assert spans == {*(f"demux.stage.{stage.value}" for stage in RoundStage), "demux.stage.commit"}
    assert text.count(f"{MOST_GAME_SPANS} ") == 3
    assert f"first {MOST_GAMES} games" in section("Metrics")
    assert f'demux.game="{OTHER}"' in section("Metrics")
    assert f"for {LAST_SEND_S:.0f} seconds" in PAGE
    assert LINEAGE_PATIENCE_S == LAST_SEND_S


def test_the_extras_are_those_of_the_libraries() -> None:
    assert {EXTRA_OF["opentelemetry"], EXTRA_OF["openlineage"]} == {"telemetry", "lineage"}
    assert "| `telemetry` |" in PAGE
    assert "| `lineage` |" in PAGE
