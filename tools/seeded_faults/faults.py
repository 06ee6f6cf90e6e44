"""The faults, as data, by area."""

from __future__ import annotations

from tools.seeded_faults.fault import Fault, Lane

FAULTS: tuple[Fault, ...] = (
    # exactly once
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
        "if written is None or written <= stream_state.begun:",
        "if written is None or written >= 0:",
        "tests/spark/bronze/test_run.py::test_a_checkpoint_that_is_older_than_its_table_is_refused",
    ),
    Fault(
        "stream-quarantine-without-its-lock",
        "demux/core/delta/batch_commit.py",
        "with ALONE, lock(quarantine.path):",
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
    # producer and bronze: names, frames, offsets, archived files
    Fault(
        "length-of-128-in-one-byte",
        "producer/records.py",
        "if size < 128 else",
        "if size <= 128 else",
        "tests/unit/producer/test_records.py::test_a_wrapper_is_the_same_bytes_as_protobufs_own",
    ),
    Fault(
        "key-of-another-game",
        "demux/core/names.py",
        'if _PLAIN_KEY.fullmatch(name) and "__" not in name:',
        "if _PLAIN_KEY.fullmatch(name):",
        "tests/unit/demux/core/test_names.py"
        "::test_different_names_have_different_keys_even_beside_names_that_are_keys_of_others",
    ),
    Fault(
        "path-left-escaped",
        "demux/core/delta/log.py",
        '    return AddedFile(\n        unquote(action["path"]),',
        '    return AddedFile(\n        action["path"],',
        "tests/unit/demux/core/delta/test_log.py::test_a_commit_tells_its_files_as_the_file_system_has_them",
    ),
    Fault(
        "record-ids-shared-by-batches",
        "bronze_ingest/to_columns.py",
        'prefix = f"{batch.query_id}/{batch.batch_id}"',
        'prefix = f"{batch.query_id}/0"',
        "tests/unit/bronze_ingest/test_to_columns.py::test_a_record_without_all_of_its_position_is_numbered_in_its_batch",
    ),
    Fault(
        "swapped-columns-in-quarantine",
        "bronze_ingest/to_columns.py",
        '("value", "key", "headers")',
        '("key", "value", "headers")',
        "tests/unit/bronze_ingest/test_spark_sink.py"
        "::test_a_refused_record_comes_to_quarantine_whole_with_cause_and_position",
    ),
    Fault(
        "varint-bound-of-a-length",
        "bronze_ingest/archive/delimited.py",
        "if size > 0x7F:",
        "if size > 0x80:",
        "tests/unit/bronze_ingest/archive/test_stream.py::test_a_length_is_read_however_many_bytes_it_takes",
    ),
    Fault(
        "one-expired-offset-passed-over",
        "bronze_ingest/kafka/lost_offsets.py",
        "if at < first:",
        "if at + 1 < first:",
        "tests/unit/bronze_ingest/kafka/test_lost_offsets.py::test_what_expired_is_lost_up_to_the_first_record_that_is_there",
    ),
    Fault(
        "lost-refused-row",
        "bronze_ingest/file_sink.py",
        "refused = found.examined().filter(causes.is_valid())",
        "refused = found.examined().filter(causes.is_valid()).slice(1)",
        "tests/unit/bronze_ingest/test_file_sink.py"
        "::test_each_record_is_in_a_file_of_bronze_or_of_quarantine_and_never_in_both",
    ),
    Fault(
        "record-ids-shared-by-two-topics-of-a-name",
        "bronze_ingest/kafka/source.py",
        'f"{topic}@{number}"',
        'f"{topic}"',
        "tests/kafka/flow/test_bronze_gaps.py"
        "::test_a_topic_that_is_made_again_is_said_and_its_records_get_ids_of_their_own",
    ),
    # decoding
    Fault(
        "wrong-wire-type-accepted",
        "demux/core/protobuf/decode/reference_parser.py",
        "    plain.ParseFromString(payload)\n    _refuse_wrong_wire_types(plain)\n",
        "    plain.ParseFromString(payload)\n",
        "tests/unit/demux/core/protobuf/decode/test_reference_parser.py"
        "::test_a_wrong_wire_type_is_refused_because_a_parser_would_drop_the_value",
    ),
    Fault(
        "doubtful-payload-trusted",
        "demux/core/protobuf/decode/canonical_batch.py",
        "return same & ~self._doubt(read.to_struct_array()) if self._doubt else same",
        "return same",
        "tests/unit/demux/core/protobuf/decode/test_canonical_batch.py::test_what_needs_a_closer_look_is_left_to_the_slow_test",
    ),
    Fault(
        "long-into-double",
        "demux/core/columns/schema_merge.py",
        "_TAKES = {Primitive.DOUBLE: {Primitive.INT}}",
        "_TAKES = {Primitive.DOUBLE: {Primitive.INT, Primitive.BIGINT}}",
        "tests/unit/demux/core/columns/test_schema_merge.py::test_a_number_goes_into_a_wider_column_only_where_none_is_lost",
    ),
    Fault(
        "slice-of-lists-from-its-beginning",
        "demux/core/columns/arrow.py",
        "array.null_count, array.offset, [inside]",
        "array.null_count, 0, [inside]",
        "tests/unit/demux/core/columns/test_arrow_projection.py::test_a_slice_of_lists_that_get_another_type_gives_its_own_rows",
    ),
    Fault(
        "field-without-column-lost",
        "demux/core/protobuf/decode/unknown_fields.py",
        "        if known is not None and field.number not in known:\n            continue\n",
        "        if known is not None and field.number not in known:\n            known = None\n",
        "tests/unit/deserializer/decoders/test_arrow.py"
        "::test_what_the_table_or_the_rows_own_schema_has_no_place_for_is_rescued",
    ),
    Fault(
        "lost-quarantine-row",
        "deserializer/decoders/arrow.py",
        "            if part.bad:\n                yield bad_rows",
        "            if part.bad[1:]:\n                yield bad_rows",
        "tests/unit/deserializer/decoders/test_arrow.py::test_each_refused_row_has_its_cause_and_its_sentence",
    ),
    Fault(
        "unsigned-numbers-below-zero",
        "deserializer/decoders/from_protobuf_columns.py",
        "18446744073709551616BD",
        "18446744073709551615BD",
        "tests/spark/silver/test_decoders_agree.py::test_generated_and_mutated_messages_of_every_kind",
        Lane.OLDEST,
    ),
    # the ledger and quarantine
    Fault(
        "moving-row-called-lost",
        "demux/operations/reconcile/balance.py",
        "self.due > self.silver + self.quarantine + self.dropped else None",
        "self.due > self.silver + self.quarantine_now + self.dropped else None",
        "tests/unit/demux/operations/reconcile/test_balance.py::test_a_row_that_a_replay_moves_while_it_is_read_is_right",
    ),
    Fault(
        "hole-behind-the-last-offset",
        "demux/operations/reconcile/offsets.py",
        "ranges += [(seen.last + 1, end)] if end is not None and seen.last + 1 < end else []",
        "ranges += [(seen.last + 1, end)] if end is not None and seen.last + 2 < end else []",
        "tests/unit/demux/operations/reconcile/test_offsets.py::test_a_hole_of_one_offset_is_told_wherever_it_is",
    ),
    Fault(
        "last-batch-never-due",
        "demux/operations/reconcile/location_sql.py",
        "NULLIF(batch_id <= bound, FALSE)",
        "NULLIF(batch_id < bound, FALSE)",
        "tests/unit/demux/operations/reconcile/test_location_sql.py::test_a_row_of_the_last_batch_that_a_game_has_read_is_due",
    ),
    # plans, apply and destroy, grants, names from registries, secrets
    Fault(
        "one-game-too-many-on-a-cluster",
        "install_workflow/planning/rebalance.py",
        "if cluster is not None and taken[cluster] < per_cluster:",
        "if cluster is not None and taken[cluster] <= per_cluster:",
        "tests/unit/install_workflow/planning/test_rebalance_packing.py::test_the_games_too_many_leave_a_cluster_that_has_become_too_full",
    ),
    Fault(
        "deletes-too-much-without-force",
        "demux/cli/deploy/apply.py",
        "    if not force:\n        coming.require_modest()\n",
        "",
        "tests/unit/demux/cli/deploy/test_apply.py::test_more_than_a_quarter_of_the_games_goes_only_by_force",
    ),
    Fault(
        "record-of-another-overwritten",
        "install_workflow/databricks/api/versioned_file.py",
        "overwrite=False",
        "overwrite=True",
        "tests/unit/install_workflow/databricks/grants/test_apply.py"
        "::test_of_two_at_once_the_later_one_stops_before_any_change",
    ),
    Fault(
        "destroy-removes-any-folder-of-a-key",
        "install_workflow/destroy/plan.py",
        "if is_key(key) and path == layout.silver(key):",
        "if is_key(key):",
        "tests/unit/install_workflow/destroy/test_plan.py::test_a_file_that_somebody_wrote_into_removes_nothing_else",
    ),
    Fault(
        "grant-not-revoked",
        "install_workflow/databricks/grants/diff.py",
        "    ours = record.granted | record.begun\n",
        "    ours = record.granted\n",
        "tests/unit/install_workflow/databricks/grants/test_diff.py::test_an_apply_that_died_is_taken_up",
    ),
    Fault(
        "part-of-a-subject-names-a-game",
        "demux/core/settings/games.py",
        r'return rf"\A(?:{expression})\z"',
        r'return rf"(?:{expression})"',
        "tests/unit/demux/core/settings/test_games.py::test_a_game_is_what_the_group_has_where_the_whole_subject_suits",
    ),
    Fault(
        "secret-in-what-is-printed",
        "demux/core/kafka/client_options.py",
        "secret: Mapping[str, str] = field(repr=False)",
        "secret: Mapping[str, str] = field()",
        "tests/unit/demux/core/kafka/test_client_options.py::test_no_secret_is_in_what_is_printed",
    ),
    # maintenance and erasure
    Fault(
        "unread-file-removed",
        "demux/operations/maintenance/run.py",
        "removed = [key for key, name in names.items() if name not in kept]",
        "removed = list(names)",
        "tests/flow/operations/test_maintaining.py::test_rows_that_wait_are_read_after_files_were_joined_and_removed_and_older_rows_retired[fleet]",
    ),
    Fault(
        "retention-takes-unread-rows",
        "demux/operations/maintenance/retention.py",
        'F.col("batch_id") <= F.col("bound")',
        'F.col("batch_id") <= F.col("bound") + 1',
        "tests/flow/operations/test_maintaining.py"
        "::test_rows_that_wait_are_read_after_files_were_joined_and_removed_and_older_rows_retired[fleet]",
    ),
    Fault(
        "rows-that-bronze-lacks-are-replaced",
        "deserializer/fleet/replaced_rows.py",
        'lacking = chosen.filter(pc.invert(pc.is_in(chosen.column("_record_id"), known)))',
        "lacking = chosen.slice(0, 0)",
        "tests/unit/deserializer/fleet/test_replaced_rows.py"
        "::test_records_that_bronze_lacks_are_counted_and_nothing_is_written",
    ),
)
