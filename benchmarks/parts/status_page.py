"""The status page of 10,000 games, with 200,000 tasks on record and 1,000,000 rows in quarantine: seconds and bytes.

No Spark: tables of which the status reads the log alone are logs without data.

    python -m benchmarks.parts.status_page
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from benchmarks.support.page import write_section
from demux.cli.options import settings_of
from demux.core.columns.arrow import arrow_fields
from demux.core.columns.types import Struct
from demux.core.names import names_of
from demux.core.root.layout import Layout
from demux.core.tables import BRONZE, GAMES, QUARANTINE, ROUNDS, SCHEMAS
from demux.pipeline.status import status_reader
from tools.chromium import Tab, browser

_TITLE = "Status page"
_COMMAND = "python -m benchmarks.parts.status_page"
_ROUNDS = 20
_FILES_OF_GAME = 10
_SENTENCE = "The payload is no message of this schema: wire type 6 at byte 17."


def fill(root: str, games: int, set_aside: int) -> None:
    """Write the tables of a root with this many games and rows in quarantine."""
    layout, now = Layout(root), datetime.now(timezone.utc)
    names = [f"game_{number:05}" for number in range(games)]
    append_rows(
        layout.games,
        GAMES,
        {"game_name": names, "cluster": [f"cluster_{at // 20:03}" for at in range(games)], "since": [now] * games},
    )
    append_rows(layout.schemas, SCHEMAS, {"registry": ["default"] * 2, "schema_id": [1, 2], "version": [1, 2]})
    for number in range(_ROUNDS):
        append_rows(layout.rounds, ROUNDS, _round(names, number, now - timedelta(minutes=_ROUNDS - number)))
    _fill_quarantine(layout.quarantine, names, set_aside)
    make_log(layout.bronze, BRONZE, ["game_name"])
    for number in range(_FILES_OF_GAME):
        adds = [_add({"game_name": name}, now, 200 + at % 3) for at, name in enumerate(names)]
        _commit(layout.bronze, number + 1, adds)
    _fill_silver(layout, names, now)


def _fill_quarantine(path: str, names: list[str], rows: int) -> None:
    for first in range(0, rows, 100_000):
        numbers = range(first, min(rows, first + 100_000))
        append_rows(
            path,
            QUARANTINE,
            {
                "stage": ["silver"] * len(numbers),
                "cause": [("MALFORMED_PAYLOAD", "UNKNOWN_SCHEMA")[at % 2] for at in numbers],
                "game_name": [names[at % len(names)] for at in numbers],
                "bytes": [at.to_bytes(4, "big") * 32 for at in numbers],
                "sentence": [_SENTENCE] * len(numbers),
            },
        )


def _fill_silver(layout: Layout, names: list[str], now: datetime) -> None:
    first = layout.silver(names_of(names[0]).key)
    make_log(first, Struct(()), [])
    begun = Path(first, "_delta_log", f"{0:020}.json").read_bytes()
    for name in names:
        log = Path(layout.silver(names_of(name).key), "_delta_log")
        log.mkdir(parents=True, exist_ok=True)
        (log / f"{0:020}.json").write_bytes(begun)
        _commit(str(log.parent), 1, [_add({}, now, 950) for _ in range(2)])


def _round(names: list[str], number: int, ended: datetime) -> Mapping[str, list[Any]]:
    count = len(names)
    failed = [at % 50 == 0 and number == _ROUNDS - 1 for at in range(count)]
    return {
        "round_id": [f"r{number}"] * count,
        "game_name": names,
        "outcome": ["failed" if one else "done" for one in failed],
        "rows_in": [100 + at % 7 for at in range(count)],
        "rows_silver": [100] * count,
        "rows_quarantined": [at % 7 for at in range(count)],
        "schema_ids": [[1, 2]] * count,
        "seconds": [0.01 + at % 9 / 1000 for at in range(count)],
        "condition": ["REGISTRY_UNAVAILABLE" if one else None for one in failed],
        "sentence": ["The registry does not answer. Try again later." if one else None for one in failed],
        "finished_at": [ended] * count,
    }


def append_rows(path: str, columns: Struct, values: Mapping[str, list[Any]]) -> None:
    """Append rows, by column; columns that are not given are NULL."""
    rows = len(next(iter(values.values())))
    fields = arrow_fields(columns)
    arrays = [pa.array(values.get(field.name, [None] * rows), field.type) for field in fields]
    write_deltalake(path, pa.table(arrays, pa.schema(fields)), mode="append")


def make_log(path: str, columns: Struct, partition_by: list[str]) -> None:
    """Make a table without rows."""
    fields = arrow_fields(columns) or [pa.field("a", pa.int32())]
    DeltaTable.create(path, pa.schema(fields), partition_by=partition_by)


def _add(partition: Mapping[str, str], at: datetime, rows: int) -> dict[str, Any]:
    return {
        "partitionValues": dict(partition),
        "size": 40_000,
        "modificationTime": round(at.timestamp() * 1000),
        "dataChange": True,
        "stats": json.dumps({"numRecords": rows}),
    }


def _commit(path: str, version: int, adds: Iterable[Mapping[str, Any]]) -> None:
    lines = [json.dumps({"add": {"path": f"{version}-{at}.parquet", **add}}) for at, add in enumerate(adds)]
    Path(path, "_delta_log", f"{version:020}.json").write_text("\n".join(lines), encoding="utf-8")


@dataclass(frozen=True, slots=True)
class ProcessCost:
    """The cost of a process: seconds by the clock, seconds of CPU, and the most MiB of memory."""

    seconds: float
    cpu_s: float
    memory_mib: float


def cost_of(words: Sequence[str], codes: Iterable[int] = (0,)) -> ProcessCost:
    """Return what `demux` with these words costs; it must end with one of the exit codes."""
    began = time.monotonic()
    program = [sys.executable, "-c", "from demux.cli import main; main()", *words]
    process = subprocess.Popen(program, stdout=subprocess.DEVNULL)
    _, state, used = os.wait4(process.pid, 0)
    seconds = time.monotonic() - began
    process.returncode = os.waitstatus_to_exitcode(state)
    assert process.returncode in codes, words
    # Linux counts in KiB
    return ProcessCost(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def _readings(root: str) -> list[float]:
    """Return seconds of CPU of a first reading, of one without news, and of one after a row was quarantined."""
    read = status_reader(settings_of(None, root, []))
    found = []
    for number in range(3):
        if number == 2:
            _fill_quarantine(Layout(root).quarantine, ["game_00001"], 1)
        began = time.process_time()
        read()
        found.append(time.process_time() - began)
    return found


def _in_browser(tab: Tab, file: Path) -> Mapping[str, float]:
    tab.look(1440)
    tab.open(file.as_uri())
    tab.until("performance.getEntriesByName('first-contentful-paint').length")
    found: Mapping[str, float] = tab.js(_MEASURE)
    return found


# milliseconds until something was seen, and of a letter in the filter or a click on a head, layout included
_MEASURE = """(() => {
    const timed = (act) => {
        const began = performance.now();
        act();
        return document.body.offsetHeight && performance.now() - began;
    };
    const filter = document.getElementById('filter'), most = (all) => Math.max(...all);
    const type = (text) => { filter.value = text; filter.dispatchEvent(new Event('input')); };
    return {
        paint: performance.getEntriesByName('first-contentful-paint')[0].startTime,
        filter: most(['g', 'ga', 'game_0', 'game_099', 'registry', ''].map((text) => timed(() => type(text)))),
        sort: most([...document.querySelectorAll('#head button')].map((head) => timed(() => head.click()))),
        elements: document.querySelectorAll('*').length,
        heap: performance.memory.usedJSHeapSize / 2 ** 20,
    };
})()"""


def main() -> None:
    arguments = argparse.ArgumentParser(prog=_COMMAND)
    arguments.add_argument("--games", type=int, default=10_000)
    arguments.add_argument("--quarantine", type=int, default=1_000_000)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="demux-bench-") as folder:
        root, file = f"{folder}/root", Path(folder, "status.html")
        fill(root, given.games, given.quarantine)
        cost = cost_of(["status", "--root", root, "--html", str(file)])
        first, second, third = _readings(root)
        with browser(Path(folder, "profile")) as tab:
            page = _in_browser(tab, file)
        size = file.stat().st_size / 2**20
    tasks = _ROUNDS * given.games
    details = f"{given.games:,} games, {tasks:,} tasks on record, {given.quarantine:,} rows in quarantine"
    lines = [
        "| what | figure |",
        "| --- | ---: |",
        f"| `demux status --html`, seconds of CPU | {cost.cpu_s:.1f} |",
        f"| the same, most MiB of memory | {cost.memory_mib:,.0f} |",
        f"| size of the page, MiB | {size:.1f} |",
        f"| `demux serve`, first reading, seconds of CPU | {first:.1f} |",
        f"| each further reading where nothing changed, seconds of CPU | {second:.1f} |",
        f"| the same where one row was quarantined since, seconds of CPU | {third:.1f} |",
        f"| in Chromium: first paint, ms | {page['paint']:.0f} |",
        f"| a letter in the filter, the slowest of 6, ms | {page['filter']:.0f} |",
        f"| a click on a head, the slowest of 13, ms | {page['sort']:.0f} |",
        f"| elements in the page | {page['elements']:,} |",
        f"| memory of its script, MiB | {page['heap']:.0f} |",
    ]
    write_section(_TITLE, _COMMAND, details, lines)


if __name__ == "__main__":
    main()
