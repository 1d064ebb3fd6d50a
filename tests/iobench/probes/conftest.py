"""Folders to probe, and a way to run a trial in this process."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from iobench.clock import SystemClock
from iobench.machine import page_cache
from iobench.machine.coldness import IN_MEMORY
from iobench.machine.mounts import file_system
from iobench.probes import disk
from iobench.results.trial import Context, Location, Outcome, TrialSpec

FILE_BYTES = 2**22

Probe = Callable[..., Outcome]


def is_provable(folder: Path) -> bool:
    """Return whether reads in a folder can be proved cold, which needs a disk's file system."""
    counted = page_cache.physical_read_bytes() is not None
    return counted and file_system(folder) in ("ext4", "xfs")


@pytest.fixture
def disk_folder(tmp_path: Path) -> Path:
    """Return a temporary folder that is not in memory."""
    kind = file_system(tmp_path)
    if kind in IN_MEMORY:
        pytest.skip(f"temporary files lie in memory ({kind})")
    return tmp_path


@pytest.fixture
def direct_folder(disk_folder: Path) -> Path:
    """Return a temporary folder whose file system supports O_DIRECT."""
    path = disk_folder / "direct"
    path.write_bytes(bytes(4096))
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_DIRECT))
    except OSError as error:
        pytest.skip(f"no O_DIRECT on {file_system(disk_folder)}: {error.strerror}")
    finally:
        path.unlink()
    return disk_folder


@pytest.fixture
def probe() -> Probe:
    """Return a function that runs a trial on a folder, by default 4 MiB by two processes."""

    def run(
        folder: Path, progress: Callable[[float, str], None] | None = None, **changes: Any
    ) -> Outcome:
        params = {
            "target": "here",
            "operation": "read",
            "pattern": "sequential",
            "block_bytes": 2**16,
            "parallelism": 2,
            "cache": "cold",
            "file_bytes": FILE_BYTES,
            "seconds": 60.0,
            **changes,
        }
        locations = {"disk/here": Location(os.fspath(folder), "empty")}
        context = Context(locations, SystemClock(), progress or (lambda done, unit: None))
        return disk.run(TrialSpec("disk", params), context)

    return run
