"""Faults of producer and bronze: names, frames, offsets, archived files."""

from __future__ import annotations

from tools.seeded_faults.fault import Fault

INTAKE = (
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
)
