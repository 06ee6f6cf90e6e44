from __future__ import annotations

from google.protobuf.message import Message
from hypothesis import example, given
from hypothesis import strategies as st

from producer.records import head, wrap_payload


@given(
    name=st.text(st.characters(exclude_categories=["Cs"]), max_size=300),
    schema_id=st.integers(-(2**31), 2**31 - 1),
    payload=st.binary(max_size=400),
)
# the longest length of one byte, and the shortest of two
@example(name="n" * 127, schema_id=127, payload=bytes(127))
@example(name="n" * 128, schema_id=128, payload=bytes(128))
def test_a_wrapper_is_the_same_bytes_as_protobufs_own(
    wrapper_class: type[Message], name: str, schema_id: int, payload: bytes
) -> None:
    own = wrapper_class(game_name=name, schema_id=schema_id, payload=payload)
    assert wrap_payload(head(name, schema_id), payload) == own.SerializeToString()
