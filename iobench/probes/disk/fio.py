"""Engine ``fio``: the flexible I/O tester, told to do what our own processes do.

Its options and the JSON that it writes: https://fio.readthedocs.io.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from dataprep.schema import malformed_as
from iobench.clock import Clock
from iobench.errors import TrialFailed, Unavailable
from iobench.machine.page_cache import physical_read_bytes
from iobench.machine.processes import find_program
from iobench.probes.disk.blocks import reading, writing
from iobench.probes.disk.moved import Moved
from iobench.stats import QUANTILES, enough
from iobench.trial import Params

_LAST_WORDS = 300
_MOST_ERRNO = 4096


def move(
    path: Path, params: Params, seed: int, clock: Clock, watch: Callable[[int], None]
) -> Moved:
    """Have fio read or write blocks of ``path``; ``clock`` is not asked, fio has its own.

    Each of its jobs has a contiguous region of its own, also in random order.

    Raises:
        Unavailable: fio is not installed, or O_DIRECT is refused there.
        TrialFailed: fio did not do it, in its words.
        OSError: what the disk said to it.
    """
    program = find_program("fio")
    if program is None:
        raise Unavailable("fio is not installed: Debian's and Ubuntu's package is called fio")
    if params["cache"] == "direct":
        with _opened(path, params):
            """What refuses O_DIRECT says so here, in the words of the own engine."""
    before = physical_read_bytes()
    done = subprocess.run(
        [program, *options(path, params, seed)], capture_output=True, text=True, check=False
    )
    after = physical_read_bytes()  # of children that have ended, too
    physical = None if before is None or after is None else after - before
    moved = _moved(_report(done), params, physical)
    watch(moved.bytes)
    return moved


def options(path: Path, params: Params, seed: int) -> list[str]:
    """PURE. What fio is told.

    Jobs are threads, so that nothing of it outlives a trial that is killed. No advice on the
    pattern, no eviction of its own, and each block once unless the page cache is read.
    """
    processes, block_bytes = params["parallelism"], params["block_bytes"]
    region_bytes = params["file_bytes"] // block_bytes // processes * block_bytes
    order = {"sequential": "", "random": "rand"}[params["pattern"]]
    told = {
        "name": "iobench",
        "filename": os.fspath(path).replace(":", r"\:"),  # else it separates files
        "rw": order + params["operation"],
        "bs": block_bytes,
        "numjobs": processes,
        "size": region_bytes,
        "offset_increment": region_bytes,
        "runtime": f"{round(params['seconds'] * 1e6)}us",
        "time_based": int(params["cache"] == "warm"),
        "direct": int(params["cache"] == "direct"),
        "ioengine": "psync",
        "randseed": seed + 1,
        "fadvise_hint": 0,
        "invalidate": 0,
        "allow_file_create": 0,
        "percentile_list": ":".join(f"{q * 100:g}" for q in QUANTILES.values()),
        "output-format": "json",
    }
    return ["--thread", "--group_reporting", *(f"--{name}={value}" for name, value in told.items())]


def _opened(path: Path, params: Params) -> AbstractContextManager[Any]:
    blocks = reading if params["operation"] == "read" else writing
    return blocks(path, params["block_bytes"], direct=True)


def _report(done: subprocess.CompletedProcess[str]) -> Mapping[str, Any]:
    """fio's JSON, which warnings may stand before."""
    try:
        report: Mapping[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])
        code = report["jobs"][0]["error"]
    except (ValueError, LookupError, TypeError, RecursionError):
        words = " ".join(f"{done.stderr} {done.stdout}".split())[-_LAST_WORDS:]
        raise TrialFailed(f"fio ended with exit code {done.returncode}: {words}") from None
    if type(code) is not int or not 0 <= code < _MOST_ERRNO:
        raise TrialFailed(f"fio tells an error that is none: {str(code)[:40]!r}")
    if code:
        raise OSError(code, f"{os.strerror(code)} (fio)")
    return report


def _moved(report: Mapping[str, Any], params: Params, physical: int | None) -> Moved:
    """PURE. The figures of the one group of jobs.

    Raises:
        TrialFailed: it moved nothing, or its report is not what fio writes.
    """
    with malformed_as(TrialFailed, "fio's report lacks a figure, or has another"):
        moved = _figures(report, params, physical)
        if moved.bytes <= 0 or not all(0 <= each < math.inf for each in moved.latency_s.values()):
            raise ValueError("a figure below 0, or none")
        return moved


def _figures(report: Mapping[str, Any], params: Params, physical: int | None) -> Moved:
    told = report["jobs"][0][params["operation"]]
    total_bytes, operations = int(told["io_bytes"]), int(told["total_ios"])
    if operations <= 0:
        raise TrialFailed("fio moved nothing: give a longer time or smaller blocks")
    found = {round(float(q), 6): ns / 1e9 for q, ns in told["clat_ns"]["percentile"].items()}
    return Moved(
        bytes=total_bytes,
        seconds=max(int(told["runtime"]), 1) / 1e3,
        operations=operations,
        latency_s={
            name: found[round(q * 100, 6)] for name, q in QUANTILES.items() if enough(operations, q)
        },
        physical_ratio=None if physical is None else physical / total_bytes,
        others={"engine": str(report.get("fio version", "fio"))},
    )
