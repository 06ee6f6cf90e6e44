"""Which test files run first, and which on the same worker: as `make test-profile` measured."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

# CPU seconds of each file that costs some, the most first; written by `make test-profile`
COSTS = Path(__file__).parents[1] / "costs.txt"
# its servers are started once
_TOGETHER = "tests/kafka/"


def file_of(nodeid: str) -> str:
    """Return the file of a test."""
    return nodeid.partition("::")[0]


def group_of(nodeid: str) -> str:
    """Return what goes to one worker with this test."""
    return _TOGETHER if nodeid.startswith(_TOGETHER) else file_of(nodeid)


def read_costs() -> dict[str, float]:
    """Return the CPU seconds by file."""
    lines = (line.split() for line in COSTS.read_text(encoding="utf-8").splitlines())
    return {file: float(seconds) for seconds, file in lines}


def write_costs(found: Mapping[str, float]) -> None:
    """Keep what was measured, beside what was known of other files."""
    costs = {**read_costs(), **found}
    lines = [f"{costs[file]:.0f} {file}\n" for file in sorted(costs, key=lambda file: (-costs[file], file))]
    COSTS.write_text("".join(line for line in lines if not line.startswith("0 ")), encoding="utf-8")


def rank(nodeid: str, costs: Mapping[str, float]) -> tuple[float, str, float]:
    """Return what to sort tests by: the group that costs the most comes first, and in it the file that does."""
    group = group_of(nodeid)
    whole = sum(cost for file, cost in costs.items() if group_of(file) == group)
    return (-whole, group, -costs.get(file_of(nodeid), 0.0))
