"""The pages below docs/reference, and the list of decisions, as the code and the pages have them. Pure."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, TypeAdapter
from pydantic.fields import FieldInfo

from demux.cli.app import COMMANDS, loaded
from demux.cli.output.print_json import DOCUMENTS
from demux.core.errors import ExitCode
from demux.core.settings.loading.template import PREFIX, description, section_in, yaml_value
from demux.core.settings.settings import Settings

_CLI_HEAD = """\
# Command line
Every command and option of `demux`; `make golden` makes this page from the code (`tools/site/`). `demux COMMAND --help`
says the same in a terminal. What an exit code means, and what to do: [the runbook](../runbook.md#exit-codes).
"""
_METAVARS = {str: "TEXT", int: "INTEGER", float: "NUMBER", Path: "PATH"}


def cli_page() -> str:
    """Return docs/reference/cli.md: each command with its help and its options, as the command line has them."""
    parts = [_CLI_HEAD, "| exit code | |\n| ---: | --- |", *(f"| {code.value} | `{code.name}` |" for code in ExitCode)]
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


_SETTINGS_HEAD = f"""\
# Settings
Every setting; `make golden` makes this page from the code (`tools/site/`), and `demux init` writes a file with them.
A setting of a section has the section's name before it: `run.every` is `every:` below `run:` in the file,
`--set run.every=5m` on the command line, and `{PREFIX}RUN__EVERY` in the environment. The command line counts before
the environment, and that before the file.
"""


def settings_page() -> str:
    """Return docs/reference/settings.md: each setting with its default and its description."""
    plain = [(name, info) for name, info in Settings.model_fields.items() if section_in(info) is None]
    parts = [_SETTINGS_HEAD, "## General", *_table([_row(name, info) for name, info in plain])]
    for name, info in Settings.model_fields.items():
        section = section_in(info)
        if section is not None:
            parts += ["", f"## {name}", str(info.description), "", *_table(list(_rows(section, f"{name}.")))]
    return "\n".join(parts)


def _table(rows: list[str]) -> list[str]:
    return ["| setting | default | what it does |", "| --- | --- | --- |", *rows]


def _rows(model: type[BaseModel], before: str) -> Iterator[str]:
    for name, info in model.model_fields.items():
        section = section_in(info)
        if section is None:
            yield _row(f"{before}{name}", info)
        else:
            yield from _rows(section, f"{before}{name}.")


def _row(name: str, info: FieldInfo) -> str:
    shown = "" if info.default is None else f"`{yaml_value(info.default)}`"
    return f"| `{name}` | {shown} | {cell(description(info))} |"


_JSON_HEAD = """\
# JSON of the command line
What each command prints with `--json`; `make golden` makes this page from the code (`tools/site/`).
[json.schema.json](json.schema.json) is the same as JSON Schema. Standard output has one JSON object and nothing else
(`demux run`: one for each round, each on a line); progress, warnings and errors are on standard error. Names are as
they came in; what is not ASCII is escaped.

| command | prints |
| --- | --- |
"""
# of a docstring's block, as pydantic has it: a name, and what follows until the next one
_ATTRIBUTE = re.compile(r"^    (\w+): (.+(?:\n        .+)*)", re.MULTILINE)
_WORDS = {"string": "text", "integer": "integer", "number": "number", "boolean": "true or false", "null": "null"}


def json_schemas() -> str:
    """Return the JSON Schema of what each command prints, by command, with the parts that they share in `$defs`."""
    return json.dumps(_schemas(), indent=1)


def json_page() -> str:
    """Return docs/reference/json.md: the fields of what `--json` prints, from their types."""
    found = _schemas()
    rows = [f"| `demux {name}` | {_type_text(schema)} |" for name, schema in found["commands"].items()]
    parts = [_JSON_HEAD + "\n".join(rows)]
    for name, schema in sorted(found["$defs"].items()):
        text, _, attributes = schema.get("description", "").partition("Attributes:")
        parts += ["", f"## {name}", cell(text).replace("None", "null"), ""]
        if values := schema.get("enum"):
            parts.append(f"One of {', '.join(f'`{value}`' for value in values)}.")
            continue
        parts += ["| field | |", "| --- | --- |"]
        notes = dict(_ATTRIBUTE.findall(attributes))
        for field, kind in schema["properties"].items():
            note = f": {cell(notes[field]).rstrip('.').replace('None', 'null')}" if field in notes else ""
            missing = "" if field in schema["required"] else "; may be missing"
            parts.append(f"| `{field}` | {_type_text(kind)}{note}{missing} |")
    return "\n".join(parts)


def _schemas() -> dict[str, Any]:
    kinds = [(name, TypeAdapter[object](kind)) for name, kind in DOCUMENTS.items()]
    by_command, shared = TypeAdapter.json_schemas([(name, "serialization", kind) for name, kind in kinds])
    found: dict[str, Any] = {**shared, "commands": {name: by_command[name, "serialization"] for name, _ in kinds}}
    for definition in found["$defs"].values():
        fields = definition.get("properties", {})
        # what a dataclass has a default for is there all the same
        if given := [name for name in fields if "default" in fields[name]]:
            definition["required"] = [*definition.get("required", []), *given]
        for part in (definition, *fields.values()):
            part.pop("default", None)
            # titles repeat the names
            part.pop("title", None)
    return found


def _type_text(schema: Mapping[str, Any]) -> str:
    match schema:
        case {"$ref": str(ref)}:
            name = ref.rpartition("/")[2]
            return f"[{name}](#{name.lower()})"
        case {"anyOf": list(kinds)}:
            return " or ".join(map(_type_text, kinds))
        case {"type": "array", "prefixItems": list(kinds)}:
            return f"list: {', '.join(map(_type_text, kinds))}"
        case {"type": "array", "items": dict(kind)}:
            return f"list of {_type_text(kind)}" if kind else "list"
        case {"type": "object", "additionalProperties": dict(kind)}:
            return f"object of {_type_text(kind)}"
        case {"type": "object"}:
            return "object"
        case {"type": str(word)}:
            return _WORDS[word]
    return "any"


_DECISIONS_HEAD = """\
# Decisions
What was decided that is hard to undo, what else was tried, and what it would cost to decide otherwise. `make golden`
makes this list from the pages (`tools/site/`).
"""


def decisions_page(pages: Mapping[str, str]) -> str:
    """Return docs/decisions/README.md, the list of the decisions; `pages` has their texts by file name."""
    titles = {name: text.partition("\n")[0].removeprefix("# ") for name, text in sorted(pages.items())}
    return "\n".join((_DECISIONS_HEAD, *(f"* [{title}]({name})" for name, title in titles.items())))
