"""Which figures a point is compared by."""

from __future__ import annotations

import pytest

from iobench.compare.figures import FIRST_BATCH, LATENCY, MB, OF_KINDS, SAMPLES, figures_of


@pytest.mark.parametrize("kind", OF_KINDS)
def test_each_kind_has_one_rate_first(kind: str) -> None:
    """And at most one time beside it."""
    rate, *others = figures_of(kind, {}, [{}])
    assert rate.is_rate
    assert len(others) <= 1
    assert not any(figure.higher_is_better for figure in others)


def test_a_batch_on_the_device_has_no_first_one() -> None:
    """It would be microseconds of nothing."""
    for held in ("synthetic", "copy", "collate", "augment", "decode"):
        assert figures_of("train", {"input": held}, [{}]) == (SAMPLES,)
    assert figures_of("train", {"input": "cold"}, [{}]) == (SAMPLES, FIRST_BATCH)


@pytest.mark.parametrize(
    ("metrics", "figures"),
    [
        ({"samples_per_s": 1.0, "mb_per_s": 1.0}, (SAMPLES,)),
        ({"mb_per_s": 1.0, "time_to_first_batch_s": 1.0}, (MB, FIRST_BATCH)),
        ({"something": 1.0}, ()),
    ],
)
def test_a_kind_of_somebody_else_has_what_it_tells(
    metrics: dict[str, float], figures: tuple[object, ...]
) -> None:
    """One rate and the first batch, of the names that are known."""
    assert figures_of("theirs", {}, [{}, metrics]) == figures


def test_values_are_said_with_their_unit() -> None:
    """Rates have it in their name."""
    assert SAMPLES.say(24756.8) == "24,757"
    assert LATENCY.say(0.0123) == "12.3 ms"
    assert LATENCY.say(2.5) == "2.5 s"
    assert LATENCY.say(0.0000476) == "47.6 µs"
