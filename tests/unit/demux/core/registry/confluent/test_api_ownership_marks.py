from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from demux.core.registry.confluent.api import (
    OwnershipMark,
    ReferenceTo,
    is_mark_subject,
    mark_subject,
    mark_text,
    read_mark,
)

# all that UTF-8 can write
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
REFERENCES = st.lists(st.builds(ReferenceTo, name=TEXT, subject=TEXT, version=st.integers(1, 9))).map(tuple)
MARKS = st.builds(OwnershipMark, subject=TEXT, text=TEXT, references=REFERENCES)


@given(mark=MARKS)
def test_a_mark_is_read_as_it_was_written(mark: OwnershipMark) -> None:
    assert read_mark(mark_text(mark)) == mark


@given(one=MARKS, other=MARKS)
def test_two_marks_differ_in_more_than_their_doc(one: OwnershipMark, other: OwnershipMark) -> None:
    fields = [json.loads(mark_text(mark))["fields"] for mark in (one, other)]
    assert (fields[0] == fields[1]) is (one == other)


def test_other_schemas_are_no_marks() -> None:
    for text in ('{"type": "string"}', '{"doc": "hello"}', '{"doc": "{}"}', "syntax", "", "[]", "null"):
        assert read_mark(text) is None


def test_a_subject_of_marks_is_known_by_its_name() -> None:
    assert is_mark_subject(mark_subject("producer"))
    assert not is_mark_subject("producer")
