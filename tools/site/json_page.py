"""docs/reference/json.md and json.schema.json: the fields of what `--json` prints, from their types. Pure."""

from __future__ import annotations

import json
import re
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
# of a docstring's block, as pydantic has it: a name, and what follows until the next one
_ATTRIBUTE = re.compile(r"^    (\w+): (.+(?:\n        .+)*)", re.MULTILINE)
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
