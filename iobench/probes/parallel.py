"""Timed operations in several forked processes that start at the same time.

Threads would be enough for slow disks. But if the page cache answers within microseconds, threads
wait for the interpreter's lock: eight threads read blocks of 128 KiB at half the rate of eight
processes.
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
from typing import Any, NamedTuple, TypeAlias

from iobench.clock import Clock
from iobench.errors import TrialFailed
from iobench.machine.page_cache import physical_read_bytes
from iobench.machine.processes import end_with_parent, starting
from iobench.results.statistics import quantiles

Progress: TypeAlias = Callable[[float, str], None]
"""Receives how much was moved so far, and the unit of this amount (``bytes``)."""

OpenOperation: TypeAlias = Callable[[], AbstractContextManager[Callable[[Any], int]]]
"""Opens files for a ``with`` block, and gives the function that does one operation on an item.

That function returns the number of bytes that it moved.
"""


class Moved(NamedTuple):
    """The bytes that all processes moved, and how long this took.

    Attributes:
        bytes: the bytes that all processes moved.
        seconds: the seconds from the first start to the last end.
        operations: the number of operations of each process.
        latency_s: the quantiles of the duration of an operation in seconds, by name (``p50``). A
            quantile is left out if there are too few operations for it.
        physical_ratio: the bytes that came from storage, divided by the bytes moved; None if the
            kernel does not count them, or if no bytes were moved.
        engine: name and version of the program that moved the bytes; empty for the built-in engine.
    """

    bytes: int
    seconds: float
    operations: Sequence[int]
    latency_s: Mapping[str, float]
    physical_ratio: float | None
    engine: str = ""

    def metrics(self) -> dict[str, float]:
        """Return the figures that trials of disks and of layouts share."""
        metrics = {
            "mb_per_s": self.bytes / 1e6 / max(self.seconds, 1e-9),
            "bytes": self.bytes,
            "seconds": self.seconds,
            "operations": sum(self.operations),
        }
        for name, latency_s in self.latency_s.items():
            metrics[f"latency_s_{name}"] = latency_s
        return metrics


class _ProcessResult(NamedTuple):
    """The figures of one process. Moments are on the clock of ``run_in_processes``.

    Attributes:
        bytes: the bytes that the process moved.
        started_s, ended_s: the moments of the start and the end of its operations.
        latencies_s: the duration of each operation.
        physical_bytes: the bytes that came from storage; None if the kernel does not count them.
    """

    bytes: int
    started_s: float
    ended_s: float
    latencies_s: array[float]
    physical_bytes: int | None


def run_in_processes(
    open_operation: OpenOperation,
    shares: Sequence[Iterable[Any]],
    clock: Clock,
    seconds: float,
    progress: Progress = lambda amount, unit: None,
) -> Moved:
    """Do operations in parallel. Each process does the operations of one share.

    All processes start when the last process has opened its files. At the end of the time, each
    process finishes its current operation. No process remains when this function returns.

    Args:
        open_operation: is called in each process. The function that it gives is called with each
            item of a share.
        shares: the items of each process. They need not be pickled, since processes are forked.
            They must not need a thread, since threads do not exist in a forked process.
        clock: the clock of all times, which all processes share.
        seconds: the time after which a process stops, if it has not reached the end of its share.
        progress: is called with the bytes of all processes that have ended, when a process ends.

    Raises:
        Exception: the error of the first process that failed. The other processes are killed.
        TrialFailed: a process could not be started, or ended without an answer.
    """
    context = multiprocessing.get_context("fork")
    all_open = context.Barrier(len(shares))
    children: dict[Any, BaseProcess] = {}
    results: dict[Any, _ProcessResult] = {}
    try:
        for share in shares:
            with starting("a process of the probe"):
                our_end, child_end = context.Pipe()
                arguments = (
                    open_operation,
                    share,
                    clock,
                    seconds,
                    all_open,
                    child_end,
                    os.getpid(),
                )
                child: BaseProcess = context.Process(target=_run_share, args=arguments)
                child.start()
            child_end.close()
            children[our_end] = child
        while len(results) < len(children):
            waiting = [channel for channel in children if channel not in results]
            for channel in wait(waiting):
                results[channel] = _receive(channel, children[channel])
            progress(sum(result.bytes for result in results.values()), "bytes")
    finally:
        for channel, child in children.items():
            child.kill()
            child.join()
            channel.close()
    return _combined([results[channel] for channel in children])


def _combined(results: Sequence[_ProcessResult]) -> Moved:
    """Return the figures of all processes together."""
    total_bytes = sum(result.bytes for result in results)
    physical = [result.physical_bytes for result in results if result.physical_bytes is not None]
    is_counted = total_bytes > 0 and len(physical) == len(results)
    latencies_s = [latency_s for result in results for latency_s in result.latencies_s]
    first_start_s = min(result.started_s for result in results)
    last_end_s = max(result.ended_s for result in results)
    return Moved(
        bytes=total_bytes,
        seconds=last_end_s - first_start_s,
        operations=[len(result.latencies_s) for result in results],
        latency_s=quantiles(latencies_s),
        physical_ratio=sum(physical) / total_bytes if is_counted else None,
    )


def _run_share(
    open_operation: OpenOperation,
    share: Iterable[Any],
    clock: Clock,
    seconds: float,
    all_open: Barrier,
    channel: Connection,
    parent: int,
) -> None:
    """Do the operations of a share in the forked process, and send the result or the error.

    The process leads its own session, as the jobs of fio do. Linux divides processor time among
    sessions first (sched_autogroup). In one common session, all processes together would get as
    much processor time as one program.
    """
    latencies_s, moved_bytes = array("d"), 0
    add_latency, now_s = latencies_s.append, clock.now_s
    try:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        end_with_parent(parent)
        with open_operation() as operate:
            all_open.wait()
            physical_before = physical_read_bytes()
            started_s = before_s = now_s()
            deadline_s = started_s + seconds
            for item in share:
                moved_bytes += operate(item)
                after_s = now_s()
                add_latency(after_s - before_s)
                before_s = after_s
                if after_s >= deadline_s:
                    break
            physical_after = physical_read_bytes()
        physical_bytes = None
        if physical_before is not None and physical_after is not None:
            physical_bytes = physical_after - physical_before
        channel.send(_ProcessResult(moved_bytes, started_s, before_s, latencies_s, physical_bytes))
    except BaseException as error:  # noqa: BLE001  raised again in the parent
        channel.send(error)


def _receive(channel: Any, child: BaseProcess) -> _ProcessResult:
    """Return the result of a process, or raise its error.

    Raises:
        Exception: the error that the process has sent.
        TrialFailed: the process has ended without an answer.
    """
    try:
        answer = channel.recv()
    except (EOFError, ConnectionResetError):
        child.join()
        code = child.exitcode or 0
        cause = f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
        raise TrialFailed(f"a process of the probe ended early: {cause}") from None
    if isinstance(answer, BaseException):
        raise answer
    return answer  # type: ignore[no-any-return]
