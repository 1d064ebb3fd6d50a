"""Every host except host 0 is a follower: it measures the trials that host 0 names, and reports."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from dataprep.errors import DataprepError
from dataprep.schema import typed
from iobench.errors import HostLost, TrialFailed
from iobench.results.trial import HostPart, Outcome, Trial, TrialSpec
from iobench.runner.hosts.messages import (
    LEADER_KEY,
    HostOutcome,
    LeaderMessage,
    Phase,
    TurnMessage,
    left_key,
    turn_key,
)
from iobench.runner.hosts.rendezvous import Rendezvous

Measure = Callable[[TrialSpec, TrialSpec, Callable[[], None]], tuple[Trial, Outcome]]
"""Measures a trial on this host.

The first argument is the trial that host 0 has named, which the progress shows. The second argument
is the trial to measure, with this host's own order. The third argument is a function to call when
the trial is prepared. It returns when the measurement may begin, or raises TrialFailed.
"""

_KINDS_WITH_SEED = {"loader", "train"}
"""Kinds of trials whose order of samples depends on a parameter ``seed``."""
_MAX_REPEATS = 100_000
"""More repeats than a config can have. Multiples of it, added to the numbers of the repeats, give
each host different numbers. The probes draw their random positions from these numbers."""


class Follower:
    """Takes part in the trials of a meeting until host 0 ends it.

    Args:
        meeting: the objects of the meeting.
        host: the number of this host.
        patience_s: how long to wait for a message of host 0, in seconds.
    """

    def __init__(self, meeting: Rendezvous, host: int, patience_s: float) -> None:
        self._meeting, self._host, self._patience_s = meeting, host, patience_s
        self._sent_keys: list[str] = []
        """The keys of the messages that this host has sent in the current trial."""

    def wait_for_start(self) -> LeaderMessage:
        """Wait until host 0 has sent the id of the run, or has already ended the run.

        Raises:
            HostLost: host 0 has sent neither in time.
        """
        return self._wait_for(lambda message: message.run_id != "" or message.phase == "end")

    def measure_trials(self, specs: Mapping[str, TrialSpec], measure: Measure) -> LeaderMessage:
        """Measure every trial that host 0 names, until the end of the run.

        A trial for fewer hosts, for which this host is not needed, is not measured. If an error
        ends this method, host 0 is informed, unless host 0 has disappeared.

        Args:
            specs: the trials of the config, by their ids.
            measure: measures a trial on this host.

        Returns:
            The last message of host 0.

        Raises:
            HostLost: host 0 has stopped sending messages.
        """
        turn = 0
        is_measuring = False
        try:
            while True:
                message = self._wait_for(partial(_is_new, turn))
                if message.phase == "end":
                    return message
                self._remove_sent_messages()
                turn = message.turn
                if self._host in message.idle:
                    continue
                if self._host not in message.hosts:
                    self._send(turn, "here", {})
                if message.phase == "prepare":
                    is_measuring = True
                    self._measure(specs[message.trial], message, measure)
                    is_measuring = False
        except HostLost:
            raise
        except BaseException as error:
            # Host 0 has read all it needs of a trial that this host has ended. It will look for
            # messages in the next trial.
            self._announce_leaving(turn if is_measuring else turn + 1, error)
            raise

    def confirm_end(self) -> None:
        """Let host 0 know that this host has read the end of the run."""
        self._meeting.put(left_key(self._host), {})

    def _measure(self, spec: TrialSpec, message: LeaderMessage, measure: Measure) -> None:
        """Measure a trial, and send the outcome.

        If host 0 does not let the trial begin on this host, no outcome is sent, since it expects
        none.
        """
        start: _Start | None = None
        was_not_begun = False

        def begin() -> None:
            nonlocal start, was_not_begun
            try:
                start = self._begin(message.turn)
            except TrialFailed:
                was_not_begun = True
                raise

        own_spec = with_own_order(spec, self._host, message.seed)
        trial, _ = measure(spec, own_spec, begin)
        if was_not_begun:
            return
        part = HostPart(
            host=self._host,
            status=trial.status,
            reason=trial.reason,
            metrics=trial.metrics,
            cold=trial.cold,
        )
        if start is not None:
            ended_s = self._meeting.clock.now_s() - start.begun_s
            part = replace(part, began_s=(0.0, start.max_delay_s), ended_s=ended_s)
        outcome = HostOutcome(part, dict(self._meeting.requests))
        self._send(message.turn, "outcome", asdict(outcome))

    def _begin(self, turn: int) -> _Start:
        """Report that the trial is prepared, and return when all hosts begin.

        A host may be prepared long before the others. It therefore waits in two steps: with long
        pauses until all hosts are prepared, and then with short pauses for the signal to begin.

        Raises:
            TrialFailed: the trial is not measured, or not by this host.
            HostLost: host 0 has stopped sending messages.
        """
        self._send(turn, "ready", {})
        message = self._wait_for(lambda message: message.turn != turn or message.phase != "prepare")
        self._require(message, turn, "assemble")
        # Host 0 gives the signal after it has read the message ``steady``, so it cannot have given
        # the signal before this moment.
        before_signal_s = self._meeting.clock.now_s()
        self._send(turn, "steady", {})
        message, before_signal_s = self._wait_for_signal(turn, before_signal_s)
        self._require(message, turn, "go")
        begun_s = self._meeting.clock.now_s()
        return _Start(begun_s, begun_s - before_signal_s)

    def _wait_for_signal(self, turn: int, before_signal_s: float) -> tuple[LeaderMessage, float]:
        """Wait until host 0 gives the signal to begin, or abandons the trial.

        The pauses are short for ``Polling.quick_limit_s``. If the signal has not come by then, they
        are long again, so that fewer requests are sent.

        Args:
            turn: the number of the trial.
            before_signal_s: a moment on the clock of this host, before the signal.

        Returns:
            The message that ended the wait, and the last known moment before this message.

        Raises:
            HostLost: host 0 has stopped sending messages.
        """

        def read_signal() -> LeaderMessage | None:
            nonlocal before_signal_s
            read_s = self._meeting.clock.now_s()
            message = self._leader_message()
            if message is None or (message.turn == turn and message.phase == "assemble"):
                before_signal_s = read_s
                return None
            return message

        quick_limit_s = self._meeting.polling.quick_limit_s
        message = self._meeting.wait(read_signal, quick_limit_s, quick=True)
        if message is None:
            message = self._meeting.wait(read_signal, self._patience_s)
        return self._require_message(message), before_signal_s

    def _require(self, message: LeaderMessage, turn: int, phase: Phase) -> None:
        """Check that a trial has reached this phase, and that this host takes part in it.

        Raises:
            TrialFailed: the trial is not measured, or not by this host.
        """
        if message.turn != turn:  # Host 0 has replaced its message before this host has read it.
            raise TrialFailed("host 0 has gone on to the next trial; its output has the reason")
        if message.phase == phase and self._host in message.hosts:
            return
        if message.phase == "abandon" and message.reason:
            raise TrialFailed(message.reason)
        raise TrialFailed("the other hosts began without this one")

    def _wait_for(self, condition: Callable[[LeaderMessage], bool]) -> LeaderMessage:
        """Wait until the message of host 0 fulfils a condition.

        Raises:
            HostLost: no message has fulfilled the condition in time.
        """

        def read_message() -> LeaderMessage | None:
            message = self._leader_message()
            return message if message is not None and condition(message) else None

        return self._require_message(self._meeting.wait(read_message, self._patience_s))

    def _require_message(self, message: LeaderMessage | None) -> LeaderMessage:
        """Check that a wait for a message of host 0 has ended with a message.

        Raises:
            HostLost: the message is None, because the wait has ended without one.
        """
        if message is None:
            raise HostLost(
                f"host 0 gave no sign for {self._patience_s:g} s: it has disappeared, or hangs. "
                "This host ends too."
            )
        return message

    def _leader_message(self) -> LeaderMessage | None:
        """The latest message of host 0; None before its first message."""
        content = self._meeting.get(LEADER_KEY)
        return None if content is None else typed(LeaderMessage, content)

    def _send(self, turn: int, message: TurnMessage, content: Mapping[str, Any]) -> None:
        """Send a message of this host in a trial.

        Args:
            turn: the number of the trial.
            message: the kind of the message.
            content: the content of its object.
        """
        key = turn_key(turn, message, self._host)
        self._sent_keys.append(key)
        self._meeting.put(key, content)

    def _remove_sent_messages(self) -> None:
        """Remove the messages of this host in the previous trial, which host 0 reads no more."""
        self._meeting.remove(self._sent_keys)
        self._sent_keys = []

    def _announce_leaving(self, turn: int, error: BaseException) -> None:
        """Inform host 0 that this host ends, so that no host waits for it.

        Args:
            turn: the number of the trial in which host 0 will read the message.
            error: the error that ends this host.
        """
        reason = f"it ended: {type(error).__name__} {error}".strip()
        part = HostPart(self._host, "failed", reason)
        outcome = HostOutcome(part, dict(self._meeting.requests), leaves=True)
        with contextlib.suppress(DataprepError, OSError):
            self._send(turn, "outcome", asdict(outcome))


@dataclass(frozen=True, slots=True)
class _Start:
    """The beginning of a trial on this host.

    Attributes:
        begun_s: the moment of the beginning, in seconds on the clock of this host.
        max_delay_s: the longest possible time from the signal of host 0 to this moment, in seconds.
    """

    begun_s: float
    max_delay_s: float


def _is_new(turn: int, message: LeaderMessage) -> bool:
    """Whether the message of host 0 is about a later trial, or the end of the run."""
    return message.phase == "end" or message.turn > turn


def with_own_order(spec: TrialSpec, host: int, seed: int) -> TrialSpec:
    """The trial with an order that no other host has.

    With the same order on all hosts, all hosts would request each object at the same time, and a
    store would mostly answer from its cache. Host 0 does not call this function, so it has the
    order of a run on a single host.

    Args:
        spec: the trial that host 0 has named.
        host: the number of this host, from 1.
        seed: the seed of the run (``LeaderMessage.seed``).
    """
    params = dict(spec.params)
    if spec.kind in _KINDS_WITH_SEED:
        params["seed"] = seed + host
    return replace(spec, params=params, repeat=spec.repeat + _MAX_REPEATS * host)
