"""The diagnosis of a measured loop begins with the delay that the test has injected.

An injected delay is ten times as long as the rest of a loop, so that a busy machine changes figures
but not the largest of them.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from iobench.config.benchmark import BenchConfig
from iobench.results.result import Finding, Result
from iobench.runner.progress import Lines
from iobench.runner.run import run
from iobench.servers.fault_proxy import Delay, Fault, FaultProxy, Match, RateLimit, Rule, Status
from iobench.servers.moto_server import MotoServer
from tests.e2e.slow_loaders import ENTRY_POINTS

pytestmark = pytest.mark.slow

PROCESSORS = os.cpu_count() or 1
SHARD = r"/tfrecord/train-"
READ = rf"{SHARD}|/iobench-probe/"
"""The keys of objects that a loop or the object-store probe reads."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """100 images in two shards, made by the first run that needs them."""
    folder = tmp_path_factory.mktemp("data")
    return {"images": 100, "classes": 2, "size": 224, "shard_size": "1MB", "folder": str(folder)}


@pytest.fixture(scope="module")
def slow_package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """An installed package with loaders that prepare slowly, in this process and in every trial."""
    folder = tmp_path_factory.mktemp("slow")
    package = folder / "slow_loaders-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: slow-loaders\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(ENTRY_POINTS)
    root = Path(__file__).parents[2]
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        patch.setenv("PYTHONPATH", f"{folder}{os.pathsep}{root}")
        yield


def measured(
    folder: Path,
    data: dict[str, Any],
    form: str = "shards",
    probe: dict[str, Any] | None = None,
    **loop: Any,
) -> Result:
    """Measure a loop on an emulated device once. The test fails if a trial was not measured."""
    usual = {"consumer": "paced", "images_per_s": 400, "loader": "raw", "workers": 0}
    usual |= {"batch_size": 8, "group": "loop", "data": form}
    config = {
        "name": "made",
        "repeats": 1,
        "data": data,
        "training": [{**usual, **loop}],
        "sampling": {"per_s": 10},
        "object_store": probe,
    }
    stream = io.StringIO()
    done = run(BenchConfig.model_validate(config), folder, Lines(stream))
    assert {trial.status for trial in done.result.trials} == {"done"}, done.counts
    return done.result


def begun_with(result: Result) -> Finding:
    """The primary finding."""
    (actual,) = [finding for finding in result.findings if finding.primary]
    return actual


_PROBE = {
    "object_bytes": ["100kB", "1MB"],
    "connections": [1, 4],
    "at_object_bytes": "1MB",
    "at_connections": 1,
    "seconds": 3,
}


class Remote:
    """The same data on a store behind a proxy with faults."""

    def __init__(self, folder: Path, data: dict[str, Any], bucket: str, upstream: str) -> None:
        self._folder, self._data, self._bucket, self._upstream = folder, data, bucket, upstream

    def measured(self, faults: Sequence[tuple[Match, Fault]], **loop: Any) -> Result:
        """Measure synthetic, warm and store inputs. The data are uploaded without faults."""
        with FaultProxy(self._upstream, [Rule(match, fault) for match, fault in faults]) as proxy:
            bucket_settings = {
                "uri": f"s3://{self._bucket}/x",
                "store": {"endpoint_url": proxy.url},
            }
            inputs: dict[str, Any] = {"inputs": ["synthetic", "warm", "store"]}
            probe = {
                "targets": [bucket_settings],
                "clients": ["boto3"],
                "operations": ["get"],
                **_PROBE,
            }
            data = {**self._data, "bucket": bucket_settings}
            return measured(self._folder, data, probe=probe, **inputs, **loop)


@pytest.fixture
def remote(tmp_path: Path, data: dict[str, Any], bucket: str, s3_server: MotoServer) -> Remote:
    """A remote store of this test only."""
    return Remote(tmp_path / "run", data, bucket, s3_server.url)


def test_a_store_that_begins_late(remote: Remote) -> None:
    """The first byte of each shard arrives after half a second."""
    result = remote.measured([(Match("GET", READ), Delay(0.5))])
    finding = begun_with(result)
    assert (finding.code, finding.severity) == ("slow-store-latency", "problem")
    assert finding.share is not None
    assert finding.share > 0.5
    assert "to the first byte" in finding.evidence
    assert "with 1 connection and" in finding.evidence


def test_a_store_that_delivers_slowly(remote: Remote) -> None:
    """A shard of two megabytes takes a second, for any number of connections."""
    finding = begun_with(remote.measured([(Match("GET", READ), RateLimit(2e6))]))
    assert (finding.code, finding.severity) == ("slow-store-bandwidth", "problem")


def test_a_store_that_throttles(remote: Remote) -> None:
    """Requests for shards are refused at first, and the wait is not reported as latency."""
    refused = [
        (Match("GET", rf"{SHARD}0000{number}", times=1), Status(503, "SlowDown"))
        for number in range(3)
    ]
    result = remote.measured([*refused, (Match("GET", SHARD), Delay(0.2))])
    finding = begun_with(result)
    assert (finding.code, finding.severity) == ("store-throttles", "problem")
    (store,) = [trial for trial in result.trials if trial.params.get("input") == "store"]
    assert store.metrics["store_refused"] >= 2
    assert f"{store.metrics['store_refused']:,} of" in finding.evidence


def test_tiny_files(remote: Remote) -> None:
    """Each sample needs a request, and each request takes some time."""
    faults = [(Match("GET", r"\.(JPEG|jpe?g)"), Delay(0.03))]
    result = remote.measured(faults, form="files", steps=8)
    finding = begun_with(result)
    assert (finding.code, finding.severity) == ("tiny-files", "problem")
    assert "each sample is a file" in finding.evidence
    commands = [change["command"] for change in result.summary["recommendations"]]
    assert any(command.startswith("dataprep shard") for command in commands)


@pytest.mark.usefixtures("slow_package")
@pytest.mark.parametrize("name", ["computing", "waiting"])
def test_slow_preparing(tmp_path: Path, data: dict[str, Any], name: str) -> None:
    """Slow preparation is found, whether it uses the CPUs or not. Other tests may use CPUs too."""
    loop: dict[str, Any] = {"loader": name, "item_s": 0.02}
    result = measured(tmp_path / "run", data, inputs=["synthetic", "warm"], steps=8, **loop)
    finding = begun_with(result)
    assert finding.severity == "problem"
    if name == "computing" and finding.code == "other-programs":
        assert "other programs leave" in finding.evidence
        return
    assert finding.code == "slow-preparation"
    assert f"0 workers on {PROCESSORS} CPUs" in finding.evidence
    assert finding.recommendation is not None
    assert finding.recommendation["setting"] == "measure_workers"


def test_a_slow_device(tmp_path: Path, data: dict[str, Any]) -> None:
    """Each step takes a second, of which its data and the start of workers are a small part."""
    loop: dict[str, Any] = {"images_per_s": 8, "steps": 5}
    result = measured(tmp_path / "run", data, inputs=["synthetic", "warm"], **loop)
    finding = begun_with(result)
    assert (finding.code, finding.severity) == ("slow-device", "info")
    assert result.summary["recommendations"] == []
