"""Timed operations in several forked processes that start at the same time.

Threads are enough for slow disks. When the page cache answers within microseconds, they wait for
the interpreter's lock: eight threads read blocks of 128 KiB at half the rate of eight processes.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Barrier
from typing import Any, NamedTuple

from iobench.clock import Clock
from iobench.errors import TrialFailed
from iobench.machine.page_cache import physical_read_bytes
from iobench.machine.processes import end_with, starting
from iobench.stats import quantiles

Progress = Callable[[float, str], None]
Open = Callable[[], AbstractContextManager[Callable[[Any], int]]]


class Moved(NamedTuple):
    """Moved bytes, and the seconds from the first start to the last end.

    ``operations``: their number in each process. ``latency_s``: quantiles of an operation by name
    (``p50``), as far as there are enough operations. ``physical_ratio``: bytes read from storage /
    bytes moved, None if the kernel does not count them. ``engine``: name and version of another
    program.
    """

    bytes: int
    seconds: float
    operations: Sequence[int]
    latency_s: Mapping[str, float]
    physical_ratio: float | None
    engine: str = ""

    def metrics(self) -> dict[str, Any]:
        """Return the figures that trials of disks and of layouts share."""
        return {
            "mb_per_s": self.bytes / 1e6 / max(self.seconds, 1e-9),
            "bytes": self.bytes,
            "seconds": self.seconds,
            "operations": sum(self.operations),
            **{f"latency_s_{name}": value for name, value in self.latency_s.items()},
        }


class _Done(NamedTuple):
    bytes: int
    started_s: float
    ended_s: float
    latencies_s: array[float]
    physical_bytes: int | None


def drive(
    opened: Open,
    shares: Sequence[Iterable[Any]],
    clock: Clock,
    seconds: float,
    progress: Progress = lambda done, unit: None,
) -> Moved:
    """Work on each of ``shares`` in a process of its own until its end or for ``seconds``.

    Each process calls ``opened``, and the resulting function with each item of its share; it
    returns the number of bytes moved. All start when the last has opened; operations in progress
    are finished. ``progress`` is called with all bytes when a process has ended. A share may have
    any content, since processes are forked, but must not use threads. No process is left when this
    returns.

    Raises:
        Exception: the error of the first process that failed; the others are ended.
        TrialFailed: a process could not be started, or ended without an answer.
    """
    context = multiprocessing.get_context("fork")
    all_open = context.Barrier(len(shares))
    children: dict[Any, BaseProcess] = {}
    answers: dict[Any, _Done] = {}
    try:
        for share in shares:
            with starting("a process of the probe"):
                ours, theirs = context.Pipe()
                given = (opened, share, clock, seconds, all_open, theirs, os.getpid())
                child: BaseProcess = context.Process(target=_child, args=given)
                child.start()
            theirs.close()
            children[ours] = child
        while len(answers) < len(children):
            for channel in wait([each for each in children if each not in answers]):
                answers[channel] = _answer(channel, children[channel])
            progress(sum(one.bytes for one in answers.values()), "bytes")
    finally:
        for channel, child in children.items():
            child.kill()
            child.join()
            channel.close()
    done = [answers[channel] for channel in children]
    total_bytes = sum(one.bytes for one in done)
    physical = [one.physical_bytes for one in done if one.physical_bytes is not None]
    is_counted = total_bytes > 0 and len(physical) == len(done)
    return Moved(
        bytes=total_bytes,
        seconds=max(one.ended_s for one in done) - min(one.started_s for one in done),
        operations=[len(one.latencies_s) for one in done],
        latency_s=quantiles([value for one in done for value in one.latencies_s]),
        physical_ratio=sum(physical) / total_bytes if is_counted else None,
    )


def _child(
    opened: Open,
    share: Iterable[Any],
    clock: Clock,
    seconds: float,
    all_open: Barrier,
    channel: Connection,
    parent: int,
) -> None:
    """Work on a share in the forked process, and send the result or the error.

    The process leads a session, as fio's jobs do: Linux divides processor time among sessions first
    (sched_autogroup), so that all children in one session would get the share of one program.
    """
    latencies_s, moved = array("d"), 0
    note, now_s = latencies_s.append, clock.now_s
    try:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        end_with(parent)
        with opened() as do:
            all_open.wait()
            physical = physical_read_bytes()
            started_s = before_s = now_s()
            deadline_s = started_s + seconds
            for item in share:
                moved += do(item)
                after_s = now_s()
                note(after_s - before_s)
                before_s = after_s
                if after_s >= deadline_s:
                    break
            after = physical_read_bytes()
        read = None if physical is None or after is None else after - physical
        channel.send(_Done(moved, started_s, before_s, latencies_s, read))
    except BaseException as error:  # noqa: BLE001  raised again in the parent
        channel.send(error)


def _answer(channel: Any, child: BaseProcess) -> _Done:
    try:
        answer = channel.recv()
    except (EOFError, ConnectionResetError):
        child.join()
        code = child.exitcode or 0
        how = f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
        raise TrialFailed(f"a process of the probe ended early: {how}") from None
    if isinstance(answer, BaseException):
        raise answer
    return answer  # type: ignore[no-any-return]
