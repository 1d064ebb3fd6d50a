"""One trial of the disk probe."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Protocol

from iobench.clock import Clock
from iobench.machine.page_cache import WHEN_NEEDED, prepared
from iobench.probes.disk import fio, own
from iobench.probes.disk.moved import Moved
from iobench.probes.disk.plan import OWN
from iobench.probes.disk.testfile import file_to_read, file_to_write
from iobench.trial import Context, Outcome, Params, TrialSpec

Watch = Callable[[int], None]


class Move(Protocol):
    """What an engine does: blocks of a file, read or written for a while."""

    def __call__(self, path: Path, params: Params, seed: int, clock: Clock, watch: Watch) -> Moved:
        """Move them; ``watch`` is told now and then how many bytes are done."""
        ...


_ENGINES: Mapping[str, Move] = {OWN: own.move, "fio": fio.move}


def run(spec: TrialSpec, context: Context) -> Outcome:
    """Read or write blocks of a test file, side by side, for a while.

    Cold and direct trials touch no byte twice and end with the file; warm ones go round.

    Raises:
        Unavailable: the target does not exist, O_DIRECT does not there, or the engine does not.
        TrialFailed: it is full, may not be written to, or gave other than whole blocks.
    """
    params = spec.params
    folder = Path(context.places[f"disk/{params['target']}"].uri).expanduser()
    engine = _ENGINES[params.get("engine", OWN)]
    move = partial(engine, params=params, seed=spec.repeat, clock=context.clock)
    work = _read if params["operation"] == "read" else _write
    return work(folder, params, context.clock, partial(move, watch=partial(_tell, context)))


def _read(folder: Path, params: Params, clock: Clock, move: Callable[[Path], Moved]) -> Outcome:
    path = file_to_read(folder, params["file_bytes"], params["target"])
    cache = prepared(params["cache"], [path], params.get("drop_caches", WHEN_NEEDED))
    moved = move(path)
    sequential = params["pattern"] == "sequential"
    return Outcome(moved.metrics(), cache.judged(moved.physical_ratio, sequential=sequential))


def _write(folder: Path, params: Params, clock: Clock, move: Callable[[Path], Moved]) -> Outcome:
    with file_to_write(folder, params["file_bytes"], params["target"]) as path:
        moved = move(path)
        if params["cache"] == "direct":
            return Outcome(moved.metrics())
        # A buffered write is done when the disk has it.
        written_s = clock.now_s()
        with path.open("rb") as file:
            os.fsync(file.fileno())
        fsync_s = clock.now_s() - written_s
        whole = moved._replace(seconds=moved.seconds + fsync_s)
        return Outcome({**whole.metrics(), "fsync_s": fsync_s})


def _tell(context: Context, done_bytes: int) -> None:
    context.progress(done_bytes, "bytes")
