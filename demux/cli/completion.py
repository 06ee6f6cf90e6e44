"""Completion of options and arguments in a shell: games, schema ids and registries of the root.

They come from the control tables, without Spark. A completion prints no error: where the tables cannot be read, or not
within five seconds, there is nothing to complete. Names come from outside and shells evaluate what they complete, so
only names of letters, digits, `_`, `.` and `-` are offered.
"""

from __future__ import annotations

import faulthandler
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

if TYPE_CHECKING:
    from demux.core.settings.settings import Settings

_LONGEST_S = 5.0
_PLAIN = re.compile(r"\w[\w.-]*")


def complete_games(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the names of the root's known games that begin so."""
    return _begin(incomplete, _read(ctx, _games))


def complete_schema_ids(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Return the schema ids in use that begin so, each with its subject and version."""
    found = _read(ctx, _schemas)
    return [(schema_id, found[schema_id]) for schema_id in _begin(incomplete, found)]


def complete_registries(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the names of the registries of the settings that begin so."""
    return _begin(incomplete, _read(ctx, lambda settings: dict.fromkeys(["default", *settings.registries], "")))


def complete_decoders(incomplete: str) -> list[str]:
    """Return the decoders that begin so."""
    return _begin(incomplete, ["auto", "arrow", "from_protobuf"])


def _begin(incomplete: str, words: Iterable[str]) -> list[str]:
    return [word for word in words if word.startswith(incomplete) and _PLAIN.fullmatch(word)]


def _read(ctx: typer.Context, read: Callable[[Settings], dict[str, str]]) -> dict[str, str]:
    """Return words of the root that the command line names, each with what it means; none on any failure."""
    from demux.cli.options import settings_of

    with Path(os.devnull).open("w") as nowhere:
        # a store that does not answer waits in code that no signal reaches
        faulthandler.dump_traceback_later(_LONGEST_S, exit=True, file=nowhere)
        try:
            given = ctx.params
            file = given.get("settings_file")
            return read(
                settings_of(None if file is None else Path(file), given.get("root"), given.get("changes") or [])
            )
        except Exception:  # a person is typing
            return {}
        finally:
            faulthandler.cancel_dump_traceback_later()


def _games(settings: Settings) -> dict[str, str]:
    rows = _select(settings, "games", "SELECT game_name FROM {records} ORDER BY game_name")
    return dict.fromkeys((row["game_name"] for row in rows), "")


def _schemas(settings: Settings) -> dict[str, str]:
    uses = "SELECT DISTINCT schema_id, subject, version FROM {records} ORDER BY schema_id, subject, version"
    # shells evaluate the meaning too
    return {
        str(row["schema_id"]): f"{row['subject']} version {row['version']}" if _PLAIN.fullmatch(row["subject"]) else ""
        for row in _select(settings, "schemas", uses)
    }


def _select(settings: Settings, table: Literal["games", "schemas"], query: str) -> list[Mapping[str, Any]]:
    """Return these rows of a control table; without its times, for which pyarrow loads pandas."""
    from demux.core.delta.record_table import RecordTable
    from demux.core.root.layout import layout_of
    from demux.core.tables import GAMES, SCHEMAS

    layout = layout_of(settings)
    path, columns = (layout.games, GAMES) if table == "games" else (layout.schemas, SCHEMAS)
    return RecordTable(None, layout.storage, path, columns).select(query)
