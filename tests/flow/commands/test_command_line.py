"""The commands as a person types them: what they print, and how they end."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from demux.core.control.games_and_rounds import Control, TaskOutcome
from tests.support.flow.process import DEMUX, Command, running, wait_for_line, wait_until
from tests.support.flow.root import Root

Copy = Callable[..., Root]

COMMANDS = [
    ("init",),
    ("produce",),
    ("ingest",),
    ("plan",),
    ("run",),
    ("deserialize",),
    ("apply",),
    ("destroy",),
    ("status",),
    ("show",),
    ("reconcile",),
    ("quarantine", "replay"),
    ("rebuild",),
    ("demo",),
    ("schemas", "list"),
    ("schemas", "show"),
    ("schemas", "diff"),
    ("schemas", "check"),
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_the_help_of_every_command_has_an_example(command: Command, words: tuple[str, ...]) -> None:
    said = command(*words, "--help")
    (example,) = (line.strip() for line in said.out.splitlines() if line.strip().startswith("Example: "))
    assert said.code == 0
    assert example.startswith(f"Example: demux {' '.join(words)}")


def test_the_help_lists_every_command(command: Command) -> None:
    said = command("--help")
    assert said.code == 0
    assert [words[0] for words in COMMANDS if f" {words[0]} " not in said.out] == []


def test_all_mistakes_in_the_settings_are_said_at_once_with_their_lines(tmp_path: Path, command: Command) -> None:
    file = tmp_path / "demux.yml"
    file.write_text("root: data\ngames:\n  polcy: auto\n  limit: many\nrun:\n  parallelism: 0\n")
    said = command("run", "-c", str(file), "--set", "run.retries=x")
    assert (said.code, said.out) == (2, "")
    assert said.err == (
        f"SETTINGS_INVALID {file}:3: games.polcy: unknown key; did you mean 'games.policy'?\n"
        f"{file}:4: games.limit: 'many': expected a whole number\n"
        f"{file}:6: run.parallelism: '0': expected 1 or more\n"
        "command line: run.retries: 'x': expected a whole number\n"
        "Correct what is named and run again; `demux init` writes a file with every setting explained.\n"
    )
    assert not (tmp_path / "data").exists()


def test_an_option_that_is_not_there_is_a_usage_error(command: Command) -> None:
    assert command("run", "--evry", "1s").code == 2


def test_the_tables_of_a_root_are_shown(done: Root, copy: Copy, command: Command) -> None:
    root = copy(done)
    where = ("--root", str(root.folder))
    silver, total = len(root.silver("chess")), len(root.bronze())

    status = command("status", *where)
    assert status.code == 0
    (line,) = (line.split() for line in status.out.splitlines() if line.startswith(" chess"))
    bronze = sum(row["game_name"] == "chess" for row in root.bronze())
    assert line[:5] == ["chess", "current", str(bronze), str(silver), "0"]
    assert f" 2 games {total} " in " ".join(status.out.split())
    assert "records without a game, in quarantine: INVALID_GAME_NAME " in status.out

    show = command("show", "chess", "--rows", "2", *where)
    assert show.code == 0
    lines = [[cell.strip() for cell in line.split("│")[1:-1]] for line in show.out.splitlines() if "│" in line]
    assert [name for name, *_ in lines] == root.silver_columns("chess")
    newest = sorted((row["_decoded_at"], row["_offset"]) for row in root.silver("chess"))[-2:]
    assert ["_offset", *(str(offset) for _, offset in reversed(newest))] in lines
    assert f"{silver} rows in {root.silver_path('chess')}" in show.out

    plan = json.loads(command("plan", "--json", *where).out)
    assert [(change["game"], change["action"]) for change in plan["changes"]] == [("chess", "keep"), ("go", "keep")]
    assert plan["waiting"] == []


def test_a_table_that_is_not_there_is_said(done: Root, command: Command, copy: Copy) -> None:
    said = command("show", "Chess", "--root", str(copy(done).folder))
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("GAME_UNKNOWN There is no silver table of a game 'Chess'.\n")


@pytest.mark.both_lanes
def test_a_demonstration_leads_from_nothing_to_tables_and_a_second_one_continues(root: Root, command: Command) -> None:
    where = ("--root", str(root.folder))
    first = command("demo", "--events", "60", "--games", "1", *where)
    assert first.code == 0
    commands = [line.strip().split("  ")[0] for line in first.out.splitlines() if line.startswith("  demux ")]
    assert commands == [
        f"demux show chess --root {root.folder}",
        f"demux produce --versions 4 --root {root.folder}",
        f"demux plan --all --root {root.folder}",
    ]
    assert f"Spark's log is {root.folder}/logs/spark.log" in first.out
    assert command("demo", "--events", "30", "--games", "1", *where).code == 0
    places = len(root.silver("chess")) + len(root.quarantine())
    assert places == len(root.source()) == 90


def test_games_are_decoded_by_name_and_by_key_and_leave_their_records(
    taken_in: Root, done: Root, copy: Copy, command: Command
) -> None:
    root = copy(taken_in)
    said = command("deserialize", "--game", "chess", "--game-key=go", "--game=go", "--root", str(root.folder))
    assert (said.code, said.err) == (0, "")
    assert root.everything() == done.everything()
    history = Control(root.spark, root.layout).history()
    assert {game: (last.outcome, last.rows_in) for game, last in history.last.items()} == {
        game: (TaskOutcome.DONE, sum(row["game_name"] == game for row in root.bronze())) for game in ("chess", "go")
    }
    assert len({last.round_id for last in history.last.values()}) == 1
    assert sorted(line.split(" to silver")[0] for line in said.out.splitlines()) == [
        f"{game}: {last.rows_in:,} rows: {last.rows_silver:,}" for game, last in sorted(history.last.items())
    ]
    again = json.loads(command("deserialize", "--game", "chess", "--json", "--root", str(root.folder)).out)
    assert (again["game"], again["rows_in"], again["error"]) == ("chess", 0, None)


def test_a_task_has_nothing_to_do_for_games_that_bronze_has_no_rows_of(
    taken_in: Root, copy: Copy, command: Command, tmp_path: Path
) -> None:
    root = copy(taken_in)
    words = ("deserialize", "--game=Chess", "--game-key=tetris", "--ignore-unknown")
    said = command(*words, "--game=chess", "--root", str(root.folder))
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith(
        "No game has the key 'tetris'. There is nothing to do.\n"
        "Bronze has no rows of a game Chess. There is nothing to do.\n"
        "chess: "
    )
    assert len(root.silver("chess")) > 0
    # nor has it before bronze is there at all, by any engine
    for place in (root.folder, tmp_path / "new"):
        for engine in ("stream", "fleet"):
            said = command(*words, "--root", str(place), "--set", f"run.engine={engine}")
            assert (said.code, said.err, said.out.count("There is nothing to do.")) == (0, "", 2), (place, engine)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--game", "Chess"], "GAME_UNKNOWN Bronze has no rows of a game Chess."),
        (["--game-key", "tetris"], "GAME_UNKNOWN No game has the key 'tetris'."),
        ([], "SETTINGS_INVALID Say which game."),
    ],
    ids=["name", "key", "none"],
)
def test_a_game_that_nobody_knows_is_said_and_nothing_is_decoded(
    taken_in: Root, copy: Copy, command: Command, words: list[str], sentence: str
) -> None:
    root = copy(taken_in)
    others = ["--game", "chess"] if words else []
    said = command("deserialize", *words, *others, "--root", str(root.folder))
    assert (said.code, said.out, said.err.split("\n")[0]) == (2, "", sentence)
    assert (root.silver("chess"), Control(root.spark, root.layout).history().last) == ([], {})


def test_a_game_that_fails_stops_no_other_and_one_without_rows_has_nothing_to_do(
    streamed: Root, copy: Copy, command: Command
) -> None:
    root = copy(streamed)
    shutil.rmtree(root.silver_path("chess"))
    control = Control(root.spark, root.layout)
    known = [*control.known_games().values()]
    control.replace_games([*known, replace(known[0], name="tetris")])
    words = [f"--game={game}" for game in ("chess", "go", "tetris")]
    said = command("deserialize", *words, "--root", str(root.folder))
    assert (said.code, said.err) == (3, "")
    lines = sorted(said.out.splitlines())
    assert lines[0].startswith("chess: [TABLE_LOST] ")
    assert lines[1].startswith("go: 0 rows: 0 to silver, 0 to quarantine, in ")
    assert lines[2].startswith("tetris: 0 rows: 0 to silver, 0 to quarantine, in ")
    last = Control(root.spark, root.layout).history().last
    assert {game: record.condition for game, record in last.items()} == {
        "chess": "TABLE_LOST",
        "go": None,
        "tetris": None,
    }


def test_the_producers_clean_up_removes_what_it_made_and_nothing_else(done: Root, copy: Copy, command: Command) -> None:
    root = copy(done)
    own = root.folder / "source" / "mine.txt"
    own.write_text("not the producer's")
    said = command("produce", "--clean-up", "--root", str(root.folder))
    assert said.code == 0
    assert said.out.startswith(f"removed: {root.folder}/source; 4 schemas\n")
    assert [path.name for path in (root.folder / "source").iterdir()] == ["mine.txt"]
    assert root.everything() == done.everything()


def test_a_run_that_goes_on_for_ever_ends_cleanly_when_it_is_interrupted_and_keeps_others_out_until_then(
    sent: Root, done: Root, copy: Copy, command: Command
) -> None:
    root = copy(sent)
    with running([DEMUX, "run", "--every", "1h", "--root", str(root.folder)]) as process:
        wait_for_line(process, "2 games had new rows, 0 had none")
        second = command("ingest", "--root", str(root.folder))
        # a terminal sends Ctrl-C to everybody in the process group, Spark's JVM included
        os.killpg(process.pid, signal.SIGINT)
        rest, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    assert "stopping: what is under way finishes" in rest
    assert (second.code, second.err.split("\n")[0]) == (
        5,
        f"ROOT_LOCKED `demux run` (process {process.pid}) is at work on {root.folder}.",
    )
    assert root.everything() == done.everything()


def test_a_run_that_is_terminated_finishes_the_batch_under_way_and_the_next_one_does_the_rest(
    taken_in: Root, done: Root, copy: Copy
) -> None:
    root = copy(taken_in)
    begun = root.folder / "checkpoints" / "silver" / "chess" / "offsets" / "0"
    by_streams = ["--set", "run.parallelism=1", "--set", "run.engine=stream"]
    words = ["run", "--every", "1s", *by_streams, "--root", str(root.folder)]
    with running([DEMUX, *words]) as process:
        wait_until(begun.exists, process)
        process.send_signal(signal.SIGTERM)
        printed, _ = process.communicate(timeout=300)
    assert (process.returncode, "Traceback" in printed) == (0, False)
    # the game under way is complete, the next one was not begun
    assert len(root.silver("chess")) == len(done.silver("chess"))
    assert (begun.parent.parent / "commits" / "0").exists()
    assert root.silver("go") == []

    rest = {end.task.game: end.report.rows_in if end.report else None for end in root.run().ended}
    assert (rest.get("chess", 0), rest["go"]) == (0, sum(row["game_name"] == "go" for row in root.bronze()))
    assert root.everything() == done.everything()
