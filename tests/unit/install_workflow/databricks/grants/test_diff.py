"""The difference between the grants that should be and those that are, whatever others did meanwhile."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demux.core.errors import PlanRefused, WorkspaceRefused
from install_workflow.databricks.grants.apply import grants_format
from install_workflow.databricks.grants.desired import Readers, TableLocation
from install_workflow.databricks.grants.diff import (
    PRIVILEGES,
    Grant,
    GrantAction,
    GrantOutcome,
    GrantsPlan,
    GrantsRecord,
    begun,
    compare,
    kind_of,
    record_after,
    require_modest,
    to_read,
)
from install_workflow.databricks.grants.render import as_text, content_of
from install_workflow.planning.plan import WaitingGame

PLACE = TableLocation("prod", "main", "main.silver")
CHESS, GO, LUDO, OLD = (f"main.silver.{game}" for game in ("chess", "go", "ludo", "old"))
NAMES = ("main", "main.silver", CHESS, GO, LUDO, OLD)
PRINCIPALS = ("ann", "bob", "team")


def table_of(game: str, *principals: str) -> Readers:
    return Readers(game, f"main.silver.{game}", principals)


def grant(name: str, principal: str, privilege: str = "") -> Grant:
    return Grant(name, principal, privilege or PRIVILEGES[kind_of(name)])


def held(*grants: Grant, tables: Collection[str] = (CHESS, GO)) -> dict[str, frozenset[Grant] | None]:
    there = ("main", "main.silver", *tables)
    return {name: frozenset(g for g in grants if g.on == name) if name in there else None for name in NAMES}


def way(principal: str, *tables: str) -> tuple[Grant, ...]:
    return tuple(grant(name, principal) for name in ("main", "main.silver", *tables))


def changes(plan: GrantsPlan, action: GrantAction) -> dict[tuple[str, str], str]:
    """The reason of each such change, by name and principal."""
    return {(each.grant.on, each.grant.principal): each.reason for each in plan.changes if each.action is action}


def actions(plan: GrantsPlan) -> set[GrantAction]:
    return {change.action for change in plan.changes}


def test_a_reader_gets_the_table_and_the_way_to_it() -> None:
    plan = compare(PLACE, [table_of("chess", "team"), table_of("go")], held(), GrantsRecord())
    assert [(each.grant.on, each.grant.privilege, each.reason) for each in plan.changes] == [
        ("main", "USE_CATALOG", "the way to the tables of chess"),
        ("main.silver", "USE_SCHEMA", "the way to the tables of chess"),
        (CHESS, "SELECT", "reads the game chess"),
    ]
    assert actions(plan) == {GrantAction.GRANT}


def test_a_way_to_many_tables_names_three() -> None:
    games = [table_of(f"g{number}", "team") for number in range(5)]
    there = {name: frozenset[Grant]() for name in ("main", "main.silver", *(each.table for each in games))}
    plan = compare(PLACE, games, there, GrantsRecord())
    assert plan.changes[0].reason == "the way to the tables of g0, g1, g2 and 2 more"


def test_a_table_that_is_not_there_waits_and_its_readers_get_no_way_to_it() -> None:
    plan = compare(PLACE, [table_of("ludo", "team"), table_of("go")], held(), GrantsRecord())
    assert plan.waiting == (WaitingGame("ludo", "there is no table main.silver.ludo yet"),)
    assert plan.is_empty


@pytest.mark.parametrize(
    ("there", "reason"), [({}, "there is no catalog main yet"), ({"main": ()}, "there is no schema main.silver yet")]
)
def test_what_is_missing_first_is_said(there: Mapping[str, Collection[Grant]], reason: str) -> None:
    assert compare(PLACE, [table_of("chess", "team")], there, GrantsRecord()).waiting == (WaitingGame("chess", reason),)


def test_while_a_table_is_away_its_reader_keeps_the_way_to_it() -> None:
    record = GrantsRecord(frozenset(way("team", LUDO)))
    plan = compare(PLACE, [table_of("ludo", "team")], held(*way("team")), record)
    assert changes(plan, GrantAction.FORGET) == {(LUDO, "team"): "main.silver.ludo is gone"}
    assert changes(plan, GrantAction.KEEP).keys() == {("main", "team"), ("main.silver", "team")}


def test_a_retired_reader_loses_what_we_gave_and_nothing_else() -> None:
    others = (grant(CHESS, "team", "MODIFY"), grant(GO, "team"))
    plan = compare(
        PLACE,
        [table_of("chess"), table_of("go")],
        held(*way("team", CHESS), *others),
        GrantsRecord(frozenset(way("team", CHESS))),
    )
    assert changes(plan, GrantAction.REVOKE) == {
        ("main", "team"): "reads no game's table here any more",
        ("main.silver", "team"): "reads no game's table here any more",
        (CHESS, "team"): "the settings no longer name it for the game chess",
    }
    assert actions(plan) == {GrantAction.REVOKE}
    assert [(each.on, each.privileges) for each in plan.foreign] == [(CHESS, ("MODIFY",)), (GO, ("SELECT",))]


def test_a_reader_of_two_games_that_loses_one_keeps_the_way() -> None:
    ours = way("team", CHESS, GO)
    plan = compare(PLACE, [table_of("chess", "team"), table_of("go")], held(*ours), GrantsRecord(frozenset(ours)))
    assert changes(plan, GrantAction.REVOKE).keys() == {(GO, "team")}


def test_what_somebody_revoked_is_granted_again_and_called_drift() -> None:
    plan = compare(PLACE, [table_of("chess", "team")], held(*way("team")), GrantsRecord(frozenset(way("team", CHESS))))
    assert changes(plan, GrantAction.GRANT) == {(CHESS, "team"): "drift: we granted it, and it is no longer there"}


def test_what_somebody_granted_already_stays_theirs_even_if_it_is_wanted() -> None:
    plan = compare(PLACE, [table_of("chess", "team")], held(*way("team", CHESS)), GrantsRecord())
    assert plan.is_empty
    assert all(each.wanted for each in plan.foreign)
    retired = compare(PLACE, [table_of("chess")], held(*way("team", CHESS)), GrantsRecord())
    assert retired.is_empty
    assert not any(each.wanted for each in retired.foreign)


def test_a_grant_on_the_schema_is_listed_as_one_that_reads_all() -> None:
    wide = (grant("main.silver", "ann", "SELECT"), grant("main", "bob"), grant(CHESS, "ann", "MODIFY"))
    plan = compare(PLACE, [table_of("chess")], held(*wide), GrantsRecord())
    assert [(each.on, each.principal, each.reads) for each in plan.foreign] == [
        ("main", "bob", ""),
        ("main.silver", "ann", "every game's table"),
        (CHESS, "ann", ""),
    ]


def test_an_apply_that_died_is_taken_up() -> None:
    record = GrantsRecord(begun=frozenset(way("team", CHESS, GO)))
    plan = compare(PLACE, [table_of("chess", "team"), table_of("go")], held(*way("team")), record)
    assert changes(plan, GrantAction.CONFIRM).keys() == {("main", "team"), ("main.silver", "team")}
    assert changes(plan, GrantAction.GRANT) == {(CHESS, "team"): "an apply did not finish"}
    assert changes(plan, GrantAction.FORGET) == {(GO, "team"): "an apply did not finish"}


def test_a_plan_that_only_corrects_the_record_is_not_empty_and_makes_no_call() -> None:
    plan = compare(PLACE, [table_of("chess")], held(), GrantsRecord(frozenset({grant(CHESS, "team")})))
    assert changes(plan, GrantAction.FORGET) == {(CHESS, "team"): "it is no longer there"}
    assert not plan.is_empty
    assert plan.calls == {}


def test_tables_that_lose_their_game_are_counted_and_too_many_are_refused() -> None:
    ours = way("team", CHESS, GO)
    plan = compare(PLACE, [table_of("chess", "team")], held(*ours), GrantsRecord(frozenset(ours)))
    assert (plan.recorded_tables, plan.retired_tables) == (2, 1)
    with pytest.raises(PlanRefused, match="1 of 2 tables"):
        require_modest(plan)
    require_modest(plan, 0.5)


def test_a_retired_reader_alone_is_never_too_much() -> None:
    ours = way("team", CHESS, GO)
    require_modest(compare(PLACE, [table_of("chess"), table_of("go")], held(*ours), GrantsRecord(frozenset(ours))))


def test_what_was_recorded_elsewhere_is_read_too() -> None:
    record = GrantsRecord(frozenset({grant("old.silver.chess", "team")}))
    readers = [table_of("chess", "team"), table_of("go")]
    assert to_read(PLACE, readers, record) == (
        *("main", "main.silver", CHESS),
        *("old", "old.silver", "old.silver.chess"),
    )


def test_a_record_is_read_as_it_was_written() -> None:
    record = GrantsRecord(frozenset(way("team \u202e将棋", CHESS)), frozenset(way("ann", GO)))
    assert grants_format("prod").from_text(grants_format("prod").to_text(record), "x") == record


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        grants_format("dev").to_text(GrantsRecord()),
        grants_format("prod").to_text(GrantsRecord()).replace('"version": 2', '"version": 3'),
        grants_format("prod").to_text(GrantsRecord(frozenset({grant(CHESS, "team", "MODIFY")}))),
        grants_format("prod").to_text(GrantsRecord(frozenset({grant("main/../x", "team", "USE_CATALOG")}))),
        grants_format("prod").to_text(GrantsRecord(frozenset({Grant("a.b.c.d", "team", "SELECT")}))),
    ],
)
def test_a_record_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(PlanRefused, match=r"grants/1\.json"):
        grants_format("prod").from_text(text, "grants/1.json")


@dataclass(frozen=True)
class State:
    """What settings, catalog and record say; anything may be in each."""

    readers: tuple[Readers, ...]
    held: dict[str, frozenset[Grant] | None]
    record: GrantsRecord

    @property
    def plan(self) -> GrantsPlan:
        return compare(PLACE, self.readers, self.held, self.record)

    def after(self, plan: GrantsPlan, done: Collection[Grant], record: GrantsRecord) -> State:
        flips = {each.grant: each.action is GrantAction.GRANT for each in plan.changes if each.grant in done}
        now = {
            name: None if grants is None else frozenset({*grants, *(g for g in flips if g.on == name)} - _off(flips))
            for name, grants in self.held.items()
        }
        return State(self.readers, now, record)

    def applied(self) -> State:
        plan = self.plan
        done = {change.grant for changes in plan.calls.values() for change in changes}
        return self.after(plan, done, record_after(plan, done))


def _off(flips: Mapping[Grant, bool]) -> set[Grant]:
    return {each for each, on in flips.items() if not on}


GRANTS = [grant(name, principal) for name in NAMES for principal in PRINCIPALS]
OTHERS = [Grant(name, "ann", "MODIFY") for name in NAMES]


@st.composite
def states(draw: st.DrawFn) -> State:
    games = draw(st.lists(st.sampled_from(["chess", "go", "ludo"]), unique=True))
    some = st.lists(st.sampled_from(PRINCIPALS), unique=True).map(sorted)
    readers = tuple(table_of(game, *draw(some)) for game in sorted(games))
    tables = draw(st.sets(st.sampled_from(NAMES[2:])))
    given_ = draw(st.sets(st.sampled_from([*GRANTS, *OTHERS])))
    granted, started = (draw(st.frozensets(st.sampled_from(GRANTS))) for _ in range(2))
    return State(readers, held(*given_, tables=tables), GrantsRecord(granted, started))


def present(state: State) -> set[Grant]:
    return {each for grants in state.held.values() for each in grants or ()}


@given(states())
def test_after_a_plan_is_applied_there_is_nothing_to_do(state: State) -> None:
    assert state.applied().plan.is_empty


@given(states())
def test_the_grants_of_others_are_never_revoked(state: State) -> None:
    ours = state.record.granted | state.record.begun
    plan = state.plan
    assert {each.grant for each in plan.changes if each.action is GrantAction.REVOKE} <= ours
    assert present(state) - ours <= present(state.applied())
    theirs = {(each.on, each.principal, one) for each in plan.foreign for one in each.privileges}
    assert theirs == {(each.on, each.principal, each.privilege) for each in present(state) - ours}


@given(states())
def test_a_lost_record_revokes_nothing(state: State) -> None:
    lost = State(state.readers, state.held, GrantsRecord())
    assert GrantAction.REVOKE not in actions(lost.plan)
    assert present(state) <= present(lost.applied())


@given(states(), st.data())
def test_an_apply_that_dies_anywhere_ends_the_same_when_it_is_applied_again(state: State, data: st.DataObject) -> None:
    plan = state.plan
    calls = [change.grant for changes in plan.calls.values() for change in changes]
    done = data.draw(st.sets(st.sampled_from(calls))) if calls else set()
    again = state.after(plan, done, begun(plan, state.record)).applied()
    whole = state.applied()
    assert present(again) == present(whole)
    assert again.record == whole.record


@given(states())
def test_a_reader_gets_select_on_the_tables_of_its_own_games_alone(state: State) -> None:
    allowed = {(each.table, principal) for each in state.readers for principal in each.principals}
    new = {each.grant for each in state.plan.changes if each.action is GrantAction.GRANT}
    assert {(each.on, each.principal) for each in new if each.privilege == "SELECT"} <= allowed
    assert {each.privilege for each in new} <= set(PRIVILEGES.values())
    assert all(PRIVILEGES[kind_of(each.on)] == each.privilege for each in new)


def every_action() -> GrantsPlan:
    ours = (*way("team", CHESS), grant(GO, "gone-team"), grant("main", "gone-team"))
    record = GrantsRecord(
        frozenset({*ours, grant(GO, "team"), grant(OLD, "bob")}), frozenset({grant(CHESS, "new-team")})
    )
    theirs = (
        grant("main", "visitors"),
        grant("main.silver", "ann@example.org", "ALL_PRIVILEGES"),
        grant(CHESS, "ann@example.org", "MODIFY"),
        grant(GO, "bob"),
    )
    readers = [table_of("chess", "new-team", "team"), table_of("go", "bob", "team"), table_of("ludo", "team")]
    now = held(*ours, *theirs, grant(CHESS, "new-team"))
    return compare(PLACE, readers, now, record, [WaitingGame("typo", "neither games.allow nor a job has this game")])


PLANS = {
    "every_action": every_action(),
    "nothing_to_do": compare(
        PLACE, [table_of("chess", "team")], held(*way("team", CHESS)), GrantsRecord(frozenset(way("team", CHESS)))
    ),
    "hostile_names": compare(
        PLACE,
        [table_of("chess", "[red]a\x1b[31m", "right\u202eto left"), Readers("two\nlines", LUDO, ("x",))],
        held(grant(CHESS, "zero\u200bwidth")),
        GrantsRecord(),
    ),
}

Golden = Callable[[str, str], None]
plans = pytest.mark.parametrize(("name", "plan"), PLANS.items())


@plans
def test_the_text_is_what_people_have_read_before(name: str, plan: GrantsPlan, golden: Golden) -> None:
    golden(f"grants_plan/{name}.txt", as_text(plan))
    golden(f"grants_plan/{name}_all.txt", as_text(plan, everything=True))


@plans
def test_the_json_is_what_programs_have_read_before(name: str, plan: GrantsPlan, golden: Golden) -> None:
    golden(f"grants_plan/{name}.json", json.dumps(content_of(plan), indent=2))


def test_the_json_of_an_outcome_is_what_programs_have_read_before(golden: Golden) -> None:
    failed = WorkspaceRefused("The workspace does not know team.", "Correct it.")
    content = content_of(PLANS["nothing_to_do"], GrantOutcome(frozenset(way("team")), (failed,)))
    golden("grants_plan/outcome.json", json.dumps(content, indent=2))


@plans
def test_each_line_of_the_text_is_one_line(name: str, plan: GrantsPlan) -> None:
    lines = as_text(plan, everything=True).splitlines()
    assert len(lines) == len(plan.changes) + len(plan.foreign) + len(plan.waiting) + 1
    assert all(line.isprintable() for line in lines)
