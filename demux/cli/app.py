"""The command line's root: sub-commands in flow order, errors as two sentences, exit codes."""

from __future__ import annotations

import io
import logging
import sys
from importlib import import_module

import typer
from rich.console import Console
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from demux.cli.options import HELP, MARKUP
from demux.core.error_mapping import as_demux_error
from demux.core.errors import ExitCode
from demux.core.text import printable

# by name, in the order of the list: where the function or the group of commands is
COMMANDS: dict[str, str] = {
    "init": "demux.cli.commands.flow:init",
    "produce": "demux.cli.commands.flow:produce",
    "ingest": "demux.cli.commands.flow:ingest",
    "plan": "demux.cli.commands.deploy:plan",
    "size": "demux.cli.commands.deploy:size",
    "run": "demux.cli.commands.flow:run",
    "deserialize": "demux.cli.commands.flow:deserialize",
    "apply": "demux.cli.commands.deploy:apply",
    "destroy": "demux.cli.commands.deploy:destroy",
    "export": "demux.cli.commands.deploy:export",
    "status": "demux.cli.commands.inspect:status",
    "serve": "demux.cli.commands.inspect:serve",
    "show": "demux.cli.commands.inspect:show",
    "reconcile": "demux.cli.commands.inspect:reconcile",
    "schemas": "demux.cli.commands.schemas:schemas",
    "grants": "demux.cli.commands.deploy:grants",
    "quarantine": "demux.cli.commands.quarantine:quarantine",
    "rebuild": "demux.cli.commands.repair:rebuild",
    "backfill": "demux.cli.commands.repair:backfill",
    "forget": "demux.cli.commands.repair:forget",
    "maintain": "demux.cli.commands.repair:maintain",
    "demo": "demux.cli.commands.flow:demo",
    "prepare": "demux.cli.commands.flow:prepare",
}


class _Commands(TyperGroup):
    """The commands by name; a command's declaration is light, and the module that does its work is loaded by its call.

    So no command waits for the libraries of another: the SDK of Databricks alone costs as much as all others.
    """

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        return list(COMMANDS)

    def get_command(self, ctx: typer.Context, cmd_name: str) -> TyperCommand | TyperGroup | None:  # type: ignore[override]
        return loaded(cmd_name) if cmd_name in COMMANDS else None


def loaded(name: str) -> TyperCommand | TyperGroup:
    """Return the command, or the group of commands, of this name."""
    module, _, attribute = COMMANDS[name].partition(":")
    found = getattr(import_module(module), attribute)
    if not isinstance(found, typer.Typer):
        alone = typer.Typer(add_completion=False, rich_markup_mode=MARKUP)
        alone.command(name, context_settings=HELP)(found)
        found = alone
    command: TyperCommand | TyperGroup = get_command(found)  # type: ignore[assignment]
    command.name = name
    return command


app = typer.Typer(
    name="demux",
    cls=_Commands,
    no_args_is_help=True,
    rich_markup_mode=MARKUP,
    pretty_exceptions_enable=False,
    context_settings=HELP,
)


@app.callback()
def demux() -> None:
    """One wrapper stream in, one typed table per game out."""


def run() -> None:
    """Run the command; a failure is two sentences on standard error, never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        # a game's name may have letters that the terminal has not
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    errors = Console(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)
    # a command that has no log file yet must not print the traceback either
    logging.getLogger("demux").addHandler(logging.NullHandler())
    try:
        app()
    except SystemExit as ended:
        # a job's task has to return: its cluster may count any exit as a failure
        if ended.code not in (None, ExitCode.OK):
            raise
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
    except Exception as error:
        failure = as_demux_error(error)
        if failure is not error:
            logging.getLogger("demux").exception("%s", failure.condition)
        errors.print(failure.condition, style="bold red", end=" ")
        # a sentence may hold names from outside
        for line in f"{failure.message}\n{failure.remedy}".split("\n"):
            errors.print(printable(line))
        sys.exit(failure.exit_code)
