"""Processes that measure one trial together: the first that fails ends them all."""

from __future__ import annotations

import math
import re
import selectors
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack

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
        said = _Listening(ranks, progress).last_words()
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
    return min(failed, key=lambda number: (bool(said[number]), _at_s(said[number]), number))


def lost_another(message: Message) -> bool:
    """PURE. Whether a rank failed since a connection to another was gone: gloo's words, NCCL's."""
    return bool(_LOST.search(str(message.get("failed", ""))))


def _at_s(message: Message) -> float:
    return float(message.get("at_s", -math.inf))


def _error(number: int, message: Message, ranks: Sequence[ChildProcess]) -> Exception:
    if "skipped" in message:
        return Unavailable(str(message["skipped"]))
    rank = ranks[number]
    if not message:
        rank.end(_GRACE_S)
    return TrialFailed(f"rank {number} of {len(ranks)}: {message.get('failed') or rank.how}")


class _Listening:
    """To all ranks at once."""

    def __init__(
        self, ranks: Sequence[ChildProcess], progress: Callable[[float, str], None]
    ) -> None:
        self._ranks, self._progress = ranks, progress
        self._done = [0.0] * len(ranks)
        self._said: dict[int, Message] = {}

    def last_words(self) -> dict[int, Message]:
        """By rank: of all of them, or of those that have spoken when one has failed."""
        with selectors.DefaultSelector() as selector:
            for number, rank in enumerate(self._ranks):
                selector.register(rank, selectors.EVENT_READ, number)
            while len(self._said) < len(self._ranks) and cause(self._said) is None:
                for key, _ in selector.select(LOOK_EVERY_S):
                    self._take(key.data)
                    if self._ranks[key.data].closed:
                        selector.unregister(key.fileobj)
                self._look()
        self._settle()
        return self._said

    def _settle(self) -> None:
        """Whoever was lost first has spoken by the time that others notice, or is gone, or on its
        way out: ``exit`` closes connections before a library has let go of all it has."""
        deadline_s = time.monotonic() + _GRACE_S
        while True:
            for number in range(len(self._ranks)):
                self._take(number)
            self._look()
            first = cause(self._said)
            in_doubt = first is not None and lost_another(self._said[first])
            if not in_doubt or len(self._said) == len(self._ranks):
                return
            if time.monotonic() >= deadline_s:
                return
            time.sleep(_PAUSE_S)

    def _look(self) -> None:
        """For ranks that are gone: what they left behind may hold their pipe open."""
        for number, rank in enumerate(self._ranks):
            if number not in self._said and (rank.ended or rank.closed):
                self._take(number)
                self._said.setdefault(number, _SILENT)

    def _take(self, number: int) -> None:
        for message in self._ranks[number].messages():
            if "progress" in message:
                self._done[number], unit = message["progress"]
                self._progress(sum(self._done), unit)
            else:
                self._said[number] = message
