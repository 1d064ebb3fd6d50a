"""Lanes of operations side by side, each operation timed.

A lane is a forked process. Threads would do for slow disks; where the page cache answers within
microseconds they wait for the interpreter's lock, and eight of them read blocks of 128 KiB at
half the rate of eight processes.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from iobench.clock import Clock
from iobench.machine.page_cache import physical_read_bytes
from iobench.probes.disk.forked import Say, Work, side_by_side

_SAY_S = 0.05


class Lane(NamedTuple):
    """What one process does: opens, then calls what that gave with each item of ``work``.

    The call returns how many bytes it moved.
    """

    open: Callable[[], AbstractContextManager[Callable[[Any], int]]]
    work: Iterable[Any]


class Tally(NamedTuple):
    """What came of it.

    ``seconds`` from the first start to the last end; ``operations`` of each lane;
    ``latencies_s`` of all operations, ascending; ``physical_ratio`` is bytes that storage gave
    / bytes moved, None where the kernel does not count them.
    """

    bytes: int
    started_s: float
    seconds: float
    operations: Sequence[int]
    latencies_s: Sequence[float]
    physical_ratio: float | None


class _Done(NamedTuple):
    bytes: int
    started_s: float
    ended_s: float
    latencies_s: array[float]
    physical_bytes: int | None


def drive(
    lanes: Sequence[Lane],
    clock: Clock,
    seconds: float,
    watch: Callable[[int], None] = lambda done_bytes: None,
) -> Tally:
    """Work all lanes side by side until their work or ``seconds`` are over.

    All begin when the last has opened; an operation that has begun is finished. ``watch`` is
    told now and then how many bytes are done.

    Raises:
        Exception: what the first lane that failed raised; the others are ended.
        TrialFailed: a process ended without a word.
    """
    works: list[Work] = [_Worker(lane, clock, seconds) for lane in lanes]
    done: list[_Done] = side_by_side(works, watch)
    started_s = min(one.started_s for one in done)
    total_bytes = sum(one.bytes for one in done)
    return Tally(
        bytes=total_bytes,
        started_s=started_s,
        seconds=max(one.ended_s for one in done) - started_s,
        operations=[len(one.latencies_s) for one in done],
        latencies_s=sorted(value for one in done for value in one.latencies_s),
        physical_ratio=_ratio([one.physical_bytes for one in done], total_bytes),
    )


def _ratio(physical_bytes: Sequence[int | None], total_bytes: int) -> float | None:
    known = [count for count in physical_bytes if count is not None]
    return sum(known) / total_bytes if total_bytes and len(known) == len(physical_bytes) else None


class _Worker(NamedTuple):
    lane: Lane
    clock: Clock
    seconds: float

    def __call__(self, ready: Callable[[], None], say: Say) -> _Done:
        """In the forked process: open, wait for the others, work."""
        latencies_s, moved = array("d"), 0
        note, now_s = latencies_s.append, self.clock.now_s
        with self.lane.open() as do:
            ready()
            physical = physical_read_bytes()
            started_s = before_s = now_s()
            deadline_s = started_s + self.seconds
            say_s = started_s
            for item in self.lane.work:
                moved += do(item)
                after_s = now_s()
                note(after_s - before_s)
                before_s = after_s
                if after_s >= deadline_s:
                    break
                if after_s >= say_s:
                    say(moved)
                    say_s = after_s + _SAY_S
            say(moved)
            after = physical_read_bytes()
        read = None if physical is None or after is None else after - physical
        return _Done(moved, started_s, before_s, latencies_s, read)
