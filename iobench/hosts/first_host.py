"""Host 0's side of a run: it says which trial is next, and collects what all hosts measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from dataprep.schema import typed
from iobench.errors import TrialFailed
from iobench.hosts.messages import (
    NOW,
    Hello,
    HostOutcome,
    Phase,
    Statement,
    left_key,
    parsed_turn_key,
    turn_key,
    turn_prefix,
)
from iobench.hosts.rendezvous import Rendezvous
from iobench.plan import on_all_hosts
from iobench.result import HostFacts
from iobench.together import together
from iobench.trial import HostPart, Outcome, Status, Together, Trial, TrialSpec

Measure = Callable[[TrialSpec, Callable[[], None]], tuple[Trial, Outcome]]
"""Measures a trial on this host; calls its second argument when the trial is prepared."""

_GRACE_S = 15.0
"""Time to end a trial that is over its limit, and to report that."""
_FAREWELL_S = 15.0


class FirstHost:
    """Leads the hosts from trial to trial.

    A host that does not come to a trial, or has no result after the limit, is *absent*: the trial
    has failed, and the others go on without the host. It takes part again as soon as it shows that
    it is alive.

    Args:
        room: the objects of this meeting.
        own: what this host says about itself.
        wait_s: how long to wait until a host is prepared for a trial.
        trial_limit_s: how long a trial may take after its begin.
        note: receives a line when a host is absent or is back.
    """

    def __init__(
        self,
        room: Rendezvous,
        own: Hello,
        *,
        wait_s: float,
        trial_limit_s: float,
        note: Callable[[str], None],
    ) -> None:
        self._room, self._own = room, own
        self._wait_s, self._trial_limit_s = wait_s, trial_limit_s
        self._note = note
        self._others: Sequence[Hello] = ()
        self.exit_code = 0
        """The exit code of the run, for the other hosts; set before its end."""
        self._now = Statement(0, "start")
        self._absent: dict[int, str] = {}
        """Why hosts are absent."""
        self._gone: set[int] = set()
        """Hosts that have announced that they leave."""
        self._requests: dict[int, Mapping[str, int]] = {}

    @property
    def hosts(self) -> int:
        """The number of hosts, this one included."""
        return self._own.hosts

    def meet(self, others: Sequence[Hello]) -> None:
        """Take note of the hosts that have joined."""
        self._others = others

    def described(self) -> list[HostFacts]:
        """Each host: in what its machine differs from this one, and its requests so far."""
        facts = [HostFacts(0, requests=dict(self._room.requests))]
        for hello in self._others:
            differing = {
                key: value
                for key, value in hello.environment.items()
                if value != self._own.environment.get(key)
            }
            requests = self._requests.get(hello.host, {})
            facts.append(HostFacts(hello.host, differing, requests))
        return facts

    def start(self, run_id: str, seed: int, *, resumed: bool) -> None:
        """Tell the others the name of the run and the seed of its orders."""
        self._say("start", run_id=run_id, seed=seed, resumed=resumed)

    def measure(self, spec: TrialSpec, measure: Measure) -> tuple[Trial, Outcome]:
        """Measure a trial on all hosts at the same time, or on as many as its ``hosts`` says.

        The outcome is that of this host. The trial has failed if it failed on one of the hosts.
        """
        present = [0, *self._present()]
        expected = int(spec.params.get("hosts", self.hosts))
        turn = _Turn(self._now.turn + 1, expected, present[:expected])
        plain = on_all_hosts(spec)
        self._say(
            "prepare",
            turn=turn.number,
            hosts=turn.hosts,
            idle=present[expected:],
            trial=plain.id,
            repeat=plain.repeat,
            reason="",
        )
        trial, outcome = measure(plain, lambda: self._begin(turn))
        trial = replace(trial, id=spec.id, params=spec.params)
        if turn.began_s is None:
            if not turn.reason:  # this host itself could not begin
                turn.reason = f"host 0: {trial.reason}"
                self._say("abandon", reason=turn.reason)
                return trial, Outcome({})
            refused = replace(trial, status=turn.status, reason=turn.reason, metrics={}, cold=None)
            return replace(refused, hosts=self._together(turn)), Outcome({})
        turn.parts[0] = HostPart(
            host=0,
            status=trial.status,
            reason=trial.reason,
            metrics=trial.metrics,
            cold=trial.cold,
            began_s=turn.began_s,
            ended_s=self._room.clock.now_s() - turn.start_s,
        )
        self._collect(turn)
        return self._result(turn, trial, outcome)

    def end(self, exit_code: int, reason: str = "") -> None:
        """Tell the others that the run is over, wait until they know, and remove all objects.

        A host that does not answer may still be alive: what it waits for is left for it.
        """
        self._say("end", exit_code=exit_code, reason=reason)
        hosts = [hello.host for hello in self._others if hello.host not in self._gone]
        farewells = {left_key(host) for host in hosts}

        def all_left() -> bool | None:
            return farewells <= set(self._room.keys("left-")) or None

        kept = set() if self._room.wait(all_left, _FAREWELL_S) else {NOW}
        self._room.remove(set(self._room.keys("")) - kept)

    def _present(self) -> list[int]:
        return [hello.host for hello in self._others if hello.host not in self._absent]

    def _say(self, phase: Phase, **changes: Any) -> None:
        """Put a statement that differs from the one before in its phase and in ``changes``."""
        self._now = replace(self._now, phase=phase, **changes)
        self._room.put(NOW, asdict(self._now))

    def _begin(self, turn: _Turn) -> None:
        """Wait until all hosts are prepared, then let all begin.

        Raises:
            TrialFailed: a host is not prepared in time, or cannot measure the trial.
        """
        late = f"it was not prepared within {self._wait_s:g} s (--host-timeout)"
        self._gather(turn, "ready", self._wait_s, late)
        turn.is_open = False
        self._say("assemble", hosts=turn.hosts)
        quick_s = self._room.polling.quick_limit_s
        self._gather(turn, "steady", quick_s, f"it gave no sign for {quick_s:g} s before the begin")
        clock = self._room.clock
        before_s = clock.now_s()
        self._say("go")
        turn.start_s = clock.now_s()
        turn.began_s = (0.0, turn.start_s - before_s)

    def _gather(self, turn: _Turn, state: str, limit_s: float, late: str) -> None:
        """Wait until all hosts of a trial have sent the message ``state``.

        ``late`` is the reason of a host that has not in time.

        Raises:
            TrialFailed: a host has not in time, or has an outcome already.
        """
        arrived: set[int] = set()

        def look() -> bool | None:
            messages = self._look(turn)
            arrived.update(host for what, host in messages if what == state)
            if any(what == "outcome" and host in turn.hosts for what, host in messages):
                return True
            return set(turn.hosts) <= arrived | {0} or None

        complete = self._room.wait(look, limit_s)
        early = [part for host, part in turn.parts.items() if host in turn.hosts]
        if early:
            turn.status = "skipped" if all(p.status == "skipped" for p in early) else "failed"
            self._abandon(turn, "; ".join(_words(part) for part in early))
        if complete is None:
            missing = sorted(set(turn.hosts) - arrived - {0})
            for host in missing:
                self._lose(turn, host, late)
            turn.status = "failed"
            self._abandon(turn, "; ".join(_words(turn.parts[host]) for host in missing))

    def _abandon(self, turn: _Turn, reason: str) -> None:
        turn.reason = reason
        self._say("abandon", reason=reason)
        raise TrialFailed(reason)

    def _collect(self, turn: _Turn) -> None:
        """Wait for the outcomes of all hosts; hosts without one in time are absent from now on."""

        def look() -> bool | None:
            self._look(turn)
            return set(turn.hosts) <= turn.parts.keys() or None

        limit_s = self._trial_limit_s + _GRACE_S
        left_s = turn.start_s + limit_s - self._room.clock.now_s()
        self._room.wait(look, max(0.0, left_s))
        for host in sorted(set(turn.hosts) - turn.parts.keys()):
            why = (
                f"it gave no result within {limit_s:g} s after the begin (trial_timeout_s, and "
                f"{_GRACE_S:g} s to report): it has disappeared, or hangs"
            )
            self._lose(turn, host, why)

    def _look(self, turn: _Turn) -> list[tuple[str, int]]:
        """The messages that hosts have sent in this trial so far; outcomes are read once."""
        messages = [parsed_turn_key(key) for key in self._room.keys(turn_prefix(turn.number))]
        for what, host in messages:
            if what == "outcome" and host not in turn.parts:
                self._read_outcome(turn, host)
            if host in self._absent and host not in self._gone and host not in turn.lost:
                del self._absent[host]
                self._note(f"host {host} is back")
                if turn.is_open and len(turn.hosts) < turn.expected:
                    turn.hosts = sorted([*turn.hosts, host])
        return messages

    def _read_outcome(self, turn: _Turn, host: int) -> None:
        content = self._room.get(turn_key(turn.number, "outcome", host))
        if content is None:
            return
        outcome = typed(HostOutcome, content)
        turn.parts[host] = outcome.part
        self._requests[host] = outcome.requests
        if outcome.leaves:
            self._gone.add(host)
            self._lose(turn, host, outcome.part.reason)

    def _lose(self, turn: _Turn, host: int, why: str) -> None:
        self._absent[host] = why
        turn.lost.add(host)
        turn.parts.setdefault(host, HostPart(host, "failed", why))
        self._note(f"host {host}: {why}; the others go on")

    def _result(self, turn: _Turn, trial: Trial, outcome: Outcome) -> tuple[Trial, Outcome]:
        of_hosts = self._together(turn)
        broken = [turn.parts[host] for host in turn.hosts if turn.parts[host].status != "done"]
        if not broken:
            return replace(trial, hosts=of_hosts), outcome
        status: Status = "failed"
        if all(part.status == "skipped" for part in broken):
            status = "skipped"
        reason = "; ".join(_words(part) for part in broken)
        refused = replace(trial, status=status, reason=reason, metrics={}, cold=None)
        return replace(refused, hosts=of_hosts), Outcome({})

    def _together(self, turn: _Turn) -> Together:
        parts = dict(turn.parts)
        for host in turn.hosts:
            if host not in parts:
                parts[host] = HostPart(
                    host, "skipped", "not measured, since another host could not"
                )
        for host in range(turn.expected):
            if host not in parts and len(parts) < turn.expected:
                why = self._absent.get(host, "it came too late for this trial")
                parts[host] = HostPart(host, "failed", f"absent: {why}")
        return together(turn.expected, list(parts.values()))


class _Turn:
    """One trial: who takes part, and what is known of each host."""

    def __init__(self, number: int, expected: int, hosts: list[int]) -> None:
        self.number, self.expected, self.hosts = number, expected, hosts
        self.parts: dict[int, HostPart] = {}
        self.lost: set[int] = set()
        self.is_open = True
        """Whether a host that was absent can still join."""
        self.status: Status = "failed"
        self.reason = ""
        self.start_s = math.nan
        self.began_s: tuple[float, float] | None = None


def _words(part: HostPart) -> str:
    """``host 2: the loader gave no batch``, for a part without figures."""
    return f"host {part.host}: {part.reason}"
