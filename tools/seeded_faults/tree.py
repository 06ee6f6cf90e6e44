"""A copy of the project in a temporary folder, in which faults are planted and tests run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tools.seeded_faults.fault import Fault, Lane, Verdict, verdict_of

ROOT = Path(__file__).parents[2]
_LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", ".*_cache", ".hypothesis", "__pycache__", "dist", "build", "demux-data*", "*.egg-info"
)
_PYTEST = ("-m", "pytest", "-q", "--no-header", "--tb=short", "-rfE", "-p", "no:cacheprovider")
# as `make check` runs unit tests, and with the same random inputs each time
_UNIT = ("-m", "not thorough", "--hypothesis-profile", "quick", "--hypothesis-seed", "0")


@dataclass(frozen=True, slots=True)
class Run:
    """One run of pytest: what it says of the code, and all that it printed."""

    verdict: Verdict
    output: str


class Tree:
    """A copy of a project's files as they are now, committed or not."""

    def __init__(self, original: Path, copy: Path) -> None:
        """Use the copy at this path."""
        self._original = original
        self._copy = copy

    @contextmanager
    def with_fault(self, fault: Fault) -> Iterator[None]:
        """Hold the fault in the copy while the block runs.

        Raises:
            ValueError: as `Fault.put_into`.
        """
        original, file = self._original / fault.file, self._copy / fault.file
        file.write_text(fault.put_into(original.read_text("utf-8")), encoding="utf-8")
        # bytecode of the original is known by time and size, which may be the same
        os.utime(file, (0, 0))
        try:
            yield
        finally:
            # with the old time of change, so that its bytecode is still valid
            shutil.copy2(original, file)

    def run(self, tests: Sequence[str], lane: Lane, *, is_unit: bool, stop_early: bool) -> Run:
        """Run tests in the copy, with its code, in a process of their own.

        Args:
            is_unit: whether all are unit tests; others get a Java.
            stop_early: end after the first failure, and write no bytecode: that of a fault must not stay.
        """
        environment = {**os.environ, "PYTHONPATH": str(self._copy)}
        environment.pop("PYTEST_ADDOPTS", None)
        options = [*_PYTEST, *(_UNIT if is_unit else ()), *(("-x",) if stop_early else ())]
        if stop_early:
            environment["PYTHONDONTWRITEBYTECODE"] = "1"
        if not is_unit:
            environment["JAVA_HOME"] = self._java(lane)
        ended = subprocess.run(
            [self._python(lane), *options, *tests],
            cwd=self._copy,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        return Run(verdict_of(ended.returncode), ended.stdout)

    def _python(self, lane: Lane) -> str:
        path = self._original / ".venv" / lane.value / "bin" / "python"
        return str(path) if path.exists() else sys.executable

    def _java(self, lane: Lane) -> str:
        command = ["sh", "tools/setup.sh", "java", lane.value]
        return subprocess.run(command, cwd=self._original, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


@contextmanager
def copied(original: Path = ROOT) -> Iterator[Tree]:
    """Give a copy of the project, and remove it afterwards."""
    with tempfile.TemporaryDirectory(prefix="seeded-faults-") as folder:
        copy = Path(folder) / "project"
        shutil.copytree(original, copy, ignore=_LEFT_OUT)
        yield Tree(original, copy)
