from __future__ import annotations

from benchmarks.stores.bars import Bar, lines


def test_a_bar_is_reached_at_its_value_and_says_so() -> None:
    bars = [
        Bar("decoding", "1.3 s / 1.0 s", 1.3, most=1.3),
        Bar("decoding, late", "2.6 s / 1.0 s", 2.6, most=2.5),
        Bar("bronze", "8 / 10", 0.8, least=0.8),
        Bar("Kafka", "7 / 10", 0.7, least=0.8),
        Bar("page", "", 4.0, most=5, unit=" s"),
        Bar("Spark's sink", "50 s / 1 s", 50.0),
    ]
    assert [bar.is_reached for bar in bars] == [True, False, True, False, True, None]
    assert lines(bars)[2:] == [
        "| decoding | 1.3 s / 1.0 s | 1.30 | 1.3 at most | yes |",
        "| decoding, late | 2.6 s / 1.0 s | 2.60 | 2.5 at most | **no** |",
        "| bronze | 8 / 10 | 0.80 | 0.8 at least | yes |",
        "| Kafka | 7 / 10 | 0.70 | 0.8 at least | **no** |",
        "| page |  | 4.00 s | 5 s at most | yes |",
        "| Spark's sink | 50 s / 1 s | 50.00 |  |  |",
    ]
