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
from demux.core.error_mapping import named
from demux.core.errors import ExitCode
from demux.core.text import printable

# by name: where the function or the group of commands is, and the first sentence of its help
COMMANDS: dict[str, tuple[str, str]] = {
    "init": ("demux.cli.commands.flow:init", "Write a settings file with every setting, its default and a comment."),
    "produce": (
        "demux.cli.commands.flow:produce",
        "Send simulated events of many games, wrapped, to the source table or topic; register their schemas.",
    ),
    "ingest": ("demux.cli.commands.flow:ingest", "Read all new records of the source into bronze, or into quarantine."),
    "plan": (
        "demux.cli.commands.deploy:plan",
        "Show which game would run where, what would change, and which games wait; change nothing.",
    ),
    "run": (
        "demux.cli.commands.flow:run",
        "Run bronze, then every game of the plan that has new rows. SIGINT and SIGTERM finish what is under way.",
    ),
    "deserialize": (
        "demux.cli.commands.flow:deserialize",
        "Decode the new bronze rows of one game or several into their silver tables; a game's failure stops no other.",
    ),
    "apply": (
        "demux.cli.commands.deploy:apply",
        "Install the jobs in the workspace, or change them to what the settings want; a second call changes nothing.",
    ),
    "destroy": (
        "demux.cli.commands.deploy:destroy",
        "Remove what `demux apply` made: jobs, wheels, settings files, grants, record; or here, which game runs where.",
    ),
    "export": ("demux.cli.commands.deploy:export", "Write the plan in the form of another tool."),
    "status": (
        "demux.cli.commands.inspect:status",
        "Show what failed and what to do, which games wait and why, and where every record is, game by game.",
    ),
    "serve": (
        "demux.cli.commands.inspect:serve",
        "Serve the status as a page that keeps itself up to date, with /metrics and /healthz; until Ctrl-C or SIGTERM.",
    ),
    "show": ("demux.cli.commands.inspect:show", "Show the newest rows of a game's silver table."),
    "reconcile": (
        "demux.cli.commands.inspect:reconcile",
        "Prove that every record is in exactly one place, from the tables alone; exit code 6 if one is not.",
    ),
    "schemas": ("demux.cli.commands.schemas:schemas", "Look at schemas, and at what a changed one would break."),
    "grants": ("demux.cli.commands.deploy:grants", "Say who may read which game's table in Unity Catalog."),
    "quarantine": ("demux.cli.commands.quarantine:quarantine", "List, show, replay and drop records in quarantine."),
    "rebuild": (
        "demux.cli.commands.repair:rebuild",
        "Make a table again from where it came from: after a lost checkpoint, or to decode everything again.",
    ),
    "backfill": (
        "demux.cli.commands.repair:backfill",
        "Decode days again from bronze, as they are by the schemas and settings of now; readers see one change a step.",
    ),
    "forget": (
        "demux.cli.commands.repair:forget",
        "Remove a person's records from silver, bronze and quarantine, bytes included; they are listed first.",
    ),
    "maintain": (
        "demux.cli.commands.repair:maintain",
        "Join small files, remove old ones, retire old rows of bronze; streams may run meanwhile.",
    ),
    "demo": (
        "demux.cli.commands.flow:demo",
        "Produce events of 20 games in 3 schema versions, 1 % of them faulty, run everything, and show where they are.",
    ),
}


class _Commands(TyperGroup):
    """The commands by name; imports the module of a command only when that command is called.

    So no command waits for the libraries of another: the SDK of Databricks alone costs as much as all others.
    """

    _lists = False

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        return list(COMMANDS)

    def get_command(self, ctx: typer.Context, cmd_name: str) -> TyperCommand | TyperGroup | None:  # type: ignore[override]
        if cmd_name not in COMMANDS:
            return None
        where, summary = COMMANDS[cmd_name]
        if self._lists:
            return TyperCommand(cmd_name, help=summary, rich_markup_mode=MARKUP)
        return loaded(cmd_name, where)

    def format_help(self, ctx: typer.Context, formatter: object) -> None:  # type: ignore[override]
        self._lists = True
        super().format_help(ctx, formatter)  # type: ignore[arg-type]


def loaded(name: str, where: str) -> TyperCommand | TyperGroup:
    """Return the command at `module:function`, or the group of commands at `module:Typer`."""
    module, _, attribute = where.partition(":")
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
        failure = named(error)
        if failure is not error:
            logging.getLogger("demux").exception("%s", failure.condition)
        errors.print(failure.condition, style="bold red", end=" ")
        # a sentence may hold names from outside
        for line in f"{failure.message}\n{failure.remedy}".split("\n"):
            errors.print(printable(line))
        sys.exit(failure.exit_code)
