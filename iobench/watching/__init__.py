"""Measure a loop of your own: ``loader = iobench.watch(loader, "reports/mine")``.

This module runs in a training script, so it imports no large libraries. A companion process samples
the machine and writes the report.

The other modules of this package:

- ``proxy``: the loader that the script gets, which times every step;
- ``session`` and ``companion``: the log of steps, and the process that follows the script;
- ``replay`` and ``ceiling``: repeat batches, to measure the loop without its loader;
- ``batches``: count the samples and bytes of a batch;
- ``prometheus``: live figures of the loop;
- ``loop_rate`` and ``figures``: compute the figures from the log of steps;
- ``report``: writes the report.
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
    print_line,
    release_folder,
)

__all__ = ["finish", "watch"]

_MAX_REPORT_S = 300.0
"""The script waits at its end at most this long for the report."""
_SAMPLERS = ("cpu", "tree", "disk", "network", "page-cache", "gpu")
_TABLE_COLUMNS = {
    "share of waiting": "wait_share",
    "GPU's share of waiting": "device_wait_share",
    "s to the first batch": "time_to_first_batch_s",
    "s to start a later epoch": "epoch_start_s",
    "loss": "loss_share",
}
"""The columns of a notebook's table, and the figures of the summary that they show."""
_sessions: dict[Path, Session] = {}
"""The runs of this process, by the absolute path of the folder that the script requested."""
_servers: dict[int, MetricsServer] = {}
"""The servers of this process, by port."""
_NO_LOG = StepLog(lambda records: -1)
"""A log without a file, for a loader whose companion could not be started.

Its write fails, which closes the log, so that all records are discarded.
"""


def _forget_in_forked_process() -> None:
    """Forget the runs and servers of the parent process.

    A forked process serves no figures. If it calls ``watch``, it starts its own run.
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
    """Measure the loops over ``loader``. The report is written when the script ends.

    Args:
        loader: any object that can be iterated over: torch's DataLoader, tf.data, DALI, or a
            generator. If it is watched already, it gets the new name.
        folder: the folder for the report, by default ``reports/watch-TIME``. If it holds a run
            already, ``folder-2`` is used. Loaders with the same folder are in the same report. A
            loader without a folder is added to the latest report. In a job of several processes,
            each process writes to ``folder/rank-N``.
        name: the name of the loader in the report.
        batch_size: the number of samples in a batch. By default it is the first dimension of the
            first array in the batch, or the length of its list.
        device: whether to measure with CUDA events how long the GPU was idle while the loop waited
            for its batch. This needs torch, already imported, and a GPU.
        per_s: readings of the machine per second, 1 to 10.
        samplers: the samplers to read, by default all; ``()`` for none.
        replay: the number of batches to repeat, to measure the rate of the loop without its
            loader. The batches after the first 100 are kept. Then ``replay_steps`` steps train on
            them again and again, in one epoch only. These steps are added to the epoch and to
            ``len``, and no batch of the loader is lost. All ranks of a job need the same number.
            The default is 0: no batch is repeated.
        replay_steps: the number of steps on repeated batches, 40 or more. The last half of them
            counts.
        metrics_port: the port, 1 to 65535, at which this process serves its figures to Prometheus
            until the report is written. The local rank is added to it. By default no figures are
            served.
        reads: the counter of the samples that arrive from storage, from
            ``dataprep.Dataset.count_reads()``. Its figures are served at ``metrics_port``.

    Returns:
        A proxy with the length, the attributes and the batches of ``loader``. It is ``loader``
        without a proxy in a worker process that imports the script again. It is also ``loader`` if
        the companion process cannot be started, unless a replay is requested in a job of several
        processes.

    Raises:
        ConfigError: an argument is out of bounds, ``loader`` cannot be iterated over, the folder
            cannot be written, the port is in use, or ``prometheus-client`` is not installed.
    """
    _check_loader(loader, batch_size, per_s)
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
    # Without a session, the replay still takes place: the other ranks make its steps, and would
    # wait for this rank without end.
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
    """The reports that were written. A notebook shows a table of their loaders.

    Attributes:
        folders: the folders of the reports.
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
    """Write the report now, and wait for it. This function is for notebooks.

    At the end of a script, the report is written without this call. Watched loaders still work
    afterwards, but they are no longer measured, and no figures are served to Prometheus.
    """
    _close_servers()
    folders = []
    while _sessions:
        folder, session = _sessions.popitem()
        try:
            if session.finish(_MAX_REPORT_S):
                folders.append(session.folder)
            else:
                print_line(f"no report could be written in {folder}")
        except KeyboardInterrupt:
            print_line(f"the report is still being written: {folder}")
    return Finished(folders)


def _device_idle(number: int, session: Session | None) -> DeviceIdle | None:
    """The measurement of the GPU's idle time for the loader with this number.

    None without a run. None, with a message, if torch is not imported or sees no GPU.
    """
    torch = sys.modules.get("torch")
    if session is None:
        return None
    if torch is None or not torch.cuda.is_available():
        print_line(
            "device=True: torch is not imported, or sees no GPU: its idle time is not measured"
        )
        return None
    idle = DeviceIdle(torch.cuda, number, session.log)
    session.before_close.append(idle.settle)
    return idle


def _replay_of(
    settings: ReplaySettings, number: int, session: Session | None, live: LiveFigures | None
) -> Replay | None:
    """The replay of the loader with this number; None if no batch is to be repeated.

    Without a run (``session`` is None), the replay takes place, but nothing is recorded.
    """
    if not settings.batches:
        return None
    rank, _, _ = job_rank(os.environ)
    log = _NO_LOG if session is None else session.log
    # The replay begins on all ranks, so one message is enough.
    announce = print_line if rank == 0 else None
    replay = Replay(settings, number, log, announce=announce, live=live)
    if session is not None:
        session.before_close.append(replay.cancel)
    return replay


def _server_at(metrics_port: int | None) -> MetricsServer | None:
    """The server of this process at a port; None without a port. Several loaders can share it."""
    if metrics_port is None:
        return None
    _, _, rank_on_machine = job_rank(os.environ)
    port = metrics_port + rank_on_machine
    if port not in _servers:
        _servers[port] = MetricsServer(port)
        print_line(f"live figures for Prometheus: port {port}, path /metrics")
    return _servers[port]


def _session_for(
    folder: str | os.PathLike[str] | None, per_s: float, samplers: Sequence[str] | None
) -> Session | None:
    """The run with this folder; None if its companion process cannot be started.

    The run is started if needed. Without a folder, it is the run that was started last, or else a
    new run below ``reports``.

    Raises:
        ConfigError: the folder of a new run cannot be created or written.
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
        print_line(f"{requested} holds a run already: this run goes to {run_folder.name} beside it")
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
        print_line(f"not watched: the companion process cannot be started ({error.strerror})")
        return None
    if not _sessions:
        atexit.register(finish)
    _sessions[requested.absolute()] = session
    return session


def _check_loader(loader: Any, batch_size: Any, per_s: float) -> None:
    """Refuse an object that cannot be iterated over, and numbers that are out of bounds.

    Raises:
        ConfigError: an argument is refused.
    """
    loader_class = type(loader)
    if not (hasattr(loader_class, "__iter__") or hasattr(loader_class, "__getitem__")):
        raise ConfigError(f"watch takes a loader to iterate over, not {loader_class.__name__}")
    if batch_size is not None and (not _is_integer(batch_size) or batch_size < 1):
        raise ConfigError(f"batch_size is a whole number from 1 on, not {batch_size!r}")
    if isinstance(per_s, bool) or not 1 <= per_s <= 10:
        raise ConfigError(f"per_s is 1 to 10 readings a second, not {per_s!r}")


def _check_replay(replay: Any, replay_steps: Any) -> None:
    """Refuse a replay that cannot be measured.

    Raises:
        ConfigError: a number is out of bounds, or there are more batches than steps.
    """
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
    """Refuse a port that does not exist, and a counter that cannot be served.

    Raises:
        ConfigError: an argument is out of bounds, or has the wrong type.
    """
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
