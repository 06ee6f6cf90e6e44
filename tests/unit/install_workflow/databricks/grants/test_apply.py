"""Grants in a workspace over HTTP: who may read what afterwards, whatever fails and whoever else is at work."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

import pytest

from demux.core.errors import ConcurrentChange, DemuxError, PlanRefused, SettingsInvalid
from demux.core.http.client import Tries
from demux.core.names import names_of
from demux.core.settings.loading.loader import load
from install_workflow.databricks.api.client import WorkspaceConnection
from install_workflow.databricks.apply.apply_jobs import apply as install
from install_workflow.databricks.diff.changes import compare
from install_workflow.databricks.grants.apply import GrantsPreview, apply, preview_grants
from install_workflow.databricks.grants.diff import GrantAction, GrantOutcome
from install_workflow.databricks.jobs.jobs_api import Workspace
from tests.fakes.workspace.fake import FakeWorkspace
from tests.fakes.workspace.http.exchange import Request
from tests.fakes.workspace.http.faults import Fault, Way, When
from tests.fakes.workspace.http.server import serving
from tests.support.databricks.jobs import DEPLOYMENT, cluster_named, job, task

CHESS, GO = "main.silver.chess", "main.silver.go"
BRONZE, QUARANTINE = "main.bronze.bronze", "main.bronze.quarantine"
TWO_TEAMS = {"grants.games": {"chess": ["chess-team"], "go": ["go-team"]}}
FOLDERS = ["/Volumes/main/ops/wheels", "/Workspace/Shared/wheels"]
EXPECTED = {
    ("main", "chess-team", "USE_CATALOG"),
    ("main", "go-team", "USE_CATALOG"),
    ("main.silver", "chess-team", "USE_SCHEMA"),
    ("main.silver", "go-team", "USE_SCHEMA"),
    (CHESS, "chess-team", "SELECT"),
    (GO, "go-team", "SELECT"),
}


@pytest.fixture
def fake() -> Iterator[FakeWorkspace]:
    with serving(prepared()) as workspace:
        yield workspace


def prepared() -> FakeWorkspace:
    """A workspace with the tables of two games, bronze and quarantine."""
    workspace = FakeWorkspace()
    for table in (CHESS, GO, BRONZE, QUARANTINE):
        workspace.catalog.add("table", table)
    workspace.catalog.add("volume", "main.ops.wheels")
    return workspace


class Installer:
    """What `demux grants` does, with these settings, for a workspace."""

    def __init__(self, fake: FakeWorkspace, folder: str = FOLDERS[0]) -> None:
        login = {"host": fake.url, "token": fake.token, "auth_type": "pat"}
        self.connection = WorkspaceConnection(login, Tries(retries=0, timeout_s=20))
        self.base = {
            "root": "s3://lake/demux",
            "games.allow": ["chess", "go"],
            "databricks.name": DEPLOYMENT,
            "databricks.cluster.node_type": "i3.xlarge",
            "databricks.wheel_path": folder,
            "tables.catalog": "Main",
        }

    def look(self, known: Iterable[str] = (), **settings: object) -> GrantsPreview:
        given = {name.replace("__", "."): value for name, value in settings.items()}
        return preview_grants(self.connection, load(None, {}, {**self.base, **(given or TWO_TEAMS)}), known=known)

    def apply(self, **settings: object) -> GrantOutcome:
        return apply(self.look((), **settings))


@pytest.fixture
def installer(fake: FakeWorkspace) -> Installer:
    return Installer(fake)


def run_games(installer: Installer, *words: str) -> None:
    """Deploy a job with a task that runs all these games."""
    one = job("001", {})
    one.settings["tasks"].append(task("deserialize_c", ["deserialize", *words], "c"))
    one.settings["job_clusters"].append(cluster_named("c"))
    workspace = Workspace(installer.connection)
    install(workspace, compare([one], workspace.find(DEPLOYMENT, ()).jobs))


def granted(fake: FakeWorkspace) -> set[tuple[str, str, str]]:
    return {
        (each.name, principal, privilege)
        for each in fake.catalog.held.values()
        for principal, privileges in each.grants.items()
        for privilege in privileges
    }


def give(fake: FakeWorkspace, name: str, principal: str, *privileges: str) -> None:
    """Grant by hand; without privileges, revoke."""
    kind = ("catalog", "schema", "table")[name.count(".")]
    held = fake.catalog.held[kind, name].grants
    held[principal] = set(privileges)
    if not privileges:
        del held[principal]


def changes_something(call: Request) -> bool:
    return call.method != "GET"


def record(fake: FakeWorkspace) -> dict[str, list[dict[str, str]]]:
    """The newest record, wherever it is."""
    files = {**fake.files.held, **{path: content for path, content in fake.tree.held.items() if content is not None}}
    newest = max(path for path in files if "/grants." in path)
    content: dict[str, list[dict[str, str]]] = json.loads(files[newest])
    return content


def test_each_team_reads_its_own_game_and_nothing_else(fake: FakeWorkspace, installer: Installer) -> None:
    outcome = installer.apply()
    assert (len(outcome.done), outcome.failed) == (6, ())
    assert granted(fake) == EXPECTED
    may = fake.catalog.may_select
    assert may(CHESS, ["chess-team"])
    assert may(GO, ["go-team"])
    assert not may(GO, ["chess-team"])
    assert not may(CHESS, ["go-team"])
    for team in ("chess-team", "go-team"):
        assert not may(BRONZE, [team])
        assert not may(QUARANTINE, [team])
    assert not may(CHESS, ["somebody"])


def test_games_named_like_bronzes_tables_open_their_own_tables_alone(fake: FakeWorkspace, installer: Installer) -> None:
    games = ["bronze", "quarantine", "bronze.bronze", "../bronze"]
    for game in games:
        fake.catalog.add("table", f"main.silver.{names_of(game).table}")
    installer.base["games.allow"] = games
    installer.apply(grants__patterns={"*": ["team"]})
    assert fake.catalog.may_select("main.silver.bronze", ["team"])
    assert not fake.catalog.may_select(BRONZE, ["team"])
    assert not fake.catalog.may_select(QUARANTINE, ["team"])
    assert {on for on, *_ in granted(fake) if on.startswith("main.bronze")} == set()


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_second_apply_changes_nothing(fake: FakeWorkspace, folder: str) -> None:
    installer = Installer(fake, folder)
    installer.apply()
    fake.calls.clear()
    assert installer.look().plan.is_empty
    assert installer.apply() == GrantOutcome()
    assert not any(changes_something(call) for call in fake.calls)


def test_an_apply_makes_one_call_for_each_securable_and_writes_two_records(
    fake: FakeWorkspace, installer: Installer
) -> None:
    outlook = installer.look()
    fake.calls.clear()
    apply(outlook)
    assert [call.path.rpartition("/")[2] for call in fake.calls if call.method == "PATCH"] == [
        *("main", "main.silver"),
        *(CHESS, GO),
    ]
    about_records = [call for call in fake.calls if "/fs/" in call.path]
    assert [f"{call.method} {call.path.rpartition('/')[2]}" for call in about_records] == [
        # the folder is made before each, and each is looked at afterwards
        *("PUT grants.prod", "PUT 00000001.json", "GET grants.prod", "GET 00000001.json"),
        *("PUT grants.prod", "PUT 00000002.json", "GET grants.prod", "GET 00000001.json", "GET 00000002.json"),
    ]


def test_old_records_are_removed(fake: FakeWorkspace, installer: Installer) -> None:
    for number in range(8):
        installer.apply(grants__games={"chess": [f"team-{number}"]})
    numbers = sorted(int(path[-13:-5]) for path in fake.files.held)
    assert numbers == list(range(7, 17))
    assert [each["on"] for each in record(fake)["granted"]] == ["main", "main.silver", CHESS]


def test_a_game_of_the_jobs_gets_its_readers_by_pattern(fake: FakeWorkspace, installer: Installer) -> None:
    run_games(installer, "--game=puzzle_1", f"--game-key={names_of('Пазл').key}", "--game=other")
    for table in ("puzzle_1", "other"):
        fake.catalog.add("table", f"main.silver.{table}")
    patterns = {"puzzle_*": ["puzzle-team"], "П*": ["puzzle-team"]}
    outlook = installer.look(known=["Пазл"], grants__patterns=patterns)
    apply(outlook)
    assert fake.catalog.may_select("main.silver.puzzle_1", ["puzzle-team"])
    assert not fake.catalog.may_select("main.silver.other", ["puzzle-team"])
    assert [each.game for each in outlook.plan.waiting] == ["Пазл"]


def test_a_game_without_a_known_name_keeps_its_readers_while_there_are_patterns(
    fake: FakeWorkspace, installer: Installer
) -> None:
    key = names_of("Пазл").key
    run_games(installer, f"--game-key={key}")
    fake.catalog.add("table", f"main.silver.{key}")
    apply(installer.look(known=["Пазл"], grants__patterns={"П*": ["puzzle-team"]}))
    assert fake.catalog.may_select(f"main.silver.{key}", ["puzzle-team"])
    unknown = installer.look(grants__patterns={"П*": ["puzzle-team"]}).plan
    assert (unknown.is_empty, [each.game for each in unknown.waiting]) == (True, [key])
    apply(installer.look(grants__games={"chess": ["team"]}))
    assert not fake.catalog.may_select(f"main.silver.{key}", ["puzzle-team"])


def test_a_game_that_a_job_knows_by_its_key_needs_its_name(fake: FakeWorkspace, installer: Installer) -> None:
    game = "a{{b}}"
    key = names_of(game).key
    run_games(installer, f"--game-key={key}")
    fake.catalog.add("table", f"main.silver.{key}")
    pattern = installer.look(grants__patterns={"*": ["all-team"]}).plan
    assert [each.game for each in pattern.waiting] == [key]
    assert f"main.silver.{key}" not in pattern.calls
    assert f"main.silver.{key}" in installer.look(grants__games={game: ["team"]}).plan.calls


def test_a_game_without_a_table_or_a_job_waits_and_others_go_on(fake: FakeWorkspace, installer: Installer) -> None:
    del fake.catalog.held["table", GO]
    settings = {"grants__games": {"chess": ["chess-team"], "go": ["go-team"], "ches": ["typo-team"]}}
    outlook = installer.look(**settings)
    assert [(each.game, each.reason) for each in outlook.plan.waiting] == [
        ("go", "there is no table main.silver.go yet"),
        ("ches", "neither games.allow nor a job has this game"),
    ]
    apply(outlook)
    assert {principal for _, principal, _ in granted(fake)} == {"chess-team"}
    fake.catalog.add("table", GO)
    installer.apply(**settings)
    assert granted(fake) == EXPECTED


def test_without_a_catalog_everything_waits(fake: FakeWorkspace, installer: Installer) -> None:
    fake.catalog.held.clear()
    fake.catalog.add("volume", "other.ops.wheels")
    installer.base["databricks.wheel_path"] = "/Volumes/other/ops/wheels"
    plan = installer.look().plan
    assert {each.reason for each in plan.waiting} == {"there is no catalog main yet"}
    assert plan.is_empty


def test_what_was_revoked_by_hand_comes_back(fake: FakeWorkspace, installer: Installer) -> None:
    installer.apply()
    give(fake, CHESS, "chess-team")
    plan = installer.look().plan
    assert [(each.grant.on, each.reason) for each in plan.changes if each.action is GrantAction.GRANT] == [
        (CHESS, "drift: we granted it, and it is no longer there")
    ]
    installer.apply()
    assert granted(fake) == EXPECTED


def test_what_was_granted_by_hand_is_listed_and_stays(fake: FakeWorkspace, installer: Installer) -> None:
    installer.apply()
    give(fake, GO, "ann", "SELECT", "MODIFY")
    plan = installer.look().plan
    assert [(each.on, each.principal, each.privileges) for each in plan.foreign] == [(GO, "ann", ("MODIFY", "SELECT"))]
    assert plan.is_empty
    installer.apply(grants__games={"chess": ["chess-team"]})
    assert (GO, "ann", "SELECT") in granted(fake)
    assert not fake.catalog.may_select(GO, ["go-team"])


def test_a_retired_reader_loses_only_what_we_gave(fake: FakeWorkspace, installer: Installer) -> None:
    give(fake, "main", "go-team", "USE_CATALOG")
    installer.apply()
    give(fake, GO, "go-team", "SELECT", "MODIFY")
    installer.apply(grants__games={"chess": ["chess-team"]})
    assert {each for each in granted(fake) if each[1] == "go-team"} == {
        ("main", "go-team", "USE_CATALOG"),
        (GO, "go-team", "MODIFY"),
    }
    assert record(fake)["begun"] == []
    assert {each["principal"] for each in record(fake)["granted"]} == {"chess-team"}


def test_another_schema_takes_the_grants_of_the_old_one_back(fake: FakeWorkspace, installer: Installer) -> None:
    installer.apply()
    fake.catalog.add("table", "main.gold.chess")
    installer.base["tables.silver"] = "gold"
    installer.apply()
    assert granted(fake) == {
        ("main", "chess-team", "USE_CATALOG"),
        # still on its way: its table is not there yet
        ("main", "go-team", "USE_CATALOG"),
        ("main.gold", "chess-team", "USE_SCHEMA"),
        ("main.gold.chess", "chess-team", "SELECT"),
    }


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_lost_record_revokes_nothing(fake: FakeWorkspace, folder: str) -> None:
    installer = Installer(fake, folder)
    installer.apply()
    fake.files.held.clear()
    for path in [path for path in fake.tree.held if "/grants." in path]:
        del fake.tree.held[path]
    installer.apply(grants__games={"chess": ["chess-team"]})
    assert granted(fake) == EXPECTED


def test_a_record_that_cannot_be_read_stops_before_any_change(fake: FakeWorkspace, installer: Installer) -> None:
    installer.apply()
    newest = max(fake.files.held)
    fake.files.held[newest] = fake.files.held[newest][:-20]
    with pytest.raises(PlanRefused, match=r"grants\.prod/00000002\.json, cannot be used"):
        installer.look()


def test_of_two_at_once_the_later_one_stops_before_any_change(fake: FakeWorkspace, installer: Installer) -> None:
    early, late = installer.look(), installer.look(grants__games={"chess": ["late-team"]})
    apply(early)
    written = dict(fake.files.held)
    fake.calls.clear()
    with pytest.raises(ConcurrentChange, match="at the same time"):
        apply(late)
    assert [call for call in fake.calls if call.method == "PATCH"] == []
    assert fake.files.held == written
    installer.apply(grants__games={"chess": ["late-team"]})
    assert {principal for _, principal, _ in granted(fake)} == {"late-team"}


def test_a_principal_that_nobody_knows_is_named_and_others_go_on(fake: FakeWorkspace, installer: Installer) -> None:
    fake.users.known = frozenset({"chess-team", "go-team"})
    games = {"chess": ["chess-team", "nobody", "no-one"], "go": ["go-team", "nobody"]}
    outcome = installer.apply(grants__games=games)
    assert [error.message for error in outcome.failed] == [
        f"The workspace {fake.url} does not know no-one, nobody: their grants were left out."
    ]
    assert granted(fake) == EXPECTED
    assert {each["principal"] for each in record(fake)["granted"]} == {"chess-team", "go-team"}
    fake.users.known = None
    assert installer.apply(grants__games=games).failed == ()
    assert fake.catalog.may_select(GO, ["nobody"])


def test_an_email_address_is_the_same_in_any_case_and_a_group_is_not(fake: FakeWorkspace, installer: Installer) -> None:
    games = {"chess": ["Ann@Example.org", "Team"], "go": ["ann@example.org", "team"]}
    installer.apply(grants__games=games)
    assert {principal for _, principal, _ in granted(fake)} == {"ann@example.org", "Team", "team"}
    for each in fake.catalog.held.values():
        if "ann@example.org" in each.grants:
            each.grants["ANN@example.org"] = each.grants.pop("ann@example.org")
    plan = installer.look(grants__games=games).plan
    assert plan.is_empty
    assert plan.foreign == ()


def test_what_an_admin_grants_after_we_were_denied_is_the_admins(fake: FakeWorkspace, installer: Installer) -> None:
    fake.catalog.held["catalog", "main"].owner = "admin"
    for each in fake.catalog.held.values():
        if each.kind != "catalog":
            each.owner = fake.users.me
    outcome = installer.apply()
    assert [error.message for error in outcome.failed] == [
        f"At the workspace {fake.url}, we were not permitted to change the grants on main: "
        "User does not have MANAGE on Catalog 'main'."
    ]
    assert granted(fake) == {each for each in EXPECTED if each[0] != "main"}
    give(fake, "main", "go-team", "USE_CATALOG")
    give(fake, "main", "chess-team", "USE_CATALOG")
    assert installer.look().plan.is_empty
    assert installer.apply(grants__games={"chess": ["chess-team"]}).failed == ()
    assert ("main", "go-team", "USE_CATALOG") in granted(fake)


def test_grants_that_were_destroyed_and_made_anew_since_the_plan_are_not_overwritten(
    fake: FakeWorkspace, installer: Installer
) -> None:
    installer.apply()
    outlook = installer.look(grants__games={"chess": ["other-team"]})
    fake.files.held.clear()
    for name, principal, _ in EXPECTED:
        give(fake, name, principal)
    installer.apply(grants__games={"go": ["go-team"]})
    ours, held = record(fake), granted(fake)
    with pytest.raises(ConcurrentChange, match="Another command changed the grants at the same time"):
        apply(outlook)
    assert (record(fake), granted(fake)) == (ours, held)


def test_a_table_dropped_meanwhile_is_told_and_others_go_on(fake: FakeWorkspace, installer: Installer) -> None:
    outlook = installer.look()
    del fake.catalog.held["table", CHESS]
    outcome = apply(outlook)
    assert [error.message for error in outcome.failed] == [
        "The table main.silver.chess was dropped since the plan was made."
    ]
    assert fake.catalog.may_select(GO, ["go-team"])
    assert installer.apply().failed == ()


def positions(folder: str = FOLDERS[0]) -> list[int]:
    """The calls of an apply that count, from 1."""
    with serving(prepared()) as fake:
        Installer(fake, folder).apply()
        return [*range(1, len(fake.calls) + 1)]


@pytest.mark.thorough
@pytest.mark.parametrize("when", When)
@pytest.mark.parametrize(("way", "folder"), [(Way.INTERNAL_ERROR, FOLDERS[0]), (Way.RESET, FOLDERS[1])])
def test_any_call_may_fail_once_and_a_second_apply_ends_the_same(way: Way, folder: str, when: When) -> None:
    for nth in positions(folder):
        with serving(prepared()) as fake:
            give(fake, GO, "ann", "SELECT")
            installer = Installer(fake, folder)
            fake.faults.plan(Fault(way, nth=nth, when=when))
            with pytest.raises(DemuxError):
                installer.apply()
            fake.faults.clear()
            installer.apply()
            assert granted(fake) == {*EXPECTED, (GO, "ann", "SELECT")}
            written = record(fake)
            assert {tuple(each.values()) for each in written["granted"]} == EXPECTED
            assert written["begun"] == []
            assert installer.look().plan.is_empty


@pytest.mark.thorough
@pytest.mark.parametrize("way", [Way.INTERNAL_ERROR, Way.RESET])
def test_a_retiring_that_fails_anywhere_is_finished_by_a_second_apply(way: Way) -> None:
    for nth in positions():
        with serving(prepared()) as fake:
            installer = Installer(fake)
            installer.apply()
            give(fake, GO, "ann", "SELECT")
            fake.faults.plan(Fault(way, nth=nth, when=When.AFTER))
            try:
                installer.apply(grants__games={"chess": ["chess-team"]})
            except DemuxError:
                installer.apply(grants__games={"chess": ["chess-team"]})
            assert granted(fake) == {
                *(each for each in EXPECTED if each[1] == "chess-team"),
                (GO, "ann", "SELECT"),
            }


def test_a_call_whose_answer_was_lost_is_tried_again_and_harms_nothing(fake: FakeWorkspace) -> None:
    installer = Installer(fake)
    login = {"host": fake.url, "token": fake.token, "auth_type": "pat"}
    installer.connection = WorkspaceConnection(login, Tries(retries=2, timeout_s=20), lambda _: None)
    for nth in positions():
        fake.faults.plan(Fault(Way.RESET, nth=nth, when=When.AFTER))
        assert installer.apply(grants__games={"chess": ["chess-team"], "go": ["go-team", f"n{nth}"]}).failed == ()
        fake.faults.clear()
    assert installer.apply().failed == ()
    assert granted(fake) == EXPECTED


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"tables__catalog": None}, "tables.catalog is not set"),
        ({"databricks__name": None, "tables__catalog": None}, "databricks.name is not set; tables.catalog"),
    ],
)
def test_settings_that_do_not_say_where_are_refused(
    installer: Installer, settings: dict[str, object], said: str
) -> None:
    with pytest.raises(SettingsInvalid, match=said):
        installer.look((), **settings)
