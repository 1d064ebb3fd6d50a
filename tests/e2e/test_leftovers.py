"""What killed and interrupted runs leave behind is removed, whoever ends the work."""

from __future__ import annotations

import json
import os
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
from tests.commandline import JOB, comparable, files, objects
from tests.commandline import dataprep as command

if TYPE_CHECKING:
    from tests.e2e.conftest import Gate

pytestmark = pytest.mark.slow


def litter(output: Path) -> Path:
    """A half-written file of a process that is gone."""
    left = output / f"{PARTIAL}-0123456789abcdef"
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


def test_a_lock_that_expired_long_ago_is_in_nobodys_way(
    tree: Path, tmp_path: Path, reference: Mapping[str, object]
) -> None:
    """Its run was killed, on another machine, perhaps with an earlier version."""
    output = tmp_path / "out"
    owner = {"said": "split 'train'", "token": "0", "machine": "0", "process": 1, "started": "1"}
    lock = output / "leases" / "train"
    lock.parent.mkdir(parents=True)
    lock.write_text(json.dumps({**owner, "renewals": 3, "released": False}))
    os.utime(lock, (0, 0))
    done = command("shard", "--source", tree, *JOB, "--output", output)
    assert done.code == 0, done.err
    assert "waiting" not in done.err
    assert files(output) == reference.keys()
    assert not list(output.glob(f"{PARTIAL}*"))


@pytest.mark.parametrize("stopped", [False, True], ids=["done", "stopped"])
def test_a_split_is_locked_until_its_workers_are_gone(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stopped: bool
) -> None:
    """Nobody else may begin before, and what they leave when stopped is removed after."""
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
            dataprep.shard(config)
        assert not list(output.glob(f"{PARTIAL}*"))
    else:
        dataprep.shard(config)
    assert locked == ["leases/train"]
    assert not (output / "leases").exists()
