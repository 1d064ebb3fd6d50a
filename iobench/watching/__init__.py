"""Somebody's own loop, watched: ``loader = iobench.watch(loader, "reports/mine")``.

Nothing heavy is imported here: it runs in a training script. A companion process samples the
machine and writes the report.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from dataprep.errors import ConfigError
from iobench.watching.device import DeviceIdle, cuda
from iobench.watching.folders import claimed, default_folder, released
from iobench.watching.link import Link
from iobench.watching.proxy import unwatched
from iobench.watching.ranks import rank_of
from iobench.watching.session import Session, now, step_cost_s

__all__ = ["finish", "watch"]

Loader = TypeVar("Loader")
_WAIT_S = 300.0
_SAMPLERS = ("cpu", "tree", "disk", "network", "page-cache", "gpu")
_sessions: dict[Path, Session] = {}
# A forked process that watches something is a run of its own.
os.register_at_fork(after_in_child=_sessions.clear)


def watch(
    loader: Loader,
    folder: str | os.PathLike[str] | None = None,
    *,
    name: str | None = None,
    batch_size: int | None = None,
    device: bool = False,
    per_s: float = 2.0,
    samplers: Sequence[str] | None = None,
) -> Loader:
    """``loader``, timed: what iterates over it is measured, and reported when the script ends.

    Args:
        loader: anything that can be iterated over: torch's DataLoader, tf.data, DALI, a generator.
            What comes back has its length, its attributes and its batches. One that is watched
            already is watched anew, and by its first name no more.
        folder: where the report goes; ``reports/watch-TIME`` unless told. A folder that holds a
            run already is left alone, and ``folder-2`` taken. Loaders with one folder, or with
            none told after the first, are in one report. In a job of several processes each
            writes ``folder/rank-N``.
        name: what the report calls the loader.
        batch_size: samples in a batch; unless told, the first dimension of its first array, or the
            length of its list.
        device: whether CUDA's events tell how long the GPU had nothing to do while the loop waited
            for its batch; where torch is imported already and sees one.
        per_s: readings of the machine a second, 1 to 10.
        samplers: what is read; ``()`` for nothing, all that there are unless told.

    Raises:
        ConfigError: an argument is out of bounds, ``loader`` is nothing to iterate over, or the
            folder cannot be written.
    """
    _check(loader, batch_size, per_s)
    if _imported_by_a_worker():
        return loader
    session = _session(folder, per_s, samplers)
    loader = unwatched(loader)
    if session is None:
        return loader
    seen = cuda() if device else None
    if device and seen is None:
        _say("device=True: torch is not imported, or sees no GPU: its idle time is not measured")
    idle = None if seen is None else DeviceIdle(seen)
    watched: Loader = session.watch(loader, name, batch_size, idle)
    return watched


def finish() -> None:
    """End what is watched and wait for its report, as the end of the script would: in a notebook.

    Loaders that were watched go on as they are.
    """
    while _sessions:
        folder, session = _sessions.popitem()
        try:
            written = session.finish(_WAIT_S)
        except KeyboardInterrupt:
            _say(f"the report is still being written: {folder}")
            continue
        if not written:
            _say(f"no report could be written in {folder}")


def _session(
    folder: str | os.PathLike[str] | None, per_s: float, samplers: Sequence[str] | None
) -> Session | None:
    """The one that this folder has, or a new one; None where no process can be started."""
    if folder is None and _sessions:
        return next(reversed(_sessions.values()))
    wanted = default_folder() if folder is None else Path(folder).expanduser()
    if wanted.absolute() in _sessions:
        return _sessions[wanted.absolute()]
    rank = rank_of(os.environ)
    place = claimed(wanted, rank)
    if place.name != wanted.name and rank.world_size == 1:
        _say(f"{wanted} holds a run already: this one goes to {place.name} beside it")
    chosen = list(_SAMPLERS if samplers is None else samplers)
    settings = {
        "folder": str(place),
        "name": wanted.name,
        "started": now(),
        "per_s": per_s,
        # One process of a machine reads what is the machine's.
        "samplers": chosen if rank.local == 0 else [one for one in chosen if one == "tree"],
        "rank": rank._asdict(),
        "step_cost_s": step_cost_s(),
    }
    try:
        line = Link(settings)
    except OSError as error:
        released(place)
        _say(f"not watched: no process can be started ({error.strerror})")
        return None
    if not _sessions:
        atexit.register(finish)
    _sessions[wanted.absolute()] = Session(place, line)
    return _sessions[wanted.absolute()]


def _check(loader: Any, batch_size: Any, per_s: float) -> None:
    kind = type(loader)
    if not (hasattr(kind, "__iter__") or hasattr(kind, "__getitem__")):
        raise ConfigError(f"watch takes a loader to iterate over, not {kind.__name__}")
    if batch_size is not None and (not isinstance(batch_size, int) or batch_size < 1):
        raise ConfigError(f"batch_size is a whole number from 1 on, not {batch_size!r}")
    if not 1 <= per_s <= 10:
        raise ConfigError(f"per_s is 1 to 10 readings a second, not {per_s!r}")


def _imported_by_a_worker() -> bool:
    """Whether a worker process that was spawned imports the script, and so comes by here."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        by = frame.f_globals.get("__name__")
        if frame.f_code.co_name == "<module>" and by == "__mp_main__":
            return True
        frame = frame.f_back
    return False


def _say(line: str) -> None:
    print(f"iobench: {line}", file=sys.stderr, flush=True)  # noqa: T201
