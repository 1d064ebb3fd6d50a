"""Convert images one by one in a separate process, after workers have died over them.

The process converts one image at a time. If a fault signal ends it twice over the same image, the
image has failed, because the signal comes from native code that decoded only this image.
``SIGKILL`` comes from outside: from a person, or from the kernel when memory runs out. It does not
prove that the image is the cause. If it ends the process twice over the same image, the job stops
and names the image. If the process hangs twice, ``hung_samples`` decides whether the image has
failed or the job stops.
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
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

from dataprep.config.shard_config import SampleLimit
from dataprep.errors import DecoderCrashed, DecoderHung, ImageError, JobError, SampleLost
from dataprep.image import ImagePolicy
from dataprep.job.conversion import (
    Batches,
    Outcome,
    ProgressReporter,
    Report,
    convert_file,
    cut_into_batches,
    read_files,
)
from dataprep.machine.process_settings import ONE_OPENCV_THREAD
from dataprep.message_text import counted
from dataprep.name_encoding import escape
from dataprep.sources import Located, Source

_PR_SET_PDEATHSIG = 1  # prctl(2)
_OOM_SCORE_ADJ = "1000"  # proc(5): if memory runs out, the kernel kills this process first
_MAX_ATTEMPTS = 2
"""How often the process may end over an image in the same way, before the image is given up."""

_START_TIMEOUT_S = 600.0
_MAX_STDERR_BYTES = 2**20
_MAX_SHOWN_CHARACTERS = 500
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
# multiprocessing's spawn works in the same way, but it would import the main script again.
_CHILD_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from dataprep.job.isolated_conversion import serve; serve(int(sys.argv[2]), int(sys.argv[3]))"
)
_FAULT_SIGNALS = {
    signal.SIGSEGV,
    signal.SIGBUS,
    signal.SIGABRT,
    signal.SIGFPE,
    signal.SIGILL,
    signal.SIGTRAP,
    signal.SIGSYS,
}
# What Rust and C++ print before they abort because no memory is left.
_NO_MEMORY = re.compile(r"memory allocation of \d+ bytes failed|'std::bad_alloc'")


class Ending(NamedTuple):
    """How a process ended over one image.

    Attributes:
        cause: ``fault`` if native code crashed or called exit; ``killed`` if the process was ended
            from outside or had no memory left; ``hung`` if it exceeded the time limit.
        detail: the name of the signal, the exit code, or the time limit.
    """

    cause: Literal["fault", "killed", "hung"]
    detail: str


def isolated_batches(
    source: Source,
    items: Sequence[Located],
    policy: ImagePolicy,
    limit: SampleLimit,
    report: Report | None = None,
) -> Batches:
    """Convert samples in order, to the same bytes as ``convert_batches``.

    Args:
        source: where the samples come from.
        items: the samples.
        policy: how images are converted.
        limit: how long the conversion of one sample may take, and what happens if it takes longer.
        report: called with the progress; None to report nothing.

    Yields:
        The outcomes of a batch of neighbouring samples.

    Raises:
        SourceChanged, StoreError: a file could not be read.
        SampleLost: the process was killed twice over the same sample; or it hung twice, and
            ``limit`` says that the job stops then.
        JobError: the process did not start, or the conversion raised an unexpected error.
    """
    process = _ConverterProcess(policy)
    progress = ProgressReporter(report, source)
    try:
        files = read_files(source, items, policy.max_source_bytes, ahead=False)
        for batch in cut_into_batches(items):
            outcomes = []
            for item, content in zip(batch, islice(files, len(batch)), strict=True):
                outcome = _convert(process, content, item.name, limit)
                progress.add(item, outcome)
                outcomes.append(outcome)
            yield outcomes
        progress.report()
    finally:
        process.end()


def _convert(
    process: _ConverterProcess, content: bytes | ImageError, name: str, limit: SampleLimit
) -> Outcome:
    """Convert one sample. Try again until it succeeds, or two attempts have ended alike.

    ``content`` is the source file, or the error that explains why it could not be read.
    """
    causes: list[str] = []
    while True:
        result = process.convert(content, name, limit.seconds)
        if isinstance(result, Outcome):
            return result
        causes.append(result.cause)
        if causes.count(result.cause) == _MAX_ATTEMPTS:
            error = error_of_ending(name, result, limit)
            if isinstance(content, ImageError) or not content:
                return Outcome(error, "")
            return Outcome(error, hashlib.sha256(content).hexdigest(), len(content))


def error_of_ending(name: str, ending: Ending, limit: SampleLimit) -> ImageError:
    """Return the error with which the sample has failed, after the last attempt.

    Args:
        name: the name of the sample.
        ending: how the process ended in the last attempt.
        limit: how long the conversion may take, and whether a sample that hangs has failed.

    Raises:
        SampleLost: the sample is not proved to be the cause, so that the job must stop.
    """
    if ending.cause == "fault":
        return DecoderCrashed(f"crashed the decoder ({ending.detail})")
    subject = f"{escape(name)!r}: a process that converted this image alone"
    if ending.cause == "killed":
        raise SampleLost(
            f"{subject} was killed {counted(_MAX_ATTEMPTS, 'time')} ({ending.detail}), most likely "
            "because it needs more memory than there is. The image is not recorded as failed. "
            "Complete shards are kept: run again with more memory or fewer --workers to resume"
        )
    if limit.on_hung == "fail":
        return DecoderHung(f"took the decoder longer than {limit.seconds:g} s")
    raise SampleLost(
        f"{subject} took longer than {limit.seconds:g} s, {counted(_MAX_ATTEMPTS, 'time')}. "
        "Complete shards are kept: run again to resume. Use --set "
        "dask.sample_timeout_s=SECONDS to allow more time, or --set hung_samples=fail to record "
        "such samples as failed"
    )


def ending_of(returncode: int, stderr: str) -> Ending:
    """Return how a process ended.

    Args:
        returncode: the exit code; negative numbers are signals, as in ``subprocess``.
        stderr: what the process wrote to its standard error.
    """
    if returncode >= 0:  # native code called exit(3)
        return Ending("fault", f"exit code {returncode}")
    number = -returncode
    name = f"signal {number}"
    if number in set(signal.Signals):
        name = signal.Signals(number).name
    if number == signal.SIGABRT and _NO_MEMORY.search(stderr):
        return Ending("killed", f"{name}, no memory")
    return Ending("fault" if number in _FAULT_SIGNALS else "killed", name)


@dataclass
class _ConverterProcess:
    """The separate process. It is started when it is needed, and again after it has ended.

    Attributes:
        policy: how images are converted.
    """

    policy: ImagePolicy
    _stderr: IO[bytes] = field(
        default_factory=lambda: tempfile.TemporaryFile("a+b", buffering=0)  # noqa: SIM115
    )
    _running: tuple[subprocess.Popen[bytes], Connection[Any, Any]] | None = None

    def convert(self, content: bytes | ImageError, name: str, timeout_s: float) -> Outcome | Ending:
        """Return the outcome of a sample, or how the process ended while converting it.

        Args:
            content: the source file, or the error that explains why it could not be read.
            name: the name of the sample.
            timeout_s: after how many seconds the process is ended.

        Raises:
            JobError: the process did not start, or the conversion raised an unexpected error.
        """
        process, connection = self._running or self._start()
        try:
            connection.send((content, name))
            if not connection.poll(timeout_s):
                self._stop()
                return Ending("hung", f"{timeout_s:g} s")
            answer: Outcome | Exception = connection.recv()
        except (EOFError, ConnectionError):
            ending = ending_of(process.wait(), self._read_stderr())
            self._stop()
            return ending
        if isinstance(answer, Exception):
            raise answer
        return answer

    def end(self) -> None:
        """End the process, if it runs. It cannot be used afterwards."""
        self._stop()
        self._stderr.close()

    def _start(self) -> tuple[subprocess.Popen[bytes], Connection[Any, Any]]:
        """Start the process. Return it and this end of the pipe to it."""
        self._stderr.truncate(0)
        own_end, other_end = Pipe()
        with other_end:
            descriptor = other_end.fileno()
            arguments = [json.dumps(sys.path), str(descriptor), str(os.getpid())]
            # The driver alone handles Ctrl-C. The process inherits this mask.
            previous_mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                process = subprocess.Popen(
                    [sys.executable, "-c", _CHILD_PROGRAM, *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=self._stderr,
                    pass_fds=[descriptor],
                    env={**_ONE_THREAD, **os.environ},
                )
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, previous_mask)
        self._running = process, own_end
        try:
            own_end.send(self.policy)
            if own_end.poll(_START_TIMEOUT_S) and own_end.recv():
                return self._running
        except (EOFError, ConnectionError):
            pass  # the process has ended; its error output is shown below
        self._stop()
        stderr = self._read_stderr()[-_MAX_SHOWN_CHARACTERS:]
        raise JobError(f"the process that converts single images did not start: {stderr}")

    def _stop(self) -> None:
        """Kill the process, if there is one."""
        if self._running is not None:
            process, connection = self._running
            connection.close()
            process.kill()
            process.wait()
        self._running = None

    def _read_stderr(self) -> str:
        """Return what the process has written to its standard error, at most 1 MiB."""
        self._stderr.seek(0)
        return self._stderr.read(_MAX_STDERR_BYTES).decode("utf-8", "replace")


def serve(descriptor: int, parent: int) -> None:
    """Run in the separate process: convert images until the other end of the pipe is closed.

    Args:
        descriptor: the file descriptor of this end of the pipe.
        parent: the PID of the parent.
    """
    with contextlib.suppress(AttributeError, OSError):  # not every system has prctl
        # The kernel kills this process when the parent ends.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # the parent ended before prctl was called
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # crashes are expected: write no core dumps
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_OOM_SCORE_ADJ)
    connection: Connection[Any, Any] = Connection(descriptor)
    with contextlib.suppress(EOFError, OSError), ONE_OPENCV_THREAD.changed():
        policy: ImagePolicy = connection.recv()
        connection.send("ready")
        while True:
            content, name = connection.recv()
            try:
                answer: Outcome | JobError = convert_file(content, policy, name)
            except Exception as error:  # noqa: BLE001  the parent raises it
                answer = JobError(f"a worker failed: {type(error).__name__}: {error}")
            connection.send(answer)
