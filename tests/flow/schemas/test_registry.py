"""Schemas that come late, change, or cannot be asked for."""

from __future__ import annotations

from demux.pipeline.round import Round
from tests.support.flow.process import Command
from tests.support.flow.root import Root, wrapper


def ends(result: Round) -> dict[str, str]:
    return {end.task.game: "done" if end.error is None else end.error.condition for end in result.ended}


def test_rows_of_an_unknown_schema_are_decoded_once_by_a_replay_when_it_appears(
    root: Root, event: str, command: Command
) -> None:
    first = root.register("chess", event)
    payload = root.message(first)(name="ann", score=2).SerializeToString()
    root.send([wrapper("chess", schema_id, payload) for schema_id in (first, first + 1, first + 1, -5)])
    root.run()
    assert [(row["record_id"], row["cause"]) for row in root.quarantine()] == [
        (f"t/0/{offset}", "UNKNOWN_SCHEMA") for offset in (1, 2, 3)
    ]

    root.register("chess", event.replace("int64 score = 2;", "int64 score = 2; string more = 9;"))
    again = command("quarantine", "replay", "--root", str(root.folder))
    assert (again.code, again.out) == (0, "chess: 2 decoded, 1 stay\n")
    rows = [(row["_offset"], row["name"], row["score"], row["more"], row["_schema_id"]) for row in root.silver("chess")]
    assert rows == [(0, "ann", 2, None, 1), (1, "ann", 2, "", 2), (2, "ann", 2, "", 2)]
    assert [row["record_id"] for row in root.quarantine()] == ["t/0/3"]
    assert root.silver_columns("chess")[:4] == ["name", "score", "at", "more"]

    once_more = command("quarantine", "replay", "--root", str(root.folder))
    assert (once_more.code, once_more.out) == (0, "chess: 0 decoded, 1 stay\n")
    assert len(root.silver("chess")) == 3
    assert root.run().ended == ()


def test_a_registry_that_does_not_answer_stops_only_games_with_a_schema_that_is_not_known_yet(
    root: Root, event: str, command: Command
) -> None:
    chess, go = root.register("chess", event), root.register("go", f"{event} // go")
    payload = root.message(chess)(name="ann").SerializeToString()
    root.send([wrapper("chess", chess, payload), wrapper("go", go, payload)])
    assert ends(root.run()) == {"chess": "done", "go": "done"}

    later = root.register("go", event.replace("int64 score = 2;", "int64 score = 2; bool more = 9;"))
    root.send([wrapper("chess", chess, payload), wrapper("go", go, payload), wrapper("go", later, payload)], 2)
    registry = root.folder / "registry"
    registry.rename(root.folder / "unplugged")
    said = command("run", "--root", str(root.folder), "--set", "run.retry_wait_s=0", "--set", "run.retries=1")
    assert said.code == 4
    assert "failed: go: REGISTRY_UNAVAILABLE" in said.out
    assert f"The registry cannot use {registry}/registry.yml: No such file or directory." in said.out
    assert [row["_offset"] for row in root.silver("chess")] == [0, 2]
    # nothing of the batch was written, not even the row whose schema is known
    assert [row["_offset"] for row in root.silver("go")] == [1]
    assert root.quarantine() == []

    (root.folder / "unplugged").rename(registry)
    assert ends(root.run()) == {"go": "done"}
    assert [(row["_offset"], row["more"]) for row in root.silver("go")] == [(1, None), (3, None), (4, False)]


def test_a_schema_that_does_not_compile_or_does_not_fit_sets_its_rows_aside_and_the_others_arrive(
    root: Root, event: str
) -> None:
    good = root.register("chess", event)
    broken = root.register("chess", "this is no schema")
    unfit = root.register("chess", event.replace("int64 score", "string score"))
    payload = root.message(good)(name="ann").SerializeToString()
    root.send([wrapper("chess", schema_id, payload) for schema_id in (broken, good, unfit, good)])
    assert ends(root.run()) == {"chess": "done"}
    assert [row["_offset"] for row in root.silver("chess")] == [1, 3]
    first, second = root.quarantine()
    assert (first["record_id"], first["cause"]) == ("t/0/0", "INVALID_SCHEMA")
    assert (second["record_id"], second["cause"], second["sentence"]) == (
        "t/0/2",
        "SCHEMA_CONFLICT",
        f"Schema {unfit} does not fit the table: Column score is BIGINT, the schema writes STRING.",
    )
