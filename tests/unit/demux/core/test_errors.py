"""Conditions and exit codes: what scripts may rely on."""

from __future__ import annotations

import pickle
import re

import pytest

from demux.core.errors import DemuxError, ErrorKind, ExitCode

EVERY = sorted(DemuxError.__subclasses__(), key=lambda error: error.condition)
TRANSIENT_CODES = {ExitCode.TRANSIENT, ExitCode.LOCKED}


def test_no_two_kinds_of_error_have_the_same_condition() -> None:
    conditions = [DemuxError.condition, *(error.condition for error in EVERY)]
    assert len(set(conditions)) == len(conditions) > 10


@pytest.mark.parametrize("error", EVERY, ids=lambda error: error.condition)
def test_a_condition_is_in_upper_snake_and_the_class_says_what_it_means(error: type[DemuxError]) -> None:
    assert re.fullmatch(r"[A-Z]+(_[A-Z]+)*", error.condition)
    assert error.__doc__


@pytest.mark.parametrize("error", EVERY, ids=lambda error: error.condition)
def test_what_may_succeed_later_has_an_exit_code_that_says_so(error: type[DemuxError]) -> None:
    if error.kind is ErrorKind.TRANSIENT:
        assert error.exit_code in TRANSIENT_CODES
    assert error.exit_code is not ExitCode.OK


def test_exit_codes_never_change_between_releases() -> None:
    assert {code.name: code.value for code in ExitCode} == {
        "OK": 0,
        "UNEXPECTED": 1,
        "USAGE": 2,
        "GAMES_FAILED": 3,
        "TRANSIENT": 4,
        "LOCKED": 5,
        "UNBALANCED": 6,
        "UNSEARCHED": 7,
        "INTERRUPTED": 130,
    }


@pytest.mark.parametrize("error", EVERY, ids=lambda error: error.condition)
def test_an_error_of_a_worker_reaches_the_driver_whole(error: type[DemuxError]) -> None:
    (again,) = pickle.loads(pickle.dumps([error("What was.", "What to do.", path="/a")]))
    assert (type(again), again.message, again.remedy, again.fields, str(again)) == (
        error,
        "What was.",
        "What to do.",
        {"path": "/a"},
        f"[{error.condition}] What was. What to do.",
    )
