"""PURE. How a process ended that had one sample in hand, and what that says of the sample.

A fault signal is what a processor or a library raises over what it was given to do: the same
sample, alone in a new process, raises it again. ``SIGKILL`` comes from outside: from a person, or
from the kernel where memory ran out. It says nothing of a sample's content, however often it comes.
Nor does an abort of an allocator, which says beforehand what it is.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import Literal, NamedTuple

from dataprep.counted import counted
from dataprep.errors import DecoderCrashed, DecoderHung, ImageError, SampleLost
from dataprep.execution import SampleLimit
from dataprep.image.out_of_memory import aborted
from dataprep.names import escape

FAULTS = frozenset(
    {
        *(signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL),
        *(signal.SIGTRAP, signal.SIGSYS),
    }
)
TIMES = 2
"""How often a process has to end alike over one sample before anything is concluded."""


class Ending(NamedTuple):
    """How a process ended: by a ``fault``, ``killed`` from outside, or killed since it ``hung``.

    ``how`` is the signal's name, or the exit code. ``sha256`` is that of the sample's file, empty
    where the process had not read it yet.
    """

    kind: Literal["fault", "killed", "hung"]
    how: str
    sha256: str = ""


def ending_of(returncode: int, sha256: str, said: str = "") -> Ending:
    """Of a process that ended by itself; negative codes are signals, as in ``subprocess``.

    ``said`` is what it wrote to standard error.
    """
    if returncode >= 0:  # native code called exit(3), as libjpeg does where nobody prevents it
        return Ending("fault", f"exit code {returncode}", sha256)
    known = -returncode in {*signal.Signals}
    name = signal.Signals(-returncode).name if known else f"signal {-returncode}"
    if returncode == -signal.SIGABRT and aborted(said):
        return Ending("killed", f"{name}, no memory", sha256)
    return Ending("fault" if -returncode in FAULTS else "killed", name, sha256)


def conclusive(endings: Sequence[Ending]) -> Ending | None:
    """The last of those that came ``TIMES`` times, if one did."""
    kinds = [ending.kind for ending in endings]
    return next((one for one in reversed(endings) if kinds.count(one.kind) >= TIMES), None)


def judged(name: str, ending: Ending, limit: SampleLimit) -> ImageError:
    """Why the sample failed.

    Raises:
        SampleLost: its content is not proved to be the cause.
    """
    if ending.kind == "fault":
        if ending.sha256:
            return DecoderCrashed(f"crashed the decoder ({ending.how})")
        return DecoderCrashed(f"crashed what reads it ({ending.how})")
    said = f"{escape(name)!r}: a process that had no other sample in hand "
    if ending.kind == "killed":
        raise SampleLost(
            f"{said}was killed {counted(TIMES, 'time')} ({ending.how}): most likely this sample "
            "needs more memory than there is. That is no fault of its content, so it is not "
            "recorded as failed. What is stored stays: run again with more memory, or fewer "
            "--workers, to resume"
        )
    if limit.hung == "fail":
        return DecoderHung(f"took the decoder longer than {limit.seconds:g} s")
    raise SampleLost(
        f"{said}took longer than {limit.seconds:g} s, {counted(TIMES, 'time')}. What is stored "
        "stays: run again to resume, with --set dask.sample_timeout_s=SECONDS where that was too "
        "short, or with --set hung_samples=fail to record such samples as failed"
    )
