"""`demux serve` and `demux status --html`, without Spark."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from demux.api import Root
from demux.cli.inspect.serve import write_page
from demux.cli.options import settings_of
from demux.core.errors import SettingsInvalid, StorageFailed
from demux.operations.status.facts import Facts
from demux.pipeline.status import reasons_of, status_reader
from tests.support.data.statuses import known

CHECKOUT = Path(__file__).parents[5]


@pytest.mark.parametrize("root", ["hdfs://host/demux", "s3a://bucket/a%20b"])
def test_a_root_whose_tables_only_spark_opens_is_refused_with_what_to_do_instead(root: str) -> None:
    with pytest.raises(SettingsInvalid) as caught:
        status_reader(settings_of(None, root, ["store.mounts={hdfs://host: /mnt/hdfs}"]))
    assert root in caught.value.message
    assert caught.value.remedy.startswith("Name a root in a folder")


@pytest.mark.parametrize("root", ["hdfs://host/demux", "file://host/share"])
def test_a_root_that_nothing_reaches_is_refused_with_what_to_do_instead(root: str) -> None:
    with pytest.raises(StorageFailed) as caught:
        status_reader(settings_of(None, root, []))
    assert caught.value.message == f"No client reaches {root}."


def test_games_that_wait_have_the_reason_that_the_plan_gives() -> None:
    facts = Facts(games={"go": known("go"), "new": known("new", None)})
    full = settings_of(None, None, ["games.limit=1"])
    assert reasons_of(facts, full) == {"new": "games.limit is 1 and as many games are running"}
    assert reasons_of(Facts(games={"go": known("go")}), full) == {}


def test_the_page_is_written_in_one_step_and_replaces_the_one_before(tmp_path: Path) -> None:
    file = tmp_path / "status.html"
    for _ in range(2):
        write_page(Root.open(str(tmp_path / "root")).status(), file)
    assert file.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert [path.name for path in tmp_path.iterdir()] == ["status.html"]


def test_a_page_that_cannot_be_written_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(StorageFailed) as caught:
        write_page(Root.open(str(tmp_path)).status(), tmp_path / "no" / "status.html")
    assert caught.value.remedy.startswith("Name another file with --html")


@pytest.mark.thorough
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_the_command_serves_until_it_is_told_to_end_and_leaves_nothing_behind(tmp_path: Path, end: int) -> None:
    with serving(tmp_path) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[4]
        with urllib.request.urlopen(f"{url}healthz", timeout=30) as answer:
            assert answer.read() == b"ok\n"
        process.send_signal(end)
        assert process.wait(timeout=60) == 0
    assert list(tmp_path.iterdir()) == []


@contextmanager
def serving(root: Path) -> Iterator[subprocess.Popen[str]]:
    words = [sys.executable, "-c", "from demux.cli import main; main()", "serve", "--port", "0", "--root", str(root)]
    environ = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    with subprocess.Popen(words, cwd=root, env=environ, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()
