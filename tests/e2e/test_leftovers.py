"""What killed and interrupted runs leave behind is removed, whoever ends the work."""

from __future__ import annotations

import platform
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import dataprep
from dataprep.config import ShardConfig
from dataprep.job import run as job_run
from dataprep.job.in_process import InProcess
from dataprep.stores.local import PARTIAL, LocalStore
from iobench.s3_server import MotoServer
from tests.commandline import JOB, comparable, files, objects
from tests.commandline import dataprep as command
from tests.dataprep.stores.test_s3_uploads import begin, begun

if TYPE_CHECKING:
    from tests.e2e.conftest import Gate

pytestmark = pytest.mark.slow


def litter(output: Path) -> Path:
    """A half-written file of a process that is gone."""
    left = output / PARTIAL / f"{platform.node()}-1.0-abc"
    left.parent.mkdir(parents=True, exist_ok=True)
    left.write_bytes(b"half")
    return left


def test_killed_between_table_and_manifest(
    tree: Path, tmp_path: Path, gate: Gate, reference: Mapping[str, object]
) -> None:
    """What is swept is swept before the manifest says that all is done."""
    output = tmp_path / "out"
    left = litter(output)
    job = ("shard", "--source", tree, *JOB, "--workers", "2")
    killed = command(*job, "--output", f"gated://{output}", env=gate.kills_at("train.manifest", 1))
    assert killed.code == -signal.SIGKILL
    assert not left.exists()
    assert command(*job, "--output", output).code == 0
    assert comparable(objects(output)) == reference
    assert files(output) == reference.keys()


def test_finalize_of_a_complete_split_removes_the_lease_of_the_dead(
    tree: Path, tmp_path: Path
) -> None:
    """A run that was killed after its manifest leaves no more than that."""
    output = tmp_path / "out"
    assert command("shard", "--source", tree, *JOB, "--output", output).code == 0
    lease = output / PARTIAL / "leases" / "train"
    lease.parent.mkdir(parents=True)
    lease.write_text("split 'train'")
    assert "nothing to do" in command("finalize", output, "--split", "train").err
    assert not (output / PARTIAL).exists()


def test_an_upload_that_was_killed_is_aborted(
    tree: Path, bucket: str, s3_server: MotoServer
) -> None:
    """Of this split; another one may be written at this moment."""
    import boto3

    boto = boto3.client("s3", endpoint_url=s3_server.url)
    begin(boto, bucket, "out/train.samples.parquet", "out/other.samples.parquet")
    place = ("--output", f"s3://{bucket}/out", "--endpoint-url", s3_server.url)
    assert command("shard", "--source", tree, *JOB, *place).code == 0
    assert begun(boto, bucket) == ["out/other.samples.parquet"]


@pytest.mark.parametrize("stopped", [False, True], ids=["done", "stopped"])
def test_a_split_is_held_until_its_workers_are_gone(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stopped: bool
) -> None:
    """Nobody else may begin before, and what they leave when stopped is removed after."""
    output = tmp_path / "out"
    held: list[str] = []

    def ending(engine: object) -> None:
        held.extend(holder.key for holder in LocalStore(str(output)).holders(""))
        litter(output)

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(InProcess, "close", ending)
    config = ShardConfig.model_validate({"source": str(tree), "output": str(output)})
    if stopped:
        monkeypatch.setattr(job_run, "read_back", stop)
        with pytest.raises(KeyboardInterrupt):
            dataprep.shard(config)
        assert not (output / PARTIAL).exists()
    else:
        dataprep.shard(config)
    assert held == ["train"]
