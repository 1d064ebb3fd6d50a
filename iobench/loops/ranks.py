"""Processes that measure one trial together; if one fails, all are ended."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from multiprocessing.connection import wait
from pathlib import Path

from dataprep.schema import typed
from iobench.child_process import LOOK_EVERY_S, ChildProcess, Message, TrialRequest
from iobench.errors import TrialFailed, Unavailable
from iobench.trial import Context, Metrics, Outcome, Params, TrialSpec

_GRACE_S = 2.0
_SILENT: Message = {}
"""The last message of a rank that ended without one."""


def run_ranks(
    kind: str, params: Params, count: int, context: Context, *, environment: Mapping[str, str]
) -> list[Metrics]:
    """Start ``count`` ranks and return what each measured; all have ended when this returns.

    Each rank runs a trial of ``kind`` with ``params``, its ``rank``, the ``world_size`` and
    ``meeting``, the path of a file in memory that all ranks share. Rank 0 waits for the ``begin``
    of ``context`` while the others wait for it.

    Raises:
        TrialFailed: a rank failed or could not be started; the message is that of the rank that
            failed first.
        Unavailable: something that a rank needs is missing.
    """
    ranks: list[ChildProcess] = []
    with ExitStack() as stack:
        descriptor = os.memfd_create("iobench-ranks")
        stack.callback(os.close, descriptor)
        shared = {**params, "world_size": count, "meeting": f"/proc/self/fd/{descriptor}"}
        for number in range(count):
            try:
                rank = ChildProcess(environment, own_session=False, keep=[descriptor])
            except TrialFailed as error:
                raise TrialFailed(f"rank {number} of {count}: {error}") from None
            ranks.append(stack.enter_context(rank))
            ends_within_s = context.give_up_s - context.clock.now_s()
            spec = TrialSpec(kind, {**shared, "rank": number})
            waits = number == 0
            rank.ask(TrialRequest(spec, context.places, ends_within_s=ends_within_s, waits=waits))
        said = _last_words(ranks, context)
        first = cause(said)
        if first is None:
            for rank in ranks:
                rank.wait(_GRACE_S)
            return [typed(Outcome, said[number]["outcome"]).metrics for number in range(count)]
        message = said[first]
        if "skipped" in message:
            raise Unavailable(str(message["skipped"]))
        if not message:
            ranks[first].end(_GRACE_S)
        reason = message.get("failed") or ranks[first].how
        raise TrialFailed(f"rank {first} of {count}: {reason}")


def cause(said: Mapping[int, Message]) -> int | None:
    """PURE. The rank that failed first; None if none failed.

    A rank that ended without a message is the cause, since other ranks report that they lost it.
    Otherwise the earliest failure is.
    """
    failed = [
        (bool(message), float(message.get("at_s", -math.inf)), number)
        for number, message in said.items()
        if "outcome" not in message
    ]
    return min(failed)[2] if failed else None


def _last_words(ranks: Sequence[ChildProcess], context: Context) -> dict[int, Message]:
    """By rank: the last message of all; once one has failed, of those that end soon after it.

    A rank that ends makes others fail, which lose their connections to it. Their messages may
    arrive first: ``exit`` closes connections before the process is gone.
    """
    said: dict[int, Message] = {}
    done = [0.0] * len(ranks)
    deadline_s = math.inf
    while len(said) < len(ranks):
        wait([rank.fileno() for rank in ranks if not rank.closed], LOOK_EVERY_S)
        for number, rank in enumerate(ranks):
            ended = rank.ended  # processes that it left behind may keep its pipe open
            for message in rank.messages():
                if "progress" in message:
                    done[number], unit = message["progress"]
                    context.progress(sum(done), unit)
                elif "ready" in message:
                    context.begin()
                    rank.begin()
                else:
                    said[number] = message
            if ended or rank.closed:
                said.setdefault(number, _SILENT)
        if cause(said) is not None:
            deadline_s = min(deadline_s, time.monotonic() + _GRACE_S)
        if time.monotonic() >= deadline_s:
            break
    return said


class RankMeeting:
    """A barrier for processes that share a file, which they all append a byte to.

    If a process never comes, the parent ends all of them.

    Args:
        path: the path of the file, which is empty at first.
        count: the number of processes.
        look_every_s: how often a waiting process looks whether the others have come.
    """

    def __init__(self, path: str, count: int, look_every_s: float = 0.001) -> None:
        self._file = Path(path).open("ab", buffering=0)  # noqa: SIM115  closed by leave
        self._count, self._look_every_s = count, look_every_s
        self._arrivals = 0

    def wait(self) -> None:
        """Return when all processes have called this equally often."""
        self._arrivals += self._count
        self._file.write(b".")
        while os.fstat(self._file.fileno()).st_size < self._arrivals:
            time.sleep(self._look_every_s)

    def leave(self) -> None:
        """Wait for the others a last time, and close the file."""
        self.wait()
        self._file.close()
