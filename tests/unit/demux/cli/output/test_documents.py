"""What `--json` prints has the fields that docs/reference/json.md says, and no others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import TypeAdapter
from typer.testing import CliRunner

from demux.cli.app import app
from demux.cli.output.print_json import DOCUMENTS, as_json
from demux.cli.output.reports import game_content, round_content
from demux.cli.repair.forget_text import found_content
from demux.core.causes import Cause
from demux.core.control.freshness import Freshness
from demux.core.control.games_and_rounds import Control, KnownGame
from demux.core.errors import CheckpointLost, ExitCode, SettingsInvalid
from demux.core.registry.folder import FolderRegistry
from demux.core.registry.protocol import NewSchema
from demux.core.reports import GameReport, IngestReport
from demux.core.root.layout import Layout
from demux.core.settings.games import GamesSettings
from demux.core.tables import SILVER_ORIGIN
from demux.operations.erasure.results import SearchResult
from demux.pipeline.round import Round
from demux.pipeline.task_pool import TaskEnd
from install_workflow.planning.plan import Task, make_plan
from tests.support.databricks.deployments import Demux, write_settings
from tests.support.spark.tables import MOMENT, bronze_row, quarantine_row, write, write_bronze, write_quarantine

HOSTILE = "go\x1b[31m\u202e"
EVENT = 'syntax = "proto3"; package g; message Event { string name = 1; int32 score = 2; }'


def check(document: str, text: str) -> None:
    """Check that the text is ASCII, and has what the document's type has and nothing else."""
    assert text.isascii()
    adapter = TypeAdapter[object](DOCUMENTS[document])
    read = json.loads(text)
    assert adapter.dump_python(adapter.validate_json(text, strict=True), mode="json") == read


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root with two games, rows in each table, and two versions of a schema."""
    monkeypatch.chdir(tmp_path)
    layout = Layout(str(tmp_path / "root"))
    write_bronze(layout.bronze, bronze_row("chess", 1) | {"ingested_at": MOMENT}, bronze_row(HOSTILE, 2))
    rows = [{"_record_id": f"t/0/{offset}", "_decoded_at": MOMENT} for offset in (1, 99)]
    write(layout.silver("chess"), SILVER_ORIGIN, rows)
    write_quarantine(layout.quarantine, quarantine_row(HOSTILE, 2, Cause.MALFORMED_PAYLOAD, 1, b"\x0a\x05\x1b[31m"))
    Control(None, layout).replace_games([KnownGame("chess", "here", "plan", MOMENT)])
    registry = FolderRegistry(tmp_path / "root" / "registry")
    registry.register_all([NewSchema("chess", text, "g.proto") for text in (EVENT, EVENT.replace("score", "points"))])
    (tmp_path / "g.proto").write_text(EVENT.replace("int32 score", "string score"), encoding="utf-8")
    return tmp_path / "root"


@pytest.mark.parametrize(
    ("document", "words", "code"),
    [
        ("status", ["status"], ExitCode.OK),
        ("show", ["show", "chess"], ExitCode.OK),
        ("reconcile", ["reconcile"], ExitCode.UNBALANCED),
        ("plan", ["plan"], ExitCode.OK),
        ("schemas list", ["schemas", "list"], ExitCode.OK),
        ("schemas show", ["schemas", "show", "1"], ExitCode.OK),
        ("schemas show --columns", ["schemas", "show", "1", "--columns"], ExitCode.OK),
        ("schemas diff", ["schemas", "diff", "1", "2"], ExitCode.OK),
        ("schemas check", ["schemas", "check", "g.proto"], ExitCode.GAMES_FAILED),
        ("quarantine list", ["quarantine", "list"], ExitCode.OK),
        ("quarantine show", ["quarantine", "show"], ExitCode.OK),
        ("quarantine drop --dry-run", ["quarantine", "drop", "--older-than", "0s", "--dry-run"], ExitCode.OK),
        ("backfill --status", ["backfill", "--status"], ExitCode.OK),
        ("backfill --dry-run", ["backfill", "--from", "2000-01-01", "--dry-run"], ExitCode.OK),
        ("maintain", ["maintain", "--dry-run", "--set", "maintain.bronze_days=1"], ExitCode.OK),
    ],
)
def test_a_command_prints_the_document_that_the_page_has(
    root: Path, document: str, words: list[str], code: ExitCode
) -> None:
    result = CliRunner().invoke(app, [*words, "--json", "--root", str(root)])
    assert (result.exception is None or isinstance(result.exception, SystemExit), result.exit_code) == (True, code)
    check(document, result.stdout)


def test_what_a_load_needs_is_what_the_page_has() -> None:
    check("size", CliRunner().invoke(app, ["size", "--games", "30", "--rows", "2e6/day", "--json"]).stdout)


def test_what_is_said_of_a_workspace_is_what_the_page_has(here: Path, demux: Demux) -> None:
    write_settings(here, tables={"catalog": "main"}, grants={"games": {"chess": ["team"]}})
    check("plan, with databricks.name", demux("plan", "--json"))
    check("grants plan, grants apply", demux("grants", "plan", "--json"))


def test_what_would_be_forgotten_is_a_document_that_does_not_name_the_person() -> None:
    found = [SearchResult("chess", 2, 3, 1, unsearched=4), SearchResult(None, lacks=("user_name",))]
    content = found_content(found)
    check("forget --dry-run", as_json(content))
    assert [(one.game, one.silver, one.lacks) for one in content["games"]] == [
        ("chess", 2, ()),
        (None, 0, ("user_name",)),
    ]


def test_json_of_work_that_is_not_a_look_is_refused(root: Path) -> None:
    for words in (["forget", "--where", "a = 1"], ["backfill", "--rescued"]):
        result = CliRunner().invoke(app, [*words, "--json", "--root", str(root)])
        assert isinstance(result.exception, SettingsInvalid)
        assert result.stdout == ""


def test_a_round_is_a_document_with_the_error_of_a_game() -> None:
    tasks = [Task(game, game, "here") for game in ("chess", HOSTILE)]
    failed = CheckpointLost("It is gone.", "Make it again.")
    ends: tuple[TaskEnd[GameReport], ...] = (
        TaskEnd(tasks[0], GameReport("chess", 3, 2, 1, (1,), freshness=Freshness.of({80: 1, 96: 1})), None, 1.23456),
        TaskEnd(tasks[1], None, failed, 0.5),
    )
    plan = make_plan(["chess", HOSTILE, "other"], {}, GamesSettings(limit=2), 20)
    content = round_content(Round("r", IngestReport(5, 4, 1), plan, ends, True), 2.0)
    check("run", as_json(content))
    for end in ends:
        check("deserialize", as_json(game_content(end)))
    assert content["games"][0]["seconds"] == 1.235
    assert (content["games"][0]["fresh_p50"], content["games"][0]["fresh_p95"]) == (0.981, 3.922)
    assert content["games"][1]["fresh_p50"] is None
    assert content["games"][1]["error"] == {
        "condition": "CHECKPOINT_LOST",
        "message": "It is gone.",
        "remedy": "Make it again.",
    }
