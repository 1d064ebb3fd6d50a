"""Which figures a point is compared by."""

from __future__ import annotations

import pytest

from iobench.compare.figures import (
    ACCESS,
    CPU,
    FIRST_BATCH,
    LATENCY,
    MB,
    MEMORY,
    OF_KINDS,
    SAMPLES,
    WAITING,
    WORKER_CPU,
    figures_of,
    first_batch_words,
)


@pytest.mark.parametrize("kind", OF_KINDS)
def test_each_kind_has_one_rate_first(kind: str) -> None:
    """And at most one time beside it that every run has told."""
    rate, *others = figures_of(kind, {}, [{}])
    assert rate.higher_is_better
    assert not rate.beside
    always = [figure for figure in others if not figure.beside]
    assert len(always) <= 1
    assert not any(figure.higher_is_better for figure in always)
    assert len({figure.metric for figure in (rate, *others)}) == 1 + len(others)


def test_a_batch_on_the_device_has_no_first_one() -> None:
    """It would be microseconds of nothing."""
    for held in ("synthetic", "copy", "collate", "augment", "decode"):
        assert figures_of("train", {"input": held}, [{}]) == (SAMPLES,)
    assert figures_of("train", {"input": "cold"}, [{}]) == (
        *(SAMPLES, FIRST_BATCH, MEMORY, WORKER_CPU),
        *ACCESS,
    )


@pytest.mark.parametrize(
    ("metrics", "figures"),
    [
        ({"samples_per_s": 1.0, "mb_per_s": 1.0}, (SAMPLES,)),
        ({"mb_per_s": 1.0, "time_to_first_batch_s": 1.0}, (MB, FIRST_BATCH)),
        ({"something": 1.0}, ()),
        ({"wait_share": 0.5, "samples_per_s": 1.0}, (SAMPLES, WAITING)),
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
    assert MEMORY.say(412.3e6) == "412 MB"
    assert CPU.say(0.731) == "0.731"


def test_parts_of_a_first_batch_that_every_repeat_tells() -> None:
    """Medians; what one of them lacks, or nobody waited for, is left out."""
    base = [{"first_batch_fetch_s": s, "first_batch_decode_s": 0.0} for s in (0.01, 0.02, 0.03)]
    new: list[dict[str, float]] = [
        {"first_batch_fetch_s": s, "first_batch_decode_s": 0.0, "first_batch_rest_s": s}
        for s in (0.07, 0.08, 1.5)
    ]
    assert first_batch_words(base, new) == "fetch 20 ms -> 80 ms"
    assert first_batch_words(base, [*new, {}]) == ""
    assert first_batch_words([], []) == ""
