"""Engine ``iobench``: processes of this program, each with blocks of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from iobench.clock import Clock
from iobench.probes.disk import offsets
from iobench.probes.disk.blocks import reading, writing
from iobench.probes.disk.engine import Lane, drive
from iobench.probes.disk.moved import Moved
from iobench.stats import quantiles
from iobench.trial import Params

_OPERATIONS_PER_S = 400_000  # more than Python can do: bounds what is prepared


def move(
    path: Path, params: Params, seed: int, clock: Clock, watch: Callable[[int], None]
) -> Moved:
    """Read or write blocks of ``path`` in several processes, for a while.

    Sequential processes have a contiguous region each; random ones share the whole file. What is
    not warm is touched once, and ends with the file; warm reads go round.

    Raises:
        Unavailable: O_DIRECT is refused there.
        TrialFailed: other than whole blocks were moved, or a process ended early.
    """
    direct = params["cache"] == "direct"
    blocks = reading if params["operation"] == "read" else writing
    opened = partial(blocks, path, params["block_bytes"], direct=direct)
    work: Sequence[Iterable[int]] = _offsets(params, seed)
    if params["cache"] == "warm":
        work = [offsets.repeated(part, _at_most(params)) for part in _offsets(params, seed)]
    tally = drive([Lane(opened, part) for part in work], clock, params["seconds"], watch)
    return Moved(
        bytes=tally.bytes,
        seconds=tally.seconds,
        operations=sum(tally.operations),
        latency_s=quantiles(tally.latencies_s),
        physical_ratio=tally.physical_ratio,
        others={},
    )


def _offsets(params: Params, seed: int) -> list[Sequence[int]]:
    shape = (params["file_bytes"], params["block_bytes"], params["parallelism"])
    if params["pattern"] == "sequential":
        return offsets.sequential(*shape)
    return offsets.random(*shape, at_most=_at_most(params), seed=seed)


def _at_most(params: Params) -> int:
    return max(int(params["parallelism"]), int(params["seconds"] * _OPERATIONS_PER_S))
