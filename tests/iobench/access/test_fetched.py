"""GETs of a process and of those that it forks, counted."""

from __future__ import annotations

import logging
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from dataprep.stores import StoreOptions, open_store, s3_reading
from iobench.access.fetched import Fetched, counting
from iobench.s3_server import MotoServer


def got(size: int) -> None:
    """As the store logs it."""
    logging.getLogger(s3_reading.__name__).debug(s3_reading.GOT, "key", size)


def test_requests_to_a_store_are_counted(s3_server: MotoServer, bucket: str) -> None:
    """Whole objects and ranges, by what came; neither PUT nor HEAD nor LIST."""
    store = open_store(f"s3://{bucket}", StoreOptions(endpoint_url=s3_server.url))
    with counting() as count:
        store.put("a", b"x" * 1000)
        list(store.list())
        store.head("a")
        assert count.fetched() == Fetched(0, 0)
        store.get("a")
        store.get_range("a", 10, 50)
        assert count.fetched() == Fetched(2, 1050)
    store.get("a")


def test_threads_and_forked_processes_count_too() -> None:
    """No request is lost between them."""
    with counting() as count:
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
        assert count.fetched() == Fetched(2500, 3 * 1500 + 7000)


def test_nothing_is_heard_of_it_elsewhere(caplog: pytest.LogCaptureFixture) -> None:
    """Neither meanwhile nor afterwards; other lines of the store are no requests."""
    log = logging.getLogger(s3_reading.__name__)
    before = log.level, log.propagate, list(log.handlers)
    with counting() as count:
        got(5)
        log.debug("something else")
        assert count.fetched() == Fetched(1, 5)
    assert (log.level, log.propagate, log.handlers) == before
    assert caplog.records == []
