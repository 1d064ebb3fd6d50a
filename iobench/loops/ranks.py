"""Processes that measure one trial together: the first that fails ends them all."""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import wait

from iobench.child_process import LOOK_EVERY_S, ChildProcess
from iobench.errors import TrialFailed, Unavailable
from iobench.messages import Message, outcome_of, request
from iobench.trial import Outcome, Place, TrialSpec

_GRACE_S = 2.0
_PAUSE_S = 0.05
_LOST = re.compile(
    r"connection (?:was )?(?:closed|reset|refused)|remote (?:error|process)|peer", re.I
)
_SILENT: Message = {}
"""Of a rank that has ended without a last word."""


def run_ranks(
    specs: Sequence[TrialSpec],
    places: Mapping[str, Place],
    *,
    environment: Mapping[str, str],
    keep: Iterable[int],
    progress: Callable[[float, str], None],
) -> list[Outcome]:
    """What each rank found. They are in this process's group, and gone when this returns.

    Args:
        specs: what each is asked for, by rank.
        places: as of any trial.
        environment: theirs.
        keep: descriptors that they inherit.
        progress: of all ranks together.

    Raises:
        TrialFailed: a rank failed; with its own words, not with those of ranks that lost it.
        Unavailable: what a rank needs is not here.
    """
    keep = list(keep)
    with ExitStack() as stack:
        ranks = [
            stack.enter_context(ChildProcess(environment, own_session=False, keep=keep))
            for _ in specs
        ]
        for rank, spec in zip(ranks, specs, strict=True):
            rank.ask(request(spec, places))
        said = _last_words(ranks, progress)
        if (number := cause(said)) is not None:
            raise _error(number, said[number], ranks)
        for rank in ranks:
            rank.wait(_GRACE_S)
        return [outcome_of(said[number]) for number in range(len(ranks))]


def cause(said: Mapping[int, Message]) -> int | None:
    """PURE. The rank that failed first; None where none has.

    One that ended without a word is the cause: who loses another says so. Else the earliest is.
    """
    failed = [number for number, message in said.items() if "outcome" not in message]
    if not failed:
        return None

    def order(number: int) -> tuple[bool, float, int]:
        message = said[number]
        return bool(message), float(message.get("at_s", -math.inf)), number

    return min(failed, key=order)


def lost_another(message: Message) -> bool:
    """PURE. Whether a rank failed since a connection to another was gone: gloo's words, NCCL's."""
    return bool(_LOST.search(str(message.get("failed", ""))))


def _error(number: int, message: Message, ranks: Sequence[ChildProcess]) -> Exception:
    if "skipped" in message:
        return Unavailable(str(message["skipped"]))
    rank = ranks[number]
    if not message:
        rank.end(_GRACE_S)
    return TrialFailed(f"rank {number} of {len(ranks)}: {message.get('failed') or rank.how}")


def _last_words(
    ranks: Sequence[ChildProcess], progress: Callable[[float, str], None]
) -> dict[int, Message]:
    """By rank: the last message of all, or of those that have spoken when one has failed."""
    said: dict[int, Message] = {}
    done = [0.0] * len(ranks)

    def look() -> None:
        for number, rank in enumerate(ranks):
            ended = rank.ended  # what it left behind may hold its pipe open
            for message in rank.messages():
                if "progress" in message:
                    done[number], unit = message["progress"]
                    progress(sum(done), unit)
                else:
                    said[number] = message
            if ended or rank.closed:
                said.setdefault(number, _SILENT)

    while len(said) < len(ranks) and cause(said) is None:
        wait([rank.fileno() for rank in ranks if not rank.closed], LOOK_EVERY_S)
        look()
    # Whoever was lost first has spoken by the time that others notice, or is gone, or on its way
    # out: ``exit`` closes connections before a library has let go of all it has.
    deadline_s = time.monotonic() + _GRACE_S
    while True:
        look()
        first = cause(said)
        in_doubt = first is not None and lost_another(said[first])
        if not in_doubt or len(said) == len(ranks) or time.monotonic() >= deadline_s:
            return said
        time.sleep(_PAUSE_S)


@contextmanager
def gate() -> Iterator[tuple[int, int]]:
    """A gate at which processes of one trial wait until all of them are there.

    Two counters of the kernel (eventfd(2)), as descriptors that the processes inherit: nothing of
    it is left, however the trial ends. A process that never arrives is left to its parent, which
    ends them all.
    """
    with ExitStack() as stack:
        arrived = os.eventfd(0, os.EFD_SEMAPHORE)
        stack.callback(os.close, arrived)
        opened = os.eventfd(0, os.EFD_SEMAPHORE)
        stack.callback(os.close, opened)
        yield arrived, opened


def wait_at(descriptors: Sequence[int], rank: int, world_size: int) -> None:
    """Return when all of ``world_size`` processes have called this, once each."""
    arrived, opened = descriptors
    if rank:
        os.eventfd_write(arrived, 1)
        os.eventfd_read(opened)
        return
    for _ in range(world_size - 1):
        os.eventfd_read(arrived)
    if world_size > 1:
        os.eventfd_write(opened, world_size - 1)
