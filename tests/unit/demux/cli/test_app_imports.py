"""A command that only looks loads nothing that it does not need: counted in modules, not by the clock."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from demux.core.root.layout import Layout
from demux.core.tables import SILVER_ORIGIN
from tests.support.spark.tables import MOMENT, bronze_row, write, write_bronze

# each takes a third of a second or more
HEAVY = ("pyspark", "py4j", "databricks.sdk", "pandas", "pyarrow.dataset", "requests", "confluent_kafka")


def loaded_by(*words: str) -> set[str]:
    """Return which of these libraries a process has after it ran `demux` with these words."""
    script = f"""
import atexit, sys
atexit.register(lambda: print("\\nLOADED", *[one for one in {HEAVY} if one in sys.modules], file=sys.stderr))
sys.argv = ["demux", *{words!r}]
from demux.cli import main
main()
"""
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    return set(done.stderr.rpartition("LOADED")[2].split())


@pytest.mark.parametrize("words", [["status"], ["status", "--json"]], ids=" ".join)
def test_a_look_at_a_root_loads_no_spark(tmp_path: Path, words: list[str]) -> None:
    layout = Layout(str(tmp_path))
    write_bronze(layout.bronze, bronze_row("chess", 1))
    assert loaded_by(*words, "--root", str(tmp_path)) == set()


def test_a_size_loads_no_spark() -> None:
    assert loaded_by("size", "--games", "30", "--rows", "2e6/day") == set()


@pytest.mark.thorough
@pytest.mark.parametrize(
    "words",
    [
        ["plan"],
        ["show", "chess"],
        ["quarantine", "list"],
        ["quarantine", "drop", "--older-than", "0s", "--dry-run"],
        ["reconcile"],
        ["backfill", "--from", "2000-01-01", "--dry-run"],
        ["forget", "--where", "_record_id = 't/0/1'", "--dry-run"],
        ["maintain", "--dry-run", "--set", "maintain.bronze_days=1"],
    ],
    ids=" ".join,
)
def test_what_reads_more_than_logs_does_it_where_there_is_no_java(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "none"))
    monkeypatch.setenv("PATH", str(tmp_path))
    layout = Layout(str(tmp_path / "root"))
    write_bronze(layout.bronze, bronze_row("chess", 1))
    write(layout.silver("chess"), SILVER_ORIGIN, [{"_record_id": "t/0/1", "_decoded_at": MOMENT}])
    loaded_by(*words, "--root", layout.root)


def test_the_help_of_all_commands_loads_no_library_but_those_that_print_it() -> None:
    script = """
import sys
from demux.cli.app import COMMANDS, loaded
for name in COMMANDS:
    loaded(name)
print(*{name.partition(".")[0] for name in sys.modules})
"""
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    libraries = set(done.stdout.split())
    assert {"typer", "demux"} <= libraries
    ours = {"pydantic", "pyarrow", "numpy", "google", "ruamel", "tenacity", "deserializer", "install_workflow"}
    assert libraries.isdisjoint({*ours, *(name.partition(".")[0] for name in HEAVY)})


@pytest.mark.thorough
def test_no_command_loads_a_library_of_one_way_of_work_before_it_is_asked_for() -> None:
    script = """
import importlib, pkgutil, sys
import demux.cli
for found in pkgutil.walk_packages(demux.cli.__path__, "demux.cli."):
    importlib.import_module(found.name)
print(*[one for one in ("pandas", "confluent_kafka", "duckdb", "deltalake", "obstore") if one in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []


@pytest.mark.thorough
def test_bronze_of_another_source_needs_no_client_of_kafka() -> None:
    script = """
import sys
import bronze_ingest.rebuild, bronze_ingest.run, deserializer.fleet.round, deserializer.stream.run
print(*[one for one in ("confluent_kafka", "grpc", "pyspark.sql.connect.session") if one in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []
