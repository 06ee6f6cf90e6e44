"""Rows twice or never: transactions, positions, locks."""

from __future__ import annotations

from tools.seeded_faults.fault import Fault

EXACTLY_ONCE = (
    Fault(
        "files-without-transaction",
        "demux/table_files.py",
        "done = [Transaction(app_id, version) for app_id, version in transactions.items()]",
        "done: list[Transaction] = []",
        "tests/unit/demux/test_table_files.py::test_a_batch_that_comes_again_is_not_there_twice_and_leaves_no_files",
    ),
    Fault(
        "commit-of-another-replaced",
        "demux/storage/folder.py",
        "os.link(written, key)",
        "os.replace(written, key)",
        "tests/unit/demux/test_delta_commit.py"
        "::test_a_commit_of_somebody_else_is_never_replaced_and_nothing_is_left_behind",
    ),
    Fault(
        "position-skips-a-file",
        "deserializer/fleet/pending.py",
        "Position(commit.version, index) >= since",
        "Position(commit.version, index) > since",
        "tests/unit/deserializer/test_pending.py::test_what_was_read_does_not_come_again",
    ),
    Fault(
        "table-lock-not-taken",
        "demux/lock.py",
        'return FileLock(folder / f".demux.table.{name}.lock")',
        "return nullcontext(name)",
        "tests/unit/demux/test_lock.py::test_a_table_is_written_by_one_at_a_time_and_another_table_is_not_held_up",
    ),
    Fault(
        "quarantine-written-without-its-lock",
        "deserializer/fleet/quarantine.py",
        "with self._lock(self.path):",
        "if True:",
        "tests/unit/deserializer/test_fleet_quarantine.py::test_quarantine_is_made_and_written_while_its_lock_is_held",
    ),
    Fault(
        "stream-batch-without-transaction",
        "demux/commits.py",
        'writer = writer.option("txnAppId", batch.query_id).option("txnVersion", batch.batch_id)',
        'writer = writer.option("txnAppId", batch.query_id)',
        "tests/spark/test_commits.py::test_a_batch_that_comes_again_writes_nothing_and_counts_the_same",
    ),
    Fault(
        "retry-decides-again",
        "deserializer/append.py",
        'rows.join(ids, "record_id", "left_anti")',
        'rows.join(ids, "record_id", "left")',
        "tests/flow/test_append.py"
        "::test_whoever_comes_after_a_writer_that_died_loses_no_row_and_moves_none[stream-quarantine-stream]",
    ),
    Fault(
        "older-checkpoint-of-a-game-used",
        "deserializer/run.py",
        "if not _is_at(spark, checkpoint, at):",
        "if False:",
        "tests/flow/test_append.py::test_the_position_is_in_the_table_whoever_decodes",
    ),
    Fault(
        "another-process-not-noticed",
        "deserializer/fleet/silver_by_spark.py",
        "if found != seen:",
        "if False:",
        "tests/flow/test_append.py::test_a_process_that_was_stopped_while_another_went_on_writes_nothing_by_spark",
    ),
    Fault(
        "older-checkpoint-accepted",
        "demux/checkpoints.py",
        "if written is None or written <= found.begun:",
        "if written is None or written >= 0:",
        "tests/spark/test_checkpoints.py::test_a_checkpoint_that_is_older_than_its_table_is_refused",
    ),
    Fault(
        "stream-quarantine-without-its-lock",
        "deserializer/append.py",
        "with _ALONE, self.lock(self.quarantine.path):",
        "with _ALONE:",
        "tests/flow/test_append.py::test_quarantine_is_written_by_spark_while_its_lock_is_held",
    ),
    Fault(
        "replay-writes-one-copy-more",
        "deserializer/repair.py",
        'F.col("_copy") <= F.col("_room")',
        'F.col("_copy") <= F.col("_room") + 1',
        "tests/spark/test_repairs.py"
        "::test_a_copy_of_a_record_that_is_in_silver_since_long_is_replayed_all_the_same_and_once",
    ),
    Fault(
        "quarantine-without-positions",
        "deserializer/fleet/by_files.py",
        "self._quarantine.append(bad, positions)",
        "self._quarantine.append(bad, {})",
        "tests/flow/test_append.py"
        "::test_whoever_comes_after_a_writer_that_died_loses_no_row_and_moves_none[files-quarantine-files]",
    ),
)
