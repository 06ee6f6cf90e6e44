"""The text of docs/reference/cli.md: each command with its help and its options, as the command line has them. Pure."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, get_args

from demux.cli.app import COMMANDS, loaded
from demux.core.errors import ExitCode

_HEAD = """\
# Command line
Every command and option of `demux`; `make golden` makes this page from the code (`tools/site/`). `demux COMMAND --help`
says the same in a terminal. What an exit code means, and what to do: [the runbook](../runbook.md#exit-codes).
"""
_METAVARS = {str: "TEXT", int: "INTEGER", float: "NUMBER", Path: "PATH"}


def cli_page() -> str:
    """Return the page."""
    parts = [_HEAD, "| exit code | |\n| ---: | --- |", *(f"| {code.value} | `{code.name}` |" for code in ExitCode)]
    for name, command in commands():
        parts += ["", f"## demux {name}", *_command_lines(name, command)]
    return "\n".join(parts)


def commands() -> Iterator[tuple[str, Any]]:
    """Yield each command that does something, by its name with the group's."""
    for name in COMMANDS:
        found: Any = loaded(name)
        if hasattr(found, "commands"):
            yield from ((f"{name} {each}", one) for each, one in found.commands.items())
        else:
            yield name, found


def _command_lines(name: str, command: Any) -> Iterator[str]:
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option" and not one.hidden]
    words = [one.name.upper() if one.required else f"[{one.name.upper()}]" for one in arguments]
    yield inspect.cleandoc(command.help or "")
    yield f"\n```\n{' '.join(['demux', name, *words, '[OPTIONS]'])}\n```\n"
    yield "| option | what it does |\n| --- | --- |"
    for one in (*arguments, *options):
        yield f"| {_syntax(one)} | {cell(one.help or '')}{_note(one)} |"


def _syntax(one: Any) -> str:
    if one.param_type_name == "argument":
        return f"`{one.name.upper()}`"
    words = ", ".join(one.opts) + (f" / {', '.join(one.secondary_opts)}" if one.secondary_opts else "")
    return f"`{words}`" if one.is_flag else f"`{words} {one.metavar or _metavar(_kind(one))}`"


def _kind(one: Any) -> Any:
    kind = one.type_descriptor.annotation
    (inner, *_) = get_args(kind) or (kind,)
    return inner


def _metavar(kind: Any) -> str:
    return _METAVARS.get(kind, "VALUE")


def _note(one: Any) -> str:
    kind, notes = _kind(one), []
    if isinstance(kind, type) and issubclass(kind, Enum):
        notes.append(f"One of: {', '.join(f'`{member.value}`' for member in kind)}.")
    if one.required and one.param_type_name == "option":
        notes.append("Required.")
    elif not getattr(one, "is_flag", False) and one.default not in (None, [], ()):
        shown = one.default.value if isinstance(one.default, Enum) else one.default
        notes.append(f"Default: `{shown}`.")
    return "".join(f" {note}" for note in notes)


def cell(text: str) -> str:
    """Return a text as a cell of a table has it."""
    return " ".join(text.split()).replace("|", "\\|")
