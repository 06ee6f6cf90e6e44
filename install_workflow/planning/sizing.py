"""What a load needs in a day: cores, memory, requests, files and bytes. Pure.

The formula, where each constant was measured, and how far it is off: docs/sizing.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import ceil, isfinite

from demux.core.errors import SettingsInvalid
from demux.core.text import printable

DAY_S = 86_400.0
# seconds of CPU, by the rounds that "What grows with what" in benchmarks/RESULTS.md measured
ROUND_CPU_S = 1.86
ACTIVE_GAME_CPU_S = 0.0158
IDLE_GAME_CPU_S = 0.0005
ROW_CPU_S = 8.1e-6
# what a row has beyond the record and the columns of the measurement
BYTE_CPU_S = 10e-9
COLUMN_CPU_S = 0.1e-6
MEASURED_BYTES = 63
MEASURED_COLUMNS = 10
# a round of ten games, in seconds: more cores make it no shorter
SHORTEST_ROUND_S = 1.2
# of the time; the rest is for peaks and for catching up
BUSY = 0.7
LEAST_CORES = 2
# MiB: driver and JVM, what a process knows of a game, a Python worker with its share of the JVM
DRIVER_MIB = 1_150
GAME_MIB = 0.02
CORE_MIB = 700
# requests of a round: "A root in a store, and one on the disk" in benchmarks/RESULTS.md; compaction: docs/stores.md
ROUND_REQUESTS = 108.0
ACTIVE_GAME_REQUESTS = 10.5
IDLE_GAME_REQUESTS = 0.026
COMPACTION_REQUESTS = 26.0
ROUNDS_PER_COMPACTION = 16
# commits of a round beside those of its games: bronze, quarantine, rounds
ROUND_COMMITS = 2.0
# bytes of bronze and silver: of a file, and for each byte of a record
FILE_BYTES = 5_400
DISK_BYTES_PER_BYTE = 1.38

_ROWS = re.compile(r"([0-9][0-9_]*(?:\.[0-9]+)?(?:[eE]\+?[0-9]{1,3})?) */ *([a-z]+)")
_UNITS_S = {
    **dict.fromkeys(("s", "sec", "second"), 1),
    **dict.fromkeys(("m", "min", "minute"), 60),
    **dict.fromkeys(("h", "hour"), 3600),
    **dict.fromkeys(("d", "day"), 86_400),
}


@dataclass(frozen=True, slots=True)
class SizedLoad:
    """What comes in; raises `SettingsInvalid` where no load is like this.

    Attributes:
        active: games that have new rows in a round.
        bytes_per_record: of a wrapped record, on average.
        columns: of a silver table, on average.
        every_s: seconds from the start of a round to that of the next.
    """

    games: int
    rows_per_day: float
    active: int
    every_s: float = 30.0
    bytes_per_record: int = MEASURED_BYTES
    columns: int = MEASURED_COLUMNS

    def __post_init__(self) -> None:
        for option, value in (("--games", self.games), ("--bytes", self.bytes_per_record), ("--columns", self.columns)):
            if value < 1:
                raise SettingsInvalid(f"{option} {value} is less than 1.", "Write a number from 1 on.", option=option)
        if not 0 <= self.active <= self.games:
            raise SettingsInvalid(
                f"--active {self.active} is not between 0 and the {self.games} games.",
                f"Write at most {self.games}, or more --games.",
                option="--active",
            )


@dataclass(frozen=True, slots=True)
class SizeEstimate:
    """What a load needs.

    Attributes:
        cpu_s: seconds of CPU of a round, by what they are spent on: rows, active games, idle games, the round itself.
        round_s: seconds from the start of a round to that of the next: what was asked for, or what a round takes.
        active: games with new rows in a round, on average.
    """

    cores: int
    memory_mib: int
    requests_per_day: int
    bronze_files_per_day: int
    silver_files_per_day: int
    commits_per_day: int
    bytes_per_day: int
    cpu_s: dict[str, float]
    rounds_per_day: float
    round_s: float
    active: float
    rows_per_round: float


def estimate_size(load: SizedLoad) -> SizeEstimate:
    """Return what the load needs; each figure is as the page of sizing explains it."""
    round_s = max(load.every_s, SHORTEST_ROUND_S)
    rounds, rows = DAY_S / round_s, load.rows_per_day * round_s / DAY_S
    active = min(load.active, rows)
    cpu_s = round_cpu_s(load.games, active, rows, load.bytes_per_record, load.columns)
    cores = max(LEAST_CORES, ceil(sum(cpu_s.values()) / (round_s * BUSY)))
    compactions = rounds * active / ROUNDS_PER_COMPACTION
    new_files, record_bytes = rounds * active, load.rows_per_day * load.bytes_per_record
    return SizeEstimate(
        cores=cores,
        memory_mib=ceil(DRIVER_MIB + GAME_MIB * load.games + CORE_MIB * cores),
        requests_per_day=round(rounds * round_requests(load.games, active) + compactions * COMPACTION_REQUESTS),
        bronze_files_per_day=round(new_files),
        silver_files_per_day=round(new_files + compactions),
        commits_per_day=round(rounds * (active + ROUND_COMMITS)),
        bytes_per_day=round(2 * new_files * FILE_BYTES + record_bytes * DISK_BYTES_PER_BYTE),
        cpu_s=cpu_s,
        rounds_per_day=rounds,
        round_s=round_s,
        active=active,
        rows_per_round=rows,
    )


def round_cpu_s(
    games: int, active: float, rows: float, bytes_per_record: int = MEASURED_BYTES, columns: int = MEASURED_COLUMNS
) -> dict[str, float]:
    """Return the seconds of CPU of a round from source to silver, by what they are spent on."""
    more_bytes, more_columns = max(0, bytes_per_record - MEASURED_BYTES), max(0, columns - MEASURED_COLUMNS)
    return {
        "rows": rows * (ROW_CPU_S + more_bytes * BYTE_CPU_S + more_columns * COLUMN_CPU_S),
        "active games": active * ACTIVE_GAME_CPU_S,
        "idle games": (games - active) * IDLE_GAME_CPU_S,
        "the round itself": ROUND_CPU_S,
    }


def round_requests(games: int, active: float) -> float:
    """Return the requests of a round to the object store, without compaction."""
    return ROUND_REQUESTS + active * ACTIVE_GAME_REQUESTS + (games - active) * IDLE_GAME_REQUESTS


def rows_per_day_of(text: str) -> float:
    """Return the rows a day that a text such as `2e9/day`, `25000/s` or `1_000_000/h` means.

    Raises:
        SettingsInvalid: it is none of these, or no row at all.
    """
    found = _ROWS.fullmatch(text.strip())
    seconds = _UNITS_S.get(found[2]) if found else None
    rows = float(found[1].replace("_", "")) * DAY_S / seconds if found and seconds else 0.0
    if not (rows > 0 and isfinite(rows)):
        raise SettingsInvalid(
            f"--rows {printable(text[:40])!r} is no number of rows a time.",
            "Write a number above 0 and a unit, one of s, min, h and day: 2e9/day, 25000/s.",
            option="--rows",
        )
    return rows
