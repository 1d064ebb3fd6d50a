"""How much of a loop's time input takes."""

from __future__ import annotations

import pytest

from iobench.diagnosis.grades import RULES
from tests.iobench.diagnosis.made_loops import GPU, by_code, primary, stalled, trials

GRADES = {rule.code for rule in RULES}


@pytest.mark.parametrize(
    ("share", "code", "severity"),
    [
        (0.0, "slow-device", "info"),
        (-0.1, "slow-device", "info"),
        (0.0499, "slow-device", "info"),
        (0.0501, "input-moderate", "warning"),
        (0.1999, "input-moderate", "warning"),
        (0.2001, "input-high", "problem"),
        (0.9, "input-high", "problem"),
    ],
)
def test_each_share_has_one_grade(share: float, code: str, severity: str) -> None:
    """Below 5 % fine, to 20 % moderate, above high."""
    found = by_code(stalled(preparation=share))
    assert found.keys() & GRADES == {code}
    assert found[code].severity == severity
    assert found[code].share == pytest.approx(share)
    assert "input takes" in found[code].evidence


def test_rates_stand_beside_the_share() -> None:
    """What the loop gets, and what its device could take."""
    evidence = by_code(stalled(preparation=0.5))["input-high"].evidence
    assert evidence == (
        "g: input takes 50% (50% to 50%, 3 repeats) of its time: it gets 100 samples/s, its device "
        "could take 200"
    )


@pytest.mark.parametrize(
    ("waits", "code"), [(0.0499, "input-fine"), (0.06, "input-moderate"), (0.21, "input-high")]
)
def test_without_a_ceiling_waiting_counts(waits: float, code: str) -> None:
    """Nothing is said of the device then."""
    assert by_code(trials("cold", 1.0, wait_share=waits)).keys() & GRADES == {code}


def test_a_host_that_waits_behind_a_gpu_that_computes_loses_nothing() -> None:
    """Its wait is bounded by what the GPU does not compute."""
    waiting = trials("cold", 1.0, wait_share=0.6, **{**GPU, "au_mlperf": 0.99})
    assert by_code(waiting).keys() & GRADES == {"input-fine"}
    on_cpu = trials("cold", 1.0, wait_share=0.6, au_mlperf=0.99)
    assert by_code(on_cpu).keys() & GRADES == {"input-high"}


def test_the_device_that_limits_is_what_to_begin_with() -> None:
    """An emulated one is said to be."""
    fed = stalled(emulated=True, params={"consumer": "paced"})
    assert primary(fed) == "slow-device"
    assert by_code(fed)["slow-device"].evidence.endswith("(emulated)")
    assert (
        "computes 100% of the time"
        in by_code(stalled(emulated=True, params={"consumer": "paced"}, au_mlperf=1.01))[
            "slow-device"
        ].evidence
    )
    assert "faster storage" in by_code(fed)["slow-device"].advice


def test_a_loop_on_resident_data_alone_has_no_grade() -> None:
    """There is no input to speak of."""
    assert not by_code(trials("synthetic", 1.0)).keys() & GRADES
