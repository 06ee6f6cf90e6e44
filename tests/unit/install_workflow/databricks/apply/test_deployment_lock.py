"""The turn of one installer: what is claimed, written, renewed and refused."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from demux.core.errors import ConcurrentChange, DeploymentLocked, PlanRefused
from install_workflow.databricks.apply.deploy import preview_deployment
from install_workflow.databricks.apply.deployment_lock import LEASE, OnClaim
from install_workflow.databricks.diff.deployed_games import DiscoveredGames
from install_workflow.databricks.jobs.job import OWNER_TAG
from install_workflow.databricks.jobs.jobs_api import Workspace
from tests.fakes.workspace.fake import FakeWorkspace
from tests.fakes.workspace.http.faults import ALWAYS, Fault, Way
from tests.support.databricks.installers import (
    AFTER_ALL,
    BEFORE,
    CHANGES,
    LOSERS,
    NEW,
    NOW,
    OLD,
    RECORDS,
    WANTED,
    Clock,
    Installer,
    has_effect,
    newest,
    settings_of,
    state,
)


def test_an_apply_claims_and_frees_with_the_games_as_they_are(fake: FakeWorkspace, ann: Installer) -> None:
    ann.apply()
    first, second = (json.loads(fake.files.held[f"{RECORDS}/{number:08}.json"]) for number in (1, 2))
    assert first["games"] == []
    assert (first["claim"]["by"], first["claim"]["process"]) == ("ann@laptop", "1-ann")
    assert (first["claim"]["at"], first["claim"]["until"]) == ("2025-03-30T12:03:04Z", "2025-03-30T12:18:04Z")
    assert second["claim"] is None
    assert [
        tuple(each["place"][name] for name in ("game", "job_id", "task", "cluster")) for each in second["games"]
    ] == [
        ("chess", 1001, "deserialize_chess", "cluster_001"),
        ("go", 1001, "deserialize_go", "cluster_001"),
        ("ludo", 1002, "deserialize_ludo", "cluster_002"),
        ("tag", 1002, "deserialize_tag", "cluster_002"),
    ]
    assert {each["plan_id"] for each in second["games"]} == {first["claim"]["plan_id"]}
    assert {each["since"] for each in second["games"]} == {"2025-03-30T12:03:04Z"}


def test_a_game_that_stays_where_it_is_keeps_its_plan_and_time(
    fake: FakeWorkspace, ann: Installer, clock: Clock
) -> None:
    ann.apply()
    first = {each.place.game: each for each in newest(fake).games}
    clock.now += timedelta(days=1)
    ann.apply(settings_of("[chess, go, ludo, tag]", games__pinned="{ludo: big, tag: big}"))
    second = {each.place.game: each for each in newest(fake).games}
    assert [second[game] for game in ("chess", "go")] == [first[game] for game in ("chess", "go")]
    assert (second["tag"].place.cluster, second["tag"].since) == ("big", clock.now)
    assert second["tag"].plan_id != first["tag"].plan_id


def test_an_apply_with_nothing_to_do_claims_and_writes_nothing(fake: FakeWorkspace, ann: Installer) -> None:
    ann.apply()
    fake.calls.clear()
    assert not ann.apply()
    assert not any(map(has_effect, fake.calls))


def record_calls(fake: FakeWorkspace) -> list[str]:
    return [f"{call.method} {call.path.rpartition('/')[2]}" for call in fake.calls if "deployment.prod" in call.path]


def test_the_lock_takes_the_same_few_calls_however_many_jobs_change(fake: FakeWorkspace, ann: Installer) -> None:
    ann.apply(BEFORE, OLD)
    fake.calls.clear()
    ann.apply()
    assert sum(call.path in CHANGES for call in fake.calls) == 4
    read = ["GET deployment.prod", "GET 00000002.json"]
    assert record_calls(fake) == [
        *read,
        *("PUT deployment.prod", "PUT 00000003.json", "GET deployment.prod", "GET 00000002.json", "GET 00000003.json"),
        *("PUT deployment.prod", "PUT 00000004.json", "GET deployment.prod", "GET 00000003.json", "GET 00000004.json"),
    ]


@pytest.mark.parametrize("lost", ["all", "other games"])
def test_a_record_that_is_not_as_the_jobs_are_is_put_right(
    fake: FakeWorkspace, ann: Installer, clock: Clock, lost: str
) -> None:
    ann.apply()
    wanted = state(fake)
    if lost == "all":
        fake.files.held = {path: text for path, text in fake.files.held.items() if not path.startswith(RECORDS)}
    else:
        path = f"{RECORDS}/00000002.json"
        fake.files.held[path] = fake.files.held[path].replace(b"1002", b"7")
    clock.now += timedelta(hours=1)
    assert ann.apply()
    assert state(fake) == wanted
    assert not ann.apply()


def test_who_comes_while_another_installs_is_told_who_and_how_long(ann: Installer, bob: Installer) -> None:
    said: list[DeploymentLocked] = []

    def come(_: object) -> None:
        with pytest.raises(DeploymentLocked) as locked:
            bob.apply()
        said.append(locked.value)

    ann.apply(tell=come)
    assert said[0].message == "Another command installs prod since 12:03:04 UTC (ann@laptop, process 1-ann)."
    assert said[0].remedy == "Wait until 12:18:04 UTC, or give --take-over if it is dead."


def test_the_claim_is_renewed_as_long_as_it_lives(
    fake: FakeWorkspace, ann: Installer, bob: Installer, clock: Clock
) -> None:
    def slow(_: object) -> None:
        clock.now += timedelta(minutes=4)
        with pytest.raises(DeploymentLocked):
            bob.apply()

    ann.apply(tell=slow)
    assert clock.now > NOW + LEASE
    assert newest(fake).claim is None
    assert len(fake.jobs.held) == 3


def test_a_quick_apply_renews_nothing(fake: FakeWorkspace, ann: Installer, clock: Clock) -> None:
    def quick(_: object) -> None:
        clock.now += timedelta(seconds=25)

    ann.apply(tell=quick)
    assert sorted(path[-7:-5] for path in fake.files.held if path.startswith(RECORDS)) == ["01", "02"]


@pytest.mark.parametrize("way", ["end", "take over"])
def test_who_slept_too_long_makes_no_further_call(
    fake: FakeWorkspace, ann: Installer, bob: Installer, clock: Clock, way: str
) -> None:
    slept: list[object] = []

    def sleep(step: object) -> None:
        if not slept:
            slept.append(step)
            clock.now += AFTER_ALL if way == "end" else timedelta(minutes=4)
            bob.apply(on_claim=OnClaim.REFUSE if way == "end" else OnClaim.TAKE_OVER)
            fake.calls.clear()

    with pytest.raises(ConcurrentChange, match=LOSERS):
        ann.apply(tell=sleep)
    assert not any(call.path in CHANGES for call in fake.calls)
    assert newest(fake).claim is None
    assert not bob.apply()


@pytest.mark.parametrize("longer", [timedelta(minutes=4), AFTER_ALL])
def test_a_create_that_is_repeated_after_a_long_question_is_within_the_claim(
    fake: FakeWorkspace, ann: Installer, bob: Installer, clock: Clock, longer: timedelta
) -> None:
    fake.faults.plan(Fault(Way.RESET, path="jobs/create"))
    asked: list[timedelta] = []

    def slow() -> None:
        if fake.faults.happened and not asked:
            asked.append(longer)
            clock.now += longer

    ann.connection.before = slow
    ann.apply()
    assert asked == [longer]
    assert len(fake.jobs.held) == 3
    assert sorted(path[-7:-5] for path in fake.files.held if path.startswith(RECORDS)) == ["01", "02", "03"]
    assert not bob.apply()


@pytest.mark.parametrize("way", [Way.UNAVAILABLE, Way.DENIED])
def test_an_old_version_that_cannot_be_removed_fails_nothing(fake: FakeWorkspace, ann: Installer, way: Way) -> None:
    fake.faults.plan(Fault(way, method="DELETE", path="deployment.prod", times=ALWAYS))
    for number in range(1, 7):
        ann.apply(settings_of("[chess]", databricks__retries=str(number)))
        assert newest(fake).claim is None
    assert fake.faults.happened
    assert len([path for path in fake.files.held if path.startswith(RECORDS)]) == 12


def test_a_destroy_removes_only_our_files_of_the_records_folder(fake: FakeWorkspace, ann: Installer) -> None:
    ann.apply()
    fake.files.held[f"{RECORDS}/notes.txt"] = b"by hand"
    ann.destroy()
    assert fake.files.held == {f"{RECORDS}/notes.txt": b"by hand"}
    ann.destroy()
    ann.apply()
    assert len(newest(fake).games) == 4


def test_a_record_that_cannot_be_used_stops_the_command_and_may_be_removed(fake: FakeWorkspace, ann: Installer) -> None:
    ann.apply()
    fake.files.held[f"{RECORDS}/00000003.json"] = b"{"
    with pytest.raises(PlanRefused, match=f"{RECORDS}/00000003.json, cannot be used"):
        ann.apply()
    del fake.files.held[f"{RECORDS}/00000003.json"]
    assert not ann.apply()


def test_a_deployment_on_the_root_of_another_is_refused(fake: FakeWorkspace, ann: Installer) -> None:
    ann.apply()
    other = settings_of("[chess]", databricks__name="dev")
    with pytest.raises(PlanRefused, match="on the root s3://bucket/demux, which would run the same checkpoints: prod"):
        preview_deployment(Workspace(ann.connection), other, NEW, DiscoveredGames())
    elsewhere = settings_of("[chess]", databricks__name="dev", root="s3://bucket/dev")
    assert preview_deployment(Workspace(ann.connection), elsewhere, NEW, DiscoveredGames()).plan.changes
    for job in fake.jobs.held.values():
        job.settings["tags"][OWNER_TAG] = ""
    assert preview_deployment(Workspace(ann.connection), other, NEW, DiscoveredGames()).plan.changes


def cluster_of(fake: FakeWorkspace, job_id: int) -> dict[str, Any]:
    cluster: dict[str, Any] = fake.jobs.held[job_id].settings["job_clusters"][0]["new_cluster"]
    return cluster


def zone_set_by_hand(fake: FakeWorkspace, job_id: int) -> None:
    cluster_of(fake, job_id)["aws_attributes"] = {"availability": "SPOT_WITH_FALLBACK", "zone_id": "us-east-1f"}


def test_what_the_server_chose_is_on_record_and_set_back_where_a_hand_changed_it(
    fake: FakeWorkspace, ann: Installer, bob: Installer
) -> None:
    ann.apply()
    assert sorted(newest(fake).filled) == [1001, 1002, 1003]
    zone_set_by_hand(fake, 1002)
    plan = preview_deployment(Workspace(bob.connection), WANTED, NEW, DiscoveredGames(), newest(fake).filled).plan
    (found,) = [detail for change in plan.changes for detail in change.details]
    assert (found.field, found.before, found.after) == ("aws_attributes.zone_id", "us-east-1f", "us-east-1c")
    assert bob.apply()
    assert cluster_of(fake, 1002)["aws_attributes"]["zone_id"] == "us-east-1c"
    assert not bob.apply()


def test_a_record_of_an_earlier_release_learns_what_the_server_chose_by_an_apply_with_nothing_to_do(
    fake: FakeWorkspace, ann: Installer
) -> None:
    ann.apply()
    path = f"{RECORDS}/00000002.json"
    content = json.loads(fake.files.held[path])
    filled = content.pop("filled")
    fake.files.held[path] = json.dumps(content).encode()
    assert ann.apply()
    assert json.loads(fake.files.held[f"{RECORDS}/00000003.json"])["filled"] == filled
    assert not ann.apply()


@pytest.mark.parametrize("cloud", ["azure", "unknown"])
def test_a_second_apply_changes_nothing_whatever_the_server_fills_in(
    fake: FakeWorkspace, ann: Installer, cloud: str
) -> None:
    fake.jobs.compute.cloud = cloud
    try:
        ann.apply(BEFORE, OLD)
        ann.apply()
        assert not ann.apply()
    finally:
        fake.jobs.compute.cloud = "aws"


def test_of_a_job_that_is_being_written_nothing_is_known_until_the_end(fake: FakeWorkspace, ann: Installer) -> None:
    ann.apply(BEFORE, OLD)
    before = newest(fake).filled
    during = []
    ann.apply(tell=lambda _: during.append(newest(fake).filled))
    assert (sorted(before), sorted(during[0]), sorted(newest(fake).filled)) == (
        [1001, 1002, 1003],
        [],
        [1001, 1003, 1004],
    )
