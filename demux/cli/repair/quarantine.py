"""`demux quarantine`: look at the records in quarantine, decode them again, or drop them for good."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timezone

from pyspark.sql import SparkSession
from rich.text import Text

from demux.cli.command import ask_to_remove, command_context, console, each_game, session_to_look
from demux.cli.output.print_json import print_json
from demux.cli.repair.quarantine_text import (
    drop_content,
    drop_text,
    groups_content,
    groups_text,
    records_content,
    records_text,
)
from demux.core.causes import OF_BRONZE, Cause, Stage
from demux.core.errors import DemuxError, SettingsInvalid
from demux.core.root.layout import Layout, layout_of, require_root
from demux.core.root.lock import Access
from demux.core.schemas.registry_selection import game_schemas
from demux.core.settings.settings import Settings
from demux.core.text import first_few, printable
from demux.core.time_expressions import moment_of
from demux.operations.quarantine.drop import drop as drop_rows
from demux.operations.quarantine.drop import droppable
from demux.operations.quarantine.filter import QuarantineFilter, require_game
from demux.operations.quarantine.reader import QuarantineReader, games_of, schemas_of
from demux.operations.quarantine.records import DecodedRecord, QuarantineRecord, decode_record
from demux.pipeline.context import HeldRoot, root_of
from demux.pipeline.status import require_root_without_spark

_SAMPLE_FIELDS = 20
_NONE = Text("nothing in quarantine is meant by this")


def list_groups(
    settings: Settings, game: str | None, cause: list[Cause], since: str | None, limit: int, json: bool
) -> None:
    """Show what is in quarantine, by cause, game and schema, each with its newest record."""
    layout, choice = _filter_of(settings, QuarantineFilter(game, tuple(cause)), since)
    reader = QuarantineReader(layout)
    groups = reader.groups(choice)
    shown = groups[:limit]
    records = reader.records(one.newest for one in shown)
    found = _decoded(layout, settings, [records[one.newest] for one in shown], _SAMPLE_FIELDS)
    together = list(zip(shown, found, strict=True))
    if json:
        print_json(groups_content(together, groups))
    else:
        _print(groups_text(together, groups))


def show(
    settings: Settings,
    record_id: str | None,
    game: str | None,
    cause: list[Cause],
    since: str | None,
    limit: int,
    fields: int,
    json: bool,
) -> None:
    """Show whole records: where each came from, why it is in quarantine, its bytes, decoded as far as possible."""
    layout, choice = _filter_of(settings, QuarantineFilter(game, tuple(cause), record_id=record_id), since)
    rows, records = QuarantineReader(layout).newest(choice, limit)
    if record_id is not None and not rows:
        raise SettingsInvalid(
            f"Quarantine has no such record {printable(record_id)!r}.",
            "See `demux quarantine show` for some that it has, and their positions.",
            record_id=record_id,
        )
    found = _decoded(layout, settings, records, fields)
    if json:
        print_json(records_content(found, rows))
    elif found:
        _print(records_text(found, rows))
    else:
        _print([_NONE])


def replay(settings: Settings, game: str | None, cause: list[Cause], since: str | None, wait: bool) -> None:
    """Decode quarantined payloads again, once: what decodes now moves to silver, the rest stays with today's cause."""
    from deserializer.redecode.replay import games_in_quarantine
    from deserializer.redecode.replay import replay as replay_game

    _require_replayable(cause)
    choice = QuarantineFilter(game, tuple(cause), since=_moment("--since", since))
    with command_context(settings, "quarantine replay", Access.TURNS, wait=wait) as place:
        games = games_in_quarantine(place.spark, place.layout, choice)
        if not games:
            _require_seen(place, place.spark, game)
            _print([_NONE])

        def decode(name: str) -> str:
            report = replay_game(place.spark, place.layout, place.schemas, name, choice, place.settings.run.sink)
            return f"{report.decoded:,} decoded, {report.tried - report.decoded:,} stay"

        each_game(place, games, "decoding", decode)


def drop(
    settings: Settings,
    older_than: str,
    game: str | None,
    cause: list[Cause],
    stage: Stage | None,
    dry_run: bool,
    json: bool,
    by_spark: bool,
    wait: bool,
    yes: bool,
) -> None:
    """Drop old records from quarantine permanently; they are listed first, and you are asked."""
    if json and not dry_run:
        raise SettingsInvalid("--json is of --dry-run.", "Give both, or leave out --json; nothing was dropped.")
    now = datetime.now(timezone.utc)
    before = moment_of(older_than, now, "--older-than")
    if before > now:
        raise SettingsInvalid(f"--older-than {older_than} is in the future.", "Name a time that is past, or an age.")
    if game is not None and stage is Stage.BRONZE:
        raise SettingsInvalid("Records of stage bronze have no game.", "Leave out --game, or --stage bronze.")
    choice = QuarantineFilter(game, tuple(cause), stage, before=before)
    if dry_run:
        with session_to_look(settings, "quarantine drop", by_spark=by_spark) as spark:
            groups = droppable(spark, layout_of(settings), choice)
            if not groups:
                _require_seen(root_of(settings, spark, threading.Event()), spark, game)
        if json:
            print_json(drop_content(groups, before))
        else:
            _print([*drop_text(groups, before), Text("nothing was dropped")] if groups else [_NONE])
        return
    with command_context(settings, "quarantine drop", Access.TURNS, wait=wait) as place:
        groups = droppable(place.spark, place.layout, choice)
        if not groups:
            _require_seen(place, place.spark, game)
            _print([_NONE])
            return
        _print(drop_text(groups, before))
        # a question takes its time
        with place.away():
            ask_to_remove(yes)
        with console.status("dropping …"):
            drop_rows(place.spark, place.layout, choice, now)
    console.print(
        "dropped; control/dropped says which, and the next VACUUM of quarantine removes their bytes", soft_wrap=True
    )


def _filter_of(settings: Settings, choice: QuarantineFilter, since: str | None) -> tuple[Layout, QuarantineFilter]:
    """Return where the tables are, and which rows are chosen.

    Raises:
        SettingsInvalid: only Spark opens the root's tables, or `--since` is no time.
        GameUnknown: no table has the game.
    """
    choice = replace(choice, since=_moment("--since", since))
    layout = require_root_without_spark(settings, "quarantine is read without Spark")
    require_root(layout)
    if choice.game is not None:
        require_game(choice.game, games_of(layout))
    return layout, choice


def _moment(option: str, text: str | None) -> datetime | None:
    return None if text is None else moment_of(text, datetime.now(timezone.utc), option)


def _decoded(layout: Layout, settings: Settings, records: Sequence[QuarantineRecord], most: int) -> list[DecodedRecord]:
    schemas = schemas_of(layout, {one.ref for one in records if one.stage == Stage.SILVER.value})
    found = []
    for one in records:
        found.append(decode_record(one, game_schemas(one.game or "", settings), schemas, most))
    return found


def _require_replayable(causes: Iterable[Cause]) -> None:
    never = sorted(cause.value for cause in OF_BRONZE.intersection(causes))
    if never:
        raise SettingsInvalid(
            f"Records with the cause {first_few(never)} never became a row of bronze: there is no payload to decode.",
            "Leave the cause out. Where a setting was wrong, correct it, and `demux rebuild --bronze` reads the source "
            "again.",
            causes=tuple(never),
        )


def _require_seen(place: HeldRoot, spark: SparkSession | None, game: str | None) -> None:
    """Check that a game without such rows is a game at all; raises as `require_game`."""
    from deserializer.redecode.redecoder import require_game as require_in_bronze

    if game is not None and game not in (known := place.control.known_games()):
        try:
            require_in_bronze(spark, place.layout, game)
        except DemuxError:
            require_game(game, known)


def _print(lines: Iterable[Text]) -> None:
    for line in lines:
        console.print(line, soft_wrap=True)
