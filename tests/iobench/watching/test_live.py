"""The figures of a watched loop while it runs, as Prometheus reads them."""

from __future__ import annotations

import os
import re
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import yaml

import iobench
from dataprep.errors import ConfigError
from iobench.clock import VirtualClock
from iobench.watching.batches import bytes_in
from iobench.watching.prometheus import BUCKETS_S, LiveFigures, MetricsServer
from iobench.watching.proxy import TimedEpoch
from iobench.watching.replay import Replay, ReplaySettings
from tests.iobench.watching.logged import MemoryLog
from tests.iobench.watching.scripts import free_port

pytest.importorskip("prometheus_client")

PAGE = Path(__file__).parents[3] / "docs" / "metrics.md"
LABELS = {"loader": "train", "rank": "3"}


class Totals(NamedTuple):
    """The samples and bytes that a counter has counted."""

    samples: int
    bytes: int


class Reads:
    """A counter of reads with fixed totals."""

    def totals(self) -> Totals:
        """Return 70 samples with 7,000 bytes."""
        return Totals(70, 7000)


def scraped(port: int) -> dict[str, dict[tuple[str, ...], float]]:
    """Return the values by name and labels, as Prometheus parses them."""
    from prometheus_client.parser import text_string_to_metric_families

    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    values: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = tuple(value for _, value in sorted(sample.labels.items()))
            values.setdefault(sample.name, {})[labels] = sample.value
    return values


@pytest.fixture
def server() -> Iterator[MetricsServer]:
    """Yield a server of metrics at a free port."""
    metrics_server = MetricsServer(free_port())
    yield metrics_server
    metrics_server.close()


def loop(live: LiveFigures, clock: VirtualClock, steps: int = 5) -> None:
    """Run steps of 3 s on 4 samples of 800 bytes, each of which is waited for 1 s."""

    def batches() -> Iterator[Any]:
        for _ in range(steps):
            clock.sleep(1.0)
            yield np.zeros((4, 100), np.uint16)
        clock.sleep(0.5)

    for _ in TimedEpoch(batches, 0, 7, MemoryLog(), live=live, clock=clock.now_s):
        clock.sleep(2.0)


def test_counters_of_a_loop(server: MetricsServer) -> None:
    """Samples, bytes, waiting and steps have the loader and the rank as labels."""
    clock = VirtualClock()
    live = server.add("train", 3, Reads())
    live._clock = clock.now_s
    loop(live, clock)
    values = scraped(server.port)
    at = ("train", "3")
    assert values["iobench_samples_total"] == {at: 20}
    assert values["iobench_batch_bytes_total"] == {at: 5 * 800}
    assert values["iobench_wait_seconds_total"] == {at: 5.5}
    assert values["iobench_step_seconds_count"] == {at: 5}
    assert values["iobench_step_seconds_sum"] == {at: 15}
    assert values["iobench_step_seconds_bucket"]["5.0", *at] == 5
    assert values["iobench_step_seconds_bucket"]["2.5", *at] == 0
    assert len(values["iobench_step_seconds_bucket"]) == len(BUCKETS_S) + 1
    assert values["iobench_storage_read_samples_total"] == {at: 70}
    assert values["iobench_storage_read_bytes_total"] == {at: 7000}
    assert values["iobench_repeated_steps_total"] == {at: 0}
    assert values["iobench_epoch"] == {at: 7}
    assert "iobench_ceiling_samples_per_second" not in values


def test_names_follow_the_conventions(server: MetricsServer) -> None:
    """Names have a prefix, base units and ``_total`` for counters; each has a type and a help."""
    server.add("train", 0)
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    types = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.M))
    assert types
    for name, kind in types.items():
        assert name.startswith("iobench_")
        assert name.endswith("_total") == (kind == "counter")
        assert f"# HELP {name} " in text
        assert not re.search(r"_(ms|us|mb|gb|s)(_|$)", name)


def test_a_wait_that_is_under_way_is_part_of_the_waiting() -> None:
    """A loop that is stuck is seen before its batch arrives, and the sum never falls."""
    clock = VirtualClock()
    live = LiveFigures("train", 0, clock=clock.now_s)
    waits_s = []

    def waited_s() -> float:
        return live.snapshot().counters["wait_seconds"]

    def batches() -> Iterator[int]:
        for _ in range(3):
            for _ in range(4):
                clock.sleep(10.0)
                waits_s.append(waited_s())
            yield 1

    for _ in TimedEpoch(batches, 0, 0, MemoryLog(), live=live, clock=clock.now_s):
        waits_s.append(waited_s())
        clock.sleep(5.0)
        waits_s.append(waited_s())
    assert waits_s == sorted(waits_s)
    assert waits_s[:6] == [10, 20, 30, 40, 40, 40]
    assert waited_s() == 120


@pytest.mark.parametrize("error", [None, OSError, KeyboardInterrupt])
def test_a_request_without_a_batch_is_no_open_wait(error: type[BaseException] | None) -> None:
    """The loop no longer waits after the end of an epoch, however often it asks, or an error."""
    clock = VirtualClock()
    live = LiveFigures("train", 0, clock=clock.now_s)

    def batches() -> Iterator[int]:
        yield 1
        clock.sleep(2.0)
        if error is not None:
            raise error

    epoch = TimedEpoch(batches, 0, 0, MemoryLog(), live=live, clock=clock.now_s)
    next(epoch)
    with pytest.raises(error or StopIteration):
        next(epoch)
    assert next(epoch, None) is None
    clock.sleep(1_000.0)
    assert live.snapshot().counters["wait_seconds"] == 2


def test_repeated_steps_are_no_samples_and_give_the_ceiling() -> None:
    """Steps of 20 ms on 4 samples give 200 samples/s, while the loader takes 40 ms for a batch."""
    clock, log = VirtualClock(), MemoryLog()
    live = LiveFigures("train", 0, clock=clock.now_s)
    settings = ReplaySettings(batches=2, steps=40, warm_up=20)
    waits = []

    def scrape() -> None:
        waits.append(live.snapshot().counters["wait_seconds"])

    def wait_for_device() -> None:
        clock.sleep(0.1)
        scrape()

    replay = Replay(settings, 0, log, live=live, wait=wait_for_device, clock=clock.now_s)

    def batches() -> Iterator[list[int]]:
        for _ in range(30):
            clock.sleep(0.04)
            yield [0] * 4

    epoch = TimedEpoch(batches, 0, 0, log, replay=replay, live=live, clock=clock.now_s)
    for _ in epoch:
        clock.sleep(0.02)
        scrape()
    figures = live.snapshot()
    assert figures.counters["samples"] == 30 * 4
    assert figures.counters["repeated_steps"] == 40
    # The first request after the replay waited for the device as well, but not for the loader.
    assert figures.counters["wait_seconds"] == pytest.approx(30 * 0.04)
    assert sum(figures.steps_by_bucket) == 30
    assert figures.total_step_s == pytest.approx(30 * 0.06 + 0.1)
    # The ceiling is over 20 steps and two waits for the device, which belong to them.
    ceiling = figures.gauges["ceiling_samples_per_second"]
    assert ceiling == pytest.approx(20 * 4 / (20 * 0.02 + 2 * 0.1))
    assert waits == sorted(waits)


def test_loops_of_one_name_are_numbered(server: MetricsServer) -> None:
    """Series with equal labels would be an error in Prometheus."""
    for _ in range(3):
        server.add("train", 0)
    names = {labels[0] for labels in scraped(server.port)["iobench_samples_total"]}
    assert names == {"train", "train 2", "train 3"}


@pytest.mark.parametrize(
    ("batch", "size"),
    [
        (np.zeros((2, 3), np.float32), 24),
        ((np.zeros(4, np.uint8), [np.zeros(2, np.int64), b"jpeg"]), 24),
        ({"image": np.zeros((2, 2)), "name": ["a", "b"]}, 32),
        (None, 0),
        (3.5, 0),
    ],
    ids=["array", "nested", "mapping", "none", "number"],
)
def test_bytes_in(batch: Any, size: int) -> None:
    """Arrays and byte strings count, and an object without a size counts as 0."""
    assert bytes_in(batch) == size


def test_a_port_in_use_is_refused(server: MetricsServer) -> None:
    """The error names the port and what to do."""
    message = rf"port {server.port} cannot be used .* metrics_port plus its local rank"
    with pytest.raises(ConfigError, match=message):
        MetricsServer(server.port)


def test_a_missing_client_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(ConfigError, match=r"pip install 'dataprep-iobench\[metrics\]'"):
        MetricsServer(free_port())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"metrics_port": 0}, "metrics_port is 1 to 65535, not 0"),
        ({"metrics_port": "9464"}, "metrics_port is 1 to 65535, not '9464'"),
        ({"metrics_port": 70000}, "is above 65535"),
        ({"metrics_port": 9464, "reads": 7}, "reads is a counter .* not int"),
        ({"reads": Reads()}, "give metrics_port, too"),
    ],
)
def test_wrong_arguments_are_refused_at_once(settings: dict[str, Any], message: str) -> None:
    """The error comes before anything is written."""
    with pytest.raises(ConfigError, match=message):
        iobench.watch([1], **settings)


def test_a_socket_is_given_up_in_a_forked_process(server: MetricsServer) -> None:
    """A worker that outlives the script must not hold its port."""
    descriptor = server._server.socket.fileno()
    child = os.fork()
    if not child:
        server.close()
        try:
            os.fstat(descriptor)
        except OSError:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    server.add("train", 0)
    assert scraped(server.port)["iobench_epoch"] == {("train", "0"): 0}


def blocks(language: str) -> list[str]:
    """Return the code blocks of the page in this language."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.S)


def test_the_scrape_config_of_the_page_is_one() -> None:
    """The config names a job whose targets are hosts with ports."""
    (config,) = [yaml.safe_load(block) for block in blocks("yaml")]
    (job,) = config["scrape_configs"]
    assert set(job) == {"job_name", "scrape_interval", "static_configs"}
    (static,) = job["static_configs"]
    assert all(re.fullmatch(r"[\w.-]+:\d+", target) for target in static["targets"])


def test_each_metric_of_the_page_is_exported(server: MetricsServer) -> None:
    """The page has only exported metrics, and its table has all of them."""
    clock = VirtualClock()
    live = server.add("train", 3, Reads())
    loop(live, clock)
    live.note_replay_measurement(0.0)
    live.note_batch([0] * 4, 4, 1.0, is_repeated=True)
    live.note_replay_end(1.0)
    exported = set(scraped(server.port))
    page = PAGE.read_text()
    queries = blocks("promql")
    assert len(queries) == 2
    for query in queries:
        names = set(re.findall(r"iobench_\w+", query))
        assert names
        assert names <= exported
    table = set(re.findall(r"^\| `(iobench_\w+)`", page, re.M))
    histogram = {f"iobench_step_seconds_{end}" for end in ("bucket", "sum", "count")}
    assert table - {"iobench_step_seconds"} == exported - histogram
    assert "iobench_step_seconds" in table
