"""Counting the GET requests of a process and of the processes that it forks."""

from __future__ import annotations

import logging
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from dataprep.stores import StoreOptions, open_store, s3
from iobench.loaders.store_requests import RequestTotals, counting_requests
from iobench.servers.fault_proxy import FaultProxy, Match, Rule, Status
from iobench.servers.moto_server import MotoServer


def got(size: int, first_s: float = 0.0, last_s: float = 0.0) -> None:
    """Log a GET of ``size`` bytes as the S3 store does; times are in seconds."""
    logging.getLogger(s3.__name__).debug(s3.GET_MESSAGE, "key", size, first_s, last_s)


def test_requests_to_a_store_are_counted(s3_server: MotoServer, bucket: str) -> None:
    """Whole objects and ranges count with their bytes; PUT, HEAD and LIST do not count."""
    store = open_store(f"s3://{bucket}", StoreOptions(endpoint_url=s3_server.url))
    with counting_requests() as count:
        store.put("a", b"x" * 1000)
        list(store.list())
        store.head("a")
        assert count.totals() == RequestTotals()
        store.get("a")
        store.get_range("a", 10, 50)
        totals = count.totals()
        assert (totals.requests, totals.bytes, totals.refused) == (2, 1050, 0)
        assert 0 < totals.first_byte_s <= totals.complete_s
    store.get("a")


def test_answers_that_ask_for_fewer_are_counted(s3_server: MotoServer, bucket: str) -> None:
    """503 and 429 are refusals of any request; a GET counts once when it succeeds."""
    rules = [
        Rule(Match("GET", "/a$", times=2), Status(503, "SlowDown")),
        Rule(Match("HEAD", "/a$", times=1), Status(429, "TooManyRequests")),
        Rule(Match("GET", "/b$", times=1), Status(500, "InternalError")),
    ]
    with FaultProxy(s3_server.url, rules) as proxy, counting_requests() as count:
        options = StoreOptions(endpoint_url=proxy.url, max_attempts=4)
        store = open_store(f"s3://{bucket}", options)
        for key in ("a", "b"):
            store.put(key, b"x" * 1000)
            store.get(key)
        totals = count.totals()
    assert (totals.requests, totals.bytes, totals.refused) == (2, 2000, 3)


def test_sums_and_means() -> None:
    """They cover all GETs; there is no mean without requests."""
    with counting_requests() as count:
        sums = {"store_requests": 0, "store_read_bytes": 0, "store_refused": 0}
        assert count.totals().metrics == sums
        got(1000, 0.25, 0.5)
        got(3000, 0.75, 1.5)
        sums = {"store_requests": 2, "store_read_bytes": 4000, "store_refused": 0}
        means = {"store_first_byte_s": 0.5, "store_get_s": 1.0}
        assert count.totals().metrics == {**sums, **means}


def test_threads_and_forked_processes_count_too() -> None:
    """No request of concurrent threads and processes is lost."""
    with counting_requests() as count:
        children = []
        for _ in range(3):
            child = os.fork()
            if not child:
                for _ in range(500):
                    got(3)
                os._exit(0)
            children.append(child)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(got, [7] * 1000))
        for child in children:
            os.waitpid(child, 0)
        assert count.totals() == RequestTotals(2500, 3 * 1500 + 7000)


def test_nothing_is_heard_of_it_elsewhere(caplog: pytest.LogCaptureFixture) -> None:
    """The log's handlers stay as they were, and other messages are not counted."""
    log = logging.getLogger(s3.__name__)
    before = log.level, log.propagate, list(log.handlers)
    with counting_requests() as count:
        got(5)
        log.debug("something else")
        assert count.totals() == RequestTotals(1, 5)
    assert (log.level, log.propagate, log.handlers) == before
    assert caplog.records == []
