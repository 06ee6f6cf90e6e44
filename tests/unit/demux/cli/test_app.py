"""How a command ends: a success returns, as a task of a job must; a failure exits with its code."""

from __future__ import annotations

import io
import logging
import subprocess
import sys
from collections.abc import Iterator

import pytest
import typer

from demux.cli import main
from demux.cli.app import COMMANDS
from demux.cli.command import console
from demux.core.errors import ExitCode, StorageFailed


@pytest.fixture(autouse=True)
def no_handlers() -> Iterator[None]:
    yield
    logging.getLogger("demux").handlers.clear()


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> list[BaseException | None]:
    """A command that ends as the list says."""
    how: list[BaseException | None] = []

    def command() -> None:
        if how and how[0] is not None:
            raise how[0]

    monkeypatch.setattr(sys.modules[__name__], "end", command, raising=False)
    monkeypatch.setitem(COMMANDS, "end", f"{__name__}:end")
    monkeypatch.setattr(sys, "argv", ["demux", "end"])
    return how


@pytest.mark.parametrize("end", [None, typer.Exit(ExitCode.OK), typer.Exit(), SystemExit(), SystemExit(0)])
def test_a_success_returns(ends: list[BaseException | None], end: BaseException | None) -> None:
    ends.append(end)
    main()


@pytest.mark.parametrize(
    ("end", "code"),
    [
        (typer.Exit(ExitCode.GAMES_FAILED), 3),
        (typer.Exit(ExitCode.INTERRUPTED), 130),
        (StorageFailed("It broke.", "Mend it."), 4),
        (KeyboardInterrupt(), 130),
        (ValueError("unforeseen"), 1),
    ],
    ids=repr,
)
def test_a_failure_exits_with_its_code(ends: list[BaseException | None], end: BaseException, code: int) -> None:
    ends.append(end)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == code


def test_help_returns_and_a_wrong_option_exits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["demux", "--help"])
    main()
    monkeypatch.setattr(sys, "argv", ["demux", "run", "--evry", "1s"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2


def test_a_name_that_the_terminal_has_no_letters_for_is_shown_by_its_codes(
    ends: list[BaseException | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="latin-1"))
    monkeypatch.setattr(sys.modules[__name__], "end", lambda: console.print("game 将棋"))
    main()
    sys.stdout.flush()
    assert written.getvalue() == rb"game \u5c06\u68cb" + b"\n"


def test_the_list_of_commands_loads_none_of_them() -> None:
    script = "import sys; from typer.testing import CliRunner; from demux.cli.app import app; "
    script += "print(CliRunner().invoke(app, ['--help']).output, sorted(sys.modules))"
    said = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    assert all(name in said for name in COMMANDS)
    assert not any(
        f"'{library}'" in said for library in ("pyspark", "databricks.sdk", "deltalake", "pyarrow", "pandas")
    )
