"""s5cmd, a program that copies to and from S3."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from iobench.programs import required
from iobench.sidebyside.limited_store import RunningStore


def copy(store: RunningStore, pattern: str, target: Path) -> float:
    """Copy the objects whose keys match into a folder; the seconds that it took, start included.

    Raises:
        FileNotFoundError: s5cmd is not installed.
        CalledProcessError: it failed.
    """
    command = [required("s5cmd"), "--endpoint-url", store.url, "cp"]
    started_s = time.perf_counter()
    subprocess.run(
        [*command, f"{store.uri}/{pattern}", f"{target}/"], check=True, stdout=subprocess.DEVNULL
    )
    return time.perf_counter() - started_s
