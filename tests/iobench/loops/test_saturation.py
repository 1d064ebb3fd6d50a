"""Whether more workers are worth a trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.loops.saturation import saturated
from iobench.trial import Trial, TrialSpec

PARAMS: Mapping[str, Any] = {"loader": "mock", "data": "", "batch_size": 4}


def trials(rates: Mapping[int, Sequence[float]], **changes: Any) -> list[Trial]:
    """Done trials of the mock loader, repeats by number of workers."""
    return [
        Trial(
            id=f"{workers}/{repeat}",
            kind="loader",
            params={**PARAMS, "workers": workers, **changes},
            repeat=repeat,
            status="done",
            metrics={"samples_per_s": rate},
        )
        for workers, repeats in rates.items()
        for repeat, rate in enumerate(repeats)
    ]


def asked(workers: int, **changes: Any) -> TrialSpec:
    """One more trial."""
    return TrialSpec("loader", {**PARAMS, "workers": workers, **changes}, 1)


@pytest.mark.parametrize(
    ("rates", "tried"),
    [
        ({}, True),
        ({1: [100.0]}, True),
        ({1: [100.0], 2: [190.0]}, True),
        ({1: [100.0], 2: [190.0], 4: [192.0]}, False),
        ({1: [100.0], 2: [190.0], 4: [180.0]}, False),
        ({1: [100.0], 2: [101.0], 4: [150.0]}, False),
        ({1: [0.0], 2: [10.0]}, True),
        ({2: [190.0], 4: [192.0, 250.0, 260.0]}, True),
        ({16: [100.0], 32: [100.0]}, True),
        ({0: [300.0], 1: [200.0]}, True),
        ({0: [300.0], 1: [200.0], 2: [201.0]}, False),
    ],
)
def test_more_are_tried_while_they_bring_something(
    rates: Mapping[int, Sequence[float]], tried: bool
) -> None:
    """Two per cent, by medians, of any raise below; what is above says nothing."""
    assert (saturated(asked(8), trials(rates), 0.02) == "") == tried


def test_the_reason_has_its_figures() -> None:
    """From how many to how many, what that brought, and the key."""
    said = saturated(asked(8), trials({2: [100.0], 4: [101.0]}), 0.02)
    assert said == "4 workers brought +1.0% over 2: more are not tried (more_workers_gain)"


def test_only_what_differs_in_workers_alone_counts() -> None:
    """Another batch size is another curve; a trial that failed is none."""
    found = trials({1: [100.0], 2: [100.0]}, batch_size=8)
    assert saturated(asked(8), found, 0.02) == ""
    assert saturated(asked(8, batch_size=8), found, 0.02)
    assert saturated(TrialSpec("train", asked(8).params), trials({1: [1.0], 2: [1.0]}), 0.02) == ""


@given(st.lists(st.floats(1, 1e6), min_size=2, max_size=6))
def test_whatever_is_refused_stays_refused_for_more(rates: list[float]) -> None:
    """No number of workers is tried above one that was not worth it."""
    found = trials({2**n: [rate] for n, rate in enumerate(rates)})
    refused = [bool(saturated(asked(2**n), found, 0.02)) for n in range(len(rates) + 2)]
    assert refused == sorted(refused)
