"""One watched run: its folder, its log of steps, and the companion process that writes its report.

The script appends records of fixed size to a file without a name, and sends the names of its
loaders to the companion through a pipe. The loop waits for neither. If the script is killed, the
companion still has the records and the names.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
import threading
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import iobench
from dataprep.errors import ConfigError

STEP_FIELDS = ("loader", "epoch", "called_s", "got_s", "ended_s", "samples")
"""The fields of a record in the log of steps; a record has six doubles.

- ``loader``, ``epoch``: the numbers of the loader and of the epoch, from 0;
- ``called_s``, ``got_s``, ``ended_s``: when the batch was requested, when it arrived, and when the
  next batch was requested;
- ``samples``: the number of samples in the batch, or one of the marks below.
"""

END_OF_EPOCH = -1.0
"""Mark of a request to which the loader answered that the epoch has ended."""
UNKNOWN_SAMPLES = -2.0
"""Mark of a step whose batch has an unknown number of samples."""
DEVICE_IDLE = -3.0
"""Mark of a record that is no step: the GPU was idle for ``got_s`` seconds while the loop waited
for the batch that it requested at ``called_s``."""
REPLAY_MARK = -4.0
"""Mark of a record that is no step: at ``called_s`` the loop had made ``got_s`` steps on repeated
batches. ``ended_s`` is the planned number of repeated steps."""

END = b"end\n"
"""The last line that is sent to the companion."""

CLAIM = ".iobench-watch"
"""The name of an empty file that marks the folder of a run as used, until its report is written."""

_RUN_FILES = (
    *(CLAIM, "config.yaml", "result.json", "report.html"),
    *("trials.parquet", "series.parquet", "samples.parquet", "spans.parquet"),
)
"""A folder that has one of these files holds a run already."""
_FLUSH_EVERY_S = 1.0
"""The shortest time between two writes of records, in seconds. So a step rarely waits for a write.

If the script is killed, the records since the last write are lost.
"""
# Variables for rank, world size and local rank: of torchrun, Open MPI (Horovod) and Slurm's srun.
_LAUNCHER_VARIABLES = (
    ("RANK", "WORLD_SIZE", "LOCAL_RANK"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"),
)


def print_line(line: str) -> None:
    """Print a line on stderr, if it is open."""
    if sys.stderr is None:  # ``print`` would take stdout.
        return
    with contextlib.suppress(OSError, ValueError):  # Writing to a closed file is a ValueError.
        print(f"iobench: {line}", file=sys.stderr, flush=True)  # noqa: T201


def job_rank(environment: Mapping[str, str]) -> tuple[int, int, int]:
    """The rank, the world size and the rank on this machine.

    They are (0, 1, 0) for a process that belongs to no job of several processes. Otherwise they
    come from the environment variables of a launcher. If several launchers have set variables, the
    first launcher in ``_LAUNCHER_VARIABLES`` with a world size above 1 counts. If it has not set
    the rank on this machine, the rank in the job is used instead.
    """
    for names in _LAUNCHER_VARIABLES:
        rank, world_size, local = (environment.get(name, "") for name in names)
        if rank.isdecimal() and world_size.isdecimal() and int(world_size) > 1:
            return int(rank), int(world_size), int(local or rank)
    return 0, 1, 0


def claim_folder(requested: Path, rank: int, world_size: int) -> Path:
    """Create the folder of a run, and mark it as used. Returns its absolute path.

    The folder may contain other files. If it holds a run already, a number is appended to its name:
    ``-2`` and so on. If a job has several processes, each process gets the folder ``rank-N`` in it.

    Args:
        requested: the folder that the script requested.
        rank: the rank of this process in its job.
        world_size: the number of processes of the job; 1 without a job.

    Raises:
        ConfigError: the folder cannot be created or written.
    """
    for number in itertools.count(1):
        base = requested
        if number > 1:
            base = requested.with_name(f"{requested.name}-{number}")
        folder = base.absolute()
        if world_size > 1:
            folder = folder / f"rank-{rank}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if not any((folder / name).exists() for name in _RUN_FILES):
                (folder / CLAIM).touch(exist_ok=False)
                break
        except FileExistsError as error:
            if not folder.is_dir():  # Otherwise another process has claimed it a moment ago.
                raise ConfigError(f"{error.filename} is a file: name another folder") from None
        except OSError as error:
            raise ConfigError(f"cannot write in {folder}: {error.strerror}") from None
    return folder


def release_folder(folder: Path) -> None:
    """Remove the mark of a folder when the report is written, or has failed."""
    with contextlib.suppress(OSError):
        (folder / CLAIM).unlink()


class StepLog:
    """A log of records of steps. Records are kept in memory, and written about once a second.

    If a write fails or is incomplete, the log is closed and discards all later records.

    Ctrl-C may interrupt this class at any instruction. Records are removed from memory after they
    are written. If Ctrl-C comes between, records are written twice. The reader drops duplicates.

    Args:
        write: writes bytes, and returns how many of them it has written.
    """

    def __init__(self, write: Callable[[bytes], int]) -> None:
        self._write = write
        self._unsent = array("d")
        self._flushed_s = -math.inf
        self._lock = threading.RLock()
        self._process = os.getpid()
        self.closed = False

    def add(self, record: Iterable[float], now_s: float) -> None:
        """Add a record. If the last write was a second or more ago, write all records.

        Args:
            record: the values of ``STEP_FIELDS``.
            now_s: the present moment, in seconds on the clock of the records.
        """
        self._unsent.extend(record)
        if now_s - self._flushed_s >= _FLUSH_EVERY_S:
            self._flushed_s = now_s
            self.flush()

    def flush(self) -> None:
        """Write all records. If the log is closed, or in a forked process, drop them instead."""
        if self.closed or os.getpid() != self._process:
            self._unsent = array("d")
            return
        with self._lock:
            records = self._unsent.tobytes()
            try:
                self.closed = self._write(records) != len(records)
            except OSError:  # For example, no space is left. The loop goes on without a log.
                self.closed = True
            del self._unsent[: len(records) // self._unsent.itemsize]


@dataclass(frozen=True, slots=True)
class WatchSettings:
    """The settings of a watched run, which the companion gets as JSON.

    Attributes:
        folder: the folder of the run.
        name: the name of the run.
        started: the date and time of its start (ISO 8601).
        per_s: readings of the machine per second.
        samplers: the names of the samplers.
        rank: the rank of the process in its job.
        world_size: the number of processes of the job.
    """

    folder: str
    name: str
    started: str
    per_s: float
    samplers: Sequence[str]
    rank: int = 0
    world_size: int = 1


@dataclass(frozen=True, slots=True)
class WatchedLoader:
    """A loader of a watched run, which the companion gets as JSON.

    Attributes:
        loader: its name in the report.
        batch_size: samples in a batch; None if they are read from the batch.
        replay: the number of batches that are repeated; 0 if none is.
    """

    loader: str
    batch_size: int | None = None
    replay: int = 0


class Session:
    """A watched run, as the script sees it: the log of steps, and the pipe to the companion.

    Creating it starts the companion process, which samples the machine and writes the report.

    Args:
        settings: the settings of the run.

    Raises:
        OSError: the companion cannot be started.
    """

    def __init__(self, settings: WatchSettings) -> None:
        self.folder = Path(settings.folder)
        self._steps = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  closed by finish
        self._names: list[str] = []
        self.log = StepLog(self._steps.write)
        self.before_close: list[Callable[[], None]] = []
        """Functions that are called before the log is closed.

        They record the idle time of a GPU, and keep a replay from beginning."""
        self._process = _start_companion(settings, self._steps.fileno())
        assert self._process.stdin is not None  # noqa: S101  stdin=PIPE
        self._pipe = self._process.stdin

    def add_loader(
        self, name: str, batch_size: int | None, replay_batches: int = 0
    ) -> tuple[int, str]:
        """Announce a loader to the companion. Returns its number and its name in the report.

        Args:
            name: the name of the loader. If it is in use, a number is appended.
            batch_size: the number of samples in a batch; None if it is read from each batch.
            replay_batches: the number of batches that are repeated; 0 for no replay.
        """
        earlier = self._names.count(name)
        self._names.append(name)
        report_name = f"{name} {earlier + 1}" if earlier else name
        loader = WatchedLoader(report_name, batch_size, replay_batches)
        self._send(json.dumps(asdict(loader)).encode() + b"\n")
        return len(self._names) - 1, report_name

    def finish(self, wait_s: float) -> bool:
        """Send the rest of the log, and wait for the report at most ``wait_s`` seconds.

        Returns whether the report was written in this time.
        """
        for function in self.before_close:
            function()
        self.log.flush()
        self.log.closed = True
        self._send(END)
        self._steps.close()
        self._pipe.close()
        try:
            return self._process.wait(wait_s) == 0
        except subprocess.TimeoutExpired:
            return False

    def _send(self, line: bytes) -> None:
        with contextlib.suppress(OSError):  # The companion has ended. The script goes on.
            self._pipe.write(line)


def _start_companion(settings: WatchSettings, log_descriptor: int) -> subprocess.Popen[bytes]:
    """Start the companion, with a pipe to its stdin.

    Args:
        settings: the settings of the run.
        log_descriptor: the file descriptor of the log of steps, which the companion inherits.

    Raises:
        OSError: the process cannot be started.
    """
    python = [sys.executable, "-P", "-m", "iobench.watching.companion"]
    arguments = [str(os.getpid()), str(log_descriptor), json.dumps(asdict(settings))]
    import_paths = [str(Path(iobench.__file__).parents[1])]
    if os.environ.get("PYTHONPATH"):
        import_paths.append(os.environ["PYTHONPATH"])
    # The script may turn warnings into errors. The companion must not.
    variables = {"PYTHONPATH": os.pathsep.join(import_paths), "PYTHONWARNINGS": ""}
    return subprocess.Popen(
        [*python, *arguments],
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        pass_fds=[log_descriptor],
        env={**os.environ, **variables},
        start_new_session=True,  # Ctrl-C must only reach the script.
    )
