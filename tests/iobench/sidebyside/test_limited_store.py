"""A limited store is a process, with limits that are rules of the proxy."""

from __future__ import annotations

from pathlib import Path

import pytest

from dataprep.stores import StoreOptions, open_store
from iobench.faults import Delay, Match, RateLimit, Rule
from iobench.s3_server import MotoServer
from iobench.sidebyside.limited_store import BUCKET, Limits, limited_store, store_share

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that a limited store sets are gone after the test."""
    for name, value in MotoServer.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


def test_rules() -> None:
    """No limit is no rule; each limit is one for every request."""
    assert Limits().rules() == []
    assert Limits(5e6, 0.02).rules() == [
        Rule(Match(), Delay(0.02)),
        Rule(Match(), RateLimit(5e6)),
    ]


def test_a_process_with_objects(tmp_path: Path) -> None:
    """It serves the files of a folder, and says what it took of the processors."""
    (tmp_path / "x").write_bytes(b"hello")
    with limited_store(Limits(latency_s=0.001), tmp_path) as running:
        assert running.uri == f"s3://{BUCKET}"
        with store_share(running) as share:
            store = open_store(running.uri, StoreOptions(endpoint_url=running.url))
            assert store.get("x") == b"hello"
            store.put("y", b"z")
            assert {info.key for info in store.list()} == {"x", "y"}
        assert share["store_cpu_share"] >= 0
        pid = running.pid
    assert not Path(f"/proc/{pid}").exists()
