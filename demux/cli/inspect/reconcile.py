"""`demux reconcile`: prove from the tables that every record is in exactly one place, or say which is not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from demux.api.root import Root
from demux.cli.command import console, session_to_look
from demux.cli.output.print_json import print_json
from demux.cli.output.tables import new_table
from demux.core.errors import ExitCode
from demux.core.settings.settings import Settings
from demux.core.settings.source import SourceKind
from demux.core.text import count_text, first_few, printable
from demux.operations.reconcile.balance import (
    MEANING,
    Account,
    DifferenceExample,
    Grain,
    Ledger,
    LedgerDifference,
    OffsetHole,
)

_MOST_LINES = 50
_MOST_EXAMPLES = 3
_MOST_CHARACTERS = 120


def reconcile(
    settings: Settings, games: list[str], rounds: bool, everything: bool, json: bool, strict: bool, by_spark: bool
) -> None:
    """Prove that every record is in exactly one place, from the tables alone; exit code 6 if one is not."""
    source = [settings.source_path] if settings.source.kind is SourceKind.DELTA else []
    with session_to_look(settings, "reconcile", by_spark=by_spark, also=source) as spark, console.status("counting …"):
        ledger = Root(settings).reconcile(games or None, Grain.ROUND if rounds else Grain.GAME, spark)
    if json:
        print_json(ledger_content(ledger))
    else:
        console.print(ledger_text(ledger, everything or rounds))
    if not ledger.balances or (strict and ledger.holes):
        raise typer.Exit(ExitCode.UNBALANCED)


def ledger_text(ledger: Ledger, everything: bool) -> RenderableType:
    """Return the ledger as text: the accounts that do not balance (with `everything`, all), and their differences."""
    lines: list[RenderableType] = [*_intake_lines(ledger)]
    shown = [account for account in ledger.accounts if everything or not account.balances]
    if ledger.accounts:
        lines.append(_table(ledger.accounts, shown if everything else shown[:_MOST_LINES]))
    for difference in ledger.differences[:_MOST_LINES]:
        lines += _difference_lines(difference)
    if len(ledger.differences) > _MOST_LINES:
        lines.append(Text(f"and {len(ledger.differences) - _MOST_LINES} more: --json has all of them", "red"))
    lines += [Text(_hole_line(hole), "yellow") for hole in ledger.holes[:_MOST_LINES]]
    lines += [Text(note, "yellow") for note in ledger.notes]
    lines.append(_verdict(ledger))
    return Group(*lines)


def ledger_content(ledger: Ledger) -> dict[str, Any]:
    """Return the same as JSON data: all accounts and differences, each with its first 20 examples."""
    return {
        "balances": ledger.balances,
        "source": None if ledger.intake is None else asdict(ledger.intake),
        "accounts": [{**asdict(account), "balances": account.balances} for account in ledger.accounts],
        "differences": [
            {**asdict(one), "kind": one.kind.value, "meaning": MEANING[one.kind]} for one in ledger.differences
        ],
        "holes": [asdict(hole) for hole in ledger.holes],
        "notes": ledger.notes,
    }


def _intake_lines(ledger: Ledger) -> Iterator[Text]:
    found = ledger.intake
    if found is None:
        return
    source = "" if found.source is None else f"{found.source:,} records in the source before bronze's offset; "
    dropped = f", {found.dropped:,} dropped from there" if found.dropped else ""
    retired = f", {found.retired:,} retired" if found.retired else ""
    forgotten = f", {found.forgotten:,} forgotten" if found.forgotten else ""
    refused = f"{found.quarantined:,} in quarantine at stage bronze"
    yield Text(f"{source}{found.bronze:,} in bronze{retired}, {refused}{dropped}{forgotten}")


def _table(accounts: tuple[Account, ...], shown: list[Account]) -> Table:
    rounds = any(account.batch is not None for account in shown)
    columns = _columns(accounts)
    table = new_table("game", *([">batch"] if rounds else []), *(f">{name}" for name in columns.values()))
    for account in shown:
        batch = [] if not rounds else ["" if account.batch is None else str(account.batch)]
        table.add_row(Text(printable(account.game)), *batch, *_numbers([account], columns))
    table.add_section()
    total = count_text(len({account.game for account in accounts}), "game")
    table.add_row(Text(total, "bold"), *([""] if rounds else []), *_numbers(accounts, columns))
    return table


def _columns(accounts: Sequence[Account]) -> Mapping[str, str]:
    """Return the heads of the columns by field; most tables have no dropped or retired rows."""
    retired = {"retired": "retired"} if any(account.retired for account in accounts) else {}
    dropped = {"dropped": "dropped"} if any(account.dropped for account in accounts) else {}
    placed = {"silver": "silver", "quarantined": "quarantine"}
    rest = {"waiting": "waiting", "missing": "missing", "surplus": "surplus"}
    return {"bronze": "bronze", **retired, **placed, **dropped, **rest}


def _numbers(accounts: Sequence[Account], columns: Iterable[str]) -> list[str]:
    return [f"{sum(getattr(account, name) for account in accounts):,}" for name in columns]


def _difference_lines(difference: LedgerDifference) -> Iterator[Text]:
    game = "" if difference.game is None else f"{printable(difference.game)}: "
    rows = count_text(difference.rows, "row")
    yield Text(f"{difference.kind.value}: {game}{rows}{_batches(difference)}: {MEANING[difference.kind]}", "red")
    names = [_example(example) for example in difference.examples]
    if names:
        more = difference.rows - min(len(names), _MOST_EXAMPLES)
        shown = ", ".join(names[:_MOST_EXAMPLES])
        yield Text(f"    {shown}{f' and {more:,} more' if more > 0 else ''}", "red")


def _batches(difference: LedgerDifference) -> str:
    first, last = difference.first_batch, difference.last_batch
    if first is None:
        return ""
    return f" of batch {first}" if first == last else f" of batches {first} to {last}"


def _example(example: DifferenceExample) -> str:
    position = printable(example.record_id)
    cut = position if len(position) <= _MOST_CHARACTERS else f"{position[:_MOST_CHARACTERS]}…"
    batch = "" if example.batch is None else f" (batch {example.batch})"
    owner = "" if example.owner is None else f" (bronze has it for {printable(example.owner)})"
    return f"{cut}{batch}{owner}"


def _hole_line(hole: OffsetHole) -> str:
    ranges = [f"{first}" if end == first + 1 else f"{first} to {end - 1}" for first, end in hole.ranges]
    return (
        f"hole: topic {printable(hole.log)}, partition {hole.partition}: {count_text(hole.offsets, 'offset')} not "
        f"there ({first_few(ranges)}): lost records, or markers of transactions, or what compaction removed"
    )


def _verdict(ledger: Ledger) -> Text:
    if ledger.balances:
        return Text("balances: every record is in exactly one place", "green")
    rows = sum(difference.rows for difference in ledger.differences)
    return Text(f"does not balance: {rows:,} {'row' if rows == 1 else 'rows'} too many or not there", "bold red")
