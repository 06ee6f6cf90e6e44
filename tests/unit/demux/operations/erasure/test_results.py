"""When a request means too many to be carried out without more ado."""

from __future__ import annotations

import pytest

from demux.core.errors import PredicateMatchesAll
from demux.operations.erasure.results import SearchResult, require_some
from demux.operations.predicate.parser import parse

WHERE = parse("name = 'ann'")


@pytest.mark.parametrize(
    ("found", "is_everything"),
    [
        (SearchResult("chess", silver=3, table_rows=3), True),
        (SearchResult("chess", silver=2, table_rows=3), False),
        # the one row that there is may well be theirs
        (SearchResult("chess", silver=1, table_rows=1), False),
        (SearchResult("chess", quarantine=3, table_rows=0), False),
        (SearchResult(None, quarantine=3), False),
    ],
)
def test_all_rows_of_a_table_are_somebody_only_where_there_is_one(found: SearchResult, is_everything: bool) -> None:
    assert found.is_everything is is_everything
    if not is_everything:
        require_some(WHERE, [found])
        return
    with pytest.raises(PredicateMatchesAll) as refused:
        require_some(WHERE, [SearchResult("go", silver=1, table_rows=9), found])
    assert refused.value.message == "The predicate means every row of chess."
    assert refused.value.exit_code == 2


@pytest.mark.parametrize("where", ["1 = 1", "TRUE", "NOT 'a' LIKE 'b' OR NULL"])
def test_a_predicate_names_a_column(where: str) -> None:
    with pytest.raises(PredicateMatchesAll) as refused:
        require_some(parse(where), [])
    assert refused.value.message == "The predicate names no column, so it means all rows or none."
    require_some(parse(f"({where}) AND name = 'ann'"), [])


def test_all_that_goes_is_counted() -> None:
    assert SearchResult("chess", silver=1, bronze=20, quarantine=300, unreadable=4000, unsearched=5000).rows == 321
