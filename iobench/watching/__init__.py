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
from iobench.watching.live import HIGHEST_PORT, LiveFigures, MetricsServer, Reads
from iobench.watching.loader import DeviceIdle, Epoch, Loader, proxied, unwatched
from iobench.watching.replay import DEFAULT_STEPS, FEWEST_STEPS, Replay, ReplaySettings
from iobench.watching.session import Session, StepLog, claim, rank_of, release, say

__all__ = ["finish", "watch"]

_WAIT_S = 300.0
_SAMPLERS = ("cpu", "tree", "disk", "network", "page-cache", "gpu")
_SHOWN = {
    "share of waiting": "wait_share",
    "GPU's share of waiting": "device_wait_share",
    "s to the first batch": "time_to_first_batch_s",
    "s to start a later epoch": "epoch_start_s",
    "loss": "loss_share",
}
_sessions: dict[Path, Session] = {}
_servers: dict[int, MetricsServer] = {}
_NO_LOG = StepLog(lambda records: -1)
"""Takes no records: the companion could not be started."""


def _forget_in_child() -> None:
    """A forked process serves nothing, and if it calls watch it starts a run of its own."""
    _sessions.clear()
    _close_servers()


def _close_servers() -> None:
    while _servers:
        _, server = _servers.popitem()
        server.close()


os.register_at_fork(after_in_child=_forget_in_child)


def watch(
    loader: Loader,
    folder: str | os.PathLike[str] | None = None,
    *,
    name: str | None = None,
    batch_size: int | None = None,
    device: bool = False,
    per_s: float = 2.0,
    samplers: Sequence[str] | None = None,
    replay: int = 0,
    replay_steps: int = DEFAULT_STEPS,
    metrics_port: int | None = None,
    reads: Reads | None = None,
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
        replay: the number of batches to keep after the first 100 and to hand out again for
            ``replay_steps`` steps, once: the rate of the loop without its loader. These steps train
            on repeated data. 0, the default, repeats nothing. All ranks of a job need the same
            number. The steps are added to the epoch and to ``len``; no batch of the loader is lost.
        replay_steps: steps on repeated batches, 40 or more; the last half of them counts.
        metrics_port: the port, 1 to 65535, at which this process serves its figures to Prometheus
            until the report is written. The local rank is added to it. By default nothing is
            served.
        reads: the counter of what arrives from storage, from ``dataprep.Dataset.count_reads()``;
            served with ``metrics_port``.

    Raises:
        ConfigError: an argument is out of bounds, ``loader`` cannot be iterated over, the folder
            cannot be written, the port is in use, or ``prometheus-client`` is not installed.
    """
    _check(loader, batch_size, per_s)
    _check_replay(replay, replay_steps)
    _check_port(metrics_port, reads)
    if _imported_by_a_worker():
        return loader
    rank, world_size, _ = rank_of(os.environ)
    # First, since a port that is in use must be an error before a folder is made.
    server = _server(metrics_port)
    try:
        session = _session(folder, per_s, samplers)
    finally:
        if not _sessions:
            _close_servers()
    loader = unwatched(loader)
    if session is None and (world_size == 1 or not replay):
        return loader
    number, shown, log = 0, name or type(loader).__name__, _NO_LOG
    if session is not None:
        number, shown = session.add_loader(shown, batch_size, replay)
        log = session.log
    live = None if server is None or session is None else server.add(shown, rank, reads)
    idle = _device_idle(number, session) if device else None
    # Without a session as well: other ranks make the repeated steps, and wait for this one.
    repeated = _replay(ReplaySettings(replay, replay_steps), number, session, live)
    epochs = itertools.count()

    def timed(make: Callable[[], Iterator[Any]]) -> Epoch:
        return Epoch(
            *(make, number, next(epochs), log),
            batch_size=batch_size,
            idle=idle,
            replay=repeated,
            live=live,
        )

    return proxied(loader, timed, repeated)


class Finished:
    """The folders of reports that were written. A notebook shows a table of their loaders."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = folders

    def _repr_html_(self) -> str:
        import pandas as pd

        from iobench.analysis.input_cost import entry_ceiling_words, entry_median, entry_rate_words
        from iobench.rundir import read

        rows = []
        for folder in self.folders:
            for entry in read(folder).summary["watched"]:
                row = {"loader": entry["loader"], "steps": entry["steps"]["median"]}
                row["samples/s"] = entry_rate_words(entry)
                row["samples/s without the loader"] = entry_ceiling_words(entry) or None
                row |= {title: entry_median(entry, key) for title, key in _SHOWN.items()}
                rows.append({**row, "report": folder / "report.html"})
        table = pd.DataFrame(rows).dropna(axis="columns", how="all")
        return str(table.to_html(index=False, float_format="{:.3g}".format, na_rep=""))


def finish() -> Finished:
    """Write the report now and wait for it. For notebooks; else the end of the script does this.

    Watched loaders still work, but are no longer measured, and nothing is served to Prometheus.
    """
    _close_servers()
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


def _device_idle(number: int, session: Session | None) -> DeviceIdle | None:
    """Measures the idle time of the GPU, if torch sees one; else says that it is not measured."""
    torch = sys.modules.get("torch")
    if session is None:
        return None
    if torch is None or not torch.cuda.is_available():
        say("device=True: torch is not imported, or sees no GPU: its idle time is not measured")
        return None
    idle = DeviceIdle(torch.cuda, number, session.log)
    session.settle.append(idle.settle)
    return idle


def _replay(
    settings: ReplaySettings, number: int, session: Session | None, live: LiveFigures | None
) -> Replay | None:
    """The replay of a loader; None if no batch is to be repeated."""
    if not settings.batches:
        return None
    rank, _, _ = rank_of(os.environ)
    log = _NO_LOG if session is None else session.log
    # The other ranks do the same.
    announce = say if rank == 0 else None
    replay = Replay(settings, number, log, announce=announce, live=live)
    if session is not None:
        session.settle.append(replay.cancel)
    return replay


def _server(metrics_port: int | None) -> MetricsServer | None:
    """The server of this process for a port of this machine; loaders with one port share it."""
    if metrics_port is None:
        return None
    _, _, rank_on_machine = rank_of(os.environ)
    port = metrics_port + rank_on_machine
    if port not in _servers:
        _servers[port] = MetricsServer(port)
        say(f"live figures for Prometheus: port {port}, path /metrics")
    return _servers[port]


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


def _check_replay(replay: Any, replay_steps: Any) -> None:
    if not _is_whole(replay) or replay < 0:
        raise ConfigError(f"replay is a number of batches from 0 on, not {replay!r}")
    if not _is_whole(replay_steps) or replay_steps < FEWEST_STEPS:
        raise ConfigError(
            f"replay_steps is a whole number from {FEWEST_STEPS} on, not {replay_steps!r}"
        )
    if replay > replay_steps:
        raise ConfigError(
            f"replay={replay} keeps more batches than replay_steps={replay_steps} can hand out"
        )


def _check_port(metrics_port: Any, reads: Any) -> None:
    if metrics_port is None:
        if reads is not None:
            raise ConfigError("reads are only served: give metrics_port, too")
        return
    if not _is_whole(metrics_port) or metrics_port < 1:
        raise ConfigError(f"metrics_port is 1 to {HIGHEST_PORT}, not {metrics_port!r}")
    _, _, rank_on_machine = rank_of(os.environ)
    if metrics_port + rank_on_machine > HIGHEST_PORT:
        raise ConfigError(
            f"metrics_port {metrics_port} plus the local rank {rank_on_machine} is above "
            f"{HIGHEST_PORT}"
        )
    if reads is not None and not hasattr(reads, "totals"):
        raise ConfigError(
            f"reads is a counter from Dataset.count_reads(), not {type(reads).__name__}"
        )


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _imported_by_a_worker() -> bool:
    """Whether a spawned worker process imports the script and runs the call again."""
    return any(
        frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__") == "__mp_main__"
        for frame, _ in traceback.walk_stack(None)
    )
