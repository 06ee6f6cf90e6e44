"""What is known of maintenance comes back from its file as it was."""

from __future__ import annotations

from datetime import datetime, timezone

from hypothesis import given
from hypothesis import strategies as st

from demux.operations.maintenance.compaction_plan import LastSort
from demux.operations.maintenance.state import MaintenanceState, SparkTableState, from_text, to_text

numbers = st.integers(0, 2**53)
names = st.text(max_size=9)
states = st.builds(
    MaintenanceState,
    st.none() | st.datetimes(timezones=st.just(timezone.utc)),
    st.booleans(),
    st.none() | names,
    st.dictionaries(names, st.builds(LastSort, st.lists(names).map(tuple), numbers)),
    st.dictionaries(names, st.builds(SparkTableState, numbers, numbers, st.none() | numbers)),
)


@given(states)
def test_a_state_comes_back_from_its_text(state: MaintenanceState) -> None:
    assert from_text(to_text(state)) == state


def test_the_text_is_one_that_people_can_read() -> None:
    state = MaintenanceState(
        datetime(2026, 3, 1, tzinfo=timezone.utc), True, "a1", {}, {"silver/go": SparkTableState(4, 9)}
    )
    assert to_text(state).splitlines() == [
        "{",
        ' "since": "2026-03-01T00:00:00+00:00",',
        ' "finished": true,',
        ' "retiring": "a1",',
        ' "ordered": {},',
        ' "seen": {',
        '  "silver/go": [',
        "   4,",
        "   9,",
        "   null",
        "  ]",
        " }",
        "}",
    ]
