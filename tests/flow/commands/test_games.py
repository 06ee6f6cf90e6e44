"""Which games get a table: the policy's limit and the allow-list; the rest waits in bronze and loses nothing."""

from __future__ import annotations

import json
from collections.abc import Callable

from demux.pipeline.status import status_reader
from tests.support.flow.process import Command
from tests.support.flow.root import Root

Copy = Callable[..., Root]


def waiting(root: Root) -> dict[str, int | None]:
    return {game.game: game.lag_rows for game in status_reader(root.settings)().games}


def test_games_over_the_limit_wait_in_bronze_until_it_is_raised(
    taken_in: Root, done: Root, copy: Copy, command: Command
) -> None:
    narrow = copy(taken_in, games={"limit": 1})
    first = narrow.run()
    assert [end.task.game for end in first.ended] == ["chess"]
    assert [(game.game, game.reason) for game in first.plan.waiting] == [
        ("go", "games.limit is 1 and as many games are running")
    ]
    rows = sum(row["game_name"] == "go" for row in done.bronze())
    assert waiting(narrow) == {"chess": 0, "go": rows}
    assert narrow.silver("go") == []

    status = command("status", "--root", str(narrow.folder), "--set", "games.limit=1")
    assert status.code == 0
    assert (
        f"go waits in bronze with {rows} rows: games.limit is 1 and as many games are running"
        in status.out.splitlines()
    )
    plan = command("plan", "--json", "--root", str(narrow.folder), "--set", "games.limit=1")
    assert json.loads(plan.out)["waiting"] == [
        {"game": "go", "reason": "games.limit is 1 and as many games are running"}
    ]

    wide = Root.at(narrow.spark, narrow.folder)
    assert [end.task.game for end in wide.run().ended] == ["go"]
    assert waiting(wide) == {"chess": 0, "go": 0}
    assert wide.everything() == done.everything()


def test_with_an_allow_list_only_its_games_get_a_table_and_one_that_is_taken_off_stays_as_it_is(
    taken_in: Root, done: Root, copy: Copy
) -> None:
    only_go = copy(taken_in, games={"policy": "allow-list", "allow": ["go", "tetris"]})
    assert [end.task.game for end in only_go.run().ended] == ["go"]
    assert (only_go.silver("chess"), len(only_go.silver("go"))) == ([], len(done.silver("go")))

    only_chess = Root.at(only_go.spark, only_go.folder, games={"policy": "allow-list", "allow": ["chess"]})
    swapped = only_chess.run()
    assert [end.task.game for end in swapped.ended] == ["chess"]
    assert [(game.game, game.reason) for game in swapped.plan.waiting] == [
        ("go", "games.policy is allow-list and games.allow does not name it")
    ]
    assert only_chess.everything() == done.everything()
