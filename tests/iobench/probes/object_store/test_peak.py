"""The best rate of a store in a saved run, and what is enough for 95 % of it."""

from __future__ import annotations

from typing import Any

import pytest

from iobench.analysis.analyse import analyse
from iobench.results.result import Result
from iobench.results.trial import Trial

MB = 10**6
SIZE_SWEEP = {(size * MB, 8): rate for size, rate in ((1, 400.0), (8, 900.0), (64, 930.0))}
CONNECTION_RATES = {1: 120.0, 16: 1790.0, 32: 1800.0, 64: 1760.0}
CONNECTION_SWEEP = {(8 * MB, count): rate for count, rate in CONNECTION_RATES.items()}


def best(points: dict[tuple[int, int], float]) -> dict[str, Any]:
    """Return the summary's entry for one store, client and operation.

    ``points`` holds MB/s by object size in bytes and number of connections.
    """
    trials = []
    for (size, connections), rate in points.items():
        params: dict[str, Any] = {"store": "s3", "client": "boto3", "operation": "get"}
        params |= {"object_bytes": size, "connections": connections}
        name = f"{size} {connections}"
        trials.append(Trial(name, "object", params, 0, "done", {"mb_per_s": rate}))
    (entry,) = analyse(Result("r", "", {}, {}, trials)).summary["object_stores"]
    return dict(entry)


def test_each_question_is_answered_within_its_own_sweep() -> None:
    """Sizes are compared at one number of connections, and connections at one size."""
    peak = best({**SIZE_SWEEP, **CONNECTION_SWEEP})
    assert (peak["peak_mb_per_s"], peak["object_bytes"], peak["connections"]) == (1800, 8 * MB, 32)
    assert (peak["object_bytes_95"], peak["at_connections"]) == (8 * MB, 8)
    assert (peak["connections_95"], peak["at_object_bytes"]) == (16, 8 * MB)


@pytest.mark.parametrize("streams", [(1, 2, 4), (1,)])
def test_a_sweep_that_still_rises_has_no_answer(streams: tuple[int, ...]) -> None:
    """If only the last point is within 95 %, or there is one, the rate may still be rising."""
    peak = best({(MB, count): 100.0 * count for count in streams})
    assert (peak["object_bytes_95"], peak["connections_95"]) == (None, None)
