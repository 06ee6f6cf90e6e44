"""Questions that a person answers on a terminal."""

from __future__ import annotations

import sys

import typer

from demux.cli.command import console
from demux.core.errors import ExitCode, SettingsInvalid


def ask_to_remove(yes: bool) -> None:
    """Ask, unless the answer was given before; end the command unless it is yes.

    Raises:
        SettingsInvalid: there is no terminal to ask on.
    """
    if yes:
        return
    if not can_ask():
        raise SettingsInvalid(
            "There is no terminal to ask on, and --yes is not given.", "Give --yes; nothing was removed."
        )
    ask("Remove all this?")


def can_ask() -> bool:
    """Return whether there is a terminal to ask on."""
    # a task on a cluster may have no standard input at all
    return sys.stdin is not None and sys.stdin.isatty()


def ask(question: str, *, err: bool = False) -> None:
    """Ask, and end the command unless the answer is yes; with `err` on standard error, where the output is JSON."""
    if not typer.confirm(question, err=err):
        console.print("nothing was changed")
        raise typer.Exit(ExitCode.INTERRUPTED)
