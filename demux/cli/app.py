"""The command line's root: sub-commands in flow order, errors as two sentences, exit codes."""

from __future__ import annotations

import io
import logging
import sys

import typer
from rich.console import Console

from demux.cli.deploy import apply, destroy, export, grants, plan
from demux.cli.inspect import reconcile, schemas, serve
from demux.cli.inspect import status as look
from demux.cli.repair import backfill, forget, maintain, quarantine, sessions
from demux.cli.repair import rebuild as repair
from demux.cli.run import demo
from demux.cli.run import produce as start
from demux.cli.run import run as flow
from demux.core.error_mapping import named
from demux.core.errors import ExitCode
from demux.core.text import printable

app = typer.Typer(
    name="demux",
    help="One wrapper stream in, one typed table per game out.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command("init")(start.init)
app.command("produce")(start.produce)
app.command("ingest")(flow.ingest)
app.command("plan")(plan.plan)
app.command("run")(flow.run)
app.command("deserialize")(flow.deserialize)
app.command("apply")(apply.apply)
app.command("destroy")(destroy.destroy)
app.add_typer(export.export, name="export")
app.command("status")(look.status)
app.command("serve")(serve.serve)
app.command("show")(look.show)
app.command("reconcile")(reconcile.reconcile)
app.add_typer(schemas.schemas, name="schemas")
app.add_typer(grants.grants, name="grants")
app.add_typer(quarantine.quarantine, name="quarantine")
app.command("rebuild")(repair.rebuild)
app.command("backfill")(backfill.backfill)
app.command("forget")(forget.forget)
app.command("sessions")(sessions.sessions)
app.command("maintain")(maintain.maintain)
app.command("demo")(demo.demo)


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
        told = named(error)
        if told is not error:
            logging.getLogger("demux").exception("%s", told.condition)
        errors.print(told.condition, style="bold red", end=" ")
        # a sentence may hold names from outside
        for line in f"{told.cause}\n{told.remedy}".split("\n"):
            errors.print(printable(line))
        sys.exit(told.exit_code)
