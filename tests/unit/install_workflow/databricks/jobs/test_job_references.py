"""Jobs that run other jobs of the deployment."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demux.core.errors import PlanRefused
from install_workflow.databricks.diff.fields import comparable
from install_workflow.databricks.jobs.job import called_first, parts_called, with_ids, with_parts
from tests.support.databricks.jobs import job

CALLER = job("bronze", {}, calls=["001", "002"])

graphs = st.dictionaries(st.sampled_from("abcdef"), st.frozensets(st.sampled_from("abcdefg")))


def test_the_parts_that_a_job_runs_are_known() -> None:
    assert parts_called(comparable(CALLER.settings)) == {"001", "002"}


def test_a_part_becomes_an_id_and_an_id_the_part_again() -> None:
    deployed = with_ids(CALLER.settings, {"001": 17, "002": 18})
    assert [task["run_job_task"]["job_id"] for task in deployed["tasks"]] == [17, 18]
    assert with_parts(comparable(deployed), {17: "001", 18: "002"}) == comparable(CALLER.settings)


def test_the_id_of_somebody_elses_job_stays() -> None:
    deployed = with_ids(CALLER.settings, {"001": 17, "002": 99})
    assert parts_called(with_parts(comparable(deployed), {17: "001"})) == {"001"}


def test_a_parameter_that_looks_like_a_reference_is_none() -> None:
    settings = job("001", {"cluster_001": ["${part:002}"]}).settings
    assert with_ids(settings, {"002": 18}) == settings
    assert parts_called(comparable(settings)) == set()


def test_a_part_without_a_job_is_refused() -> None:
    with pytest.raises(PlanRefused, match="runs the job of part 002, and there is none"):
        with_ids(CALLER.settings, {"001": 17})


@given(graphs)
def test_every_part_comes_once_and_behind_what_it_calls_unless_they_run_in_circles(
    calls: dict[str, frozenset[str]],
) -> None:
    order = called_first(calls)
    assert sorted(order) == sorted(calls)
    acyclic = {part: frozenset(other for other in called if other > part) for part, called in calls.items()}
    position = {part: number for number, part in enumerate(called_first(acyclic))}
    assert all(position[other] < position[part] for part in acyclic for other in acyclic[part] & position.keys())
