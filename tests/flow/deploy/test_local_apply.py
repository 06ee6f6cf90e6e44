"""`demux apply` and `destroy` without a deployment: which game runs where on this machine, kept and forgotten."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from demux.core.control.games_and_rounds import Control, KnownGame
from demux.core.root.lock import hold_root
from tests.support.flow.process import Command
from tests.support.flow.root import Root

Copy = Callable[..., Root]


def known(root: Root) -> dict[str, KnownGame]:
    return Control(root.spark, root.layout).known_games()


@pytest.mark.parametrize("engine", [pytest.param("stream", marks=pytest.mark.oldest), "fleet"])
def test_the_life_of_a_plan_on_this_machine(
    taken_in: Root, done: Root, copy: Copy, command: Command, engine: str
) -> None:
    root = copy(taken_in)
    by = ("--root", str(root.folder), "--set", f"run.engine={engine}")
    where = (*by, "--set", "games.limit=1")
    applied = command("apply", *where)
    assert applied.code == 0
    assert "+ create deserialize_chess on cluster_001 (game chess): new game in bronze\n" in applied.out
    assert applied.out.endswith("applied; `demux run` runs the games so\n")
    first = known(root)
    assert {game: one.cluster for game, one in first.items()} == {"chess": "cluster_001", "go": None}

    # a plan after it is empty, and a second apply changes nothing
    plan = json.loads(command("plan", "--json", *where).out)
    assert [(change["game"], change["action"]) for change in plan["changes"]] == [("chess", "keep")]
    again = command("apply", *where)
    assert (again.code, "applied" in again.out) == (0, False)
    assert known(root) == first

    # what was applied is run, though it is no news to the run
    assert command("run", *by).code == 0
    assert root.everything() == done.everything()

    destroyed = command("destroy", *by, "--yes")
    assert (destroyed.code, destroyed.err) == (0, "")
    assert destroyed.out == (
        "- forget where 2 games (chess, go) ran (control/games)\n"
        "destroyed; the tables and checkpoints are as they were\n"
    )
    assert (known(root), root.everything()) == ({}, done.everything())
    nothing = command("destroy", *by, "--yes")
    assert (nothing.code, nothing.out) == (0, "nothing to remove\n")

    # the games are found again, and none of their rows is decoded twice
    plan = json.loads(command("plan", "--json", *by).out)
    assert [(change["game"], change["action"]) for change in plan["changes"]] == [("chess", "create"), ("go", "create")]
    assert f"Engine {engine}." in command("plan", *by).out
    assert command("run", *by).code == 0
    assert (set(known(root)), root.everything()) == ({"chess", "go"}, done.everything())


@pytest.mark.parametrize(
    "words",
    [
        ("apply", "--plan", "plan.json"),
        ("apply", "--wheel", "demux.whl"),
        ("apply", "--discovered"),
        ("apply", "--force"),
        ("apply", "--take-over"),
        ("destroy", "--take-over"),
    ],
    ids=" ".join,
)
def test_what_is_about_a_workspace_is_refused_without_one(root: Root, command: Command, words: tuple[str, ...]) -> None:
    said = command(*words, "--root", str(root.folder))
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("SETTINGS_INVALID databricks.name is not set, so there is no deployment in a workspace.")


def test_nobody_applies_or_destroys_beside_another_command(done: Root, copy: Copy, command: Command) -> None:
    root = copy(done)
    with hold_root(str(root.folder), "run", wait=False):
        for words in (("apply",), ("destroy", "--yes"), ("destroy", "--tables", "--checkpoints", "--yes")):
            said = command(*words, "--root", str(root.folder))
            assert (said.code, said.err.split(" ")[0]) == (5, "ROOT_LOCKED")


def test_where_nobody_can_be_asked_nothing_is_removed_without_a_yes(done: Root, copy: Copy, command: Command) -> None:
    root = copy(done)
    said = command("destroy", "--tables", "--checkpoints", "--root", str(root.folder))
    assert said.code == 2
    assert said.err.startswith("SETTINGS_INVALID There is no terminal to ask on, and --yes is not given.")
    assert root.everything() == done.everything()
    assert set(known(root)) == {"chess", "go"}
