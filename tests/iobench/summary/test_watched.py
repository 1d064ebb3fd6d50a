"""A watched loop in one sentence."""

from __future__ import annotations

from typing import Any

import pytest

from iobench.summary import summarise
from tests.iobench.summary.made import one, result


def verdict(*loops: dict[str, Any]) -> str:
    """Of these loops, each named after its place."""
    given = {"seconds": 10.0, "wait_share": 0.5}
    trials = [
        one("watch", {"loader": f"loader {place}"}, **{**given, **loop})
        for place, loop in enumerate(loops)
    ]
    return str(summarise(result(trials))["verdict"])


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (0.38, "waits for data 38 % of its time, which is high,"),
        (0.12, "waits for data 12 % of its time, which is moderate,"),
        (0.01, "waits for data 1 % of its time, which is fine,"),
    ],
)
def test_the_share_is_graded(share: float, said: str) -> None:
    """Under 5 % is fine, above 20 % is high."""
    assert said in verdict({"wait_share": share, "samples_per_s": 1234.0})


def test_what_was_not_measured_is_said() -> None:
    """The ceiling takes another run; a rate takes samples that can be counted."""
    told = verdict({"wait_share": 0.38, "samples_per_s": 1234.0})
    assert told == (
        "Your loop waits for data 38 % of its time, which is high, at 1,234 samples/s; what its "
        "device could take was not measured."
    )
    assert "samples/s" not in verdict({})


def test_a_share_of_few_steps_says_so() -> None:
    """Ctrl-C after a moment is no measurement."""
    assert "of its time, which is high (over only 2 steps);" in verdict({"steps": 2})
    assert "only" not in verdict({"steps": 20})


def test_a_device_that_was_watched_has_the_last_word() -> None:
    """The host waits half of the time, the GPU loses a tenth by it."""
    assert verdict({"device_wait_share": 0.1}).endswith(
        "waits for data 50 % of its time, which is high; its GPU is idle for 10 % because of that."
    )


def test_of_several_the_longest_speaks() -> None:
    """By name; the order of the others is that of their length."""
    told = verdict({"seconds": 1.0}, {"seconds": 99.0, "wait_share": 0.02})
    assert told.startswith("Your loop over loader 1 waits for data 2 %")
