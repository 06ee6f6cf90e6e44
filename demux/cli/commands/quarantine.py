"""The commands of `demux quarantine`: look at bad records, decode them again, drop them for good."""

from __future__ import annotations

import typer

from demux.cli.options import (
    BY_SPARK,
    GAME,
    JSON,
    QUIET,
    TAKE_TURNS,
    YES,
    command_group,
    runs,
)
from demux.core.causes import OF_BRONZE, Cause, Stage

quarantine = command_group("List, show, replay and drop records in quarantine.")

REPLAYABLE = [cause for cause in Cause if cause not in OF_BRONZE]

CAUSES = typer.Option([], "--cause", help="Only records of this cause. May be repeated.")
SINCE = typer.Option(
    None,
    "--since",
    help="Only records quarantined then or later: 2026-01-31, 2026-01-31T12:00 (UTC), or an age (7d, 12h).",
)


@quarantine.command("list")
@runs("demux.cli.repair.quarantine:list_groups")
def list_groups(
    game: str | None = GAME,
    cause: list[Cause] = CAUSES,
    since: str | None = SINCE,
    limit: int = typer.Option(20, min=1, max=1000, help="How many groups, those with most rows first."),
    json: bool = JSON,
) -> None:
    """Show what is in quarantine, by cause, game and schema, and of each the newest record, decoded as far as it goes.

    Only looks, and starts no Spark: it may run at any time, beside anything.

    Example: `demux quarantine list --since 7d`
    """


@quarantine.command("show")
@runs("demux.cli.repair.quarantine:show")
def show(
    record_id: str | None = typer.Argument(
        None, help="A record's position, as `list` has it. Default: the newest ones."
    ),
    game: str | None = GAME,
    cause: list[Cause] = CAUSES,
    since: str | None = SINCE,
    limit: int = typer.Option(10, min=1, max=1000, help="How many records, the newest first."),
    fields: int = typer.Option(100, min=1, max=10_000, help="How many fields of each."),
    json: bool = JSON,
) -> None:
    """Show whole records: where each came from, why it is in quarantine, its bytes, decoded as far as possible.

    Only looks, and starts no Spark: it may run at any time, beside anything.

    Example: `demux quarantine show events/0/17`
    """


@quarantine.command("replay")
@runs("demux.cli.repair.quarantine:replay")
def replay(
    game: str | None = GAME,
    cause: list[Cause] = typer.Option(REPLAYABLE, help="Only records of this cause. May be repeated."),
    since: str | None = SINCE,
    quiet: bool = QUIET,
    wait: bool = TAKE_TURNS,
) -> None:
    """Decode quarantined payloads again, once: what decodes now moves to silver, the rest stays with today's cause.

    Killed midway, give it again: no record comes twice. Records that never became a bronze row have no payload to
    decode; for these see `demux rebuild --bronze`.

    Example: `demux quarantine replay --cause UNKNOWN_SCHEMA`
    """


@quarantine.command("drop")
@runs("demux.cli.repair.quarantine:drop")
def drop(
    older_than: str = typer.Option(
        ...,
        "--older-than",
        help="Records quarantined before then: an age (90d, 12h), or 2026-01-31, 2026-01-31T12:00 (UTC).",
    ),
    game: str | None = GAME,
    cause: list[Cause] = CAUSES,
    stage: Stage | None = typer.Option(None, help="Only records that this stage quarantined."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Only say what would go; starts no Spark."),
    json: bool = JSON,
    by_spark: bool = BY_SPARK,
    wait: bool = TAKE_TURNS,
    yes: bool = YES,
) -> None:
    """Drop old records from quarantine permanently; they are listed first, and you are asked.

    They stay on record, without their bytes, in the table control/dropped, so `demux reconcile` balances. The
    bytes are in the table's old files until a VACUUM. If it is killed, run it again. `demux rebuild` decodes bronze
    again, and brings back what still fails.

    Example: `demux quarantine drop --older-than 90d --cause MALFORMED_WRAPPER --dry-run`
    """
