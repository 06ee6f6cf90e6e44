"""Without the libraries of extras: what a task starts works, and what needs one names the extra."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from demux.core.error_mapping import as_demux_error
from demux.core.errors import RuntimeMissing, TaskFailed
from demux.core.extras import EXTRA_OF, missing_extra

TASKS = ("ingest", "deserialize", "maintain", "apply")

# stands for an environment in which they are not installed
_BLOCKED = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked())
"""
_RUN = "from demux.cli import main; main()"


def started(code: str, blocked: set[str], arguments: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", _BLOCKED.format(blocked=blocked) + code, *arguments]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.thorough
def test_what_a_task_starts_needs_no_extra() -> None:
    code = f"""
import bronze_ingest.run, deserializer.stream.run, deserializer.fleet.round
import demux.operations.maintenance.run, install_workflow.databricks.apply.deploy
from demux.cli import main
for task in {TASKS!r}:
    sys.argv = ["demux", task, "--help"]
    main()
"""
    done = started(
        code, {"confluent_kafka", "deltalake", "duckdb", "sqlglot", "grpc", "grpc_tools", "hatchling", "matplotlib"}
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert [task for task in TASKS if f"Usage: demux {task} " in done.stdout] == list(TASKS)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("package", "extra", "arguments"),
    [
        ("pyspark", "local", "ingest --root {root}"),
        ("deltalake", "tables", "produce --events 1 --root {root}"),
        ("duckdb", "tables", "reconcile --root {root}"),
        (
            "confluent_kafka",
            "kafka",
            "produce --root {root} --set source.kind=kafka --set kafka.bootstrap_servers=h:9 --set kafka.topics=[t]",
        ),
        ("sqlglot", "forget", "forget --where x=1 --root {root}"),
    ],
)
def test_a_command_that_needs_an_extra_names_it(tmp_path: Path, package: str, extra: str, arguments: str) -> None:
    done = started(_RUN, {package}, arguments.format(root=tmp_path).split())
    assert done.stderr == (
        f"RUNTIME_MISSING The Python package {package} is not installed.\nType: pip install 'protobuf-demux[{extra}]'\n"
    )
    assert done.returncode == 2


def test_only_the_libraries_of_extras_are_named() -> None:
    missing = as_demux_error(ModuleNotFoundError("No module named 'deltalake.x'", name="deltalake.x"))
    assert isinstance(missing, RuntimeMissing)
    assert missing.fields == {"package": "deltalake", "extra": "tables"}
    assert missing_extra(ModuleNotFoundError("No module named 'other'", name="other")) is None
    assert missing_extra(ImportError("deltalake", name="deltalake")) is None
    assert isinstance(as_demux_error(ModuleNotFoundError("No module named 'other'", name="other")), TaskFailed)


def test_every_extra_is_one_of_the_wheel() -> None:
    text = (Path(__file__).parents[4] / "pyproject.toml").read_text(encoding="utf-8")
    extras = text.partition("[project.optional-dependencies]")[2].partition("[project.scripts]")[0]
    assert [extra for extra in sorted(set(EXTRA_OF.values())) if f"\n{extra} = [" not in extras] == []
