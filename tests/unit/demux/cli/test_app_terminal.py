"""What the command prints on a terminal, in a pipe, and on standard error."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from demux.cli.output.tables import new_table, number_cell, text_cell
from demux.core.control.games_and_rounds import Control, TaskOutcome, TaskRecord
from demux.core.root.layout import Layout
from tests.support.spark.tables import MOMENT, bronze_row, write_bronze
from tests.support.terminal import CHECKOUT

LONG = "x" * 150
HOSTILE = "[b]\x1b[31mred\x1b[0m\u202e\n:heart:"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A root with games of all kinds of names, one of which failed."""
    layout = Layout(str(tmp_path_factory.mktemp("terminal") / "root"))
    write_bronze(layout.bronze, *(bronze_row(name, at) for at, name in enumerate(("chess", LONG, HOSTILE))))
    failed = TaskRecord("r", "chess", TaskOutcome.FAILED, 0, 0, 0, (), 1.0, "TASK_FAILED", "It broke.", MOMENT)
    Control(None, layout).close_round([failed], 0)
    return layout.root


def environment(**more: str) -> dict[str, str]:
    """The environment without what says how a terminal looks, and these variables."""
    names = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TERM", "COLORTERM", "TTY_COMPATIBLE")
    kept = {name: value for name, value in os.environ.items() if name not in names}
    return {**kept, "PYTHONPATH": str(CHECKOUT), **more}


def call(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the command with pipes."""
    script = [sys.executable, "-c", "from demux.cli import main; main()", *words]
    return subprocess.run(script, capture_output=True, text=True, check=False, env=environment(), timeout=120)


def on_screen(*words: str, **more: str) -> str:
    """What the command prints on a terminal."""
    ours, theirs = pty.openpty()
    script = [sys.executable, "-c", "from demux.cli import main; main()", *words]
    with subprocess.Popen(
        script, stdin=theirs, stdout=theirs, stderr=theirs, env=environment(TERM="xterm", **more)
    ) as it:
        os.close(theirs)
        printed = bytearray()
        try:
            while part := os.read(ours, 65_536):
                printed += part
        except OSError:
            # the other side is closed
            pass
        finally:
            os.close(ours)
        it.wait(timeout=120)
    return printed.decode().replace("\r\n", "\n")


@pytest.mark.thorough
def test_a_pipe_gets_whole_lines_without_colours_or_control_characters(root: str) -> None:
    printed = call("status", "--root", root).stdout
    assert "\x1b" not in printed
    assert LONG in printed
    assert "\\u202e\\u000a:heart:" in printed
    assert "…" not in printed


@pytest.mark.thorough
def test_colours_have_a_meaning_and_go_with_no_color(root: str) -> None:
    assert "\x1b[31m" in on_screen("status", "--root", root)
    without = on_screen("status", "--root", root, NO_COLOR="1")
    assert "failed" in without
    assert not re.search(r"\x1b\[(?:[\d;]*;)?(?:3|4|9|10)\d", without)


@pytest.mark.thorough
def test_forty_columns_show_each_value_with_its_name(root: str) -> None:
    lines = on_screen("status", "--root", root, COLUMNS="40", NO_COLOR="1").split("\n")
    plain = [re.sub(r"\x1b\[[\d;]*m", "", line) for line in lines]
    assert max(map(cell_len, plain)) <= 40
    text = " ".join(" ".join(plain).split())
    assert "chess state failed, rows in 1, silver 0, waiting 1" in text


@pytest.mark.thorough
def test_the_help_on_forty_columns_has_the_whole_names_of_options() -> None:
    text = on_screen("run", "--help", COLUMNS="40", NO_COLOR="1")
    assert max(map(cell_len, text.split("\n"))) <= 40
    assert [option for option in ("--settings", "--decoder", "--quiet", "--every") if option not in text] == []


@pytest.mark.thorough
def test_json_and_results_are_on_standard_output_and_all_else_on_standard_error(root: str) -> None:
    failed = call("show", "nobody", "--json", "--root", root)
    assert (failed.returncode, failed.stdout) == (2, "")
    assert failed.stderr.startswith("GAME_UNKNOWN There is no silver table of a game 'nobody'.\n")
    document = json.loads(call("plan", "--json", "--root", root).stdout)
    assert HOSTILE in {change["game"] for change in document["changes"]}


@pytest.mark.thorough
def test_quiet_prints_nothing_but_errors(tmp_path: Path) -> None:
    produced = call("produce", "--events", "50", "--games", "2", "--quiet", "--root", str(tmp_path / "root"))
    assert (produced.returncode, produced.stdout, produced.stderr) == (0, "", "")
    refused = call("produce", "--events", "-1", "--quiet", "--root", str(tmp_path / "root"))
    assert refused.returncode == 2
    assert refused.stdout == ""
    assert refused.stderr != ""


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_a_table_is_a_table_where_its_columns_fit_and_else_a_list(width: int) -> None:
    table = new_table("game", "=state", ">rows in", ">silver", ">waiting")
    table.add_row(text_cell("chess"), "current", number_cell(1_234_567), number_cell(None), "")
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        console.print(table)
    lines = [line.strip() for line in captured.get().splitlines() if line.strip()]
    assert max(map(cell_len, lines)) <= width
    if width >= 80:
        assert lines[0].split() == ["game", "state", "rows", "in", "silver", "waiting"]
        assert lines[2].split() == ["chess", "current", "1,234,567", "?"]
    else:
        assert lines[0] == "chess"
        assert " ".join(lines[1:]) == "state current, rows in 1,234,567, silver ?"
