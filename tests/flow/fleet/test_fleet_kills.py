"""A fleet on a folder whose driver, workers and machine are killed at random moments, round after round."""

from __future__ import annotations

from random import Random

import pytest

from tests.support.flow.fleet_kills import BEFORE_FILES, BETWEEN_COMMITS, Run, Scale, Victim, kill_and_compare
from tests.support.flow.fleet_steps import Landmark, Step
from tests.support.flow.root import Root

# each victim after each landmark, once; a whole machine between two games: tests/flow/streams/test_kill.py
_ONCE = Scale(
    12,
    80,
    {
        **{(Victim.DRIVER, landmark): 1 for landmark in Landmark},
        (Victim.WORKERS, Landmark.BEGIN): 1,
        (Victim.WORKERS, Landmark.FILES): 1,
        (Victim.MACHINE, Landmark.BRONZE): 1,
    },
    least=(),
    jobs_lost=0,
)
_HUNDREDS = Scale(
    50,
    200,
    {
        (Victim.DRIVER, Landmark.BEGIN): 48,
        (Victim.DRIVER, Landmark.BRONZE): 48,
        (Victim.DRIVER, Landmark.FILES): 24,
        (Victim.DRIVER, Landmark.QUARANTINE): 20,
        (Victim.DRIVER, Landmark.SILVER): 24,
        (Victim.WORKERS, Landmark.BEGIN): 8,
        (Victim.WORKERS, Landmark.FILES): 20,
        (Victim.MACHINE, Landmark.BRONZE): 4,
        (Victim.MACHINE, Landmark.SILVER): 4,
    },
    least=((BEFORE_FILES, 40), ((Step.FILES,), 12), (BETWEEN_COMMITS, 12)),
    jobs_lost=8,
)


@pytest.mark.timeout(600)
def test_whatever_is_killed_after_each_step_no_row_is_lost_or_doubled_and_every_value_is_right(
    root: Root, seed: int
) -> None:
    kill_and_compare(Run(root, _ONCE, Random(seed)))


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_whatever_is_killed_at_any_moment_no_row_is_lost_or_doubled_and_every_value_is_right(
    root: Root, seed: int
) -> None:
    kill_and_compare(Run(root, _HUNDREDS, Random(seed)))
