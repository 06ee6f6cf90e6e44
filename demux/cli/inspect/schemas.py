"""`demux schemas list | show | diff | check`: look at the registry and change nothing; and `approve`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path

import typer

from demux.cli.command import console, session_to_look
from demux.cli.inspect.schema_check import NamedRegistry, SubjectCheck, candidate, check, compiled_versions
from demux.cli.inspect.schema_text import (
    Listed,
    check_content,
    check_lines,
    columns_content,
    columns_table,
    comparison_lines,
    diff_content,
    list_content,
    list_table,
    schema_content,
    schema_text,
)
from demux.cli.output.print_json import print_json
from demux.core.errors import ExitCode, RegistryUnavailable, SchemaInvalid, SettingsInvalid
from demux.core.protobuf.compatibility.compare import compare, silver_columns, table_of
from demux.core.protobuf.schema.protoc import compile_files, compile_schema
from demux.core.registry.protocol import RegisteredSchema, SubjectVersion
from demux.core.root.layout import layout_of
from demux.core.root.lock import table_lock
from demux.core.schemas.registry_selection import (
    DEFAULT,
    game_schemas,
    open_registry,
    registry_name_for,
    registry_settings,
)
from demux.core.schemas.store import SchemaStore
from demux.core.schemas.subject_choice import ForeignSchema, choose, shared_by
from demux.core.settings.settings import GameRegistrySettings, Settings
from demux.core.text import printable


def list_all(settings: Settings, registry: str | None, json: bool) -> None:
    """List the schemas of all registries: id, subject, version, message, compatibility mode."""
    asked = _RegistryQueries(settings, [registry] if registry else _names(settings.registries))
    found: list[Listed] = []
    for one, subject in asked.subjects():
        with asked.problems_of(f"subject {subject} cannot be used"):
            level = one.opened.compatibility(subject)
            found += [Listed(one.name, schema, level) for schema in one.versions(subject)]
    if json:
        print_json(list_content(found, asked.problems))
    else:
        console.print(list_table(found, asked.problems))
    raise typer.Exit(asked.exit_code)


def show(settings: Settings, schema_id: int, columns: bool, game: str | None, registry: str, json: bool) -> None:
    """Show a schema's text and those that it imports from the registry, or the silver columns that it makes."""
    if columns:
        made = silver_columns(compile_schema(_meant(settings, registry, game, schema_id)))
        if json:
            print_json(columns_content(made))
        else:
            console.print(columns_table(made))
        return
    named = game is not None
    schema = _meant(settings, registry, game, schema_id) if named else _open(settings, registry).schema(schema_id)
    if json:
        print_json(schema_content(schema))
    else:
        console.print(schema_text(schema), soft_wrap=True)


def diff(settings: Settings, old_id: int, new_id: int, game: str | None, registry: str, json: bool) -> None:
    """Show what differs between two schemas, on the wire and for a silver table that the older one has filled."""
    old, new = (_meant(settings, registry, game, schema_id) for schema_id in (old_id, new_id))
    opened = _open(settings, registry_name_for(game, settings.registries) if game is not None else registry)
    before = [version for version in opened.versions(old.subject) if version.version < old.version]
    comparison = compare(compile_schema(old), compile_schema(new), table_of(compiled_versions([*before, old])))
    if json:
        print_json(diff_content(old, new, comparison))
        return
    names = (f"{one.subject} version {one.version} (schema {one.schema_id})" for one in (old, new))
    console.print(printable(" -> ".join(names)), style="bold")
    console.print(comparison_lines(comparison))


def check_file(
    settings: Settings,
    file: Path,
    game: list[str],
    subject: list[str],
    import_root: list[Path],
    registry: str | None,
    json: bool,
) -> None:
    """Say which games a changed .proto file would break, and how; exit code 3 if it breaks any."""
    new = candidate(file, import_root)
    asked = _RegistryQueries(settings, [registry] if registry else _names(settings.registries, game, subject))
    wanted = frozenset([*subject, *game, *(f"{name}-value" for name in game)])
    checks: list[SubjectCheck] = []
    seen: set[str] = set()
    for one, name in asked.subjects():
        seen.add(name)
        if wanted and name not in wanted:
            continue
        with asked.problems_of(f"subject {name} cannot be compared"):
            checked = check(one, name, new, by_name=name not in subject)
            checks += [] if checked is None else [checked]
    if not asked.problems:
        _require(game, subject, seen)
    if json:
        print_json(check_content(str(file), checks, asked.problems))
    else:
        console.print(check_lines(str(file), checks, asked.problems))
    raise typer.Exit(ExitCode.GAMES_FAILED if any(one.breaks for one in checks) else asked.exit_code)


def approve(settings: Settings, game: str, schema: list[int], by_spark: bool) -> None:
    """Let changed schemas change a game's table that asks first (games.schema_changes: ask)."""
    from demux.pipeline.context import registry_of
    from deserializer.redecode.schema_approval import approve_schemas

    registry, now = registry_name_for(game, settings.registries), datetime.now(timezone.utc)
    # one commit to a table of its own: a running command need not end for it
    with session_to_look(settings, "schemas approve", by_spark=by_spark) as session:
        store = SchemaStore(session, layout_of(settings), registry_of(settings, os.environ), table_lock(settings.root))
        approved = approve_schemas(session, layout_of(settings), store, game, registry, tuple(schema), now)
    ids = ", ".join(str(schema_id) for schema_id in approved)
    console.print(f"{printable(game)}: approved schema {ids}; the next round takes its rows")


class _RegistryQueries:
    """Registries, one after the other; what one of several cannot answer is kept as a problem."""

    def __init__(self, settings: Settings, names: Sequence[str]) -> None:
        self._settings = settings
        self._names = names
        self.problems: list[str] = []
        self.exit_code = ExitCode.OK

    def subjects(self) -> Iterator[tuple[NamedRegistry, str]]:
        """Yield each registry with each of its subjects.

        Raises:
            RegistryUnavailable: the only one gives no usable answer.
        """
        for name in self._names:
            one = _open(self._settings, name)
            try:
                subjects = one.opened.subjects()
            except RegistryUnavailable as silent:
                if len(self._names) == 1:
                    raise
                self.exit_code = silent.exit_code
                self.problems.append(f"registry {name}: {silent.message}")
                continue
            yield from ((one, subject) for subject in subjects)

    @contextmanager
    def problems_of(self, what: str) -> Iterator[None]:
        """Keep it as a problem where the registry's entries cannot be used."""
        try:
            yield
        except SchemaInvalid as invalid:
            self.problems.append(f"{what}: {invalid.message}")


def _names(
    registries: Mapping[str, GameRegistrySettings], games: Sequence[str] = (), subjects: Sequence[str] = ()
) -> list[str]:
    """Return the names of the registries that the games are in, or of all."""
    if games and not subjects:
        return list(dict.fromkeys(registry_name_for(game, registries) for game in games))
    return [DEFAULT, *registries]


def _require(games: Sequence[str], subjects: Sequence[str], seen: Set[str]) -> None:
    missing = [name for name in subjects if name not in seen]
    missing += [game for game in games if seen.isdisjoint((game, f"{game}-value"))]
    if missing:
        raise SettingsInvalid(
            f"The registry has no subject of {', '.join(map(repr, missing))}.",
            "See `demux schemas list`; names are exact.",
        )


def _meant(settings: Settings, registry: str, game: str | None, schema_id: int) -> RegisteredSchema:
    """Return the schema as a record of the game means it, or as all its subjects do.

    Raises:
        SettingsInvalid: its subjects mean different messages and no game is named, or it is no schema of the game's.
        SubjectAmbiguous: as `choose`.
    """
    if game is not None:
        schemas = game_schemas(game, settings)
        opened = _open(settings, schemas.registry)
        schema = opened.schema(schema_id)
        shared = shared_by(schema, compile_files(schema))
        meant = choose(shared, None, schemas, frozenset(opened.opened.subjects()))
        if isinstance(meant, ForeignSchema):
            raise SettingsInvalid(meant.message, "If the game means it, name its subject in games.subjects_of.")
        return schema.used_as(SubjectVersion(meant.subject, meant.version, meant.message))
    schema = _open(settings, registry).schema(schema_id)
    if schema.others:
        shared = shared_by(schema, compile_files(schema))
        if len({use.message for use in shared.uses}) > 1:
            meanings = ", ".join(f"{use.subject} ({use.message})" for use in shared.uses)
            raise SettingsInvalid(
                f"Schema {schema_id} is of several subjects that mean different messages: {meanings}.",
                "Name the game with --game.",
            )
    return schema.used_as(schema.use)


def _open(settings: Settings, name: str) -> NamedRegistry:
    messages = registry_settings(settings, name).messages
    return NamedRegistry(name, open_registry(settings, name, environ=os.environ), messages)
