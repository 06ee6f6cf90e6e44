"""`python -m tools.seeded_faults [NAME ...]`, which `make seeded-faults` calls: does a test notice each small fault?"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby

from tools.seeded_faults.fault import Fault, Lane, Verdict, chosen, failed_tests
from tools.seeded_faults.faults import FAULTS
from tools.seeded_faults.tree import Tree, copied

_SHOWN_CHARACTERS = 4_000


def main(words: Sequence[str]) -> int:
    """Return the exit code: 1 where a fault survives or cannot be tried, or a test fails without a fault."""
    parser = argparse.ArgumentParser(prog="python -m tools.seeded_faults", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these faults")
    parser.add_argument("--list", action="store_true", help="show the faults and their tests, and run nothing")
    parser.add_argument("--only-unit", action="store_true", help="only faults that a unit test catches, without Java")
    asked = parser.parse_args(words)
    try:
        faults = chosen(FAULTS, asked.names, only_unit=asked.only_unit)
    except ValueError as error:
        parser.error(str(error))
    if asked.list:
        for fault in faults:
            print(f"{fault.name}  {fault.command}, {fault.lane.value} lane\n  {fault.file}\n  {fault.test}")
        return 0
    with copied() as tree:
        return _try_all(tree, faults) if _pass_without_fault(tree, faults) else 1


def _pass_without_fault(tree: Tree, faults: Iterable[Fault]) -> bool:
    """Return whether all tests pass on the unchanged code, so that a failure means the fault."""

    def place(fault: Fault) -> tuple[str, bool]:
        return fault.lane.value, fault.is_unit

    passed = True
    for (lane, is_unit), group in groupby(sorted(faults, key=place), place):
        tests = sorted({fault.test for fault in group})
        print(f"without a fault: {len(tests)} {'unit ' if is_unit else ''}tests, {lane} lane", flush=True)
        run = tree.run(tests, Lane(lane), is_unit=is_unit, stop_early=False)
        if run.verdict is not Verdict.SURVIVED:
            print(f"They must pass before a fault is tried:\n{run.output[-_SHOWN_CHARACTERS:]}")
            passed = False
    return passed


def _try_all(tree: Tree, faults: Iterable[Fault]) -> int:
    found: Counter[Verdict] = Counter()
    for fault in faults:
        began = time.monotonic()
        try:
            with tree.with_fault(fault):
                run = tree.run([fault.test], fault.lane, is_unit=fault.is_unit, stop_early=True)
        except ValueError as error:
            print(f"{Verdict.NOT_RUN.value:<9} {error}", flush=True)
            found[Verdict.NOT_RUN] += 1
            continue
        found[run.verdict] += 1
        # a test that hangs ends its process before it is named
        test = next(iter(failed_tests(run.output)), fault.test)
        seconds = time.monotonic() - began
        print(f"{run.verdict.value:<9} {fault.name:<36} {fault.command} {seconds:5.1f} s  {test}", flush=True)
        if run.verdict is Verdict.NOT_RUN:
            print(run.output[-_SHOWN_CHARACTERS:])
    print(", ".join(f"{found[verdict]} {verdict.value}" for verdict in Verdict))
    return int(found.total() > found[Verdict.CAUGHT])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
