"""Parts write one output together and other runs wait for each other; dead runs leave nothing."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

import dataprep as library
from dataprep.config.shard_config import ShardConfig
from dataprep.job import run as job_run
from dataprep.job.in_process import InProcess
from dataprep.stores import StoreOptions, open_store
from dataprep.stores.local import PARTIAL, LocalStore
from iobench.servers.moto_server import MotoServer
from tests.commandline import (
    IN_ONE_PROCESS,
    JOB,
    Running,
    comparable,
    dataprep,
    files,
    objects,
)
from tests.e2e.conftest import Gate

pytestmark = pytest.mark.slow


@pytest.fixture(params=["gated", "gateds3"])
def output(
    request: pytest.FixtureRequest, tmp_path: Path, bucket: str, s3_server: MotoServer
) -> str:
    """An output behind a gate, in a folder and on S3."""
    return f"gated://{tmp_path}/out" if request.param == "gated" else f"gateds3://{bucket}/out"


def arguments_of_job(tree: Path, output: str, s3_server: MotoServer) -> list[str]:
    """The job's arguments."""
    endpoint = ["--endpoint-url", s3_server.url] if "s3://" in output else []
    return ["--source", str(tree), *JOB, *IN_ONE_PROCESS, "--output", output, *endpoint]


def comparable_output(output: str, s3_server: MotoServer) -> dict[str, object]:
    """The objects that can be compared with another output. Receipts differ by their ETags."""
    options = StoreOptions(endpoint_url=s3_server.url if "s3://" in output else None)
    files = comparable(objects(open_store(plain(output), options)))
    assert not [key for key in files if "lease" in key]
    return shards_of(files)


def shards_of(contents: Mapping[str, object]) -> dict[str, object]:
    """Shards, indexes, labels and manifests."""
    return {key: data for key, data in contents.items() if not key.startswith("receipts/")}


def plain(output: str) -> str:
    """The same output without the gate."""
    return output.removeprefix("gated://").replace("gateds3://", "s3://")


def say(running: Running, text: str) -> None:
    """Read the messages of a command until ``text`` is there."""
    stderr = running._process.stderr
    assert stderr is not None
    for line in stderr:
        if text in line.decode():
            return
    raise AssertionError(f"it ended and did not say {text!r}")


def test_a_second_run_waits_for_the_first(
    tree: Path,
    output: str,
    s3_server: MotoServer,
    gate: Gate,
    reference: Mapping[str, object],
) -> None:
    """The second run names its waiting limit, changes nothing, and finds all done.

    A part is refused.
    """
    job = arguments_of_job(tree, output, s3_server)
    free = arguments_of_job(tree, plain(output), s3_server)
    with gate.stopping("receipts/", 1, "shard", *job) as running:
        refused = dataprep("shard", *free, "--part", "0/2", code=2)
        (line,) = refused.complaints
        assert "another run is making split 'train'" in line
        with Running("shard", *free) as second:
            say(second, "waiting until it ends or its lock expires, in 1")
            gate.open()
            assert running.finish().code == 0
            waited = second.finish()
    assert waited.code == 0
    assert "complete already, nothing to do" in waited.err
    assert comparable_output(output, s3_server) == shards_of(reference)


def test_who_takes_over_stops_the_other_run(
    tree: Path,
    output: str,
    s3_server: MotoServer,
    gate: Gate,
    reference: Mapping[str, object],
) -> None:
    """The other run stops before its next receipt, and the output is complete."""
    job = arguments_of_job(tree, output, s3_server)
    with gate.stopping("receipts/", 1, "shard", *job) as running:
        finished = dataprep(
            "shard", *arguments_of_job(tree, plain(output), s3_server), "--takeover", code=0
        )
        assert "waiting" not in finished.err
        gate.open()
        stopped_run = running.finish()
    assert stopped_run.code == 1
    (line,) = stopped_run.complaints
    assert "another run has taken over split 'train'" in line
    assert comparable_output(output, s3_server) == shards_of(reference)


def test_a_run_that_is_told_to_end_releases_its_lock(
    tree: Path, output: str, s3_server: MotoServer, gate: Gate
) -> None:
    """SIGTERM, as from Slurm and spot instances, makes a run release its lock."""
    job = arguments_of_job(tree, output, s3_server)
    with gate.stopping("tfrecord/", 1, "shard", *job) as running:
        running.send(signal.SIGTERM)
        gate.open()
        assert running.finish().code == 130
    options = StoreOptions(endpoint_url=s3_server.url if "s3://" in output else None)
    assert list(open_store(plain(output), options).list("leases/")) == []


def test_parts_run_together_and_a_dead_one_keeps_nobody_waiting(
    tree: Path,
    output: str,
    s3_server: MotoServer,
    gate: Gate,
    reference: Mapping[str, object],
) -> None:
    """Parts of one job run together.

    A whole run or another number of parts is refused until the running part has died.
    """
    job = arguments_of_job(tree, output, s3_server)
    free = arguments_of_job(tree, plain(output), s3_server)
    with gate.stopping("receipts/", 1, "shard", *job, "--part", "0/2") as running:
        assert dataprep("shard", *free, "--part", "1/2").code == 0
        for others in (("--part", "1/3"), (), ("--overwrite",), ("--retry-failed",)):
            refused = dataprep("shard", *free, *others, code=2)
            assert "another run is making part 0/2 of split 'train'" in refused.err
        running.send(signal.SIGKILL)
    done = dataprep("shard", *free, code=0)
    assert "waiting" not in done.err
    assert comparable_output(output, s3_server) == shards_of(reference)


def litter(output: Path) -> Path:
    """Write a temporary file as a process of another machine left it two days ago."""
    left = output / f"{PARTIAL}-0123456789abcdef"
    left.parent.mkdir(parents=True, exist_ok=True)
    left.write_bytes(b"half")
    two_days_ago_s = time.time() - 2 * 86_400
    os.utime(left, (two_days_ago_s, two_days_ago_s))
    return left


def test_killed_between_table_and_manifest(
    tree: Path, tmp_path: Path, gate: Gate, reference: Mapping[str, object]
) -> None:
    """Temporary files are removed before the manifest says that the split is complete."""
    output = tmp_path / "out"
    left = litter(output)
    job = ("shard", "--source", tree, *JOB, "--workers", "2")
    dataprep(
        *job,
        "--output",
        f"gated://{output}",
        env=gate.kills_at("train.manifest", 1),
        code=-signal.SIGKILL,
    )
    assert not left.exists()
    assert dataprep(*job, "--output", output).code == 0
    assert comparable(objects(output)) == reference
    assert files(output) == reference.keys()


def test_a_lock_that_expired_long_ago_is_in_nobodys_way(
    tree: Path, tmp_path: Path, reference: Mapping[str, object]
) -> None:
    """An expired lock of a killed run, of another machine or version, does not block a run."""
    output = tmp_path / "out"
    owner = {"said": "split 'train'", "token": "0", "machine": "0", "process": 1, "started": "1"}
    lock = output / "leases" / "train"
    lock.parent.mkdir(parents=True)
    lock.write_text(json.dumps({**owner, "renewals": 3, "released": False}))
    os.utime(lock, (0, 0))
    done = dataprep("shard", "--source", tree, *JOB, "--output", output, code=0)
    assert "waiting" not in done.err
    assert files(output) == reference.keys()
    assert not list(output.glob(f"{PARTIAL}*"))


@pytest.mark.parametrize("stopped", [False, True], ids=["done", "stopped"])
def test_a_split_is_locked_until_its_workers_are_gone(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stopped: bool
) -> None:
    """A lock is held until all workers have ended, and their leftovers are removed afterwards."""
    output = tmp_path / "out"
    locked: list[str] = []

    def ending(engine: object) -> None:
        locked.extend(info.key for info in LocalStore(str(output)).list("leases/"))
        litter(output)

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(InProcess, "close", ending)
    config = ShardConfig.model_validate({"source": str(tree), "output": str(output)})
    if stopped:
        monkeypatch.setattr(job_run, "finish", stop)
        with pytest.raises(KeyboardInterrupt):
            library.shard(config)
        assert not list(output.glob(f"{PARTIAL}*"))
    else:
        library.shard(config)
    assert locked == ["leases/train"]
    assert not (output / "leases").exists()
