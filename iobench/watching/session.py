"""One watched run: its folder, its log of steps, and the companion process that writes its report.

The script appends fixed-size records to a file without a name, and sends the names of its loaders
to the companion through a pipe. Neither makes the loop wait, and both survive if the script is
killed.
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
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import iobench
from dataprep.errors import ConfigError

STEP_FIELDS = ("loader", "epoch", "called_s", "got_s", "ended_s", "samples")
"""A record, six doubles: the numbers of the loader and the epoch; the times when the batch was
requested, when it arrived, and when the next one was requested; its samples, or a mark below."""

NO_BATCH, UNKNOWN, IDLE, REPLAY = -1.0, -2.0, -3.0, -4.0
"""Marks instead of samples. The first two are of steps: the epoch ended; the batch has an unknown
size. The others are no steps: a GPU was idle for ``got_s`` seconds while the loop waited for the
batch; at ``called_s`` the loop had made ``got_s`` steps on repeated batches, of ``ended_s`` planned
ones."""

END = b"end\n"
"""The last line that is sent to the companion."""

CLAIM = ".iobench-watch"
"""A file in the run's folder until its report is written."""

_RUN_FILES = (
    *(CLAIM, "config.yaml", "result.json", "report.html"),
    *("trials.parquet", "series.parquet", "samples.parquet", "spans.parquet"),
)
_FLUSH_EVERY_S = 1.0
# torchrun, then Open MPI (Horovod), then Slurm's srun.
_LAUNCHERS = (
    ("RANK", "WORLD_SIZE", "LOCAL_RANK"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"),
)


def say(line: str) -> None:
    """Print a line on stderr, if it is open."""
    with contextlib.suppress(OSError):
        print(f"iobench: {line}", file=sys.stderr, flush=True)  # noqa: T201


def rank_of(environment: Mapping[str, str]) -> tuple[int, int, int]:
    """Rank, world size and rank on this machine, from the first launcher's variables that are set.

    A single process has (0, 1, 0).
    """
    for names in _LAUNCHERS:
        rank, world_size, local = (environment.get(name, "") for name in names)
        if rank.isdecimal() and world_size.isdecimal() and int(world_size) > 1:
            return int(rank), int(world_size), int(local or rank)
    return 0, 1, 0


def claim(wanted: Path, rank: int, world_size: int) -> Path:
    """Create the folder ``wanted``, or ``wanted-2`` and so on if it holds a run already.

    Each of several processes of a job gets ``rank-N`` within it. It may contain other files.

    Raises:
        ConfigError: it cannot be made, or nothing can be written there.
    """
    for number in itertools.count(1):
        base = wanted if number == 1 else wanted.with_name(f"{wanted.name}-{number}")
        folder = (base / f"rank-{rank}" if world_size > 1 else base).absolute()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if not any((folder / name).exists() for name in _RUN_FILES):
                (folder / CLAIM).touch(exist_ok=False)
                break
        except FileExistsError as error:
            if not folder.is_dir():  # else another process was quicker
                raise ConfigError(f"{error.filename} is a file: name another folder") from None
        except OSError as error:
            raise ConfigError(f"cannot write in {folder}: {error.strerror}") from None
    return folder


def release(folder: Path) -> None:
    """Remove the claim when the report is written, or has failed."""
    with contextlib.suppress(OSError):
        (folder / CLAIM).unlink()


class StepLog:
    """Records of steps, written about once a second.

    Ctrl-C may interrupt at any instruction. Records are dropped after they are written, so some may
    be written twice; the reader drops duplicates.
    """

    def __init__(self, write: Callable[[bytes], int]) -> None:
        self._write = write
        self._unsent = array("d")
        self._flushed_s = -math.inf
        self._lock = threading.RLock()
        self._process = os.getpid()
        self.closed = False

    def add(self, record: Iterable[float], now_s: float) -> None:
        """Keep a record; write all kept records if the last write is a second ago."""
        self._unsent.extend(record)
        if now_s - self._flushed_s >= _FLUSH_EVERY_S:
            self._flushed_s = now_s
            self.flush()

    def flush(self) -> None:
        """Write all records; drop them if the log is closed, or in a forked process."""
        if self.closed or os.getpid() != self._process:
            self._unsent = array("d")
            return
        with self._lock:
            records = self._unsent.tobytes()
            try:
                self.closed = self._write(records) != len(records)
            except OSError:  # no space left: the loop goes on
                self.closed = True
            del self._unsent[: len(records) // self._unsent.itemsize]


class Session:
    """A companion process, which samples the machine and writes the report of this process."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        """Start the companion.

        Raises:
            OSError: no process can be started.
        """
        self.folder = Path(settings["folder"])
        self._steps = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  until the end
        self._names: list[str] = []
        self.log = StepLog(self._steps.write)
        self.settle: list[Callable[[], None]] = []
        """Called before the log is closed: events of a GPU are read, a replay does not begin."""
        descriptor = self._steps.fileno()
        home = str(Path(iobench.__file__).parents[1])
        path = os.pathsep.join(filter(None, (home, os.environ.get("PYTHONPATH"))))
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-P", "-m", "iobench.watching.companion"),
                *(str(os.getpid()), str(descriptor), json.dumps(settings)),
            ],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            pass_fds=[descriptor],
            # Warnings of the libraries for reports must not be errors.
            env={**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": ""},
            start_new_session=True,  # Ctrl-C is for the script
        )
        assert self._process.stdin is not None  # noqa: S101  it was asked for
        self._pipe = self._process.stdin

    def add_loader(
        self, name: str, batch_size: int | None, replay_batches: int = 0
    ) -> tuple[int, str]:
        """Announce a loader to the companion; returns its number and its name in the report.

        Equal names are numbered.
        """
        same = self._names.count(name)
        self._names.append(name)
        shown = f"{name} {same + 1}" if same else name
        announced = {"loader": shown, "batch_size": batch_size, "replay": replay_batches}
        self._tell(json.dumps(announced).encode() + b"\n")
        return len(self._names) - 1, shown

    def finish(self, wait_s: float) -> bool:
        """Send the rest and wait for the report; returns whether it was written."""
        for settle in self.settle:
            settle()
        self.log.flush()
        self.log.closed = True
        self._tell(END)
        self._steps.close()
        self._pipe.close()
        try:
            return self._process.wait(wait_s) == 0
        except subprocess.TimeoutExpired:
            return False

    def _tell(self, line: bytes) -> None:
        with contextlib.suppress(OSError):  # the companion is gone; the script goes on
            self._pipe.write(line)
