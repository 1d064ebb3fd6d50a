"""Loaders behind a link of known bandwidth and latency get the rate of the link."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest

from iobench.clock import VirtualClock
from iobench.errors import Unavailable
from iobench.results.trial import Location
from iobench.selftest import links
from iobench.selftest.known_rates import Check, NotRun
from iobench.selftest.links import Link, LinkPlan, link_rate, torch_checks
from iobench.selftest.memory_store import MemoryStore
from iobench.servers.fault_proxy import FaultProxy, Match, RateLimit, Rule

NO_LATENCY = Link(bytes_per_s=8e6)
SAMPLE_BYTES = 240_000
EPOCH_BYTES = 16_000_000
"""The link carries this in an epoch: it is more than the samples, since gaps are read too."""


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    """Yield a store that has sent three epochs."""
    location = Location("s3://selftest", "shards")
    proxy = FaultProxy("http://127.0.0.1:1")
    for _ in range(3):
        proxy.begin("GET", "/selftest/tfrecord/0").response_bytes = EPOCH_BYTES
    yield MemoryStore(location, location, proxy)
    proxy.server_close()


def whole_epochs(samples_per_s: float) -> dict[str, Any]:
    """Return the metrics of a trial of three whole epochs of 60 samples."""
    epoch = {"samples": 60, "seconds": 60 / samples_per_s}
    mb_per_s = samples_per_s * SAMPLE_BYTES / 1e6
    return {
        "rate_rule": "epochs",
        "samples": 180,
        "samples_per_s": samples_per_s,
        "mb_per_s": mb_per_s,
        "first_batch_listing_s": 0.25,
        "first_batch_worker_start_s": 0.05,
        "first_batch_fetch_s": 2.1,
        "epochs": [epoch] * 3,
    }


class TestLinkRate:
    def test_a_steady_rate_is_bandwidth_by_sample(self, store: MemoryStore) -> None:
        """A link of 8 MB/s gives 33.3 samples/s of 240 kB."""
        metrics = {**whole_epochs(30.0), "rate_rule": "steady"}
        assert link_rate(NO_LATENCY, metrics, store) == pytest.approx(8e6 / SAMPLE_BYTES)

    def test_whole_epochs_have_starts_and_latencies(self, store: MemoryStore) -> None:
        """Each epoch takes a latency and its transfer, the first one also the loader's start."""
        link = Link(bytes_per_s=8e6, latency_s=0.05)
        # Two seconds of transfer and the latency; the first batch of the first epoch took 2.1 s.
        seconds = 0.25 + 0.05 + 2.1 + 2 * 2.05
        rate = link_rate(link, whole_epochs(30.0), store)
        assert rate == pytest.approx(180 / seconds)


class TestTorchChecks:
    @pytest.mark.parametrize(
        ("reported", "is_ok"),
        [(27.7, True), (28.6, True), (30.0, False), (120.0, False)],
    )
    def test_a_rate_above_the_link_is_wrong(
        self,
        monkeypatch: pytest.MonkeyPatch,
        store: MemoryStore,
        reported: float,
        is_ok: bool,
    ) -> None:
        """A loop that reports more than its link can carry fails, and so does one that differs."""
        monkeypatch.setattr(links, "loader_metrics", lambda *_: whole_epochs(27.7))
        monkeypatch.setattr(links, "loop_metrics", lambda *_: whole_epochs(reported))
        alone, loop, far_alone, far_loop, compared = torch_checks(
            LinkPlan(link=NO_LATENCY, latency_s=0.05), store, VirtualClock()
        )
        assert (alone.ok, far_alone.ok) == (True, True)
        assert [check.ok for check in (loop, far_loop, compared)] == [is_ok] * 3
        assert compared.expected == pytest.approx(27.7)


def test_without_torch_its_loader_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The result says so, and the loader that needs no framework is measured."""

    def missing(name: str) -> None:
        raise Unavailable(f"{name} is not installed")

    raw = Check("raw", 1.0, 1.0, 0.1, "samples/s")
    monkeypatch.setattr(links, "need_framework", missing)
    monkeypatch.setattr(links, "memory_store", lambda *_, **__: nullcontext())
    monkeypatch.setattr(links, "raw_checks", lambda *_: iter([raw]))
    results = list(links.checks())
    assert results == [raw, NotRun("torch-iterable behind a link", "torch is not installed")]
    assert str(results[1]) == "not run: torch-iterable behind a link: torch is not installed"


@pytest.mark.slow
class TestRaw:
    """One reader runs on a virtual clock that only the link and its latency move."""

    # The proxy makes up for the first 10 ms of a pause, which is little beside half a second.
    PLAN = LinkPlan(latency_s=0.5, raw_threads=0)

    @pytest.fixture(autouse=True)
    def _without_torch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(links, "torch_checks", lambda *_: iter(()))

    def test_the_rate_is_that_of_the_link(self) -> None:
        """The rate is known from bandwidth, latency and the size of shards alone."""
        checks = list(links.checks(self.PLAN, VirtualClock()))
        assert [str(check)[:2] for check in checks] == ["ok", "ok"]

    def test_another_link_is_noticed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A link that is a tenth faster than it should be makes both rates wrong."""
        rules = property(lambda link: [Rule(Match("GET"), RateLimit(1.1 * link.bytes_per_s))])
        monkeypatch.setattr(Link, "rules", rules)
        checks = list(links.checks(self.PLAN, VirtualClock()))
        assert [str(check)[:5] for check in checks] == ["WRONG", "WRONG"]


@pytest.mark.slow
def test_real_loaders_behind_a_real_link() -> None:
    """Every check is measured in real time; whether it is right is left to a quiet machine."""
    pytest.importorskip("torch")
    plan = LinkPlan(images=24, link=Link(bytes_per_s=50e6), latency_s=0.001)
    names = [check.name for check in links.checks(plan)]
    assert names == [
        "raw, link of 50 MB/s",
        "raw, link of 50 MB/s and 1 ms",
        "torch-iterable, link of 50 MB/s",
        "torch-iterable in a loop with a fast device, link of 50 MB/s",
        "torch-iterable, link of 50 MB/s and 1 ms",
        "torch-iterable in a loop with a fast device, link of 50 MB/s and 1 ms",
        "later epochs of this loop compared with the loader without training, "
        "link of 50 MB/s and 1 ms",
    ]
