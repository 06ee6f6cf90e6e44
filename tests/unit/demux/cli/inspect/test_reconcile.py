from __future__ import annotations

import io
import json

from rich.console import Console

from demux.cli.inspect.reconcile import ledger_content, ledger_text
from demux.operations.reconcile.balance import (
    Account,
    DifferenceExample,
    Ledger,
    LedgerDifference,
    LedgerFault,
    OffsetHole,
    SourceAccount,
)

HOSTILE = "[b]\x1b[31m\u202egame"


def printed(ledger: Ledger, everything: bool = False) -> list[str]:
    console = Console(file=io.StringIO(), width=200, highlight=False, markup=False, emoji=False)
    console.print(ledger_text(ledger, everything))
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines() if line.strip()]


def lost(game: str, rows: int = 1, *examples: DifferenceExample) -> LedgerDifference:
    return LedgerDifference(LedgerFault.LOST, game, rows, 0, 3, examples)


def test_a_ledger_that_balances_says_so_and_lists_no_game_unless_asked() -> None:
    ledger = Ledger(SourceAccount(9, 1, 10), (Account("chess", None, 9, 7, 1, 1, 0, 0),), ())
    assert printed(ledger) == [
        "10 records in the source before bronze's offset; 9 in bronze, 1 in quarantine at stage bronze",
        " game    bronze  silver  quarantine  waiting  missing  surplus",
        " ─────────────────────────────────────────────────────────────",
        " 1 game       9       7           1        1        0        0",
        "balances: every record is in exactly one place",
    ]
    assert " chess        9       7           1        1        0        0" in printed(ledger, everything=True)


def test_dropped_rows_have_a_column_where_there_are_any() -> None:
    ledger = Ledger(SourceAccount(9, 1, 12, 2), (Account("chess", None, 9, 4, 1, 1, 0, 0, 3),), ())
    assert printed(ledger, everything=True)[:3] == [
        "12 records in the source before bronze's offset; 9 in bronze, 1 in quarantine at stage bronze, 2 dropped "
        "from there",
        " game    bronze  silver  quarantine  dropped  waiting  missing  surplus",
        " ──────────────────────────────────────────────────────────────────────",
    ]
    assert " chess        9       4           1        3        1        0        0" in printed(ledger, everything=True)
    assert ledger_content(ledger)["accounts"][0]["dropped"] == 3
    assert ledger_content(ledger)["source"]["dropped"] == 2


def test_retired_rows_have_a_column_and_forgotten_ones_a_number_where_there_are_any() -> None:
    ledger = Ledger(SourceAccount(4, 1, 12, 0, 5, 2), (Account("chess", None, 4, 9, 0, 0, 0, 0, 0, 5),), ())
    assert printed(ledger, everything=True)[:2] == [
        "12 records in the source before bronze's offset; 4 in bronze, 5 retired, 1 in quarantine at stage bronze, "
        "2 forgotten",
        " game    bronze  retired  silver  quarantine  waiting  missing  surplus",
    ]
    assert " chess        4        5       9           0        0        0        0" in printed(ledger, everything=True)


def test_a_difference_says_how_many_which_batches_and_which_records() -> None:
    examples = tuple(DifferenceExample(f"t/0/{number}", number) for number in range(5))
    stray = LedgerDifference(LedgerFault.STRAY, "go", 1, None, None, (DifferenceExample("t/0/9", None, "chess"),))
    lines = printed(Ledger(None, (), (lost("chess", 1234, *examples), stray)))
    assert lines == [
        "lost: chess: 1,234 rows of batches 0 to 3: in bronze before the game's offset, and neither in silver nor "
        "in quarantine",
        "    t/0/0 (batch 0), t/0/1 (batch 1), t/0/2 (batch 2) and 1,231 more",
        "stray: go: 1 row: in silver or quarantine of a game of which bronze has no such record",
        "    t/0/9 (bronze has it for chess)",
        "does not balance: 1,235 rows too many or not there",
    ]


def test_holes_and_notes_are_told_and_do_not_count() -> None:
    ledger = Ledger(None, (), (), (OffsetHole("events", 2, 3, ((4, 5), (7, 9))),), ("Something is not known.",))
    assert printed(ledger) == [
        "hole: topic events, partition 2: 3 offsets not there (4, 7 to 8): lost records, or markers of transactions, "
        "or what compaction removed",
        "Something is not known.",
        "balances: every record is in exactly one place",
    ]


def test_hostile_names_and_positions_are_printable_and_bounded() -> None:
    account = Account(HOSTILE, None, 1, 0, 0, 0, 1, 0)
    difference = lost(HOSTILE, 1, DifferenceExample("\x1b[2J" + "x" * 10_000, 0))
    lines = printed(Ledger(None, (account,), (difference,)))
    assert not any("\x1b" in line or "\u202e" in line for line in lines)
    assert "[b]\\u001b[31m\\u202egame" in "\n".join(lines)
    assert max(map(len, lines)) < 200


def test_a_thousand_games_that_do_not_balance_are_bounded_on_the_terminal_and_all_there_in_json() -> None:
    games = [f"game{number}" for number in range(1000)]
    ledger = Ledger(
        None,
        tuple(Account(game, None, 1, 0, 0, 0, 1, 0) for game in games),
        tuple(lost(game) for game in games),
    )
    lines = printed(ledger)
    assert len(lines) < 120
    assert "and 950 more: --json has all of them" in lines
    document = ledger_content(ledger)
    assert [one["game"] for one in document["differences"]] == games
    assert [one["game"] for one in document["accounts"]] == games


def test_json_says_everything() -> None:
    ledger = Ledger(None, (), (lost(HOSTILE, 1, DifferenceExample("t/0/1", 0)),))
    assert json.loads(json.dumps(ledger_content(ledger))) == {
        "balances": False,
        "source": None,
        "accounts": [],
        "differences": [
            {
                "kind": "lost",
                "game": HOSTILE,
                "rows": 1,
                "first_batch": 0,
                "last_batch": 3,
                "examples": [{"record_id": "t/0/1", "batch": 0, "owner": None}],
                "meaning": "in bronze before the game's offset, and neither in silver nor in quarantine",
            }
        ],
        "holes": [],
        "notes": [],
    }
