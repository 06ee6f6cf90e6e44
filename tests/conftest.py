"""What all tests share: the session, golden files, the order, and properties that a busy machine does not fail."""

from __future__ import annotations

import logging
import os
import sys
import threading
import traceback
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key
from hypothesis import HealthCheck, settings

from tests.support.order import file_of, group_of, rank, read_costs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from xdist.remote import Producer
    from xdist.scheduler import Scheduling

    from tests.support.flow.process import Command, Said

GOLDEN = Path(__file__).parent / "golden"

# a slow machine is no reason to fail
_BUSY = [HealthCheck.too_slow]
# what `make check`, `make test` and `make test-long` ask for
for _name, _examples in (("quick", 10), ("demux", 30), ("long", 300)):
    settings.register_profile(_name, deadline=None, suppress_health_check=_BUSY, max_examples=_examples)
settings.load_profile("demux")

Golden = Callable[[str, str], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--costs", type=Path, help="Write what each test costs to this file, a sorted table.")
    parser.addoption("--seed", type=int, default=1, help="What tests that draw by chance begin with.")
    parser.addoption("--rewrite-golden", action="store_true", help="Write tests/golden/ anew instead of comparing.")


def pytest_configure(config: pytest.Config) -> None:
    table = config.getoption("--costs")
    if table is not None:
        from tests.support.profiling import Profile

        config.pluginmanager.register(Profile(config, table))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files that cost the most first, so that no worker is left with one of them at the end."""
    costs = read_costs()
    ranks = {nodeid: rank(nodeid, costs) for nodeid in {file_of(item.nodeid) for item in items}}
    items.sort(key=lambda item: ranks[file_of(item.nodeid)])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Say where a test hangs before its time is out: a worker that is ended then says nothing."""
    patience_s = float(item.config.getini("timeout")) - 10
    timer = threading.Timer(patience_s, _print_where_it_is, [item.config.stash[fault_handler_stderr_fd_key]])
    timer.daemon = True
    if patience_s > 0:
        timer.start()
    try:
        return (yield)
    finally:
        timer.cancel()


def _print_where_it_is(stderr: int) -> None:
    # faulthandler prints a hundred threads at most, and a session with streams has more
    frame = sys._current_frames()[threading.main_thread().ident or 0]
    os.write(stderr, "".join(["the main thread is at:\n", *traceback.format_stack(frame)]).encode())


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling | None:
    """Keep on one worker the tests of a file, as `--dist loadfile` does, and those that need the same servers."""
    if config.getoption("--dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    scheduler = LoadFileScheduling(config, log)
    scheduler._split_scope = group_of
    return scheduler


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The one session of a process, whatever the folder of the test."""
    # a unit test needs none
    from tests.support.spark_session import one_session

    with one_session(tmp_path_factory.mktemp("spark")) as spark:
        yield spark


@pytest.fixture(scope="session")
def lane() -> str:
    """Which environment this is: `current` or `oldest`."""
    from tests.support.spark_session import lane_of_spark

    return lane_of_spark()


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """What a test that draws by chance begins with: 1, or what `make test-long` printed."""
    found: int = request.config.getoption("--seed")
    return found


@pytest.fixture
def command(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs `demux` with these words in this process, on the session that the tests share."""
    from demux.cli import main
    from demux.cli.command import console
    from tests.support.flow.process import Said

    # nothing is folded
    monkeypatch.setattr(console, "_width", 1000)

    def run(*words: str) -> Said:
        monkeypatch.setattr(sys, "argv", ["demux", *words])
        capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        finally:
            log = logging.getLogger("demux")
            while log.handlers:
                log.handlers.pop().close()
        printed = capsys.readouterr()
        return Said(code, printed.out, printed.err)

    return run


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compares a text with the golden file of this name, or writes the file with --rewrite-golden."""

    def check(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--rewrite-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n", encoding="utf-8", newline="\n")
        assert path.is_file(), f"tests/golden/{name} is missing: `make golden` writes it"
        assert text + "\n" == path.read_text(encoding="utf-8")

    return check
