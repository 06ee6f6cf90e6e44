"""Rows twice or never: transactions, positions, locks."""

from __future__ import annotations

from tools.seeded_faults.fault import Fault

EXACTLY_ONCE = (
    Fault(
        "files-without-transaction",
        "demux/core/delta/parquet_writer.py",
        "done = [Transaction(app_id, version) for app_id, version in transactions.items()]",
        "done: list[Transaction] = []",
        "tests/unit/demux/core/delta/test_parquet_writer.py::test_a_batch_that_comes_again_is_not_there_twice_and_leaves_no_files",
    ),
    Fault(
        "commit-of-another-replaced",
        "demux/core/storage/folder.py",
        "os.link(written, key)",
        "os.replace(written, key)",
        "tests/unit/demux/core/delta/test_commit.py"
        "::test_a_commit_of_somebody_else_is_never_replaced_and_nothing_is_left_behind",
    ),
    Fault(
        "position-skips-a-file",
        "deserializer/offsets/unread_files.py",
        "BronzeOffset(commit.version, index) >= since",
        "BronzeOffset(commit.version, index) > since",
        "tests/unit/deserializer/offsets/test_unread_files.py::test_what_was_read_does_not_come_again",
    ),
    Fault(
        "table-lock-not-taken",
        "demux/core/root/lock.py",
        'return FileLock(folder / f".demux.table.{name}.lock")',
        "return nullcontext(name)",
        "tests/unit/demux/core/root/test_lock.py::test_a_table_is_written_by_one_at_a_time_and_another_table_is_not_held_up",
    ),
    Fault(
        "quarantine-written-without-its-lock",
        "deserializer/silver/file_quarantine.py",
        "with self._lock(self.path):",
        "if True:",
        "tests/unit/deserializer/silver/test_file_quarantine.py::test_quarantine_is_made_and_written_while_its_lock_is_held",
    ),
    Fault(
        "stream-batch-without-transaction",
        "demux/core/delta/batch_commit.py",
        'writer = writer.option("txnAppId", batch.query_id).option("txnVersion", batch.batch_id)',
        'writer = writer.option("txnAppId", batch.query_id)',
        "tests/spark/core/test_batch_commit.py::test_a_batch_that_comes_again_writes_nothing_and_counts_the_same",
    ),
    Fault(
        "retry-decides-again",
        "deserializer/silver/append.py",
        'rows.join(ids, "record_id", "left_anti")',
        'rows.join(ids, "record_id", "left")',
        "tests/flow/fleet/test_append.py"
        "::test_whoever_comes_after_a_writer_that_died_loses_no_row_and_moves_none[stream-quarantine-stream]",
    ),
    Fault(
        "older-checkpoint-of-a-game-used",
        "deserializer/stream/run.py",
        "if not _is_at(layout.storage, checkpoint, at):",
        "if False:",
        "tests/flow/fleet/test_append.py::test_the_position_is_in_the_table_whoever_decodes",
    ),
    Fault(
        "another-process-not-noticed",
        "deserializer/silver/spark_table.py",
        "if found != seen:",
        "if False:",
        "tests/flow/fleet/test_append.py::test_a_process_that_was_stopped_while_another_went_on_writes_nothing_by_spark",
    ),
    Fault(
        "older-checkpoint-accepted",
        "bronze_ingest/run.py",
        "if written is None or written <= found.begun:",
        "if written is None or written >= 0:",
        "tests/spark/bronze/test_run.py::test_a_checkpoint_that_is_older_than_its_table_is_refused",
    ),
    Fault(
        "stream-quarantine-without-its-lock",
        "deserializer/silver/spark_quarantine.py",
        "with ALONE, self._lock(self.path):",
        "with ALONE:",
        "tests/flow/fleet/test_append.py::test_quarantine_is_written_by_spark_while_its_lock_is_held",
    ),
    Fault(
        "replay-writes-one-copy-more",
        "deserializer/redecode/replay.py",
        "news.append(written[one] <= 0)",
        "news.append(written[one] <= 1)",
        "tests/spark/silver/test_repairs.py"
        "::test_copies_of_a_record_that_is_in_silver_are_replayed_all_and_once_also_where_a_replay_died[Sink.FILES]",
    ),
    Fault(
        "quarantine-without-positions",
        "deserializer/fleet/round.py",
        "self._quarantine.append(bad, positions)",
        "self._quarantine.append(bad, {})",
        "tests/flow/fleet/test_append.py"
        "::test_whoever_comes_after_a_writer_that_died_loses_no_row_and_moves_none[files-quarantine-spark]",
    ),
)
