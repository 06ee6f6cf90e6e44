"""`demux run --drivers`: the same tables by several drivers side by side, whoever is killed meanwhile."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from demux.control import Control, Outcome
from demux.names import names_of
from tests.flow.process import DEMUX, Command, running, wait_until
from tests.flow.root import Root, rows

Copy = Callable[..., Root]

# two games on the first cluster, two on the second
_CLUSTERS = ("run.streams_per_cluster=2", "run.retry_wait_s=0", "spark.driver_memory=1g", "spark.master=local[1]")
_ANY = [word for change in _CLUSTERS for word in ("--set", change)]
_SET = [*_ANY, "--set", "run.engine=stream"]
_FLEETS = [*_ANY, "--set", "run.engine=fleet", "--set", "run.games_per_cluster=2"]
_LASTING = ("registry", "schema_id", "guid", "subject", "version", "message")


@pytest.fixture(scope="module")
def many(sent: Root, tmp_path_factory: pytest.TempPathFactory) -> Root:
    """Four games, two with hostile names, half of their records faulty. To be copied, not changed."""
    root = Root.at(sent.spark, tmp_path_factory.mktemp("many") / "root")
    root.produce(events=240, games=2, hostile=2, versions=2, fault_rate=0.5)
    return root


@pytest.fixture(scope="module")
def by_one(many: Root, tmp_path_factory: pytest.TempPathFactory) -> Root:
    """The same, with what one driver makes of it. To be looked at, not changed."""
    root = many.copied_to(tmp_path_factory.mktemp("by_one") / "root", run={"streams_per_cluster": 2})
    root.run()
    return root


def schemas(root: Root) -> list[dict[str, Any]]:
    """The table of schemas without times, sorted."""
    found = [{name: row[name] for name in _LASTING} for row in rows(root.layout.schemas)]
    return sorted(found, key=lambda row: (row["registry"], row["schema_id"]))


def control(root: Root) -> dict[str, tuple[str | None, Outcome, int, int, int]]:
    """Each game's cluster and its last record without times."""
    tables = Control(root.spark, root.layout)
    known = tables.known_games()
    return {
        game: (known[game].cluster, last.outcome, last.rows_in, last.rows_silver, last.rows_quarantined)
        for game, last in tables.history().last.items()
    }


def drivers_of(process: int) -> list[int]:
    """The processes of the drivers that the process has started."""
    children = Path(f"/proc/{process}/task").glob("*/children")
    found = [int(child) for file in children for child in file.read_text().split()]
    return sorted(child for child in found if b"demux.cli.driver" in _command_line(child))


def _command_line(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


def group_lives(group: int) -> bool:
    """Whether a process of the group is there, and not only still to be buried."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, its_group = stat.read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(its_group) == group and state != "Z":
            return True
    return False


@contextmanager
def once(condition: Callable[[], bool], act: Callable[[], None]) -> Iterator[None]:
    """Act as soon as the condition holds, while the block runs."""
    over, acted = threading.Event(), threading.Event()

    def watch() -> None:
        while not over.wait(0.02):
            if condition():
                act()
                acted.set()
                return

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join(60)
    assert acted.is_set()


def begun(root: Root, game: str) -> bool:
    """Whether the game's first batch was begun."""
    return Path(root.layout.silver_checkpoint(names_of(game).key), "offsets", "0").exists()


def test_a_fleets_driver_that_is_killed_is_started_again_for_the_games_without_a_report(
    many: Root, by_one: Root, copy: Copy, command: Command
) -> None:
    """Restarts of drivers with streams are the same code: `tests/unit/install_workflow/test_driver_process.py`."""
    root = copy(many)

    def kill() -> None:
        os.kill(drivers_of(os.getpid())[0], signal.SIGKILL)

    with once(lambda: (root.folder / "silver").exists() and bool(drivers_of(os.getpid())), kill):
        said = command("run", "--drivers", "--root", str(root.folder), *_FLEETS, "--set", "run.drivers=1")
    assert said.code == 0, said.out + said.err
    assert root.everything() == by_one.everything()
    assert (schemas(root), set(control(root))) == (schemas(by_one), set(control(by_one)))
    assert {path.name for path in (root.folder / "logs" / "drivers").iterdir()} == {"cluster_001", "cluster_002"}
    assert len({cluster for cluster, *_ in control(root).values()}) == 2
    # nobody has anything to do: no driver is started
    again = command("run", "--drivers", "--root", str(root.folder), *_FLEETS)
    assert (again.code, "0 games had new rows, 4 had none" in again.out) == (0, True)


@pytest.mark.long
def test_a_run_that_is_terminated_lets_its_drivers_finish_what_is_under_way(
    many: Root, by_one: Root, copy: Copy, command: Command
) -> None:
    root = copy(many)
    games = sorted(control(by_one))
    words = ("run", "--drivers", "--root", str(root.folder), *_SET, "--set", "run.parallelism=1")
    with once(lambda: begun(root, games[0]), lambda: os.kill(os.getpid(), signal.SIGTERM)):
        said = command(*words)
    assert (said.code, "stopping: what is under way finishes" in said.out) == (130, True)
    # what was begun is complete, the rest was not begun
    done = control(root)
    assert games[0] in done
    assert set(done) < set(games)
    assert [game for game in games if begun(root, game)] == sorted(done)
    assert command("run", "--root", str(root.folder), *_SET).code == 0
    assert (schemas(root), set(control(root))) == (schemas(by_one), set(games))
    assert root.everything() == by_one.everything()


@pytest.mark.long
def test_when_a_run_is_killed_its_drivers_end_and_the_next_run_completes_it(
    many: Root, by_one: Root, copy: Copy
) -> None:
    root = copy(many)
    first = sorted(control(by_one))[0]
    with running([DEMUX, "run", "--drivers", "--root", str(root.folder), *_SET]) as process:
        wait_until(lambda: begun(root, first), process)
        drivers = drivers_of(process.pid)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
    assert len(drivers) == 2
    # the command is in nobody's way: it waits for the drivers of the one before
    with running([DEMUX, "run", "--root", str(root.folder), *_SET]) as process:
        printed, _ = process.communicate(timeout=300)
    assert process.returncode == 0, printed
    assert [group for group in drivers if group_lives(group)] == []
    assert root.everything() == by_one.everything()
    # what Spark's listener told, to the last batch
    assert "rows/s)" in (root.folder / "logs" / "demux.log").read_text(encoding="utf-8")
