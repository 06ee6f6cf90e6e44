"""Values that are wrong, rows that are refused or kept by mistake, columns in the wrong place."""

from __future__ import annotations

from tools.seeded_faults.fault import Fault, Lane

DECODING = (
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
)
