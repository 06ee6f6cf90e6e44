"""docs/reference/json.md and json.schema.json: the fields of what `--json` prints, from their types. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter

from demux.cli.output.print_json import DOCUMENTS
from tools.site.cli_page import cell

_HEAD = """\
# JSON of the command line
What each command prints with `--json`; `make golden` makes this page from the code (`tools/site/`).
[json.schema.json](json.schema.json) is the same as JSON Schema. Standard output has one JSON object and nothing else
(`demux run`: one for each round, each on a line); progress, warnings and errors are on standard error. Names are as
they came in; what is not ASCII is escaped.

| command | prints |
| --- | --- |
"""
_WORDS = {"string": "text", "integer": "integer", "number": "number", "boolean": "true or false", "null": "null"}


def json_schemas() -> str:
    """Return the JSON Schema of what each command prints, by command, with the parts that they share in `$defs`."""
    return json.dumps(_schemas(), indent=1)


def json_page() -> str:
    """Return the page."""
    found = _schemas()
    rows = [f"| `demux {name}` | {_type_text(schema)} |" for name, schema in found["commands"].items()]
    parts = [_HEAD + "\n".join(rows)]
    for name, schema in sorted(found["$defs"].items()):
        parts += ["", f"## {name}", cell(schema.get("description", "")), "", "| field | |", "| --- | --- |"]
        for field, kind in schema["properties"].items():
            note = "" if field in schema["required"] else "; may be missing"
            parts.append(f"| `{field}` | {_type_text(kind)}{note} |")
    return "\n".join(parts)


def _schemas() -> dict[str, Any]:
    kinds = [(name, TypeAdapter[object](kind)) for name, kind in DOCUMENTS.items()]
    by_command, shared = TypeAdapter.json_schemas([(name, "serialization", kind) for name, kind in kinds])
    found: dict[str, Any] = {**shared, "commands": {name: by_command[name, "serialization"] for name, _ in kinds}}
    # titles repeat the names
    for definition in found["$defs"].values():
        for part in (definition, *definition["properties"].values()):
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
