"""The side of every other host: it measures what host 0 says, and reports to it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from dataprep.errors import DataprepError
from dataprep.schema import typed
from iobench.errors import HostLost, TrialFailed
from iobench.hosts.messages import (
    NOW,
    HostOutcome,
    Phase,
    Statement,
    left_key,
    turn_key,
)
from iobench.hosts.rendezvous import Rendezvous
from iobench.trial import HostPart, Outcome, Trial, TrialSpec

Measure = Callable[[TrialSpec, TrialSpec, Callable[[], None]], tuple[Trial, Outcome]]
"""Measures a trial on this host.

Its arguments are the trial, the same with an order of samples of this host's own, which is the one
to measure, and a function to call when the trial is prepared.
"""

_OWN_ORDER = {"loader", "train"}
"""Kinds of trials whose order of samples depends on a parameter ``seed``."""
_REPEATS_APART = 100_000
"""Larger than any number of repeats."""


class OtherHost:
    """Takes part in the trials of a meeting until host 0 ends it.

    Args:
        room: the objects of the meeting.
        host: the number of this host.
        patience_s: how long to wait for a sign of host 0.
    """

    def __init__(self, room: Rendezvous, host: int, patience_s: float) -> None:
        self._room, self._host, self._patience_s = room, host, patience_s
        self._sent_keys: list[str] = []
        """Keys of the messages that this host has sent in the current trial."""

    def started(self) -> Statement:
        """Wait until host 0 has named the run; the run may also have ended already."""
        return self._await(lambda now: now.run_id != "" or now.phase == "end")

    def trials(self, specs: Mapping[str, TrialSpec], measure: Measure) -> Statement:
        """Measure every trial that host 0 names, until the end of the run.

        Args:
            specs: the trials of the config, by their ids.
            measure: measures a trial on this host.

        Raises:
            HostLost: host 0 gives no sign any more.
        """
        turn = 0
        is_measuring = False
        try:
            while True:
                now = self._await(partial(_is_new, turn))
                if now.phase == "end":
                    return now
                self._forget()
                turn = now.turn
                if self._host in now.idle:
                    continue
                if self._host not in now.hosts:
                    self._say(turn, "here", {})
                if now.phase == "prepare":
                    is_measuring = True
                    self._measure(specs[now.trial], now, measure)
                    is_measuring = False
        except HostLost:
            raise
        except BaseException as error:
            self._leave(turn if is_measuring else turn + 1, error)
            raise

    def farewell(self) -> None:
        """Let host 0 know that this host has read the end of the run."""
        self._room.put(left_key(self._host), {})

    def _measure(self, spec: TrialSpec, now: Statement, measure: Measure) -> None:
        start: _Start | None = None
        abandoned = False

        def begin() -> None:
            nonlocal start, abandoned
            try:
                start = self._begin(now.turn)
            except TrialFailed:
                abandoned = True
                raise

        trial, _ = measure(spec, own_order(spec, self._host, now.seed), begin)
        if abandoned:
            return
        part = HostPart(
            host=self._host,
            status=trial.status,
            reason=trial.reason,
            metrics=trial.metrics,
            cold=trial.cold,
            began_s=None if start is None else (0.0, start.latest_s),
            ended_s=None if start is None else self._room.clock.now_s() - start.begun_s,
        )
        self._say(now.turn, "outcome", asdict(HostOutcome(part, dict(self._room.requests))))

    def _begin(self, turn: int) -> _Start:
        """Return when all hosts begin.

        Raises:
            TrialFailed: the trial is not measured, or not by this host.
            HostLost: host 0 gives no sign any more.
        """
        self._say(turn, "ready", {})
        now = self._await(lambda now: now.turn != turn or now.phase != "prepare")
        self._require(now, turn, "assemble")
        # Host 0 gives the signal after it has read this, so that it is not there yet.
        not_yet_s = self._room.clock.now_s()
        self._say(turn, "steady", {})
        now, not_yet_s = self._signal(turn, not_yet_s)
        self._require(now, turn, "go")
        begun_s = self._room.clock.now_s()
        return _Start(begun_s, begun_s - not_yet_s)

    def _signal(self, turn: int, not_yet_s: float) -> tuple[Statement, float]:
        """Wait for the signal to begin; also returns the last moment at which it was not there."""

        def look() -> Statement | None:
            nonlocal not_yet_s
            looked_s = self._room.clock.now_s()
            now = self._statement()
            if now is not None and (now.turn != turn or now.phase != "assemble"):
                return now
            not_yet_s = looked_s
            return None

        now = self._room.wait(look, self._room.polling.quick_limit_s, quick=True)
        if now is None:
            now = self._room.wait(look, self._patience_s)
        return self._heard(now), not_yet_s

    def _require(self, now: Statement, turn: int, phase: Phase) -> None:
        """Check that this host takes part in a trial that has come to this phase."""
        if now.turn != turn or now.phase != phase or self._host not in now.hosts:
            if now.turn != turn:  # the message of host 0 was replaced between two looks
                raise TrialFailed("host 0 has gone on to the next trial; its output has the reason")
            if now.phase == "abandon" and now.reason:
                raise TrialFailed(now.reason)
            raise TrialFailed("the other hosts began without this one")

    def _await(self, condition: Callable[[Statement], bool]) -> Statement:
        """Wait until what host 0 says fulfils a condition.

        Raises:
            HostLost: it does not in time.
        """

        def look() -> Statement | None:
            now = self._statement()
            return now if now is not None and condition(now) else None

        return self._heard(self._room.wait(look, self._patience_s))

    def _heard(self, now: Statement | None) -> Statement:
        if now is None:
            raise HostLost(
                f"host 0 gave no sign for {self._patience_s:g} s: it has disappeared, or hangs. "
                "This host ends too."
            )
        return now

    def _statement(self) -> Statement | None:
        """The latest message of host 0; None before its first message."""
        content = self._room.get(NOW)
        return None if content is None else typed(Statement, content)

    def _say(self, turn: int, what: str, content: Mapping[str, Any]) -> None:
        key = turn_key(turn, what, self._host)
        self._sent_keys.append(key)
        self._room.put(key, content)

    def _forget(self) -> None:
        """Remove the messages of this host in an earlier trial, which host 0 has read."""
        self._room.remove(self._sent_keys)
        self._sent_keys = []

    def _leave(self, turn: int, error: BaseException) -> None:
        """Tell host 0 that this host ends, so that nobody waits for it."""
        reason = f"it ended: {type(error).__name__} {error}".strip()
        part = HostPart(self._host, "failed", reason)
        outcome = HostOutcome(part, dict(self._room.requests), leaves=True)
        with contextlib.suppress(DataprepError, OSError):
            self._say(turn, "outcome", asdict(outcome))


@dataclass(frozen=True, slots=True)
class _Start:
    """The begin of a trial on this host.

    Attributes:
        begun_s: the moment on the clock of this host.
        latest_s: the longest possible time since the signal was there.
    """

    begun_s: float
    latest_s: float


def _is_new(turn: int, now: Statement) -> bool:
    """Whether host 0 speaks of a later trial, or of the end."""
    return now.phase == "end" or now.turn > turn


def own_order(spec: TrialSpec, host: int, seed: int) -> TrialSpec:
    """The trial with an order of samples that no other host has.

    With the same order on all hosts, a store would give each object to all hosts at the same time,
    mostly from its cache. Host 0 measures in the order of a run without other hosts.
    """
    params = dict(spec.params)
    if spec.kind in _OWN_ORDER:
        params["seed"] = seed + host
    return replace(spec, params=params, repeat=spec.repeat + _REPEATS_APART * host)
