"""Loops on two processes of the CPU, from the start of the trial's process to its end."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

import psutil
import pytest

import dataprep
from dataprep.stores import StoreOptions, open_store
from iobench.results.trial import Location, Outcome, TrialSpec
from iobench.servers.moto_server import MotoServer
from iobench.trials.training_settings import Training, training_points
from iobench.trials.trial_timeout import TrialEnd, run_with_timeout
from iobench.trials.window import MAX_IMBALANCE, MIN_EPOCHS
from tests.commandline import wait_until
from tests.iobench.small_runs import ThirdParty

pytestmark = pytest.mark.slow

torch = pytest.importorskip("torch")

STEPS, SAMPLES = 12, 4
EPOCHS, EPOCH_STEPS = MIN_EPOCHS, 60 // SAMPLES
"""The number of epochs of 120 samples that two ranks share, and the steps of each rank."""

LOOP: dict[str, Any] = {
    "consumer": "torch",
    "model": "lenet",
    "device": "cpu",
    "devices": 2,
    "image_size": 32,
    "batch_size": SAMPLES,
    "workers": 0,
    "steps": STEPS,
}


def tried(
    loader: str,
    source: str = "warm",
    *,
    locations: dict[str, Location] | None = None,
    timeout_s: float = 120,
    progress: Callable[[float, str], None] = lambda done, unit: None,
    scratch: Path | None = None,
    **changed: Any,
) -> TrialEnd:
    """Run a trial of two ranks, whose loader reads nothing without ``locations``."""
    settings = {**LOOP, "loader": loader, "inputs": source, **changed}
    (params,) = training_points(Training.model_validate(settings))
    if locations is None:
        params = {**params, "data": "", "over": ""}
    return run_with_timeout(
        TrialSpec("train", params),
        locations or {},
        timeout_s=timeout_s,
        environment={},
        progress=progress,
        scratch=scratch,
    )


def done(verdict: TrialEnd) -> Outcome:
    """Return the outcome of a trial that is done."""
    status, outcome, reason = verdict
    assert (status, reason) == ("done", "")
    assert outcome is not None
    return outcome


def running_processes(folder: Path) -> list[int]:
    """Return the ids of trial processes and their forks that still run."""
    ids = []
    for process in psutil.process_iter(["cmdline", "environ", "status"]):
        environ, command = process.info["environ"] or {}, process.info["cmdline"] or []
        is_of_test = environ.get("ODD_FOLDER") == str(folder)
        is_trial = "iobench.trials.trial_process_main" in command
        if is_of_test and is_trial and process.info["status"] != psutil.STATUS_ZOMBIE:
            ids.append(process.pid)
    return ids


def all_gone(third_party: ThirdParty) -> None:
    """Check that no rank outlives its trial."""
    wait_until(lambda: not running_processes(third_party.folder), "the end of all ranks")


@pytest.mark.parametrize("source", ["synthetic", "warm"])
def test_two_ranks_are_one_loop(third_party: ThirdParty, source: str) -> None:
    """The samples of both ranks count once, and each rank has figures of its own."""
    reported: list[float] = []
    outcome = done(tried("odd-ranked", source, progress=lambda count, unit: reported.append(count)))
    metrics = outcome.metrics
    assert metrics["devices"] == 2
    assert metrics["ranks_agree"] is True  # They agree although each rank has its own noise.
    assert metrics["samples"] == 2 * SAMPLES * metrics["steps"]
    # The epochs of this loader have no end, so 20 rounds count after all that can be in flight.
    expected = (STEPS, 1) if source == "synthetic" else (20, 4)
    assert (metrics["steps"], metrics["left_out"]) == expected
    assert metrics["samples_per_s"] == pytest.approx(metrics["samples"] / metrics["seconds"])
    assert max(reported) <= 2 * SAMPLES * sum(expected)
    each_rank = ("wait_s", "step_s", "compute_s", "au_mlperf", "samples_per_s")
    assert all(len(metrics[f"rank_{name}"]) == 2 for name in each_rank)
    assert metrics["au_mlperf"] == pytest.approx(fmean(metrics["rank_au_mlperf"]))
    assert metrics["au_mlperf_slowest"] == min(metrics["rank_au_mlperf"])
    assert metrics["device"].startswith("2 x CPU (")
    assert "2 ranks, a process each" in " ".join(metrics["notes"])
    assert {len(column) for column in outcome.series.values()} == {metrics["steps"]}
    for rank, wait_s in enumerate(metrics["rank_wait_s"]):
        own = [span for span in outcome.spans if span.track == f"rank {rank}"]
        assert len(own) == metrics["steps"]
        assert fmean(span.wait_s for span in own) == pytest.approx(wait_s)
    all_gone(third_party)


@pytest.mark.parametrize(
    ("loader", "message"),
    [
        ("odd-failingrank", "ValueError: shard 7 is broken"),
        ("odd-killedrank", "killed by SIGKILL (out of memory?): "),
        ("odd-exitingrank", "ended with exit code 3: license expired"),
        ("odd-leavingrank", "ended with exit code 3: license expired"),
        ("odd-shortrank", "the loader gave 6 full batches, but 24 were counted before the loop"),
    ],
)
def test_a_rank_that_fails_ends_the_trial(
    third_party: ThirdParty, loader: str, message: str
) -> None:
    """The reason is that of the failed rank, and none of its processes outlives the trial."""
    status, _, reason = tried(loader)
    assert status == "failed"
    assert reason.startswith(f"rank 1 of 2: {message}")
    all_gone(third_party)


def test_an_interrupt_ends_all_ranks(third_party: ThirdParty) -> None:
    """The time limit and Ctrl-C end all ranks, also one that hangs."""
    assert tried("odd-hangingrank", timeout_s=6)[2].startswith("not done after 6 s")
    all_gone(third_party)

    def stop(count: float, unit: str) -> None:
        assert len(running_processes(third_party.folder)) == 3
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tried("odd-hangingrank", progress=stop)
    all_gone(third_party)


def test_a_loader_that_does_not_share_is_skipped(third_party: ThirdParty) -> None:
    """Each rank would get every sample; a loop on resident data needs no loader."""
    status, _, reason = tried("odd-unshared")
    assert status == "skipped"
    assert reason.startswith("loader odd-unshared does not share its samples")
    assert done(tried("odd-unshared", "synthetic")).metrics["devices"] == 2


@pytest.fixture(scope="module")
def shards(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Location:
    """Return 120 samples in a few shards of different size."""
    output = tmp_path_factory.mktemp("ranks") / "out"
    config = {
        "source": str(tree),
        "output": str(output),
        "format": ("tfrecord",),
        "image": {"mode": "exact", "size": 320, "upscale": True, "quality": 97},
        "shard_size": "1.2MB",
    }
    dataprep.shard(dataprep.ShardConfig.model_validate(config))
    return Location(str(output), "shards")


@pytest.mark.parametrize(("loader", "workers"), [("torch-iterable", 1), ("torch-map", 0)])
def test_ranks_share_the_shards(shards: Location, loader: str, workers: int) -> None:
    """Three whole epochs have equal whole batches on each; the page cache is judged for both."""
    locations = {"shards@disk": shards}
    outcome = done(tried(loader, locations=locations, workers=workers, steps=20))
    metrics = outcome.metrics
    assert (metrics["rate_rule"], metrics["left_out"]) == ("epochs", 0)
    assert metrics["steps"] == EPOCHS * EPOCH_STEPS
    assert metrics["samples"] == 2 * SAMPLES * metrics["steps"]
    assert metrics["balance"] == pytest.approx(1, abs=MAX_IMBALANCE)
    assert metrics["fetched_bytes"] > 0
    assert [epoch["samples"] for epoch in metrics["epochs"]] == [2 * SAMPLES * EPOCH_STEPS] * EPOCHS
    assert metrics["mb_per_s"] > 0
    assert outcome.cold is not None
    assert (outcome.cold.asked, outcome.cold.label) == ("warm", "warm")
    of_workers = [f"rank {rank} worker 0" for rank in range(2)] if workers else []
    assert {span.track for span in outcome.spans} == {"rank 0", "rank 1", *of_workers}


@pytest.fixture
def remote(shards: Location, s3_server: MotoServer, bucket: str) -> Location:
    """Return a copy of the shards on S3."""
    options = StoreOptions(endpoint_url=s3_server.url)
    remote = Location(f"s3://{bucket}/x", "shards", options)
    local, store = open_store(shards.uri), open_store(remote.uri, options)
    for entry in local.list():
        store.put(entry.key, local.get(entry.key))
    return remote


def test_requests_of_all_ranks_count(shards: Location, remote: Location) -> None:
    """Each rank fetches its own samples, and manifest and tables besides."""
    loop: dict[str, Any] = {"source": "store", "workers": 1, "steps": 20}
    metrics = done(tried("torch-iterable", locations={"shards@s3": remote}, **loop)).metrics
    images = EPOCHS * sum(entry.bytes for entry in open_store(shards.uri).list("tfrecord/"))
    assert images / 2 < metrics["store_read_bytes"] < 2 * images
    assert metrics["store_requests"] > 2
    assert metrics["store_refused"] == 0
    assert 0 < metrics["store_first_byte_s"] <= metrics["store_get_s"]


@pytest.mark.parametrize(
    ("access", "loader"),
    [("file", "torch-iterable"), ("pipe", "torch-iterable"), ("lazy", "torch-map")],
)
def test_modes_of_access(remote: Location, tmp_path: Path, access: str, loader: str) -> None:
    """Ranks read from the store in each mode; ``file`` downloads once before they begin."""
    loop: dict[str, Any] = {"source": "store", "access": access, "steps": 20}
    locations = {"shards@s3": remote}
    outcome = done(tried(loader, locations=locations, scratch=tmp_path, **loop))
    metrics = outcome.metrics
    assert metrics["steps"] == EPOCHS * EPOCH_STEPS
    assert outcome.cold is not None
    assert outcome.cold.label == "server cache unknown"
    assert ("download_s" in metrics) == (access == "file")
    assert (metrics.get("store_requests", 0) > 0) == (access != "file")


def test_too_few_samples_are_refused_before_any_rank_begins(shards: Location) -> None:
    """The error says what to do about it."""
    status, _, reason = tried("torch-map", locations={"shards@disk": shards}, batch_size=80)
    assert status == "failed"
    assert reason == (
        "120 images among 2 ranks with 0 workers have no full batch of 80 for each: use more "
        "images, more shards, a smaller batch_size or fewer workers"
    )


def test_the_users_word_on_networks_stands(
    third_party: ThirdParty, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing network interface of the environment is used, and the rank's error names it."""
    monkeypatch.setitem(os.environ, "GLOO_SOCKET_IFNAME", "nowhere0")
    status, _, reason = tried("odd-ranked")
    assert status == "failed"
    assert reason.startswith("rank ")
    assert "nowhere0" in reason


def paced(
    shards: Location, *, accelerators: int, images_per_s: float, **changes: Any
) -> dict[str, Any]:
    """Return the metrics of a loop on this number of emulated accelerators."""
    loop: dict[str, Any] = {
        "consumer": "paced",
        "model": "resnet50",
        "devices": 1,
        "accelerators": accelerators,
        "images_per_s": images_per_s,
        "workers": 1,
        "steps": 20,
        **changes,
    }
    metrics = done(tried("torch-iterable", locations={"shards@disk": shards}, **loop)).metrics
    return dict(metrics)


@pytest.mark.parametrize("accelerators", [1, 2])
def test_emulated_accelerators_end_each_step_together(shards: Location, accelerators: int) -> None:
    """Each accelerator has a loader and a share of the samples, and all have the same pace."""
    metrics = paced(shards, accelerators=accelerators, images_per_s=200.0)
    assert metrics["devices"] == accelerators
    assert metrics["emulated"] is True
    assert metrics["device"] == f"{accelerators} x emulated device (200 images/s)"
    assert "ranks_agree" not in metrics
    assert metrics["steps"] == EPOCHS * 120 // SAMPLES // accelerators
    assert metrics["samples"] == accelerators * SAMPLES * metrics["steps"]
    assert metrics["balance"] == pytest.approx(1, abs=MAX_IMBALANCE)
    for name in ("rank_au_mlperf", "rank_samples_per_s"):
        assert len(metrics[name]) == accelerators
    # No accelerator is faster than its pace, and none is ahead of the others.
    assert max(metrics["rank_samples_per_s"]) <= 200.0
    assert max(metrics["rank_au_mlperf"]) <= 1.0
    assert metrics["rank_compute_s"] == pytest.approx([SAMPLES / 200.0] * accelerators)
    assert max(metrics["rank_step_s"]) == pytest.approx(min(metrics["rank_step_s"]), rel=0.2)
    assert metrics["au_mlperf_slowest"] == min(metrics["rank_au_mlperf"])


def test_more_accelerators_than_the_loaders_feed(shards: Location) -> None:
    """Accelerators of 100,000 images/s wait, and the metrics show it."""
    metrics = paced(shards, accelerators=2, images_per_s=100_000.0)
    assert max(metrics["rank_au_mlperf"]) < 0.9
    assert metrics["wait_share"] > 0.1


def test_accelerators_are_fed_by_loaders_that_read_nothing() -> None:
    """A worker of 5 ms a sample feeds an accelerator 200 of the 1,000 samples/s that it takes."""
    loop: dict[str, Any] = {"consumer": "paced", "devices": 1, "accelerators": 2}
    loop |= {"images_per_s": 1_000.0}
    loop |= {"model": "resnet50", "item_s": 0.005, "workers": 1, "batch_size": 10, "steps": 20}
    metrics = done(tried("mock", **loop)).metrics
    assert metrics["rate_rule"] == "steady"
    # A sleep may take a little longer than requested, and never less.
    assert max(metrics["rank_samples_per_s"]) <= 200.0 * 1.05
    assert metrics["samples"] == 2 * 10 * 20
    assert metrics["balance"] == pytest.approx(1, abs=MAX_IMBALANCE)
