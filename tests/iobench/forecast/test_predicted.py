"""Sums over the steps of a run."""

from __future__ import annotations

from iobench.forecast import Predicted
from iobench.forecast.bounds import Bounds, exactly, up_to
from iobench.forecast.predicted import moved, requests_of
from iobench.requests import Requests


def test_bytes_are_summed_each_way() -> None:
    """Read and written, by disk and store."""
    one = Predicted(disk_read=exactly(1), store_written=up_to(None))
    other = Predicted(disk_read=up_to(2), disk_written=exactly(4))
    assert moved([one, other]) == {
        "disk_read": Bounds(1, 3),
        "disk_written": exactly(4),
        "store_read": Bounds(),
        "store_written": Bounds(0, None),
    }


def test_requests_are_bounded_where_all_are() -> None:
    """One step without a bound leaves none."""
    one = Predicted(requests=(Requests(gets=1), Requests(gets=5, puts=1)))
    assert requests_of([one, one]) == (Requests(gets=2), Requests(gets=10, puts=2))
    endless = Predicted(requests=(Requests(lists=1), None))
    assert requests_of([one, endless]) == (Requests(gets=1, lists=1), None)
    assert requests_of([]) == (Requests(), Requests())
