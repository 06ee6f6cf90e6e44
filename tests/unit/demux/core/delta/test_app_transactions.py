"""What a log's files say of transactions, and which of its checkpoints counts."""

from __future__ import annotations

from demux.core.delta.log import LogCheckpoint, newest_checkpoint, transactions_in

FIVE, NINE = f"{5:020}", f"{9:020}"
UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"


def test_transactions_are_found_by_the_beginning_of_their_id() -> None:
    commit = "\n".join(
        [
            '{"commitInfo":{"operation":"WRITE"}}',
            '{"txn":{"appId":"demux/1/chess","version":7,"lastUpdated":1}}',
            '{"txn":{"appId":"demux/1/go","version":8}}',
            '{"txn":{"appId":"somebody","version":9}}',
            '{"add":{"path":"{\\"txn\\"","size":1}}',
        ]
    )
    assert transactions_in(commit, "demux/1/") == {"demux/1/chess": 7, "demux/1/go": 8}


def test_a_log_without_checkpoint_has_none() -> None:
    assert newest_checkpoint([f"{FIVE}.json", "_last_checkpoint", f"{FIVE}.crc"]) == LogCheckpoint(-1, ())


def test_the_newest_checkpoint_counts_in_every_form_that_there_is() -> None:
    old = f"{FIVE}.checkpoint.parquet"
    for newer in (f"{NINE}.checkpoint.parquet", f"{NINE}.checkpoint.{UUID}.parquet", f"{NINE}.checkpoint.{UUID}.json"):
        assert newest_checkpoint([old, newer]) == LogCheckpoint(9, (newer,))


def test_a_checkpoint_in_parts_counts_when_all_are_there() -> None:
    old = f"{FIVE}.checkpoint.parquet"
    parts = [f"{NINE}.checkpoint.{part:010}.{3:010}.parquet" for part in (1, 2, 3)]
    assert newest_checkpoint([old, *parts]) == LogCheckpoint(9, tuple(parts))
    assert newest_checkpoint([old, *parts[:2]]) == LogCheckpoint(5, (old,))
