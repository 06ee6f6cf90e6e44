"""Each decoder of the lane makes the same tables."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from demux.core.errors import RuntimeMissing
from tests.support.flow.fleet import STREAM
from tests.support.flow.root import Root
from tests.support.spark_session import lane_of_spark

# spark's own is on the class path of the oldest lane only
DECODERS = {"oldest": ("arrow", "from_protobuf"), "current": ("arrow",)}[lane_of_spark()]


@pytest.mark.both_lanes
@pytest.mark.parametrize("decoder", ["arrow", "from_protobuf"])
def test_each_decoder_makes_the_same_tables_or_says_that_it_is_not_there(
    taken_in: Root, done: Root, copy: Callable[..., Root], decoder: str
) -> None:
    root = copy(taken_in, decoder=decoder, run=STREAM)
    if decoder in DECODERS:
        assert [end.error for end in root.run().ended] == [None, None]
        assert root.everything() == done.everything()
    else:
        with pytest.raises(RuntimeMissing, match="from_protobuf is not on the class path"):
            root.workplace().deserialize("chess")
