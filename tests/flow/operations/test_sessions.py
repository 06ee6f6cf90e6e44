"""Sessions by the command, behind a silver table that gets rows, columns, and wider columns."""

from __future__ import annotations

from typing import Any

import pytest

from demux.core.names import names_of
from tests.support.flow.process import Command
from tests.support.flow.root import Root, rows, wrapper

GAME = "go'; DROP TABLE `x` --"
MADE = ("sessions", "--game", GAME, "--by", "name", "--time", "at", "--gap", "1m", "--lateness", "0s")


def send(root: Root, schema_id: int, first: int, events: list[tuple[str, int | None]]) -> None:
    message = root.message(schema_id)
    values = []
    for name, second in events:
        one: Any = message(name=name)
        if second is not None:
            one.at.FromSeconds(1_700_000_000 + second)
        values.append(wrapper(GAME, schema_id, one.SerializeToString()))
    root.send(values, first)


def sessions(root: Root) -> list[tuple[Any, ...]]:
    found = rows(root.layout.sessions(names_of(GAME).key))
    names = ("name", "events", "first_record_id", "last_record_id", "_closed_by")
    return sorted((tuple(row[name] for name in names) for row in found), key=repr)


def test_sessions_grow_are_flushed_and_go_on_over_a_table_that_was_widened(
    root: Root, event: str, command: Command
) -> None:
    where = ("--root", str(root.folder))
    first = root.register(GAME, event)
    send(root, first, 0, [("ann", 0), ("ann", 60), ("bob", 300), ("ann", 290), ("bob", None)])
    root.run()
    said = command(*MADE, *where)
    assert (said.code, said.out.splitlines()) == (
        0,
        [
            f"{GAME}: 5 rows taken in, 0 late, 1 without a time",
            "  sessions: 1 closed by the watermark, 0 by a flush, 2 open; 0 rows late since the beginning",
        ],
    )
    ann = ("ann", 2, "t/0/0", "t/0/1", "watermark")
    assert sessions(root) == [("ann", 1, "t/0/3", "t/0/3", None), ann, ("bob", 1, "t/0/2", "t/0/2", None)]

    # rows are written anew for a wider column, and others come: only these are new
    wider = root.register(GAME, event.replace("int64 score = 2", "uint64 score = 2; bool won = 4"))
    send(root, wider, 5, [("ann", 320), ("ann", 200), ("cy", 330)])
    root.run()
    flushed = command(*MADE, "--flush", *where)
    assert flushed.out.splitlines() == [
        f"{GAME}: 3 rows taken in, 1 late, 0 without a time",
        "  sessions: 1 closed by the watermark, 3 by a flush, 0 open; 1 row late since the beginning",
    ]
    done = [
        ann,
        ("ann", 2, "t/0/3", "t/0/5", "flush"),
        ("bob", 1, "t/0/2", "t/0/2", "flush"),
        ("cy", 1, "t/0/7", "t/0/7", "flush"),
    ]
    assert sessions(root) == sorted(done, key=repr)

    # after a flush an event begins a session, however near it is
    send(root, wider, 8, [("cy", 331)])
    root.run()
    assert command(*MADE, *where).code == 0
    assert sessions(root) == sorted([*done, ("cy", 1, "t/0/8", "t/0/8", None)], key=repr)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--gap", "soon", "--by", "name"), "SETTINGS_INVALID --gap 'soon' is no length of time"),
        (("--gap", "1m", "--by", "name"), "GAME_UNKNOWN The game 'go' has no table."),
    ],
)
def test_bad_input_is_a_sentence(root: Root, command: Command, words: tuple[str, ...], said: str) -> None:
    refused = command("sessions", "--game", "go", *words, "--root", str(root.folder))
    assert (refused.code, refused.err.startswith(said) or said in refused.out) == (2, True)
