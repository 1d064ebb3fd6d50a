"""The least of the capacities, or their sum."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.stats import Estimate
from iobench.trial import Cold
from iobench.whatif.capacities import measured
from iobench.whatif.predict import Part, combined, predict
from iobench.whatif.setting import Setting, of_loop, work_of
from tests.iobench.whatif.made import done, fetched, loader, loop, together

RUN = together(
    loop("synthetic", 1000.0),
    loop("copy", 900.0),
    loader(300.0, 1),
    loader(590.0, 2),
    loader(1150.0, 4),
    loader(350.0, 0),
    loader(700.0, 2, loader="raw", cache="cold"),
)
WORK = work_of({})


def setting(**changes: Any) -> Setting:
    """The loop of ``RUN`` over warm shards with two workers, but for ``changes``."""
    plain = Setting("torch-iterable", "shards", "warm", WORK, 2, 64, 2, loop="g")
    return plain.changed(**changes)


def rate(**changes: Any) -> tuple[float, str]:
    """Predicted for it, and what decides."""
    found = predict(measured(RUN, {"processors": 8}), setting(**changes))
    assert found.rate is not None
    return found.rate.median, found.limited_by


@pytest.mark.parametrize(
    ("changes", "expected", "limited_by"),
    [
        ({}, 590, "decode"),
        ({"workers": 4}, 900, "copy"),
        ({"workers": 4, "source": "cold", "loop": ""}, 1150, "decode"),
        ({"source": "cold"}, 590, "decode"),
        ({"workers": 1}, 300, "decode"),
        ({"batch_size": 256}, 590, "decode"),
        ({"form": "shards-16MB"}, 590, "decode"),
        ({"loop": "", "workers": 2, "source": "cold"}, 590, "decode"),
    ],
)
def test_the_slowest_part_decides(
    changes: dict[str, Any], expected: float, limited_by: str
) -> None:
    """Side by side; images packed otherwise are decoded as fast."""
    got, decides = rate(**changes)
    assert decides == limited_by
    assert got == pytest.approx(expected)


def test_without_workers_the_seconds_add() -> None:
    """Copy, which has the device's in it, and decoding, one after the other."""
    got, decides = rate(workers=0)
    assert got == pytest.approx(1 / (1 / 900 + 1 / 350))
    assert decides == "decode"


def test_workers_that_were_not_tried_are_told_by_the_law() -> None:
    """Between what was measured with two and with four, and not as sure."""
    found = predict(measured(RUN, {"processors": 8}), setting(workers=3, loop=""))
    assert found.rate is not None
    assert 590 < found.rate.median < 1150
    assert found.rate.low < found.rate.median < found.rate.high
    assert "law of 1, 2, 4 workers" in found.parts[-1].basis


def test_reading_with_other_workers_than_were_measured_is_no_prediction_where_it_may_decide() -> (
    None
):
    """Two read 700; four read 700 to 1,400, of which 1,150 are decoded and 900 copied."""
    known = measured(RUN, {"processors": 8})
    found = predict(known, setting(source="cold", workers=4))
    assert found.rate is not None
    assert found.rate.median == pytest.approx(900)  # a bound
    assert found.missing == ("disk with 4 workers",)
    enough = predict(known, setting(source="cold", workers=1))
    assert (enough.is_whole, enough.limited_by) == (True, "decode")


def test_shards_of_another_size_are_read_as_fast_where_they_were_not_read() -> None:
    """The same images."""
    found = predict(measured(RUN, {"processors": 8}), setting(source="cold", form="shards-16MB"))
    assert found.is_whole
    assert found.parts[-1].rate.median == pytest.approx(700)


def test_one_number_of_workers_says_between_what_more_of_them_decode() -> None:
    """As much as those that were seen, at most in proportion."""
    points = together(loop("synthetic", 9000.0), loader(300.0, 2))
    found = predict(measured(points, {"processors": 8}), setting(workers=4))
    assert found.rate is not None
    assert (found.rate.low, found.rate.high) == pytest.approx((300, 600))


def test_what_was_not_measured_is_missing() -> None:
    """No decoding: nothing is said. No store: a bound, which is no prediction."""
    known = measured(RUN, {"processors": 8})
    other = predict(known, setting(loader="torch-map"))
    assert (other.rate, other.missing) == (None, ("decode",))
    remote = predict(known, setting(source="store"))
    assert remote.rate is not None
    assert remote.rate.median == pytest.approx(590)
    assert remote.missing == ("store",)
    assert not remote.is_whole
    assert predict(known, setting(loop="other")).missing == ("device",)


def test_other_work_is_other_decoding() -> None:
    """Images of another size were not decoded."""
    other = setting(work=work_of({"image_size": 64}))
    assert predict(measured(RUN, {}), other).missing == ("decode",)


def test_a_store_is_told_by_the_size_of_shards_and_a_connection_a_worker() -> None:
    """50 ms to the first byte and 80 MB/s: shards of 4 MB come 10 a second over each."""
    points = [fetched(size, 2, 2 * size / (0.05 + size / 80e6)) for size in (10**6, 4 * 10**6)]
    known = measured(together(RUN, *points), {"processors": 8})
    found = predict(known, setting(source="store", workers=4))
    store = next(part for part in found.parts if part.name == "store")
    assert store.rate.median == pytest.approx(4 * 4e6 / 0.1 / 40_000)
    assert found.is_whole


def test_disks_without_a_reader_are_a_last_resort() -> None:
    """Their bytes a second, over those of a sample."""
    without = [trial for trial in RUN if trial.params["loader"] != "raw"]
    assert predict(measured(without, {}), setting(source="cold")).missing == ("disk",)
    params = {"target": "here", "operation": "read", "cache": "direct"}
    disk = done("disk", params, Cold("direct", "direct"), mb_per_s=10.0)
    found = predict(measured(together(without, disk), {}), setting(source="cold"))
    assert found.rate is not None
    assert found.limited_by == "disk"
    assert found.rate.median == pytest.approx(10e6 / 40_000)


def test_a_loop_on_several_devices_has_the_workers_of_all() -> None:
    """Two with two workers each are four."""
    params = {**loop("warm", 1.0)[0].params, "group": "g"}
    found = predict(measured(RUN, {}), of_loop(params, "warm", devices=2))
    decode = next(part for part in found.parts if part.name == "decode")
    assert decode.rate.median == pytest.approx(1150)


positive = st.floats(1e-3, 1e6)
NAMES = ("device", "copy", "decode", "store")


def parts(rates: list[float]) -> list[Part]:
    """One of each."""
    return [
        Part(name, Estimate(rate, rate * 0.9, rate * 1.1, 0.9, 3), "")
        for name, rate in zip(NAMES, rates, strict=True)
    ]


@given(st.lists(positive, min_size=4, max_size=4), st.booleans())
def test_no_prediction_is_above_any_capacity(rates: list[float], in_turn: bool) -> None:
    """Side by side it is the least of them, one after the other below it."""
    found, _ = combined(parts(rates), in_turn=in_turn)
    assert found.median <= min(rates) * (1 + 1e-12)
    assert found.low <= found.median <= found.high
    if not in_turn:
        assert found.median == min(rates)


@given(
    st.lists(positive, min_size=4, max_size=4),
    st.integers(0, 3),
    st.floats(1, 100),
    st.booleans(),
)
def test_more_capacity_never_predicts_less(
    rates: list[float], which: int, times: float, in_turn: bool
) -> None:
    """Of any part, alone or one after the other."""
    more = [rate * times if place == which else rate for place, rate in enumerate(rates)]
    before, _ = combined(parts(rates), in_turn=in_turn)
    after, _ = combined(parts(more), in_turn=in_turn)
    assert after.median >= before.median * (1 - 1e-12)


@given(st.lists(positive, min_size=4, max_size=4))
def test_one_after_the_other_is_never_faster(rates: list[float]) -> None:
    """Than side by side."""
    side, turn = (combined(parts(rates), in_turn=way)[0].median for way in (False, True))
    assert turn <= side * (1 + 1e-12)


def test_nothing_has_no_rate() -> None:
    """A loop without parts is none."""
    with pytest.raises(ValueError, match="no parts"):
        combined([], in_turn=False)
