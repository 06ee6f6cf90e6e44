"""`demux schemas list | show | diff | check`: look at the registry, change nothing; no Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import typer

from demux.cli.schema_check import SubjectCheck, candidate, check, compiled_versions
from demux.cli.schema_tables import (
    check_json,
    check_lines,
    columns_table,
    comparison_lines,
    diff_json,
    list_json,
    list_table,
    schema_text,
)
from demux.cli.workplace import ROOT, SET, SETTINGS, console, settings_of
from demux.errors import ExitCode, SchemaInvalid, SettingsInvalid
from demux.protobuf.compatibility import compare, silver_columns, table_of
from demux.protobuf.compile import compile_schema
from demux.registry.folder import FolderRegistry
from demux.registry.protocol import RegisteredSchema, SchemaRegistry
from demux.settings import Settings
from demux.text import printable

schemas = typer.Typer(help="Look at schemas, and at what a changed one would break.", no_args_is_help=True)

_REGISTRY = typer.Option("default", "--registry", help="Name of the registry in `registries`; default: `registry`.")
_JSON = typer.Option(False, "--json", help="Print JSON.")


@schemas.callback()
def group() -> None:
    """Look at schemas, and at what a changed one would break."""


@schemas.command("list")
def list_all(
    registry: str = _REGISTRY,
    json: bool = _JSON,
    settings_file: Path | None = SETTINGS,
    root: str | None = ROOT,
    changes: list[str] = SET,
) -> None:
    """List the schemas of a registry: id, subject, version, message.

    Example: `demux schemas list`
    """
    opened = _open(settings_of(settings_file, root, changes), registry)
    found: list[RegisteredSchema] = []
    problems: list[str] = []
    for subject in opened.subjects():
        try:
            found += opened.versions(subject)
        except SchemaInvalid as invalid:
            problems.append(f"subject {subject} cannot be used: {invalid.cause}")
    if json:
        typer.echo(list_json(found, registry, problems))
    else:
        console.print(list_table(found, registry, problems))


@schemas.command("show")
def show(
    schema_id: int = typer.Argument(..., metavar="ID", min=1, help="The schema's id."),
    columns: bool = typer.Option(False, "--columns", help="Show the silver columns that it makes instead."),
    registry: str = _REGISTRY,
    settings_file: Path | None = SETTINGS,
    root: str | None = ROOT,
    changes: list[str] = SET,
) -> None:
    """Show a schema's text and everything that it imports from the registry, or the silver columns that it makes.

    Example: `demux schemas show 7 --columns`
    """
    schema = _open(settings_of(settings_file, root, changes), registry).schema(schema_id)
    if columns:
        console.print(columns_table(silver_columns(compile_schema(schema))))
    else:
        console.print(schema_text(schema), soft_wrap=True)


@schemas.command("diff")
def diff(
    old_id: int = typer.Argument(..., metavar="OLD_ID", min=1, help="The older schema's id."),
    new_id: int = typer.Argument(..., metavar="NEW_ID", min=1, help="The newer schema's id."),
    registry: str = _REGISTRY,
    json: bool = _JSON,
    settings_file: Path | None = SETTINGS,
    root: str | None = ROOT,
    changes: list[str] = SET,
) -> None:
    """Show what differs between two schemas, on the wire and for a silver table that the older one has filled.

    Example: `demux schemas diff 7 9`
    """
    opened = _open(settings_of(settings_file, root, changes), registry)
    old, new = opened.schema(old_id), opened.schema(new_id)
    before = [version for version in opened.versions(old.subject) if version.version <= old.version]
    table = table_of(compiled_versions(before))
    comparison = compare(compile_schema(old), compile_schema(new), table)
    if json:
        typer.echo(diff_json(old, new, comparison))
        return
    names = (f"{one.subject} version {one.version} (schema {one.schema_id})" for one in (old, new))
    console.print(printable(" -> ".join(names)), style="bold")
    console.print(comparison_lines(comparison))


@schemas.command("check")
def check_file(
    file: Path = typer.Argument(..., metavar="FILE", help="The changed .proto file."),
    game: list[str] = typer.Option([], "--game", help="Only subjects NAME and NAME-value. May be repeated."),
    subject: list[str] = typer.Option(
        [], "--subject", help="Only this subject, whatever message it holds. May be repeated."
    ),
    import_root: list[Path] = typer.Option(
        [], "--import-root", help="Folder that import paths start at. May be repeated. Default: found by the imports."
    ),
    registry: str = _REGISTRY,
    json: bool = _JSON,
    settings_file: Path | None = SETTINGS,
    root: str | None = ROOT,
    changes: list[str] = SET,
) -> None:
    """Say which games a changed .proto file would break, and how; exit code 3 if it breaks any.

    The file is compared with the latest version of each subject that holds a message of the same name.

    Example: `demux schemas check games/chess.proto`
    """
    opened = _open(settings_of(settings_file, root, changes), registry)
    new = candidate(file, import_root)
    checks: list[SubjectCheck] = []
    problems: list[str] = []
    for name in _wanted(opened, game, subject):
        try:
            one = check(opened, name, new, by_name=name not in subject)
        except SchemaInvalid as invalid:
            problems.append(f"subject {name} cannot be compared: {invalid.cause}")
            continue
        if one is not None:
            checks.append(one)
    if json:
        typer.echo(check_json(str(file), checks, problems))
    else:
        console.print(check_lines(str(file), checks, problems))
    raise typer.Exit(ExitCode.GAMES_FAILED if any(one.breaks for one in checks) else ExitCode.OK)


def _wanted(registry: SchemaRegistry, games: list[str], subjects: list[str]) -> Iterator[str]:
    known = registry.subjects()
    asked = [*subjects, *(name for game in games for name in (game, f"{game}-value") if name in known)]
    missing = [name for name in subjects if name not in known]
    missing += [game for game in games if game not in known and f"{game}-value" not in known]
    if missing:
        raise SettingsInvalid(
            f"The registry has no subject of {', '.join(map(repr, missing))}.", "See `demux schemas list`."
        )
    yield from dict.fromkeys(asked if games or subjects else known)


def _open(settings: Settings, name: str) -> SchemaRegistry:
    if name != "default":
        raise SettingsInvalid(f"There is no registry {name!r}.", "Name one of `registries`.", registry=name)
    return FolderRegistry(Path(settings.registry_path))
