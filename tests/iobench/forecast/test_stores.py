"""Object stores: requests as the probe sends them, by number, time or rate."""

from __future__ import annotations

from typing import Any

import pytest

from iobench.forecast import Facts
from iobench.forecast.stores import objects, put, to_be_read
from iobench.probes.object_store.pool import Objects
from iobench.requests import Requests
from tests.iobench.forecast.made import AMAZON, OTHER

PARAMS = {
    "store": "s3",
    "client": "boto3",
    "operation": "get",
    "object_bytes": 1000,
    "connections": 4,
    "seconds": 2.0,
    "max_requests": 100,
    "pool_bytes": 256_000_000,
    "part_bytes": 8 * 2**20,
}


def found(**changed: Any) -> tuple[Requests, Requests]:
    """The fewest and the most requests of a trial at Amazon's."""
    made = objects({**PARAMS, **changed}, Facts(stores={"store/s3": AMAZON}), 600.0)
    assert made.requests[1] is not None
    return made.requests[0], made.requests[1]


def test_the_number_bounds_small_requests() -> None:
    """The bucket, two listings, a byte for each connection, and the requests."""
    low, high = found()
    assert low == Requests(gets=1 + 4 + 1, lists=2)
    assert high == Requests(gets=1 + 4 + 100, lists=2)


def test_time_bounds_many_requests() -> None:
    """Four streams of 10 ms for two seconds, and what they finish."""
    assert found(max_requests=10**9, object_bytes=1)[1].gets == 5 + 4 * 200 + 3


@pytest.mark.parametrize(
    ("operation", "size", "puts"),
    [("put", 1000, 100), ("multipart", 3 * 8 * 2**20, 100 * 5), ("range_get", 1000, 0)],
)
def test_what_an_operation_costs(operation: str, size: int, puts: int) -> None:
    """A PUT one; in parts one more to begin and one to complete."""
    high = found(operation=operation, object_bytes=size, seconds=3600.0)[1]
    assert high.puts == puts


def test_bytes_are_read_or_written() -> None:
    """By the operation; opening a connection reads a byte."""
    facts = Facts(stores={"store/s3": OTHER})
    read = objects(PARAMS, facts, 600.0)
    assert (read.store_read.high, read.store_written.high) == (100_004, 0)
    written = objects({**PARAMS, "operation": "put"}, facts, 600.0)
    assert (written.store_read.high, written.store_written.high) == (4, 100_000)


def test_another_server_is_bounded_too() -> None:
    """By 0.2 ms a request, though nobody knows it."""
    made = objects({**PARAMS, "max_requests": 10**9}, Facts(stores={"store/s3": OTHER}), 600.0)
    assert made.requests[1] is not None
    assert 4 * 2 / 0.000_2 * 0.9 < made.requests[1].gets < 4 * 2 / 0.000_2 * 1.1
    assert "0.2 ms" in " ".join(made.assumed)


def test_objects_to_read() -> None:
    """Those that the probe puts; trials that write need none."""
    assert to_be_read({**PARAMS, "object_bytes": 8_000_000}) == Objects(8_000_000, 32)
    assert to_be_read({**PARAMS, "operation": "put"}) is None
    stored = put(Objects(1000, 64), "store/s3", 1e6)
    assert stored.requests == (Requests(), Requests(puts=64, gets=64))
    assert stored.store_written.high == 64_000


def test_programs_copy_whole_rounds() -> None:
    """Every object once, even where a trial is over before; each is listed, perhaps in parts."""
    high = found(client="s5cmd", max_requests=1, connections=1, object_bytes=1000)[1]
    assert high == Requests(gets=2 + 2 * 65, lists=2 + 65)
    large = found(client="awscli", max_requests=1, connections=1, object_bytes=64_000_000)[1]
    assert large == Requests(gets=2 + (1 + 4) * 14, lists=2 + 5)
