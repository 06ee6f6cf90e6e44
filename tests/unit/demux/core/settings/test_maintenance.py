"""Settings of maintenance: ages are ages, and what is meant for a game is found by its name."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from demux.core.errors import SettingsInvalid
from demux.core.settings.loading.loader import load
from demux.core.settings.maintenance import MaintainSettings
from demux.core.settings.settings import Settings


def settings(**changes: Any) -> MaintainSettings:
    return load(None, {}, {f"maintain.{key}": value for key, value in changes.items()}).maintain


def test_by_default_tables_are_maintained_every_day_and_no_row_is_retired() -> None:
    default = Settings().maintain
    assert (default.interval, default.kept) == (timedelta(days=1), timedelta(days=7))
    assert (default.bronze_days, default.rounds_kept, default.order_of("chess")) == (None, timedelta(days=90), ())


def test_ages_are_read_in_any_unit_and_never_is_none() -> None:
    found = settings(every=" 90m ", keep="2w", keep_rounds="0s")
    assert (found.every, found.interval) == ("90m", timedelta(minutes=90))
    assert (found.kept, found.rounds_kept) == (timedelta(weeks=2), timedelta(0))
    assert settings(every="never").interval is None


def test_a_game_has_columns_of_its_own_or_those_of_all() -> None:
    found = settings(zorder="[event_time]", zorder_of="{将棋: [user_name, match_id], go: []}")
    assert [found.order_of(game) for game in ("将棋", "go", "chess", None)] == [
        ("user_name", "match_id"),
        (),
        ("event_time",),
        ("event_time",),
    ]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"every": "59s"}, "maintain.every: '59s': expected never, or a time of a minute or more, such as 1d or 12h"),
        (
            {"every": "daily"},
            "maintain.every: 'daily': expected never, or a time of a minute or more, such as 1d or 12h",
        ),
        ({"keep": "-1d"}, "maintain.keep: '-1d': expected an age, such as 7d, 12h or 90m"),
        ({"keep": "999999999w"}, "maintain.keep: '999999999w': expected an age, such as 7d, 12h or 90m"),
        ({"keep_rounds": "never"}, "maintain.keep_rounds: 'never': expected an age, such as 7d, 12h or 90m"),
        ({"bronze_days": "0"}, "maintain.bronze_days"),
        ({"target_bytes": "1"}, "maintain.target_bytes"),
        ({"zorder": "[a, b, c, d, e, f, g, h, i]"}, "maintain.zorder"),
    ],
)
def test_what_nobody_can_mean_is_refused_by_name(changes: dict[str, str], sentence: str) -> None:
    with pytest.raises(SettingsInvalid) as refused:
        settings(**changes)
    assert sentence in refused.value.message
