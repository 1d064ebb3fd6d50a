"""Affinity and control groups limit the default numbers of workers and threads."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

import dataprep
from dataprep.config.shard_config import DaskOptions
from dataprep.machine.processors import usable_processors

MACHINE = set(range(64))


def machine(root: Path, files: Mapping[str, str]) -> Path:
    """A machine whose ``/proc`` and ``/sys`` have these files."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


def version_1(mount: str, line: str, quota: str, group: str = "") -> dict[str, str]:
    """The files of a control group of version 1 that is mounted at ``mount``."""
    folder = f"sys/fs/cgroup/{mount}/{group}".rstrip("/")
    return {
        "proc/self/cgroup": f"5:memory:/\n{line}\n0::/\n",
        f"{folder}/cpu.cfs_quota_us": quota,
        f"{folder}/cpu.cfs_period_us": "100000",
    }


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 64),
        ({"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "400000 100000"}, 4),
        ({"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "max 100000"}, 64),
        ({"proc/self/cgroup": "0::/a/b", "sys/fs/cgroup/a/cpu.max": "150000 100000"}, 2),
        ({"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "10000 100000"}, 1),
        (version_1("cpu", "1:cpu:/", "300000"), 3),
        (version_1("cpu", "1:cpu:/job/step", "300000", "job"), 3),
        (version_1("cpu", "4:cpu,cpuacct:/docker/0123", "300000"), 3),
        (version_1("cpu,cpuacct", "4:cpu,cpuacct:/job", "300000", "job"), 3),
        (version_1("cpuacct,cpu", "4:cpu,cpuacct:/job", "300000", "job"), 3),
        (version_1("cpu", "1:cpu:/", "-1"), 64),
    ],
)
def test_control_groups_limit_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: Mapping[str, str], expected: int
) -> None:
    """The quota of our group or of a parent group counts, in each version and mount."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: MACHINE)
    assert usable_processors(machine(tmp_path, files)) == expected


def test_affinity_limits_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that may run on two processors gets two, with any quota."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {3, 5})
    files = {"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "400000 100000"}
    assert usable_processors(machine(tmp_path, files)) == 2


def decoding_threads(dataset: dataprep.Dataset) -> int:
    """The number of threads that decode the images of ``to_torch`` by default."""
    threads: set[int] = set()
    never = threading.Event()

    def transform(data: object, rng: object) -> int:
        threads.add(threading.get_ident())
        never.wait(0.01)  # long enough for the other threads to begin
        return 0

    batches = dataprep.to_torch(dataset, transform=transform, iterable=True, batch_size=60)
    for _ in batches:
        pass
    return len(threads - {threading.get_ident()})


@pytest.mark.parametrize(("quota", "expected"), [(1.0, 1), (2.5, 3), (None, 6)])
def test_workers_and_threads_respect_the_quota(
    uri_of_dataset: str, monkeypatch: pytest.MonkeyPatch, quota: float | None, expected: int
) -> None:
    """Workers of a job and threads of ``to_torch``, at most six, respect the quota."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: MACHINE)
    monkeypatch.setattr("dataprep.machine.processors.processor_quota", lambda root: quota)
    assert DaskOptions().worker_count == (expected if quota else 64)
    assert decoding_threads(dataprep.open(uri_of_dataset)) == expected
