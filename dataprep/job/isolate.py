"""Convert each image of a shard in a process of its own, after workers have died over the shard.

An image over which that process dies twice by a fault signal has failed: the signal comes from
native code that was given this image alone. ``SIGKILL`` comes from outside, from a person or from
the kernel where memory ran out, and proves nothing about the image: the job stops and names it.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

from dataprep.config import SampleLimit
from dataprep.counted import counted
from dataprep.errors import DecoderCrashed, DecoderHung, ImageError, JobError, SampleLost
from dataprep.image import ImagePolicy
from dataprep.job.worker import Outcome, Report, Reported, contents, outcome_of
from dataprep.names import escape
from dataprep.process_settings import ONE_OPENCV_THREAD
from dataprep.sources import Located, Source

_PR_SET_PDEATHSIG = 1  # prctl(2)
_FIRST_TO_BE_KILLED = "1000"  # proc(5), oom_score_adj
_TRIES = 2
_START_S = 600.0
_MOST_STDERR_BYTES = 2**20
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
# As multiprocessing's spawn does it, but without importing the main script again.
_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from dataprep.job.isolate import serve; serve(int(sys.argv[2]), int(sys.argv[3]))"
)
_FAULTS = {
    *(signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL),
    *(signal.SIGTRAP, signal.SIGSYS),
}
# Rust's and C++'s words before they abort.
_NO_MEMORY = re.compile(r"memory allocation of \d+ bytes failed|'std::bad_alloc'")


class Ending(NamedTuple):
    """How a process ended over one image: by a fault, killed from outside, or since it hung.

    ``how`` is the signal's name, the exit code, or the time limit.
    """

    kind: Literal["fault", "killed", "hung"]
    how: str


def isolated_outcomes(
    source: Source,
    items: Sequence[Located],
    policy: ImagePolicy,
    limit: SampleLimit,
    report: Report | None = None,
) -> Generator[Outcome, None, None]:
    """Convert samples in order, to the same bytes as ``convert_items``.

    Raises:
        SourceChanged, StoreError: a file could not be read.
        SampleLost: the process was killed, or hung, twice over one sample.
    """
    process, progress = _Process(policy), Reported(report, source)
    try:
        files = contents(source, items, policy.max_source_bytes, ahead=False)
        for item, data in zip(items, files, strict=True):
            outcome = _converted(process, data, item.name, limit)
            progress.add(item, outcome)
            yield outcome
        progress.tell(now=True)
    finally:
        process.end()


def _converted(
    process: _Process, data: bytes | ImageError, name: str, limit: SampleLimit
) -> Outcome:
    endings: list[Ending] = []
    while True:
        found = process.convert(data, name, limit.seconds)
        if isinstance(found, Outcome):
            return found
        endings.append(found)
        if [ending.kind for ending in endings].count(found.kind) == _TRIES:
            content = data if isinstance(data, bytes) else b""
            digest = hashlib.sha256(content).hexdigest() if content else ""
            return Outcome(verdict(name, found, limit), digest, len(content))


def verdict(name: str, ending: Ending, limit: SampleLimit) -> ImageError:
    """Why the sample failed.

    Raises:
        SampleLost: its content is not proved to be the cause.
    """
    if ending.kind == "fault":
        return DecoderCrashed(f"crashed the decoder ({ending.how})")
    where = f"{escape(name)!r}: a process that converted this image alone"
    if ending.kind == "killed":
        raise SampleLost(
            f"{where} was killed {counted(_TRIES, 'time')} ({ending.how}), most likely because it "
            "needs more memory than there is. The image is not recorded as failed. What is stored "
            "is kept: run again with more memory or fewer --workers to resume"
        )
    if limit.on_hung == "fail":
        return DecoderHung(f"took the decoder longer than {limit.seconds:g} s")
    raise SampleLost(
        f"{where} took longer than {limit.seconds:g} s, {counted(_TRIES, 'time')}. What is stored "
        "is kept: run again to resume, with --set dask.sample_timeout_s=SECONDS if that was too "
        "short, or with --set hung_samples=fail to record such samples as failed"
    )


def ending_of(returncode: int, stderr: str) -> Ending:
    """How a process ended by itself; negative codes are signals, as in ``subprocess``."""
    if returncode >= 0:  # native code called exit(3)
        return Ending("fault", f"exit code {returncode}")
    known = -returncode in {*signal.Signals}
    name = signal.Signals(-returncode).name if known else f"signal {-returncode}"
    if returncode == -signal.SIGABRT and _NO_MEMORY.search(stderr):
        return Ending("killed", f"{name}, no memory")
    return Ending("fault" if -returncode in _FAULTS else "killed", name)


@dataclass
class _Process:
    """The process that converts, started when it is needed and again when it has died."""

    policy: ImagePolicy
    _stderr: IO[bytes] = field(
        default_factory=lambda: tempfile.TemporaryFile("a+b", buffering=0)  # noqa: SIM115
    )
    _running: tuple[subprocess.Popen[bytes], Connection[Any, Any]] | None = None

    def convert(self, data: bytes | ImageError, name: str, seconds: float) -> Outcome | Ending:
        """The outcome, or how the process ended over this image."""
        process, connection = self._running or self._start()
        try:
            connection.send((data, name))
            if not connection.poll(seconds):
                self._stop()
                return Ending("hung", f"{seconds:g} s")
            answer: Outcome | Exception = connection.recv()
        except (EOFError, ConnectionError):
            ending = ending_of(process.wait(), self._said())
            self._stop()
            return ending
        if isinstance(answer, Exception):
            raise answer
        return answer

    def end(self) -> None:
        """End the process."""
        self._stop()
        self._stderr.close()

    def _start(self) -> tuple[subprocess.Popen[bytes], Connection[Any, Any]]:
        self._stderr.truncate(0)
        here, there = Pipe()
        with there:
            descriptor = there.fileno()
            arguments = [json.dumps(sys.path), str(descriptor), str(os.getpid())]
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:  # Ctrl-C is for the driver
                process = subprocess.Popen(
                    [sys.executable, "-c", _PROGRAM, *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=self._stderr,
                    pass_fds=[descriptor],
                    env={**_ONE_THREAD, **os.environ},
                )
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self._running = process, here
        try:
            here.send(self.policy)
            if here.poll(_START_S) and here.recv():
                return self._running
        except (EOFError, ConnectionError):
            pass
        self._stop()
        raise JobError(f"a process to convert images in did not start: {self._said()[-500:]}")

    def _stop(self) -> None:
        if self._running is not None:
            process, connection = self._running
            connection.close()
            process.kill()
            process.wait()
        self._running = None

    def _said(self) -> str:
        self._stderr.seek(0)
        return self._stderr.read(_MOST_STDERR_BYTES).decode("utf-8", "replace")


def serve(descriptor: int, parent: int) -> None:
    """Convert what arrives until the other end of the pipe is closed."""
    with contextlib.suppress(AttributeError, OSError):  # systems without it
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before we asked
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError):  # where memory runs out, this process goes first
        Path("/proc/self/oom_score_adj").write_text(_FIRST_TO_BE_KILLED)
    connection: Connection[Any, Any] = Connection(descriptor)
    with contextlib.suppress(EOFError, OSError), ONE_OPENCV_THREAD.changed():
        policy: ImagePolicy = connection.recv()
        connection.send("ready")
        while True:
            data, name = connection.recv()
            try:
                answer: Outcome | JobError = outcome_of(data, policy, name)
            except Exception as error:  # noqa: BLE001  raised by the process that asked
                answer = JobError(f"a worker failed: {type(error).__name__}: {error}")
            connection.send(answer)
