"""Two installers of one deployment, at once or one after the other's end: nothing doubles, and the loser is told."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

import pytest

from demux.core.errors import ConcurrentChange, DemuxError, DeploymentLocked, WorkspaceUnavailable
from install_workflow.databricks.apply.deploy import install, preview_deployment
from install_workflow.databricks.apply.deployment_lock import OnClaim
from install_workflow.databricks.diff.deployed_games import DiscoveredGames, PlacementOutcome, deployed_places
from install_workflow.databricks.jobs.jobs_api import Workspace
from tests.fakes.workspace.fake import FakeWorkspace
from tests.fakes.workspace.http.faults import Fault, Way, When
from tests.support.databricks.installers import (
    AFTER_ALL,
    BEFORE,
    CHANGES,
    LOSERS,
    NEW,
    NOW,
    OLD,
    ONCE,
    RECORDS,
    WANTED,
    Clock,
    Installer,
    Machine,
    before_call,
    calls_of,
    emptied,
    has_effect,
    newest,
    settings_of,
    state,
)


@pytest.fixture(params=[pytest.param("nothing", marks=pytest.mark.long), "other games"])
def start(request: pytest.FixtureRequest, fake: FakeWorkspace, clock: Clock) -> Callable[[], None]:
    """Puts the workspace into the state that the installers find."""
    emptied(fake)
    if request.param == "other games":
        Installer(fake, "0-before", clock).apply(BEFORE, OLD)
    jobs, files, folders = dict(fake.jobs.held), dict(fake.files.held), set(fake.files.folders)
    settings = {job_id: dict(job.settings) for job_id, job in jobs.items()}

    def put() -> None:
        emptied(fake)
        for job_id, job in jobs.items():
            job.settings = dict(settings[job_id])
        fake.jobs.held.update(jobs)
        fake.files.held.update(files)
        fake.files.folders.update(folders)
        fake.jobs.next_id = 1001 + len(jobs)
        clock.now = NOW

    return put


@pytest.fixture
def goal(start: Callable[[], None], fake: FakeWorkspace, ann: Installer) -> list[object]:
    """What an apply in peace makes."""
    start()
    ann.apply()
    assert len(fake.jobs.held) == 3
    return state(fake)


@pytest.fixture
def installed(fake: FakeWorkspace, bob: Installer) -> list[object]:
    """What a first apply in peace makes, and made."""
    bob.apply()
    return state(fake)


@pytest.mark.thorough
def test_two_installers_at_once_double_nothing_wherever_the_second_one_comes(
    start: Callable[[], None], goal: list[object], fake: FakeWorkspace, ann: Installer, bob: Installer
) -> None:
    start()
    outcomes = set()
    for number in range(calls_of(ann.apply, ann) + 1):
        start()
        errors: dict[str, DemuxError] = {}

        def come(errors: dict[str, DemuxError] = errors) -> None:
            try:
                bob.apply()
            except DemuxError as refused:
                errors["bob"] = refused

        ann.connection.before = before_call(number, come)
        try:
            ann.apply()
        except DemuxError as error:
            errors["ann"] = error
        ann.connection.before = lambda: None
        for lost in errors.values():
            assert isinstance(lost, DeploymentLocked | ConcurrentChange), (number, lost)
            assert re.match(LOSERS, lost.message), number
        outcomes.add(frozenset(errors))
        assert len(errors) < 2, number
        ann.apply()
        assert state(fake) == goal, number
        assert not bob.apply(), number
    assert outcomes == {frozenset(), frozenset({"ann"}), frozenset({"bob"})}


@pytest.mark.thorough
def test_a_destroy_at_any_moment_of_an_apply_leaves_nothing_double_or_half(
    start: Callable[[], None], goal: list[object], fake: FakeWorkspace, ann: Installer, bob: Installer
) -> None:
    start()
    for number in range(calls_of(ann.apply, ann) + 1):
        start()

        def come() -> None:
            with suppress(DeploymentLocked):
                bob.destroy()

        ann.connection.before = before_call(number, come)
        with suppress(ConcurrentChange):
            ann.apply()
        ann.connection.before = lambda: None
        ann.apply()
        assert state(fake) == goal, number


@pytest.mark.thorough
def test_a_destroy_and_an_apply_at_any_moment_of_an_apply_leave_nothing_double_or_half(
    start: Callable[[], None], goal: list[object], fake: FakeWorkspace, ann: Installer, bob: Installer
) -> None:
    start()
    for number in range(calls_of(ann.apply, ann) + 1):
        start()

        def come() -> None:
            with suppress(DeploymentLocked):
                bob.destroy()
                bob.apply()

        ann.connection.before = before_call(number, come)
        with suppress(ConcurrentChange):
            ann.apply()
        ann.connection.before = lambda: None
        assert newest(fake).claim is None, number
        ann.apply()
        assert state(fake) == goal, number


@pytest.mark.parametrize("games", ["[]", "[chess]"])
def test_a_plan_from_before_a_destroy_is_stale_though_the_record_has_the_same_number_again(
    fake: FakeWorkspace, ann: Installer, bob: Installer, games: str
) -> None:
    bob.apply(settings_of(games))
    turn = ann.turn()
    turn.begin()
    plan = preview_deployment(Workspace(ann.connection), WANTED, NEW, DiscoveredGames()).plan
    bob.destroy()
    bob.apply(settings_of(games))
    jobs, record = dict(fake.jobs.held), newest(fake)
    fake.calls.clear()
    with pytest.raises(ConcurrentChange, match=LOSERS):
        install(Workspace(ann.connection), NEW, plan, lambda _: None, turn)
    assert not any(call.path in CHANGES for call in fake.calls)
    assert (fake.jobs.held, newest(fake)) == (jobs, record)
    ann.apply()
    assert len(fake.jobs.held) == 3


def test_who_slept_through_a_destroy_and_an_apply_writes_no_record_over_theirs(
    fake: FakeWorkspace, ann: Installer, bob: Installer, clock: Clock
) -> None:
    bob.apply(settings_of("[chess, go]"))
    turn = ann.turn()
    turn.begin()
    records = []

    def work() -> PlacementOutcome:
        clock.now += AFTER_ALL
        bob.destroy()
        bob.apply(settings_of("[chess]"))
        bob.apply()
        # its claim has the number of ours, and the place after it is free, as while it works
        del fake.files.held[f"{RECORDS}/00000004.json"]
        records.append(newest(fake))
        return PlacementOutcome()

    with pytest.raises(ConcurrentChange, match=LOSERS):
        turn.run("27af", work, lambda: ())
    assert records == [newest(fake)]
    assert records[0].claim is not None


@pytest.mark.thorough
def test_an_apply_at_any_moment_of_a_destroy_leaves_nothing_double_or_half(
    installed: list[object], fake: FakeWorkspace, ann: Installer, bob: Installer
) -> None:
    calls = calls_of(ann.destroy, ann)
    assert (fake.jobs.held, fake.files.held) == ({}, {})
    for number in range(calls + 1):
        emptied(fake)
        bob.apply()

        def come() -> None:
            with suppress(DeploymentLocked, ConcurrentChange):
                bob.apply()

        ann.connection.before = before_call(number, come)
        with suppress(ConcurrentChange):
            ann.destroy()
        ann.connection.before = lambda: None
        bob.apply()
        assert state(fake) == installed, number


class Killed(BaseException):
    """The end of a program: no call comes any more."""


def killed() -> None:
    raise Killed


@pytest.mark.thorough
@pytest.mark.parametrize("on_claim", OnClaim)
def test_an_apply_that_was_killed_between_any_two_calls_is_finished_by_another(
    start: Callable[[], None],
    goal: list[object],
    fake: FakeWorkspace,
    ann: Installer,
    bob: Installer,
    clock: Clock,
    on_claim: OnClaim,
) -> None:
    start()
    locked = 0
    for number in range(calls_of(ann.apply, ann)):
        start()
        ann.connection.before = before_call(number, killed, again=True)
        with pytest.raises(Killed):
            ann.apply()
        if newest(fake).claim:
            locked += 1
            with pytest.raises(DeploymentLocked):
                bob.apply()
        clock.now += AFTER_ALL if on_claim is OnClaim.REFUSE else timedelta()
        bob.apply(on_claim=on_claim)
        assert state(fake) == goal, number
        assert not bob.apply(), number
    assert locked > 5


def recorded_as_deployed(fake: FakeWorkspace, installer: Installer) -> bool:
    """Whether the record has the games where the jobs have them, and nobody has claimed it."""
    record, jobs = newest(fake), Workspace(installer.connection).find("prod", ()).jobs
    return record.claim is None and {each.place for each in record.games} == {*deployed_places(jobs, ())}


def interrupt() -> None:
    raise KeyboardInterrupt


@pytest.mark.thorough
def test_an_apply_that_somebody_interrupts_frees_its_claim(
    start: Callable[[], None], goal: list[object], fake: FakeWorkspace, ann: Installer, bob: Installer
) -> None:
    start()
    for number in range(calls_of(ann.apply, ann)):
        start()
        ann.connection.before = before_call(number, interrupt)
        with pytest.raises(KeyboardInterrupt):
            ann.apply()
        ann.connection.before = lambda: None
        assert recorded_as_deployed(fake, ann), number
        bob.apply()
        assert state(fake) == goal, number


FAULTS = [
    *((way, When.BEFORE) for way in (Way.THROTTLED, Way.INTERNAL_ERROR, Way.RESET)),
    *((way, When.AFTER) for way in (Way.UNAVAILABLE, Way.RESET)),
]


def positions(fake: FakeWorkspace, ann: Installer, start: Callable[[], None], when: When) -> list[int]:
    """The calls of an apply at which something may fail, counted from 1."""
    start()
    ann.apply()
    return [number for number, call in enumerate(fake.calls, 1) if when is When.BEFORE or has_effect(call)]


@pytest.mark.thorough
@pytest.mark.parametrize(("way", "when"), FAULTS, ids=lambda value: value.value)
def test_any_call_may_fail_once(
    start: Callable[[], None], goal: list[object], fake: FakeWorkspace, ann: Installer, way: Way, when: When
) -> None:
    for position in positions(fake, ann, start, when):
        start()
        fake.faults.plan(Fault(way, nth=position, when=when))
        ann.apply()
        assert len(fake.faults.happened) == 1, position
        assert state(fake) == goal, position


@pytest.mark.thorough
@pytest.mark.parametrize(("way", "when"), FAULTS, ids=lambda value: value.value)
def test_an_apply_that_a_failing_call_ended_is_finished_by_the_next(
    start: Callable[[], None],
    goal: list[object],
    fake: FakeWorkspace,
    ann: Installer,
    clock: Clock,
    way: Way,
    when: When,
) -> None:
    once = Installer(fake, "3-once", clock, ONCE)
    for position in positions(fake, ann, start, when):
        start()
        fake.faults.plan(Fault(way, nth=position, when=when))
        with pytest.raises(WorkspaceUnavailable):
            once.apply()
        assert recorded_as_deployed(fake, ann), position
        ann.apply()
        assert state(fake) == goal, position
        assert not ann.apply(), position


@pytest.mark.thorough
@pytest.mark.parametrize("on_claim", OnClaim)
@pytest.mark.usefixtures("installed")
def test_a_destroy_that_was_killed_between_any_two_calls_is_finished_by_another(
    fake: FakeWorkspace, ann: Installer, bob: Installer, clock: Clock, on_claim: OnClaim
) -> None:
    for number in range(calls_of(ann.destroy, ann)):
        emptied(fake)
        clock.now = NOW
        bob.apply()
        ann.connection.before = before_call(number, killed, again=True)
        with pytest.raises(Killed):
            ann.destroy()
        clock.now += AFTER_ALL if on_claim is OnClaim.REFUSE else timedelta()
        bob.destroy(on_claim)
        assert (fake.jobs.held, fake.files.held) == ({}, {}), number
        assert fake.files.folders == set(), number


def killed_on(machine: Machine) -> None:
    machine.kill()
    raise Killed


@pytest.mark.thorough
@pytest.mark.parametrize("doing", ["apply", "destroy"])
def test_who_was_killed_runs_the_same_command_again_at_once_and_others_wait(
    installed: list[object], fake: FakeWorkspace, bob: Installer, clock: Clock, doing: str
) -> None:
    machine, number, locked = Machine(), 0, 0
    while True:
        emptied(fake)
        if doing == "destroy":
            bob.apply()
        first = Installer(fake, f"{number}-first", clock, machine=machine)
        first.connection.before = before_call(number, lambda: killed_on(machine), again=True)
        with suppress(Killed):
            getattr(first, doing)()
            break
        if newest(fake).claim is not None:
            locked += 1
            for other in (bob, Installer(fake, "3-carl", clock, machine=machine, by="carl@laptop")):
                with pytest.raises(DeploymentLocked):
                    other.apply()
        again = Installer(fake, f"{number}-again", clock, machine=machine)
        getattr(again, doing)()
        if doing == "apply":
            assert state(fake) == installed, number
        else:
            assert (fake.jobs.held, fake.files.held, fake.files.folders) == ({}, {}, set()), number
        number += 1
    assert locked > 5
    assert machine.alive == set()


def test_who_is_alive_on_the_same_machine_is_waited_for_wherever_the_second_one_comes(
    fake: FakeWorkspace, clock: Clock
) -> None:
    machine = Machine()
    calls = calls_of(Installer(fake, "0-count", clock).apply, Installer(fake, "0-count", clock))
    for number in range(0, calls + 20, 3):
        emptied(fake)
        ann, bob = (Installer(fake, f"{number}-{name}", clock, machine=machine) for name in ("ann", "bob"))

        def come(bob: Installer = bob) -> None:
            # `Watched` fails where two work at once
            with suppress(DeploymentLocked, ConcurrentChange):
                bob.apply()

        ann.connection.before = before_call(number, come)
        with suppress(DeploymentLocked, ConcurrentChange):
            ann.apply()
        assert len(fake.jobs.held) == 3, number
        assert newest(fake).claim is None, number
        assert machine.alive == set(), number
