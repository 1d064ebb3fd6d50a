"""The same work in several processes at once: forked, started together, watched, and gone."""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
import warnings
from collections.abc import Callable, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple, Protocol, TypeAlias

from iobench.errors import TrialFailed
from iobench.machine.processes import end_with

Say: TypeAlias = Callable[[int], None]

_LOOK_S = 0.2
_COUNTER_BYTES = 64  # a cache line each, so that processes do not slow each other down
_GO = "go"


class Work(Protocol):
    """What one process does."""

    def __call__(self, ready: Callable[[], None], say: Say) -> Any:
        """Work; what is returned is handed back, by pickle.

        ``ready`` returns once all processes are; ``say`` tells how far this one is.
        """
        ...


class _Child(NamedTuple):
    process: int
    channel: Connection


def side_by_side(works: Sequence[Work], watch: Say = lambda done: None) -> list[Any]:
    """Run each of ``works`` in a process forked from this one; what they return, in order.

    Nothing of this process is run again, so that a work may hold anything; it must not rely on
    threads. ``watch`` is told now and then the sum of what was said. No process is left.

    Raises:
        Exception: what the first work that failed raised.
        TrialFailed: a process ended without a word.
    """
    children: list[_Child] = []
    with contextlib.closing(mmap.mmap(-1, _COUNTER_BYTES * max(1, len(works)))) as counters:
        try:
            children.extend(_fork(work, counters, place) for place, work in enumerate(works))
            for child in children:
                _answer(child)
            for child in children:
                with contextlib.suppress(BrokenPipeError):  # it died: its answer says how
                    child.channel.send(_GO)
            return _answers(children, lambda: watch(_sum(counters)))
        finally:
            for child in children:
                _end(child)


def _answers(children: Sequence[_Child], look: Callable[[], None]) -> list[Any]:
    """What each child returned; the first failure comes through as soon as it is there."""
    answers: dict[int, Any] = {}
    while len(answers) < len(children):
        waiting = {c.channel: c for c in children if c.process not in answers}
        for channel in wait(list(waiting), _LOOK_S):
            child = waiting[channel]  # type: ignore[index]
            answers[child.process] = _answer(child)
        look()
    return [answers[child.process] for child in children]


def _fork(work: Work, counters: mmap.mmap, place: int) -> _Child:
    ours, theirs = Pipe()
    with warnings.catch_warnings():
        # Python warns where libraries keep threads; the child never calls those libraries.
        warnings.simplefilter("ignore", DeprecationWarning)
        parent, process = os.getpid(), os.fork()
    if process == 0:
        ours.close()
        _be_child(work, theirs, counters, place, parent)
    theirs.close()
    return _Child(process, ours)


def _be_child(
    work: Work, channel: Connection, counters: mmap.mmap, place: int, parent: int
) -> None:
    """Work, answer, and end without whatever the parent would do at its end."""
    code = 1
    try:
        _stand_alone(parent)
        with memoryview(counters) as view, view.cast("q") as slots:
            slot = place * _COUNTER_BYTES // 8

            def say(done: int) -> None:
                slots[slot] = done

            def ready() -> None:
                channel.send((None, None))
                channel.recv()

            channel.send((None, work(ready, say)))
        code = 0
    except BaseException as error:  # noqa: BLE001 - raised again in the parent
        with contextlib.suppress(Exception):
            channel.send((error, None))
    finally:
        os._exit(code)


def _stand_alone(parent: int) -> None:
    """A session of our own, as fio's jobs have, that ends when ``parent`` ends.

    Linux shares the processors out by session before it does by process (sched_autogroup): in
    one session all children together get as much as any other busy program does.
    """
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_with(parent)


def _answer(child: _Child) -> Any:
    try:
        error, value = child.channel.recv()
    except (EOFError, ConnectionResetError):
        raise TrialFailed(f"a process of the probe ended early: {_how(child)}") from None
    if error is not None:
        raise error
    return value


def _how(child: _Child) -> str:
    ended = os.waitid(os.P_PID, child.process, os.WEXITED | os.WNOWAIT)
    if ended is None or ended.si_code == os.CLD_EXITED:
        return f"exit code {ended.si_status if ended else '?'}"
    return f"signal {signal.Signals(ended.si_status).name}"


def _end(child: _Child) -> None:
    child.channel.close()
    with contextlib.suppress(ProcessLookupError, ChildProcessError):
        os.kill(child.process, signal.SIGKILL)
        os.waitpid(child.process, 0)


def _sum(counters: mmap.mmap) -> int:
    with memoryview(counters) as view, view.cast("q") as slots:
        return sum(slots[:: _COUNTER_BYTES // 8])
