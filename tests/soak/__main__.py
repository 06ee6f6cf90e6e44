"""The soak of `make test-long`: `python -m tests.soak --minutes 5 [--seed N] [--workers N] [--engine stream]`."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

import demux
from tests.soak.soak import Plan, Soak


def main() -> int:
    """Return the exit code: 0 where all was well."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2, help="repairs at the same time")
    parser.add_argument("--engine", default="auto", choices=("auto", "fleet", "stream"))
    parser.add_argument("--folder", type=Path, help="a new folder to work in, which stays")
    asked = parser.parse_args()
    folder = asked.folder or Path(tempfile.mkdtemp(prefix="demux-soak-"))
    print(f"{asked.minutes:g} minutes, seed {asked.seed}, in {folder}, of {Path(demux.__file__).parent}", flush=True)
    soak = Soak(folder, Plan(asked.minutes * 60, asked.seed, asked.workers, asked.engine), _say)
    soak.live()
    soak.rest()
    print(soak.summary())
    if soak.failures:
        print("\n".join(["", *soak.failures, f"logs and tables: {folder}"]))
        return 1
    if asked.folder is None:
        shutil.rmtree(folder)
    return 0


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
