"""Schemas and what differs between them, for the terminal and as JSON; every name from outside is made printable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from demux.cli.inspect.schema_check import SubjectCheck
from demux.cli.output.documents.looks import (
    ComparisonJson,
    DiffJson,
    FieldComparisonJson,
    ListedSchemaJson,
    SchemaJson,
    SchemasJson,
    SchemaTextJson,
    SilverColumnJson,
    SilverColumnsJson,
)
from demux.cli.output.tables import new_table
from demux.core.columns.types import Array, Column, ColumnType, Map, Struct, sql_name
from demux.core.protobuf.compatibility.changes import (
    Effect,
    ReadEffect,
    SchemaChange,
    SchemaComparison,
    WireCompatibility,
)
from demux.core.registry.protocol import RegisteredSchema, SubjectVersion
from demux.core.text import printable

_FIRST = "first of the file"
_CAREFUL = {Effect.STOPS_FILLING, Effect.KEEPS_OLD_NAME, Effect.WIDENS_COLUMN, Effect.OTHER_VALUES}
_STYLES = {"breaks": "bold red", "careful": "yellow", "fine": "green"}


@dataclass(frozen=True, slots=True)
class Listed:
    """A schema, the name of its registry, and the compatibility mode of its subject if that is known."""

    registry: str
    schema: RegisteredSchema
    level: str | None


def list_table(listed: Sequence[Listed], problems: Sequence[str]) -> RenderableType:
    """Return a line for each schema, then what cannot be used."""
    # a terminal is narrow: a column that says nothing has no place
    registries = len({one.registry for one in listed}) > 1
    levels = any(one.level is not None for one in listed)
    names = [*(["registry"] if registries else []), ">id", "subject", ">version", "message"]
    table = new_table(*names, *(["compatibility"] if levels else []))
    for one in listed:
        schema = one.schema
        table.add_row(
            *([_text(one.registry)] if registries else []),
            Text(str(schema.schema_id)),
            _text(schema.subject),
            Text(str(schema.version)),
            Text(_FIRST, "dim") if schema.message is None else _text(schema.message),
            *([_text(one.level or "")] if levels else []),
        )
    subjects = len({(one.registry, one.schema.subject) for one in listed})
    return Group(
        table, *(_text(problem, "red") for problem in problems), Text(f"schemas: {len(listed)}, subjects: {subjects}")
    )


def list_content(listed: Sequence[Listed], problems: Sequence[str]) -> SchemasJson:
    """Return the same as a JSON object: schemas, problems."""
    schemas: list[ListedSchemaJson] = [
        {
            "registry": one.registry,
            **_schema_json(one.schema),
            "message": one.schema.message,
            "path": one.schema.path,
            "compatibility": one.level,
        }
        for one in listed
    ]
    return {"schemas": schemas, "problems": list(problems)}


def schema_text(schema: RegisteredSchema) -> str:
    """Return the schema's text and those of its references, each behind a comment that says which it is."""
    parts = [f"// schema {schema.schema_id}, {_use_text(use)}: {schema.path}" for use in (schema.use, *schema.others)]
    parts.append(schema.text)
    for reference in schema.references:
        parts += ["", f"// referenced: {reference.path}", reference.text]
    lines = "\n".join(part.rstrip("\n") for part in parts).split("\n")
    return "\n".join(printable(line.rstrip("\r").expandtabs(4)) for line in lines)


def _use_text(use: SubjectVersion) -> str:
    message = "" if use.message is None else f", message {use.message}"
    return f"subject {use.subject}, version {use.version}{message}"


def schema_content(schema: RegisteredSchema) -> SchemaTextJson:
    """Return the same as JSON data."""
    return {
        "schema_id": schema.schema_id,
        "subjects": [schema.use, *schema.others],
        "path": schema.path,
        "text": schema.text,
        "references": list(schema.references),
    }


def columns_table(columns: Struct) -> RenderableType:
    """Return a line for each silver column, those inside others behind them."""
    table = new_table("column", "type", ">field")
    for column in columns:
        _add_column(table, column, "")
    return table


def columns_content(columns: Struct) -> SilverColumnsJson:
    """Return the same as JSON data, without those inside others, which are in their types."""
    found: list[SilverColumnJson] = [
        {"name": column.name, "type": sql_name(column.type), "field": column.number} for column in columns
    ]
    return {"columns": found}


def comparison_lines(comparison: SchemaComparison) -> RenderableType:
    """Return each change with what it means on the wire and for the silver table, and the whole of it."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for change in comparison.changes:
        verdict = _verdict(change)
        grid.add_row(Text(verdict, _STYLES[verdict]), _change_lines(change))
    return Group(grid, *_summary(comparison)) if comparison.changes else Group(*_summary(comparison))


def comparison_content(comparison: SchemaComparison) -> ComparisonJson:
    """Return the same as a JSON object: breaks, modes, changes, added, widened, conflicts."""
    return {
        "breaks": comparison.breaks,
        "modes": [mode.value for mode in comparison.modes],
        "changes": [_change_json(change) for change in comparison.changes],
        "added": list(comparison.added),
        "widened": list(comparison.widened),
        "conflicts": list(comparison.conflicts),
    }


def diff_content(old: RegisteredSchema, new: RegisteredSchema, comparison: SchemaComparison) -> DiffJson:
    """Return the comparison of two schemas as a JSON object: old, new, and as `comparison_content`."""
    return {"old": _schema_json(old), "new": _schema_json(new), **comparison_content(comparison)}


def check_lines(name: str, checks: Sequence[SubjectCheck], problems: Sequence[str]) -> RenderableType:
    """Return the effect of the file on each subject, and the outcome."""
    lines: list[RenderableType] = []
    for one in checks:
        latest = one.latest
        what = f"{latest.subject}: version {latest.version} (schema {latest.schema_id}) -> {name}, {one.message}"
        lines.append(_text(what, "bold"))
        verdict = _text(one.problem, "red") if one.comparison is None else comparison_lines(one.comparison)
        lines.append(verdict)
        if one.refused:
            lines.append(_text(f"registry: its mode for this subject is {one.level}, which refuses it", "yellow"))
        lines.append(Text())
    lines += [_text(problem, "red") for problem in problems]
    broken = [printable(one.latest.subject) for one in checks if one.breaks]
    if not checks:
        lines.append(_text(f"no subject holds a message of {name}", "yellow"))
    elif broken:
        lines.append(
            Text(f"{printable(name)} breaks {', '.join(broken)}; subjects compared: {len(checks)}", "bold red")
        )
        lines.append(Text("give what changes its type a new field number and name; the old field may stay"))
    else:
        lines.append(_text(f"{name} breaks nothing; subjects compared: {len(checks)}", "green"))
    return Group(*lines)


def check_content(name: str, checks: Sequence[SubjectCheck], problems: Sequence[str]) -> dict[str, Any]:
    """Return the same as a JSON object: file, breaks, subjects, problems."""
    subjects = [
        {
            "registry": one.registry,
            **_schema_json(one.latest),
            "message": one.message,
            "compatibility": one.level,
            "refused": one.refused,
            "problem": one.problem or None,
            **({"breaks": one.breaks} if one.comparison is None else comparison_content(one.comparison)),
        }
        for one in checks
    ]
    breaks = any(one.breaks for one in checks)
    return {"file": name, "breaks": breaks, "subjects": subjects, "problems": list(problems)}


def _add_column(table: Table, column: Column, above: str) -> None:
    name = above + column.name
    inside, inner = _struct_in(column.type, name)
    type_name = sql_name(column.type) if inner is None else sql_name(_emptied(column.type)).replace("<>", "")
    table.add_row(_text(name), _text(type_name), str(column.number or ""))
    for part in inner or ():
        _add_column(table, part, f"{inside}.")


def _struct_in(column_type: ColumnType, path: str) -> tuple[str, Struct | None]:
    """Return the columns inside the type, if it has some, and their path, as `schema_merge` writes it."""
    match column_type:
        case Struct():
            return path, column_type
        case Array(inner):
            return _struct_in(inner, f"{path}.element")
        case Map(_, inner):
            return _struct_in(inner, f"{path}.value")
        case _:
            return path, None


def _emptied(column_type: ColumnType) -> ColumnType:
    match column_type:
        case Struct():
            return Struct(())
        case Array(element):
            return Array(_emptied(element))
        case Map(key, value):
            return Map(key, _emptied(value))
        case _:
            return column_type


def _verdict(change: SchemaChange) -> str:
    if change.wire is WireCompatibility.INCOMPATIBLE or change.effect is Effect.CONFLICT:
        return "breaks"
    return "careful" if change.wire is WireCompatibility.LOSS or change.effect in _CAREFUL else "fine"


def _change_lines(change: SchemaChange) -> RenderableType:
    field = f"{change.path} = {change.number}" if change.number else change.path or "message"
    between = " -> ".join(text for text in (change.old, change.new) if text is not None)
    lines: list[RenderableType] = [
        Text.assemble((printable(field), "bold"), f": {change.kind.value}, {printable(between)}")
    ]
    details = Table.grid(padding=(0, 1, 0, 0))
    details.add_column(no_wrap=True, min_width=len("silver"))
    details.add_column(overflow="fold")
    for label, text in _details(change):
        details.add_row(label, _text(text))
    return Group(*lines, details)


def _details(change: SchemaChange) -> list[tuple[str, str]]:
    lines = []
    if change.backward == change.forward:
        lines.append(("wire", _reading(change.backward)))
    else:
        lines.append(("wire", f"new reads old: {_reading(change.backward)}"))
        lines.append(("", f"old reads new: {_reading(change.forward)}"))
    if change.silver:
        conflict = f"{change.effect.value}: " if change.effect is Effect.CONFLICT else ""
        lines.append(("silver", conflict + change.silver))
    return lines


def _reading(reading: ReadEffect) -> str:
    words = reading.wire.value.replace("-", " ")
    return f"{words}: {reading.why}" if reading.why else words


def _summary(comparison: SchemaComparison) -> list[Text]:
    lines = [] if comparison.changes else [Text("no field differs")]
    if comparison.conflicts:
        shown_conflicts = {change.silver for change in comparison.changes if change.effect is Effect.CONFLICT}
        lines.append(Text("silver: no row of the new version fits; all go to quarantine, SCHEMA_CONFLICT", "red"))
        lines += [_text(f"  {conflict}", "red") for conflict in comparison.conflicts if conflict not in shown_conflicts]
    else:
        added = f"new columns: {len(comparison.added)}" if comparison.added else "no new column"
        widened = f"; wider columns, for which the table is rewritten: {len(comparison.widened)}"
        lines.append(Text(f"silver: every row fits; {added}{widened if comparison.widened else ''}"))
    modes = ", ".join(mode.value for mode in comparison.modes)
    return [*lines, Text(f"registry: compatibility modes that allow it: {modes}")]


def _change_json(change: SchemaChange) -> FieldComparisonJson:
    return {
        "path": change.path,
        "number": change.number,
        "kind": change.kind.name,
        "old": change.old,
        "new": change.new,
        "wire": change.wire.value,
        "backward": change.backward,
        "forward": change.forward,
        "refused": sorted(direction.value for direction in change.refused),
        "silver": {"effect": change.effect.value, "sentence": change.silver},
    }


def _schema_json(schema: RegisteredSchema) -> SchemaJson:
    return {"schema_id": schema.schema_id, "subject": schema.subject, "version": schema.version}


def _text(text: str, style: str = "") -> Text:
    return Text(printable(text), style)
