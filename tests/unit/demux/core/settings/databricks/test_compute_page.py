"""docs/databricks.md: settings that load, transcripts that commands printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from demux.core import errors
from demux.core.settings.databricks.compute import Compute
from demux.core.settings.loading.loader import load
from demux.core.settings.settings import Settings
from install_workflow.databricks.jobs.build import make_jobs
from install_workflow.planning.plan import Task
from tests.conftest import GOLDEN

ROOT = Path(__file__).parents[6]
PAGE = (ROOT / "docs" / "databricks.md").read_text("utf-8")
SECTION = PAGE.partition("## The shortest way\n")[2].partition("\n## The commands")[0]
EXAMPLES = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


def lines(text: str) -> set[str]:
    """The lines; the number of a plan changes with everything that is in it."""
    return {re.sub(r"Plan [0-9a-f]{12}:", "Plan:", line) for line in text.splitlines()}


@pytest.mark.parametrize("text", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_of_the_page_is_a_settings_file(text: str, tmp_path: Path) -> None:
    file = tmp_path / "demux.yml"
    file.write_text(text)
    assert load(file, {}, {}) != Settings()


def test_each_line_of_the_transcripts_was_printed() -> None:
    printed = {line for path in (GOLDEN / "deploy").iterdir() for line in lines(path.read_text("utf-8"))}
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", SECTION, re.DOTALL | re.MULTILINE)
    shown = {line for language, block in blocks if not language for line in lines(block)}
    assert shown
    assert {line for line in shown if not line.startswith(("$", "…"))} - printed == set()


def test_the_transcript_of_the_first_plan_has_every_job_that_the_example_makes(tmp_path: Path) -> None:
    example, _ = re.findall(r"```yaml\n(.*?)```", SECTION, re.DOTALL)
    file = tmp_path / "demux.yml"
    file.write_text(example)
    settings = load(file, {}, {})
    assert set(settings.databricks.model_fields_set) == {"name", "wheel_path"}
    assert settings.databricks.compute_kind is Compute.SERVERLESS
    tasks = (Task(game, f"deserialize_{game}", "cluster_001") for game in settings.games.allow)
    jobs = [job.settings["name"] for job in make_jobs(tasks, settings, "/Volumes/main/ops/wheels/a.whl")]
    first = SECTION.partition("$ demux plan\n")[2].partition("```")[0]
    assert re.findall(r"^\+ create (\w+):", first, re.MULTILINE) == jobs


def test_each_condition_on_the_page_is_one_that_there_is() -> None:
    named = set(re.findall(r"^\| `([A-Z]+_[A-Z_]+)\b", PAGE, re.MULTILINE))
    assert named
    assert named <= {each.condition for each in vars(errors).values() if hasattr(each, "condition")}
