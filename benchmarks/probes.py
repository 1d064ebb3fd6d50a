"""Compare the probes of iobench with well-known tools: fio for disks, and s5cmd for stores."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.contest import Contender, Contest, Measured
from benchmarks.limited_store import Limits, limited_store, s5cmd_copy, store_share
from benchmarks.workplace import Workplace
from iobench.clock import SystemClock
from iobench.probes import disk
from iobench.probes.object_store import objects as probe_objects
from iobench.probes.object_store import probe as objects
from iobench.results.trial import Context, Location, Outcome, TrialSpec

_FIO = "fio"
_S5CMD = "s5cmd cp"
_CORES = 2
_FILE_BYTES = 2**31
_SECONDS = 2.0
_BLOCKS = {"128K": 2**17, "1M": 2**20}
_PARALLEL = (1, 8)
_OPERATIONS = (("read", "direct"), ("read", "cold"), ("read", "warm"), ("write", "direct"))
"""Operations with the state of the page cache."""

_OBJECT_BYTES = 16 * 2**20
_POOL_BYTES = 400 * 10**6
_CONNECTIONS = 8
_LIMITS = Limits(bytes_per_s=200e6, latency_s=0.02)


def contests(workplace: Workplace) -> Iterator[Contest]:
    """Yield contests of reads and writes on a disk, and a contest of reads from a store."""
    for (operation, cache), block, parallelism in itertools.product(
        _OPERATIONS, _BLOCKS, _PARALLEL
    ):
        yield _disk(str(workplace.root), operation, cache, block, parallelism)
    yield _objects(str(workplace.root))


def _disk(root: str, operation: str, cache: str, block: str, parallelism: int) -> Contest:
    params = {
        "target": "here",
        "operation": operation,
        "pattern": "sequential",
        "block_bytes": _BLOCKS[block],
        "parallelism": parallelism,
        "cache": cache,
        "file_bytes": _FILE_BYTES,
        "seconds": _SECONDS,
    }
    arguments = {"root": root, "params": params}
    by_fio = {"root": root, "params": {**params, "engine": "fio"}}
    return Contest(
        name=f"disk-{operation}-{cache}-{block}-{parallelism}",
        title=f"Disk probe, {cache} {operation}s of {block}iB, {parallelism} in parallel",
        unit="MB",
        contenders=(
            Contender("iobench", f"{__name__}:on_disk", arguments),
            Contender(_FIO, f"{__name__}:on_disk", by_fio, (_FIO,)),
        ),
        cores=_CORES,
    )


def _objects(root: str) -> Contest:
    run = f"{__name__}:on_store"
    rate_mb_per_s, latency_ms = _LIMITS.bytes_per_s / 1e6, _LIMITS.latency_s * 1e3
    return Contest(
        name="object-probe",
        title=f"Object probe, objects of {_OBJECT_BYTES // 2**20} MiB at "
        f"{rate_mb_per_s:.0f} MB/s and {latency_ms:.0f} ms a request",
        unit="MB",
        contenders=(
            Contender("iobench, boto3", run, {"client": "boto3"}),
            Contender("iobench, obstore", run, {"client": "obstore"}, ("obstore",)),
            Contender(_S5CMD, f"{__name__}:by_s5cmd", {"root": root}, ("s5cmd",)),
        ),
        cores=_CORES,
        notes=(
            f"iobench reads each object once over {_CONNECTIONS} connections, and discards it. "
            f"{_S5CMD} decides itself how many connections it opens. It copies the same objects "
            "into files, and its time includes its start.",
        ),
    )


def on_disk(root: str, params: Mapping[str, Any]) -> Measured:
    """Run a trial of the disk probe.

    Raises:
        RuntimeError: the page cache was not in the requested state.
    """
    outcome = disk.run(TrialSpec("disk", params), _context("disk/here", Location(root, "empty")))
    if outcome.cold and outcome.cold.label != params["cache"]:
        raise RuntimeError(f"{params['cache']} was asked: {outcome.cold.label}, {outcome.cold.why}")
    return _measured(outcome)


def on_store(client: str) -> Measured:
    """Run a trial of the object probe, which reads each object of its pool once."""
    params = {
        "store": "here",
        "client": client,
        "operation": "get",
        "object_bytes": _OBJECT_BYTES,
        "connections": _CONNECTIONS,
        "seconds": 600.0,
        "max_requests": probe_objects.whole_objects(_OBJECT_BYTES, _POOL_BYTES).count,
        "pool_bytes": _POOL_BYTES,
    }
    with limited_store(_LIMITS) as store, store_share(store) as share:
        location = Location(store.uri, "empty", store.options())
        outcome = objects.run(TrialSpec("object", params), _context("store/here", location))
    measured = _measured(outcome)
    return Measured(measured.amount, measured.seconds, share)


def by_s5cmd(root: str) -> Measured:
    """Copy the same objects by s5cmd."""
    from dataprep.stores import open_store

    with limited_store(_LIMITS) as store, tempfile.TemporaryDirectory(dir=root) as target:
        probe_objects.put_missing(
            open_store(store.uri, store.options()),
            probe_objects.whole_objects(_OBJECT_BYTES, _POOL_BYTES),
        )
        with store_share(store) as share:
            seconds = s5cmd_copy(store, f"read/{_OBJECT_BYTES}/*", Path(target))
        size = sum(path.stat().st_size for path in Path(target).iterdir())
    return Measured(size / 1e6, seconds, share)


def _context(name: str, location: Location) -> Context:
    return Context({name: location}, SystemClock(), lambda done, unit: None)


def _measured(outcome: Outcome) -> Measured:
    return Measured(outcome.metrics["bytes"] / 1e6, outcome.metrics["seconds"])
