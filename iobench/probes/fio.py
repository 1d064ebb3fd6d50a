"""The engine fio of the disk probe: run the program fio, and read the figures of its report.

The options and the JSON of fio are described at https://fio.readthedocs.io.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dataprep.schema import malformed_as
from iobench.clock import Clock
from iobench.errors import TrialFailed, Unavailable
from iobench.machine.page_cache import physical_read_bytes
from iobench.machine.processes import find_program, starting
from iobench.probes.blocks import open_blocks
from iobench.probes.parallel import Moved, Progress
from iobench.probes.settings import DiskTrial
from iobench.results.statistics import QUANTILES, has_enough_values

_MAX_MESSAGE_CHARS = 300
"""How much of the output of fio is shown in an error message. The end has the reason."""


def move_by_fio(path: Path, trial: DiskTrial, clock: Clock, progress: Progress) -> Moved:
    """Let fio read or write blocks of a file, and return its figures.

    Each job of fio has a contiguous region of the file, also if its blocks are in random order.

    Args:
        path: the test file.
        trial: the parameters of the trial.
        clock: unused. fio measures the time itself.
        progress: is called once, with all bytes at the end.

    Raises:
        Unavailable: fio is not installed, or O_DIRECT is refused.
        TrialFailed: fio could not be started, or has failed.
        OSError: fio has reported an error of the operating system.
    """
    program = find_program("fio")
    if program is None:
        raise Unavailable("fio is not installed: the package of Debian and Ubuntu is called fio")
    if trial.cache == "direct":
        # If O_DIRECT is refused, this raises the same error as the built-in engine.
        with open_blocks(path, trial.operation, trial.block_bytes, direct=True):
            pass
    physical_before = physical_read_bytes()
    with starting("fio"):
        process = subprocess.run(
            [program, *fio_options(path, trial)], capture_output=True, text=True, check=False
        )
    physical_after = physical_read_bytes()  # This includes the bytes of children that have ended.
    physical_bytes = None
    if physical_before is not None and physical_after is not None:
        physical_bytes = physical_after - physical_before
    moved = fio_figures(process, trial.operation, physical_bytes)
    progress(moved.bytes, "bytes")
    return moved


def fio_options(path: Path, trial: DiskTrial) -> list[str]:
    """PURE. Return the arguments of fio.

    - Jobs are threads, so that no process remains if the trial is killed.
    - fio gives the kernel no advice on the access pattern, since loaders give none. It evicts no
      pages, since the trial has prepared the page cache.
    - Unless the cache is warm, fio touches each block at most once.
    """
    region_bytes = trial.file_bytes // trial.block_bytes // trial.parallelism * trial.block_bytes
    order = "rand" if trial.pattern == "random" else ""
    options = {
        "name": "iobench",
        "filename": os.fspath(path).replace(":", r"\:"),  # A bare colon separates files.
        "rw": order + trial.operation,
        "bs": trial.block_bytes,
        "numjobs": trial.parallelism,
        "size": region_bytes,
        "offset_increment": region_bytes,
        "runtime": f"{round(trial.seconds * 1e6)}us",
        "time_based": int(trial.cache == "warm"),
        "direct": int(trial.cache == "direct"),
        "ioengine": "psync",
        "randseed": trial.repeat + 1,
        "fadvise_hint": 0,
        "invalidate": 0,
        "allow_file_create": 0,
        "percentile_list": ":".join(f"{quantile * 100:g}" for quantile in QUANTILES.values()),
        "output-format": "json",
    }
    arguments = [f"--{name}={value}" for name, value in options.items()]
    return ["--thread", "--group_reporting", *arguments]


def fio_figures(
    process: subprocess.CompletedProcess[str], operation: str, physical_bytes: int | None
) -> Moved:
    """PURE. Read the figures of all jobs together from fio's JSON, which may follow warnings.

    Args:
        process: fio, which has ended.
        operation: ``read`` or ``write``.
        physical_bytes: the bytes that came from storage while fio ran; None if the kernel does not
            count them.

    Raises:
        TrialFailed: fio has failed, it has moved no bytes, or its report has an unknown form.
        OSError: fio has reported an error of the operating system.
    """
    try:
        report: Mapping[str, Any] = json.loads(process.stdout[process.stdout.index("{") :])
        code = int(report["jobs"][0]["error"])
    except (ValueError, LookupError, TypeError):
        message = " ".join(f"{process.stderr} {process.stdout}".split())[-_MAX_MESSAGE_CHARS:]
        raise TrialFailed(f"fio ended with exit code {process.returncode}: {message}") from None
    if code:
        raise OSError(code, f"{os.strerror(code)} (fio)")
    with malformed_as(TrialFailed, "fio's report does not have the expected figures"):
        job = report["jobs"][0][operation]
        total_bytes, operations = int(job["io_bytes"]), int(job["total_ios"])
        if operations <= 0:
            raise TrialFailed("fio moved nothing: give a longer time or smaller blocks")
        runtime_ms = max(int(job["runtime"]), 1)
        return Moved(
            bytes=total_bytes,
            seconds=runtime_ms / 1e3,
            operations=[operations],
            latency_s=_latency_quantiles(job["clat_ns"]["percentile"], operations),
            physical_ratio=None if physical_bytes is None else physical_bytes / total_bytes,
            engine=str(report.get("fio version", "fio")),
        )


def _latency_quantiles(percentile_ns: Mapping[str, float], operations: int) -> dict[str, float]:
    """Return the quantiles of latencies in seconds, by name.

    Quantiles are left out if there are too few operations for them.

    Args:
        percentile_ns: latencies in nanoseconds by the text of their percentage, as ``99.000000``.
        operations: the number of operations.
    """
    percentiles_ns = {}
    for percent, latency_ns in percentile_ns.items():
        percentiles_ns[round(float(percent), 6)] = latency_ns
    latency_s = {}
    for name, quantile in QUANTILES.items():
        if has_enough_values(operations, quantile):
            latency_s[name] = percentiles_ns[round(quantile * 100, 6)] / 1e9
    return latency_s
