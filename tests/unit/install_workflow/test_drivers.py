"""Which games go to which driver, what is left when one dies, and what is said to and by it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demux.errors import CheckpointLost, DemuxError, Kind, RegistryUnavailable
from demux.reports import GameReport
from demux.settings import Settings
from install_workflow.drivers import (
    Begun,
    Broken,
    Hello,
    Message,
    Over,
    Ready,
    Rest,
    Stop,
    Work,
    by_cluster,
    from_line,
    to_line,
)
from install_workflow.plan import Task

HOSTILE = ("--help", "-c x", "a 'b' \"c\"", "a\nb", "${env:HOME}", "\ud800", "将棋", "; rm -rf /")


def test_each_cluster_has_its_games() -> None:
    chess, go, ludo = (Task(game, game, cluster) for game, cluster in (("chess", "b"), ("go", "a"), ("ludo", "b")))
    assert by_cluster([ludo, go, chess]) == {"a": {"go": go}, "b": {"chess": chess, "ludo": ludo}}
    assert list(by_cluster([ludo, go, chess])) == ["a", "b"]


def test_what_was_under_way_when_a_driver_died_is_done_last_and_one_at_a_time() -> None:
    rest, lost = Rest(frozenset({"a", "b", "c", "d"})).after_death(frozenset({"b", "a"}), retries=1)
    assert (rest.together, rest.alone, lost) == (("c", "d"), ("a", "b"), frozenset())
    rest, lost = rest.without("c").without("d").after_death(frozenset({"a"}), retries=1)
    assert (rest.together, rest.alone, lost) == ((), ("b",), frozenset({"a"}))


def test_of_two_suspects_the_one_that_was_there_at_fewer_deaths_comes_first() -> None:
    rest = Rest(frozenset({"a", "b"}), {"a": 2, "b": 1})
    assert rest.alone == ("b", "a")


@pytest.mark.parametrize("retries", [0, 2])
def test_a_driver_that_dies_before_any_game_is_tried_as_often_as_a_game(retries: int) -> None:
    rest = Rest(frozenset({"a", "b"}))
    for _ in range(retries):
        rest, lost = rest.after_death(frozenset(), retries)
        assert (rest.together, lost) == (("a", "b"), frozenset())
    rest, lost = rest.after_death(frozenset(), retries)
    assert (rest.games, lost) == (frozenset(), frozenset({"a", "b"}))


def test_the_wait_grows_with_the_deaths_of_one_game_and_not_with_those_of_all_and_is_a_minute_at_most() -> None:
    rest = Rest(frozenset("abcd"))
    assert rest.wait_s(1.0) == 1.0
    for game in "abc":
        rest, _ = rest.after_death(frozenset(game), retries=100)
    assert rest.wait_s(1.0) == 1.0
    rest, _ = rest.after_death(frozenset("a"), retries=100)
    assert (rest.wait_s(1.0), rest.without("a").wait_s(1.0), rest.wait_s(0.0)) == (2.0, 1.0, 0.0)
    for _ in range(98):
        rest, _ = rest.after_death(frozenset("a"), retries=100)
    assert (rest.wait_s(1.0), rest.wait_s(3600.0)) == (60.0, 60.0)


def test_the_wait_grows_with_the_drivers_that_died_before_any_game() -> None:
    rest, waits = Rest(frozenset("ab")), []
    for _ in range(3):
        rest, _ = rest.after_death(frozenset(), retries=3)
        waits.append(rest.wait_s(0.5))
    assert waits == [0.5, 1.0, 2.0]


def after_deaths(games: int, killers: int, retries: int) -> tuple[int, float]:
    """How many drivers die, and the seconds waited in all, two games at a time; the killers come first by name."""
    rest = Rest(frozenset(f"{number:03}" for number in range(games)))
    deaths, waited = 0, 0.0
    while rest.games:
        batch = rest.together[:2] or rest.alone[:1]
        if int(batch[0]) >= killers:
            for game in batch:
                rest = rest.without(game)
            continue
        rest, _ = rest.after_death(frozenset(batch), retries)
        deaths, waited = deaths + 1, waited + (rest.wait_s(1.0) if rest.games else 0.0)
    return deaths, waited


@pytest.mark.parametrize(
    ("games", "killers", "retries", "deaths", "most_waited_s"),
    [(1, 1, 2, 3, 3), (20, 20, 2, 31, 60), (20, 18, 2, 45, 120), (20, 20, 100, 129, 4000), (140, 140, 2, 211, 400)],
)
def test_where_most_games_kill_their_driver_an_end_is_reached_in_time(
    games: int, killers: int, retries: int, deaths: int, most_waited_s: float
) -> None:
    died, waited = after_deaths(games, killers, retries)
    assert died == deaths
    assert waited <= most_waited_s


@given(st.sets(st.integers(0, 9).map(str)), st.integers(0, 3), st.data())
def test_whoever_kills_drivers_takes_nobody_along_and_an_end_is_always_reached(
    games: set[str], retries: int, data: st.DataObject
) -> None:
    killers = data.draw(st.sets(st.sampled_from(sorted(games)))) if games else set()
    lost: set[str] = set()
    rest, deaths = Rest(frozenset(games)), 0
    while rest.games:
        # two at a time, then one at a time
        groups = [rest.together[at : at + 2] for at in range(0, len(rest.together), 2)]
        for group in (*groups, *((game,) for game in rest.alone)):
            if killers & set(group):
                rest, given_up = rest.after_death(frozenset(group), retries)
                lost |= given_up
                deaths += 1
                break
            for game in group:
                rest = rest.without(game)
    assert killers <= lost
    # at most who was side by side with a killer, and was forgiven nothing
    assert lost == killers or retries == 0
    assert deaths <= len(killers) * (retries + 1)


@pytest.mark.parametrize(
    "message",
    [
        Hello("/data/a 'b'\nc", "cluster_001", "/logs"),
        Work(Settings().model_dump(mode="json"), HOSTILE, ("chess",)),
        Stop(),
        Ready(),
        *map(Begun, HOSTILE),
        Over("chess", GameReport("chess", 4, 3, 1, (101, 102)), None, 1.25),
    ],
    ids=lambda message: type(message).__name__,
)
def test_a_message_is_one_line_and_comes_as_it_was_sent(message: Message) -> None:
    line = to_line(message)
    assert (line.count(b"\n"), line[-1:]) == (1, b"\n")
    assert from_line(line) == message


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (RegistryUnavailable("It does\nnot answer.", "Try later."), Kind.TRANSIENT),
        (CheckpointLost("It is gone.", "Rebuild.", table="t"), Kind.TERMINAL),
        (DemuxError("Odd.", "Look."), Kind.TERMINAL),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_error_keeps_its_condition_its_sentences_and_its_kind(error: DemuxError, kind: Kind) -> None:
    for message in (Over("chess", None, error, 1.0), Broken(error)):
        heard = from_line(to_line(message))
        assert isinstance(heard, Over | Broken)
        assert heard.error is not None
        assert (heard.error.cause, heard.error.remedy, heard.error.kind) == (error.cause, error.remedy, kind)
        if type(error) is not DemuxError:
            assert heard.error.condition == error.condition


def test_settings_reach_a_driver_as_they_are() -> None:
    settings = Settings.model_validate(
        {
            "root": "/data/root",
            "source": {"kind": "kafka"},
            "kafka": {"bootstrap_servers": "a:9092", "topics": ["events"], "password": "secret:env/PASSWORD"},
            "registries": {"old": {"games": ["a*"], "url": "http://127.0.0.1:1"}},
            "games": {"allow": ["chess", "a\u00a0b"], "pinned": {"chess": "heavy"}, "limit": 3},
            "run": {"retry_wait_s": 0.1, "sink": "spark"},
            "spark": {"packages": [], "conf": {"spark.ui.enabled": "true"}},
        }
    )
    work = from_line(to_line(Work(settings.model_dump(mode="json"), (), ())))
    assert isinstance(work, Work)
    assert Settings.model_validate(dict(work.settings)) == settings
