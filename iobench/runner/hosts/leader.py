"""Host 0 is the leader: it chooses the next trial, and collects the results of all hosts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from dataprep.schema import typed
from iobench.config.plan import on_all_hosts
from iobench.errors import TrialFailed
from iobench.results.host_sums import combine_host_parts
from iobench.results.result import HostFacts
from iobench.results.trial import HostPart, Outcome, Status, Together, Trial, TrialSpec
from iobench.runner.hosts.messages import (
    LEADER_KEY,
    Hello,
    HostOutcome,
    LeaderMessage,
    Phase,
    TurnMessage,
    left_key,
    parse_turn_key,
    turn_key,
    turn_prefix,
)
from iobench.runner.hosts.rendezvous import Rendezvous

Measure = Callable[[TrialSpec, Callable[[], None]], tuple[Trial, Outcome]]
"""Measures a trial on this host.

It calls its second argument when the trial is prepared. That function returns when the measurement
may begin, or raises TrialFailed.
"""

_REPORT_S = 15.0
"""The time in seconds that a host gets to end a trial after its time limit, and to report the
failure."""
_FAREWELL_S = 15.0
"""The maximum time in seconds that host 0 waits at the end of a run until the other hosts have read
the end."""


class Leader:
    """Leads the hosts from trial to trial.

    A host becomes *absent* if it is not prepared for a trial in time, or if it sends no result in
    time. That trial has failed, and the other hosts go on with the next trial. An absent host takes
    part again as soon as it sends a message, in the current trial if that trial has not begun. A
    host that has announced that it leaves the run is absent until the end.

    Args:
        meeting: the objects of this meeting.
        own_hello: the hello of host 0.
        wait_s: how long to wait until a host is prepared for a trial, in seconds.
        trial_limit_s: how long a trial may take after its beginning, in seconds.
        note: receives a line when a host becomes absent or is back.
    """

    def __init__(
        self,
        meeting: Rendezvous,
        own_hello: Hello,
        *,
        wait_s: float,
        trial_limit_s: float,
        note: Callable[[str], None],
    ) -> None:
        self._meeting, self._own_hello = meeting, own_hello
        self._wait_s, self._trial_limit_s = wait_s, trial_limit_s
        self._note = note
        self._followers: Sequence[Hello] = ()
        self.exit_code = 0
        """The exit code of the run, which the other hosts get at its end. The caller sets it."""
        self._message = LeaderMessage(0, "start")
        self._absent: dict[int, str] = {}
        """The reasons why hosts are absent, by the numbers of these hosts."""
        self._departed: set[int] = set()
        """The numbers of the hosts that have announced that they leave the run."""
        self._requests: dict[int, Mapping[str, int]] = {}
        """The numbers of requests to the rendezvous that each other host has last reported, by the
        number of the host."""

    @property
    def hosts(self) -> int:
        """The number of hosts, this one included."""
        return self._own_hello.hosts

    def meet(self, followers: Sequence[Hello]) -> None:
        """Set the other hosts of the meeting, all at once."""
        self._followers = followers

    def host_facts(self) -> list[HostFacts]:
        """Facts about each host, first about this one: differences from this machine, requests."""
        facts = [HostFacts(0, requests=dict(self._meeting.requests))]
        own_environment = self._own_hello.environment
        for hello in self._followers:
            differences = {
                key: value
                for key, value in hello.environment.items()
                if value != own_environment.get(key)
            }
            requests = self._requests.get(hello.host, {})
            facts.append(HostFacts(hello.host, differences, requests))
        return facts

    def start(self, run_id: str, seed: int, *, resumed: bool) -> None:
        """Send the other hosts what they need before the first trial.

        Args:
            run_id: the id of the run.
            seed: the seed from which the other hosts derive their orders of samples.
            resumed: whether the run continues an earlier one.
        """
        self._send("start", run_id=run_id, seed=seed, resumed=resumed)

    def measure(self, spec: TrialSpec, measure: Measure) -> tuple[Trial, Outcome]:
        """Measure a trial on all hosts at the same time.

        If the trial has a parameter ``hosts``, it runs on this number of hosts. A trial has figures
        only if it was done on each host that took part.

        Args:
            spec: the trial.
            measure: measures a trial on this host.

        Returns:
            The trial with the parts of all hosts, and the outcome of this host. The outcome is
            empty if the trial has no figures.
        """
        present_hosts = [0, *self._present_followers()]
        expected = int(spec.params.get("hosts", self.hosts))
        turn = _Turn(self._message.turn + 1, expected, present_hosts[:expected])
        host_spec = on_all_hosts(spec)
        self._send(
            "prepare",
            turn=turn.number,
            hosts=turn.hosts,
            idle=present_hosts[expected:],
            trial=host_spec.id,
            repeat=host_spec.repeat,
            reason="",
        )
        trial, outcome = measure(host_spec, lambda: self._begin(turn))
        trial = replace(trial, id=spec.id, params=spec.params)
        if turn.began_s is None:
            return self._trial_not_begun(turn, trial), Outcome({})
        turn.parts[0] = HostPart(
            host=0,
            status=trial.status,
            reason=trial.reason,
            metrics=trial.metrics,
            cold=trial.cold,
            began_s=turn.began_s,
            ended_s=self._meeting.clock.now_s() - turn.start_s,
        )
        self._collect_outcomes(turn)
        return self._result(turn, trial, outcome)

    def end(self, exit_code: int, reason: str = "") -> None:
        """Announce the end of the run, and remove the objects when all hosts have read it.

        If a host does not confirm the end in time, it may still read the message later. The message
        is then kept, and all other objects are removed.

        Args:
            exit_code: the exit code of the run, for the other hosts.
            reason: why the run ended early; empty if it did not.
        """
        self._send("end", exit_code=exit_code, reason=reason)
        hosts = [hello.host for hello in self._followers if hello.host not in self._departed]
        farewells = {left_key(host) for host in hosts}

        # The functions with which this class waits return None to be called again.
        def all_left() -> bool | None:
            has_all = farewells <= set(self._meeting.keys("left-"))
            return True if has_all else None

        have_all_left = self._meeting.wait(all_left, _FAREWELL_S)
        kept_keys = set() if have_all_left else {LEADER_KEY}
        self._meeting.remove(set(self._meeting.keys("")) - kept_keys)

    def _present_followers(self) -> list[int]:
        """The numbers of the other hosts that are not absent."""
        return [hello.host for hello in self._followers if hello.host not in self._absent]

    def _send(self, phase: Phase, **changes: Any) -> None:
        """Replace the message of host 0. Fields that are not in ``changes`` stay as they are."""
        self._message = replace(self._message, phase=phase, **changes)
        self._meeting.put(LEADER_KEY, asdict(self._message))

    def _begin(self, turn: _Turn) -> None:
        """Wait until all hosts are prepared, then let all begin.

        The hosts first answer that they read the message of host 0 at short intervals
        (``steady``), so that all of them soon notice the signal.

        Raises:
            TrialFailed: a host is not prepared in time, gives no answer, or cannot measure the
                trial.
        """
        late_reason = f"it was not prepared within {self._wait_s:g} s (--host-timeout)"
        self._wait_for_hosts(turn, "ready", self._wait_s, late_reason)
        turn.is_open = False
        self._send("assemble", hosts=turn.hosts)
        quick_s = self._meeting.polling.quick_limit_s
        silent_reason = f"it gave no sign for {quick_s:g} s before the begin"
        self._wait_for_hosts(turn, "steady", quick_s, silent_reason)
        clock = self._meeting.clock
        before_s = clock.now_s()
        self._send("go")
        turn.start_s = clock.now_s()
        turn.began_s = (0.0, turn.start_s - before_s)

    def _wait_for_hosts(
        self, turn: _Turn, expected: TurnMessage, limit_s: float, late_reason: str
    ) -> None:
        """Wait until all hosts of a trial have sent a message.

        Args:
            turn: the trial.
            expected: the kind of the message.
            limit_s: how long to wait, in seconds.
            late_reason: the reason why a host is absent if it has not sent the message by then.

        Raises:
            TrialFailed: a host has not sent the message in time, or has sent an outcome already,
                since it cannot measure the trial or leaves the run.
        """
        arrived: set[int] = set()

        def is_decided() -> bool | None:
            messages = self._read_messages(turn)
            has_early_outcome = False
            for message, host in messages:
                if message == expected:
                    arrived.add(host)
                elif message == "outcome" and host in turn.hosts:
                    has_early_outcome = True
            have_all_arrived = set(turn.hosts) <= arrived | {0}  # Host 0 sends no such message.
            return True if has_early_outcome or have_all_arrived else None

        decided_in_time = self._meeting.wait(is_decided, limit_s)
        early_parts = [part for host, part in turn.parts.items() if host in turn.hosts]
        if early_parts:
            turn.status = _common_status(early_parts)
            self._abandon(turn, _join_reasons(early_parts))
        if decided_in_time is None:
            missing = sorted(set(turn.hosts) - arrived - {0})
            for host in missing:
                self._mark_absent(turn, host, late_reason)
            turn.status = "failed"
            self._abandon(turn, _join_reasons([turn.parts[host] for host in missing]))

    def _abandon(self, turn: _Turn, reason: str) -> None:
        """Announce that the trial is not measured.

        Raises:
            TrialFailed: always. The error ends the trial on this host.
        """
        turn.reason = reason
        self._send("abandon", reason=reason)
        raise TrialFailed(reason)

    def _trial_not_begun(self, turn: _Turn, trial: Trial) -> Trial:
        """The trial without figures, after it has begun on no host.

        Args:
            turn: the trial on all hosts.
            trial: the trial as this host reports it.
        """
        if not turn.reason:  # This host itself could not begin.
            turn.reason = f"host 0: {trial.reason}"
            self._send("abandon", reason=turn.reason)
            return trial
        hosts = self._combine(turn)
        return _without_figures(trial, turn.status, turn.reason, hosts)

    def _collect_outcomes(self, turn: _Turn) -> None:
        """Wait for the outcomes of all hosts. A host that sends none in time becomes absent."""

        def all_have_parts() -> bool | None:
            self._read_messages(turn)
            has_all = set(turn.hosts) <= turn.parts.keys()
            return True if has_all else None

        limit_s = self._trial_limit_s + _REPORT_S
        remaining_s = turn.start_s + limit_s - self._meeting.clock.now_s()
        self._meeting.wait(all_have_parts, max(0.0, remaining_s))
        for host in sorted(set(turn.hosts) - turn.parts.keys()):
            reason = (
                f"it gave no result within {limit_s:g} s after the begin (trial_timeout_s, and "
                f"{_REPORT_S:g} s to report): it has disappeared, or hangs"
            )
            self._mark_absent(turn, host, reason)

    def _read_messages(self, turn: _Turn) -> list[tuple[TurnMessage, int]]:
        """The kinds of the messages in this trial so far, each with the number of its host.

        The outcome of each host is read once. If an absent host has sent a message, it is no longer
        absent, unless it leaves the run or became absent in this trial. If the trial has not begun
        and has too few hosts, that host takes part in it.
        """
        keys = self._meeting.keys(turn_prefix(turn.number))
        messages = [parse_turn_key(key) for key in keys]
        for message, host in messages:
            if message == "outcome" and host not in turn.parts:
                self._read_outcome(turn, host)
            is_back = host in self._absent and host not in self._departed
            if is_back and host not in turn.lost:
                del self._absent[host]
                self._note(f"host {host} is back")
                if turn.is_open and len(turn.hosts) < turn.expected:
                    turn.hosts = sorted([*turn.hosts, host])
        return messages

    def _read_outcome(self, turn: _Turn, host: int) -> None:
        """Read the outcome of a host, if its object still exists.

        A host that leaves the run becomes absent.
        """
        content = self._meeting.get(turn_key(turn.number, "outcome", host))
        if content is None:
            return
        outcome = typed(HostOutcome, content)
        turn.parts[host] = outcome.part
        self._requests[host] = outcome.requests
        if outcome.leaves:
            self._departed.add(host)
            self._mark_absent(turn, host, outcome.part.reason)

    def _mark_absent(self, turn: _Turn, host: int, reason: str) -> None:
        """Go on without a host. If it has sent no outcome, its part of the trial has failed."""
        self._absent[host] = reason
        turn.lost.add(host)
        turn.parts.setdefault(host, HostPart(host, "failed", reason))
        self._note(f"host {host}: {reason}; the other hosts go on")

    def _result(self, turn: _Turn, trial: Trial, outcome: Outcome) -> tuple[Trial, Outcome]:
        """The trial with the parts of all hosts, and the outcome of this host.

        If the trial was not done on each host, it has no figures, and the outcome is empty.
        """
        hosts = self._combine(turn)
        parts = [turn.parts[host] for host in turn.hosts]
        unfinished = [part for part in parts if part.status != "done"]
        if not unfinished:
            return replace(trial, hosts=hosts), outcome
        status = _common_status(unfinished)
        return _without_figures(trial, status, _join_reasons(unfinished), hosts), Outcome({})

    def _combine(self, turn: _Turn) -> Together:
        """Combine the parts of all hosts, with a reason for each host that has no part.

        Hosts that did not take part are added until the trial has the expected number of parts.
        """
        parts = dict(turn.parts)
        for host in turn.hosts:
            if host not in parts:
                reason = "not measured, since another host could not measure"
                parts[host] = HostPart(host, "skipped", reason)
        for host in range(turn.expected):
            if host not in parts and len(parts) < turn.expected:
                reason = self._absent.get(host, "it came too late for this trial")
                parts[host] = HostPart(host, "failed", f"absent: {reason}")
        return combine_host_parts(turn.expected, list(parts.values()))


class _Turn:
    """One trial of several hosts.

    Args:
        number: the number of the trial among the trials of this meeting, from 1.
        expected: the number of hosts that should run it.
        hosts: the numbers of the hosts that take part. A host that comes back can be added.
    """

    def __init__(self, number: int, expected: int, hosts: list[int]) -> None:
        self.number, self.expected, self.hosts = number, expected, hosts
        self.parts: dict[int, HostPart] = {}
        """The part of each host that has sent an outcome or became absent, by its number."""
        self.lost: set[int] = set()
        """The numbers of the hosts that became absent in this trial."""
        self.is_open = True
        """Whether a host that comes back can still take part."""
        self.status: Status = "failed"
        """The status of the trial if it is abandoned."""
        self.reason = ""
        """The reason why the trial was abandoned; empty if it was not."""
        self.start_s = math.nan
        """The moment in seconds when host 0 began, on its clock; NaN before it."""
        self.began_s: tuple[float, float] | None = None
        """The earliest and the latest possible start of host 0, in seconds after the signal to
        begin (see ``HostPart``); None before it."""


def _without_figures(trial: Trial, status: Status, reason: str, hosts: Together) -> Trial:
    """The trial with the parts of all hosts, but without figures of its own."""
    return replace(trial, status=status, reason=reason, metrics={}, cold=None, hosts=hosts)


def _common_status(parts: Sequence[HostPart]) -> Status:
    """The status of a trial that was not done on each host: ``skipped`` or ``failed``.

    Args:
        parts: the parts of the hosts on which it was not done.
    """
    all_skipped = all(part.status == "skipped" for part in parts)
    return "skipped" if all_skipped else "failed"


def _join_reasons(parts: Sequence[HostPart]) -> str:
    """The reasons of several hosts, such as ``host 2: the loader gave no batch; host 3: ...``."""
    return "; ".join(f"host {part.host}: {part.reason}" for part in parts)
