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
from iobench.watching.prometheus import HIGHEST_PORT, LiveFigures, MetricsServer, Reads
from iobench.watching.proxy import DeviceIdle, Loader, TimedEpoch, unwrap_loader, wrap_loader
from iobench.watching.replay import DEFAULT_STEPS, MIN_STEPS, Replay, ReplaySettings
from iobench.watching.session import (
    Session,
    StepLog,
    WatchSettings,
    claim_folder,
    job_rank,
    release_folder,
    say,
)

__all__ = ["finish", "watch"]

_MAX_REPORT_S = 300.0
"""How long the end of the script waits for its report."""
_SAMPLERS = ("cpu", "tree", "disk", "network", "page-cache", "gpu")
_TABLE_COLUMNS = {
    "share of waiting": "wait_share",
    "GPU's share of waiting": "device_wait_share",
    "s to the first batch": "time_to_first_batch_s",
    "s to start a later epoch": "epoch_start_s",
    "loss": "loss_share",
}
_sessions: dict[Path, Session] = {}
"""The runs of this process, by the absolute folder that the script requested."""
_servers: dict[int, MetricsServer] = {}
"""The servers of this process, by port."""
_NO_LOG = StepLog(lambda records: -1)
"""Discards all records. It is used if the companion could not be started."""


def _forget_in_forked_process() -> None:
    """Forget the runs and servers of the parent process.

    A forked process serves nothing. If it calls ``watch``, it starts its own run.
    """
    _sessions.clear()
    _close_servers()


def _close_servers() -> None:
    while _servers:
        _, server = _servers.popitem()
        server.close()


os.register_at_fork(after_in_child=_forget_in_forked_process)


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
    rank, world_size, _ = job_rank(os.environ)
    # The server comes first: if the port is in use, the call must fail before a folder is made.
    server = _server_at(metrics_port)
    try:
        session = _session_for(folder, per_s, samplers)
    finally:
        if not _sessions:
            _close_servers()
    loader = unwrap_loader(loader)
    if session is None and (world_size == 1 or not replay):
        return loader
    number, report_name, log = 0, name or type(loader).__name__, _NO_LOG
    if session is not None:
        number, report_name = session.add_loader(report_name, batch_size, replay)
        log = session.log
    live = None
    if server is not None and session is not None:
        live = server.add(report_name, rank, reads)
    idle = _device_idle(number, session) if device else None
    # The replay takes place without a session, too: other ranks make the repeated steps, and wait
    # for this one.
    own_replay = _replay_of(ReplaySettings(replay, replay_steps), number, session, live)
    epoch_numbers = itertools.count()

    def time_epoch(make_iterator: Callable[[], Iterator[Any]]) -> TimedEpoch:
        return TimedEpoch(
            make_iterator,
            number,
            next(epoch_numbers),
            log,
            batch_size=batch_size,
            idle=idle,
            replay=own_replay,
            live=live,
        )

    return wrap_loader(loader, time_epoch, own_replay)


class Finished:
    """The folders of the reports that were written. A notebook shows a table of their loaders.

    Attributes:
        folders: the folders.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = folders

    def _repr_html_(self) -> str:
        import pandas as pd

        from iobench.analysis.input_cost import entry_ceiling_words, entry_median, entry_rate_words
        from iobench.runner.run_folder import read

        rows = []
        for folder in self.folders:
            for entry in read(folder).summary["watched"]:
                row = {"loader": entry["loader"], "steps": entry["steps"]["median"]}
                row["samples/s"] = entry_rate_words(entry)
                row["samples/s without the loader"] = entry_ceiling_words(entry) or None
                for title, key in _TABLE_COLUMNS.items():
                    row[title] = entry_median(entry, key)
                row["report"] = folder / "report.html"
                rows.append(row)
        table = pd.DataFrame(rows).dropna(axis="columns", how="all")
        return str(table.to_html(index=False, float_format="{:.3g}".format, na_rep=""))


def finish() -> Finished:
    """Write the report now and wait for it. This is for notebooks.

    At the end of a script this is done without a call. Watched loaders still work afterwards, but
    they are no longer measured, and nothing is served to Prometheus.
    """
    _close_servers()
    folders = []
    while _sessions:
        folder, session = _sessions.popitem()
        try:
            if session.finish(_MAX_REPORT_S):
                folders.append(session.folder)
            else:
                say(f"no report could be written in {folder}")
        except KeyboardInterrupt:
            say(f"the report is still being written: {folder}")
    return Finished(folders)


def _device_idle(number: int, session: Session | None) -> DeviceIdle | None:
    """The measurement of the GPU's idle time; None, with a message, if torch sees no GPU."""
    torch = sys.modules.get("torch")
    if session is None:
        return None
    if torch is None or not torch.cuda.is_available():
        say("device=True: torch is not imported, or sees no GPU: its idle time is not measured")
        return None
    idle = DeviceIdle(torch.cuda, number, session.log)
    session.before_close.append(idle.settle)
    return idle


def _replay_of(
    settings: ReplaySettings, number: int, session: Session | None, live: LiveFigures | None
) -> Replay | None:
    """The replay of a loader; None if no batch is to be repeated."""
    if not settings.batches:
        return None
    rank, _, _ = job_rank(os.environ)
    log = _NO_LOG if session is None else session.log
    # All ranks do the same, so one message is enough.
    announce = say if rank == 0 else None
    replay = Replay(settings, number, log, announce=announce, live=live)
    if session is not None:
        session.before_close.append(replay.cancel)
    return replay


def _server_at(metrics_port: int | None) -> MetricsServer | None:
    """The server of this process at a port; None without a port. Loaders may share a server."""
    if metrics_port is None:
        return None
    _, _, rank_on_machine = job_rank(os.environ)
    port = metrics_port + rank_on_machine
    if port not in _servers:
        _servers[port] = MetricsServer(port)
        say(f"live figures for Prometheus: port {port}, path /metrics")
    return _servers[port]


def _session_for(
    folder: str | os.PathLike[str] | None, per_s: float, samplers: Sequence[str] | None
) -> Session | None:
    """The run of a folder, which is started if needed; None if no process can be started.

    Without a folder it is the run that was started last, or a new run below ``reports``.
    """
    if folder is None and _sessions:
        return next(reversed(_sessions.values()))
    if folder is None:
        requested = Path("reports") / f"watch-{datetime.datetime.now():%Y%m%d-%H%M%S}"
    else:
        requested = Path(folder).expanduser()
    if requested.absolute() in _sessions:
        return _sessions[requested.absolute()]
    rank, world_size, rank_on_machine = job_rank(os.environ)
    run_folder = claim_folder(requested, rank, world_size)
    if run_folder.name != requested.name and world_size == 1:
        say(f"{requested} holds a run already: this run goes to {run_folder.name} beside it")
    run_samplers = list(_SAMPLERS if samplers is None else samplers)
    if rank_on_machine != 0:
        # Only one process of a machine reads the machine. Each process reads its own tree.
        run_samplers = [sampler for sampler in run_samplers if sampler == "tree"]
    settings = WatchSettings(
        folder=str(run_folder),
        name=requested.name,
        started=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        per_s=per_s,
        samplers=run_samplers,
        rank=rank,
        world_size=world_size,
    )
    try:
        session = Session(settings)
    except OSError as error:
        release_folder(run_folder)
        say(f"not watched: the companion process cannot be started ({error.strerror})")
        return None
    if not _sessions:
        atexit.register(finish)
    _sessions[requested.absolute()] = session
    return session


def _check(loader: Any, batch_size: Any, per_s: float) -> None:
    loader_class = type(loader)
    if not (hasattr(loader_class, "__iter__") or hasattr(loader_class, "__getitem__")):
        raise ConfigError(f"watch takes a loader to iterate over, not {loader_class.__name__}")
    if batch_size is not None and (not isinstance(batch_size, int) or batch_size < 1):
        raise ConfigError(f"batch_size is a whole number from 1 on, not {batch_size!r}")
    if not 1 <= per_s <= 10:
        raise ConfigError(f"per_s is 1 to 10 readings a second, not {per_s!r}")


def _check_replay(replay: Any, replay_steps: Any) -> None:
    if not _is_integer(replay) or replay < 0:
        raise ConfigError(f"replay is a number of batches from 0 on, not {replay!r}")
    if not _is_integer(replay_steps) or replay_steps < MIN_STEPS:
        raise ConfigError(
            f"replay_steps is a whole number from {MIN_STEPS} on, not {replay_steps!r}"
        )
    if replay > replay_steps:
        raise ConfigError(
            f"replay={replay} keeps more batches than replay_steps={replay_steps} can hand out"
        )


def _check_port(metrics_port: Any, reads: Any) -> None:
    if metrics_port is None:
        if reads is not None:
            raise ConfigError("reads are only served to Prometheus: give metrics_port, too")
        return
    if not _is_integer(metrics_port) or metrics_port < 1:
        raise ConfigError(f"metrics_port is 1 to {HIGHEST_PORT}, not {metrics_port!r}")
    _, _, rank_on_machine = job_rank(os.environ)
    if metrics_port + rank_on_machine > HIGHEST_PORT:
        raise ConfigError(
            f"metrics_port {metrics_port} plus the local rank {rank_on_machine} is above "
            f"{HIGHEST_PORT}"
        )
    if reads is not None and not hasattr(reads, "totals"):
        raise ConfigError(
            f"reads is a counter from Dataset.count_reads(), not {type(reads).__name__}"
        )


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _imported_by_a_worker() -> bool:
    """Whether this call is in a spawned worker process, which imports the script again."""
    return any(
        frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__") == "__mp_main__"
        for frame, _ in traceback.walk_stack(None)
    )
