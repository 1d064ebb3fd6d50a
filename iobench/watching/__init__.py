"""Measure a loop of your own: ``loader = iobench.watch(loader, "reports/mine")``.

Nothing heavy is imported here, since it runs in a training script. A companion process samples the
machine and writes the report.
"""

from __future__ import annotations

import atexit
import datetime
import itertools
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from dataprep.errors import ConfigError
from iobench.watching.loader import DeviceIdle, Epoch, Loader, proxied, unwatched
from iobench.watching.session import Session, claim, rank_of, release, say

__all__ = ["finish", "watch"]

_WAIT_S = 300.0
_SAMPLERS = ("cpu", "tree", "disk", "network", "page-cache", "gpu")
_SHOWN = {
    "share of waiting": "wait_share",
    "GPU's share of waiting": "device_wait_share",
    "s to the first batch": "time_to_first_batch_s",
    "s to start a later epoch": "epoch_start_s",
}
_sessions: dict[Path, Session] = {}
# A forked process that calls watch starts a run of its own.
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
    """Measure the loops over ``loader``; the report is written when the script ends.

    Args:
        loader: anything that can be iterated over: torch's DataLoader, tf.data, DALI, a generator.
            The returned proxy has its length, attributes and batches. A loader that is already
            watched gets the new name.
        folder: for the report, by default ``reports/watch-TIME``. If it contains a run already,
            ``folder-2`` is used. Loaders with one folder are in one report; a loader without a
            folder joins the latest. In a job of several processes each writes ``folder/rank-N``.
        name: the name of the loader in the report.
        batch_size: samples in a batch; by default the first dimension of its first array, or the
            length of its list.
        device: measure with CUDA events how long the GPU was idle while the loop waited for its
            batch; only if torch is imported already and sees a GPU.
        per_s: readings of the machine per second, 1 to 10.
        samplers: the samplers to read, by default all; ``()`` for none.

    Raises:
        ConfigError: an argument is out of bounds, ``loader`` cannot be iterated over, or the
            folder cannot be written.
    """
    _check(loader, batch_size, per_s)
    if _imported_by_a_worker():
        return loader
    session = _session(folder, per_s, samplers)
    loader = unwatched(loader)
    if session is None:
        return loader
    number = session.add_loader(name or type(loader).__name__, batch_size)
    idle, torch = None, sys.modules.get("torch")
    if device and torch is not None and torch.cuda.is_available():
        idle = DeviceIdle(torch.cuda, number, session.log)
        session.settle.append(idle.settle)
    elif device:
        say("device=True: torch is not imported, or sees no GPU: its idle time is not measured")
    epochs = itertools.count()

    def timed(make: Callable[[], Iterator[Any]]) -> Epoch:
        return Epoch(make, number, next(epochs), session.log, batch_size=batch_size, idle=idle)

    return proxied(loader, timed)


class Finished:
    """The folders of reports that were written. A notebook shows a table of their loaders."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = folders

    def _repr_html_(self) -> str:
        import pandas as pd

        from iobench.analysis.watched import median_of, rate_words
        from iobench.rundir import read

        rows = []
        for folder in self.folders:
            for entry in read(folder).summary["watched"]:
                row = {"loader": entry["loader"], "steps": entry["steps"]["median"]}
                row["samples/s"] = rate_words(entry)
                row |= {title: median_of(entry, key) for title, key in _SHOWN.items()}
                rows.append({**row, "report": folder / "report.html"})
        table = pd.DataFrame(rows).dropna(axis="columns", how="all")
        return str(table.to_html(index=False, float_format="{:.3g}".format, na_rep=""))


def finish() -> Finished:
    """Write the report now and wait for it. For notebooks; else the end of the script does this.

    Watched loaders still work, but are no longer measured.
    """
    written = []
    while _sessions:
        folder, session = _sessions.popitem()
        try:
            if session.finish(_WAIT_S):
                written.append(session.folder)
            else:
                say(f"no report could be written in {folder}")
        except KeyboardInterrupt:
            say(f"the report is still being written: {folder}")
    return Finished(written)


def _session(
    folder: str | os.PathLike[str] | None, per_s: float, samplers: Sequence[str] | None
) -> Session | None:
    """The run of this folder, or a new one; None if no process can be started."""
    if folder is None and _sessions:
        return next(reversed(_sessions.values()))
    if folder is None:
        wanted = Path("reports") / f"watch-{datetime.datetime.now():%Y%m%d-%H%M%S}"
    else:
        wanted = Path(folder).expanduser()
    if wanted.absolute() in _sessions:
        return _sessions[wanted.absolute()]
    rank, world_size, rank_on_machine = rank_of(os.environ)
    place = claim(wanted, rank, world_size)
    if place.name != wanted.name and world_size == 1:
        say(f"{wanted} holds a run already: this one goes to {place.name} beside it")
    chosen = list(_SAMPLERS if samplers is None else samplers)
    settings = {
        "folder": str(place),
        "name": wanted.name,
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "per_s": per_s,
        # Only one process of a machine reads the machine.
        "samplers": [one for one in chosen if one == "tree" or rank_on_machine == 0],
        "rank": rank,
        "world_size": world_size,
    }
    try:
        session = Session(settings)
    except OSError as error:
        release(place)
        say(f"not watched: the companion process cannot be started ({error.strerror})")
        return None
    if not _sessions:
        atexit.register(finish)
    _sessions[wanted.absolute()] = session
    return session


def _check(loader: Any, batch_size: Any, per_s: float) -> None:
    kind = type(loader)
    if not (hasattr(kind, "__iter__") or hasattr(kind, "__getitem__")):
        raise ConfigError(f"watch takes a loader to iterate over, not {kind.__name__}")
    if batch_size is not None and (not isinstance(batch_size, int) or batch_size < 1):
        raise ConfigError(f"batch_size is a whole number from 1 on, not {batch_size!r}")
    if not 1 <= per_s <= 10:
        raise ConfigError(f"per_s is 1 to 10 readings a second, not {per_s!r}")


def _imported_by_a_worker() -> bool:
    """Whether a spawned worker process imports the script and runs the call again."""
    return any(
        frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__") == "__mp_main__"
        for frame, _ in traceback.walk_stack(None)
    )
