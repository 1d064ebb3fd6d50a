"""One trial of the disk probe."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from iobench.cachestate import prepared
from iobench.clock import Clock
from iobench.probes.disk import offsets
from iobench.probes.disk.blocks import reading, writing
from iobench.probes.disk.engine import Lane, Tally, drive
from iobench.probes.disk.testfile import file_to_read, file_to_write
from iobench.stats import quantiles
from iobench.trial import Context, Metrics, Outcome, Params, TrialSpec

_OPERATIONS_PER_S = 400_000  # more than Python can do: bounds what is prepared

Watch = Callable[[int], None]


def run(spec: TrialSpec, context: Context) -> Outcome:
    """Read or write blocks of a test file in several processes, for a while.

    Sequential processes have a contiguous region each; random ones share the whole file. Cold
    and direct trials touch no byte twice and end with the file; warm ones go round.

    Raises:
        Unavailable: the target does not exist, or O_DIRECT does not there.
        TrialFailed: it is full, may not be written to, or gave other than whole blocks.
    """
    params = spec.params
    folder = Path(context.places[f"disk/{params['target']}"].uri).expanduser()
    watch = partial(_tell, context)
    if params["operation"] == "read":
        return _read(folder, params, spec.repeat, context.clock, watch)
    return _write(folder, params, spec.repeat, context.clock, watch)


def _read(folder: Path, params: Params, seed: int, clock: Clock, watch: Watch) -> Outcome:
    path = file_to_read(folder, params["file_bytes"], params["target"])
    cache = prepared(params["cache"], [path])
    work: Sequence[Iterable[int]] = _offsets(params, seed)
    if params["cache"] == "warm":
        work = [offsets.repeated(part, _at_most(params)) for part in _offsets(params, seed)]
    opened = partial(reading, path, params["block_bytes"], direct=params["cache"] == "direct")
    tally = drive([Lane(opened, part) for part in work], clock, params["seconds"], watch)
    sequential = params["pattern"] == "sequential"
    return Outcome(metrics_of(tally), cache.judged(tally.physical_ratio, sequential=sequential))


def _write(folder: Path, params: Params, seed: int, clock: Clock, watch: Watch) -> Outcome:
    direct = params["cache"] == "direct"
    with file_to_write(folder, params["file_bytes"], params["target"]) as path:
        opened = partial(writing, path, params["block_bytes"], direct=direct)
        lanes = [Lane(opened, part) for part in _offsets(params, seed)]
        tally = drive(lanes, clock, params["seconds"], watch)
        if direct:
            return Outcome(metrics_of(tally))
        # A buffered write is done when the disk has it.
        written_s = clock.now_s()
        with path.open("rb") as file:
            os.fsync(file.fileno())
        ended_s = clock.now_s()
        whole = tally._replace(seconds=ended_s - tally.started_s)
        return Outcome({**metrics_of(whole), "fsync_s": ended_s - written_s})


def metrics_of(tally: Tally) -> Metrics:
    """A disk trial's metrics."""
    operations = sum(tally.operations)
    seconds = max(tally.seconds, 1e-9)
    latency = quantiles(tally.latencies_s)
    return {
        "mb_per_s": tally.bytes / 1e6 / seconds,
        "iops": operations / seconds,
        "bytes": tally.bytes,
        "seconds": tally.seconds,
        "operations": operations,
        **{f"latency_s_{name}": value for name, value in latency.items()},
    }


def _offsets(params: Params, seed: int) -> list[Sequence[int]]:
    shape = (params["file_bytes"], params["block_bytes"], params["parallelism"])
    if params["pattern"] == "sequential":
        return offsets.sequential(*shape)
    return offsets.random(*shape, at_most=_at_most(params), seed=seed)


def _at_most(params: Params) -> int:
    return max(int(params["parallelism"]), int(params["seconds"] * _OPERATIONS_PER_S))


def _tell(context: Context, done_bytes: int) -> None:
    context.progress(done_bytes, "bytes")
