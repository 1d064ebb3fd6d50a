"""Run the ranks of a trial, each in its own process. If one rank fails, all ranks are ended."""

from __future__ import annotations

import itertools
import math
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from multiprocessing.connection import wait
from pathlib import Path
from typing import NoReturn

from dataprep.schema import typed
from iobench.errors import TrialFailed, Unavailable
from iobench.results.trial import Context, Metrics, Outcome, Params, TrialSpec
from iobench.trials.trial_process import LOOK_EVERY_S, ChildProcess, Message, TrialRequest

_GRACE_S = 2.0
"""How long ranks may take to end after one rank has failed, or after all ranks are done."""
_NO_MESSAGE: Message = {}
"""This stands for the last message of a rank that ended without a message."""


def run_ranks(
    kind: str, params: Params, count: int, context: Context, *, environment: Mapping[str, str]
) -> list[Metrics]:
    """Run all ranks of a trial, and return the metrics of each. All ranks have ended afterwards.

    If the trial must wait for other hosts (``Context.begin``), rank 0 waits for them, and the other
    ranks wait for rank 0.

    Args:
        kind: the kind of trial that each rank runs.
        params: the parameters of the trial. Each rank gets three more parameters: ``rank``,
            ``world_size``, and ``meeting``, which is the path of a file in memory that all ranks
            share.
        count: the number of ranks.
        context: the context of the trial.
        environment: all environment variables of the ranks.

    Raises:
        TrialFailed: a rank failed or could not be started. The reason is the reason of the rank
            that failed first.
        Unavailable: something that a rank needs is missing.
    """
    ranks: list[ChildProcess] = []
    with ExitStack() as stack:
        descriptor = os.memfd_create("iobench-ranks")
        stack.callback(os.close, descriptor)
        meeting = f"/proc/self/fd/{descriptor}"
        for number in range(count):
            try:
                rank = ChildProcess(
                    environment, own_session=False, inherited_descriptors=[descriptor]
                )
            except TrialFailed as error:
                raise TrialFailed(f"rank {number} of {count}: {error}") from None
            ranks.append(stack.enter_context(rank))
            rank_params = {**params, "world_size": count, "meeting": meeting, "rank": number}
            request = TrialRequest(
                TrialSpec(kind, rank_params),
                context.locations,
                ends_within_s=context.give_up_s - context.clock.now_s(),
                waits=number == 0,
            )
            rank.request(request)
        messages = _last_messages(ranks, context)
        failed = first_failed_rank(messages)
        if failed is not None:
            _raise_failure(ranks, failed, messages[failed])
        for rank in ranks:
            rank.wait(_GRACE_S)
        outcomes = [typed(Outcome, messages[number]["outcome"]) for number in range(count)]
        return [outcome.metrics for outcome in outcomes]


def _raise_failure(ranks: Sequence[ChildProcess], failed: int, message: Message) -> NoReturn:
    """Raise the error of the rank that failed first.

    Args:
        ranks: the processes of all ranks.
        failed: the number of the rank that failed first.
        message: its last message; empty if it ended without a message.

    Raises:
        Unavailable: something that the rank needs is missing.
        TrialFailed: the rank failed for another reason.
    """
    if "skipped" in message:
        raise Unavailable(str(message["skipped"]))
    if not message:
        ranks[failed].end(_GRACE_S)
    reason = message.get("failed") or ranks[failed].ending
    raise TrialFailed(f"rank {failed} of {len(ranks)}: {reason}")


def notes_of_ranks(notes: Sequence[Sequence[str]]) -> list[str]:
    """PURE. The notes of all ranks in their order, each text once."""
    all_notes = itertools.chain.from_iterable(notes)
    return list(dict.fromkeys(all_notes))


def first_failed_rank(messages: Mapping[int, Message]) -> int | None:
    """PURE. The number of the rank that failed first; None if no rank failed.

    If a rank ended without a message, the other ranks fail because they lose their connection to
    it. Such a rank therefore counts as the first. Otherwise the time in the messages decides.

    Args:
        messages: the last message of each rank, by its number.
    """
    failures = []
    for number, message in messages.items():
        if "outcome" not in message:
            has_message = bool(message)
            failed_s = float(message.get("at_s", -math.inf))
            failures.append((has_message, failed_s, number))
    if not failures:
        return None
    _, _, number = min(failures)
    return number


def _last_messages(ranks: Sequence[ChildProcess], context: Context) -> dict[int, Message]:
    """The last message of each rank, by its number.

    After a rank has failed, the other ranks get ``_GRACE_S`` to send their last messages. The cause
    may only be in one of these: when a process dies, the system closes its connections first, so
    that the messages of ranks that lost the connection can arrive before the process is gone. A
    rank that ended without a last message has an empty message. A rank that neither ended nor sent
    a last message in this time has no entry.
    """
    messages: dict[int, Message] = {}
    progress_of_ranks = [0.0] * len(ranks)
    deadline_s = math.inf
    while len(messages) < len(ranks):
        wait([rank.fileno() for rank in ranks if not rank.closed], LOOK_EVERY_S)
        for number, rank in enumerate(ranks):
            # This is checked before the messages are read, so that all messages of an ended rank
            # are read. The end of its pipe does not show its end: workers may keep the pipe open.
            has_ended = rank.ended
            for message in rank.messages():
                if "progress" in message:
                    progress_of_ranks[number], unit = message["progress"]
                    context.progress(sum(progress_of_ranks), unit)
                elif "ready" in message:
                    context.begin()
                    rank.let_begin()
                else:
                    messages[number] = message
            if has_ended or rank.closed:
                messages.setdefault(number, _NO_MESSAGE)
        if first_failed_rank(messages) is not None:
            deadline_s = min(deadline_s, time.monotonic() + _GRACE_S)
        if time.monotonic() >= deadline_s:
            break
    return messages


class RankBarrier:
    """A barrier for processes that share a file: each process that arrives appends one byte.

    It has no time limit. If a process never arrives, the parent process ends all processes.

    Args:
        path: the path of the file, which is empty at first.
        count: the number of processes.
        look_every_s: how often a waiting process checks whether all others have arrived.
    """

    def __init__(self, path: str, count: int, look_every_s: float = 0.001) -> None:
        self._file = Path(path).open("ab", buffering=0)  # noqa: SIM115  closed by leave
        self._count, self._look_every_s = count, look_every_s
        self._expected_bytes = 0

    def wait(self) -> None:
        """Wait until every process has called this method as often as the caller has."""
        self._expected_bytes += self._count
        self._file.write(b".")
        while os.fstat(self._file.fileno()).st_size < self._expected_bytes:
            time.sleep(self._look_every_s)

    def leave(self) -> None:
        """Wait for the other processes a last time, and close the file."""
        self.wait()
        self._file.close()
