"""How many emulated accelerators one host feeds side by side, and what limits the next one."""

from __future__ import annotations

from typing import Any

import pytest

from iobench.analysis.feeds_table import FeedsRow, feeds_line
from iobench.results.trial import Trial
from tests.iobench.analysis.made import analysed, loop, together

STARTS = {"epoch_start_share": 0.3, "epoch_start_s": 0.1, "time_to_first_batch_s": 2.0}


def side_by_side(count: int, slowest: float, *, rate: float = 150, **params: Any) -> list[Trial]:
    """Return a loop of ``count`` accelerators of 200 images/s.

    ``slowest`` is the AU of the slowest one, and ``rate`` the samples/s of all together.
    """
    shares = [*[min(1.0, slowest + 0.02)] * (count - 1), slowest]
    metrics = {
        "devices": count,
        "rank_au_mlperf": shares,
        "rank_samples_per_s": [rate / count] * count,
        "au_mlperf": sum(shares) / count,
        "au_mlperf_slowest": slowest,
        **STARTS,
    }
    how: dict[str, Any] = {"accelerators": count, "group": f"paced, {count}", **params}
    if "preset" not in how:
        how["images_per_s"] = 200
    return together(
        loop("synthetic", 200 * count, metrics={"devices": count}, **how),
        loop("warm", rate, metrics=metrics, **how),
    )


def measured(*trials: list[Trial]) -> list[FeedsRow]:
    """Return the measured rows of the table of accelerators."""
    feeds = analysed(*trials).feeds
    assert feeds is not None
    return [row for row in feeds.rows if row.how == "measured"]


def test_the_largest_number_that_is_kept_busy_is_a_measured_row() -> None:
    """The row names the limit of the next number, which is not the start of epochs: AU omits it."""
    four, two = side_by_side(4, 0.71, rate=400), side_by_side(2, 0.93, rate=370)
    (row,) = measured(four, side_by_side(1, 0.97), two)
    assert row.of == "this host, side by side"
    assert dict(row.feeds) == {"200 img/s": 2}
    assert row.samples_per_s == pytest.approx(370, rel=0.01)
    assert not row.at_least
    assert row.basis == (
        "With 2 accelerators (200 img/s), the slowest computes 93 % of the time (AU). "
        "With 4, the slowest computes 71 % of the time: preparing samples is the bottleneck."
    )


def test_the_slowest_rank_decides_not_the_mean() -> None:
    """Four ranks with a mean of 90.5 % are not fed if one has 89 %."""
    (row,) = measured(side_by_side(1, 0.97), side_by_side(4, 0.89, rate=700))
    assert dict(row.feeds) == {"200 img/s": 1}


def test_more_may_be_fed_than_the_largest_number_measured() -> None:
    """The row and the terminal say that more accelerators may be fed."""
    single = side_by_side(1, 0.97, preset="A100")
    three = side_by_side(3, 0.95, rate=580, preset="A100")
    feeds = analysed(single, three).feeds
    assert feeds is not None
    row = feeds.rows[0]
    assert (dict(row.feeds), row.at_least) == ({"A100": 3}, True)
    assert row.basis.endswith("No larger number was measured.")
    assert feeds_line(feeds) == "This host feeds, for ResNet-50:  3 or more A100  (measured)"


def test_no_number_is_fed_where_one_alone_is_not() -> None:
    """The row says 0 if one accelerator is not fed, and is missing if one was not measured."""
    (row,) = measured(side_by_side(1, 0.6, rate=120), side_by_side(2, 0.4, rate=130))
    assert dict(row.feeds) == {"200 img/s": 0}
    assert row.basis.startswith("With 1 accelerator (200 img/s), the slowest computes 60 %")
    assert measured(side_by_side(2, 0.6), side_by_side(4, 0.4)) == []


def test_each_loader_has_its_own_numbers() -> None:
    """Loops with different loaders have rows of their own."""
    first, second = measured(
        side_by_side(1, 0.97),
        side_by_side(2, 0.95, rate=380),
        side_by_side(1, 0.95, loader="torch-map", group="map, 1"),
        side_by_side(2, 0.5, rate=200, loader="torch-map", group="map, 2"),
    )
    assert first.of == "this host, side by side, torch-iterable from warm"
    assert (dict(first.feeds), dict(second.feeds)) == ({"200 img/s": 2}, {"200 img/s": 1})


def test_every_number_is_in_the_summary() -> None:
    """The summary has an entry for each number, with the figures of each rank."""
    result = analysed(side_by_side(1, 0.97), side_by_side(2, 0.93, rate=370))
    entries = result.summary["accelerators"]
    assert [entry["accelerators"] for entry in entries] == [1, 2]
    assert entries[1]["rank_au"] == pytest.approx([0.95, 0.93])
    assert entries[1]["rank_samples_per_s"] == [185, 185]
    assert entries[1]["au_mean"] == pytest.approx(0.94)
    assert entries[1]["is_fed"]


def test_loops_on_real_devices_are_no_row() -> None:
    """Several GPUs that train one model are not accelerators side by side."""
    feeds = analysed(loop("synthetic", 1000), loop("warm", 900)).feeds
    assert feeds is not None
    assert all(row.how == "computed" for row in feeds.rows)
