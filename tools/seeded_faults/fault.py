"""A fault as data, and what a test run says about it. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

# exit codes of pytest: https://docs.pytest.org/en/stable/reference/exit-codes.html
_ALL_PASSED, _SOME_FAILED = 0, 1
_FAILURE = re.compile(r"^(?:FAILED|ERROR) (tests/\S+?::.+?)(?: - .*)?$", re.MULTILINE)


class Lane(Enum):
    """Which environment runs a test; the values are those of `tools/setup.sh`."""

    CURRENT = "current"
    OLDEST = "oldest"


@dataclass(frozen=True, slots=True)
class Fault:
    """A small change of the code that makes it wrong.

    Attributes:
        name: unique, of lower-case words with hyphens.
        file: the changed file, below the root of the project.
        old: text that the file has exactly once.
        new: the text in its place.
        test: the narrowest target of pytest that is expected to fail.
        lane: the environment that runs the test.
    """

    name: str
    file: str
    old: str
    new: str
    test: str
    lane: Lane = Lane.CURRENT

    @property
    def is_unit(self) -> bool:
        """Whether a unit test catches it, without Java."""
        return self.test.startswith("tests/unit/")

    @property
    def command(self) -> str:
        """The smallest command of the Makefile that runs the test."""
        return "make check" if self.is_unit else "make test"

    def put_into(self, source: str) -> str:
        """Return the file's text with the fault.

        Raises:
            ValueError: the old text is not there exactly once.
        """
        count = source.count(self.old)
        if count != 1:
            raise ValueError(f"{self.name}: {self.file} has the old text {count} times, not once.")
        return source.replace(self.old, self.new)


class Verdict(Enum):
    """The result of the test run: the test failed, it passed, or pytest could not run it."""

    CAUGHT = "caught"
    SURVIVED = "SURVIVED"
    NOT_RUN = "NOT RUN"


def verdict_of(exit_code: int) -> Verdict:
    """Return the verdict of an exit code of pytest; a test that cannot be collected catches nothing."""
    return {_ALL_PASSED: Verdict.SURVIVED, _SOME_FAILED: Verdict.CAUGHT}.get(exit_code, Verdict.NOT_RUN)


def failed_tests(output: str) -> list[str]:
    """Return the tests that failed, in the order of pytest's short summary."""
    return _FAILURE.findall(output)


def chosen(faults: Sequence[Fault], names: Sequence[str], *, only_unit: bool) -> list[Fault]:
    """Return the faults of these names, in their own order; without names, all.

    Raises:
        ValueError: there is no fault of one of the names.
    """
    if unknown := sorted(set(names) - {fault.name for fault in faults}):
        raise ValueError(f"There is no fault {', '.join(unknown)}; --list shows all.")
    return [fault for fault in faults if (not names or fault.name in names) and (fault.is_unit or not only_unit)]
