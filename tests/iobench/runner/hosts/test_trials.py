"""Trials of several hosts begin together, and a host that is missing is named."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import pytest

from dataprep.stores.memory import MemoryStore
from iobench.errors import TrialFailed
from iobench.results.trial import HostPart, Outcome, Together, Trial, TrialSpec
from iobench.runner.hosts.follower import Follower, with_own_order
from iobench.runner.hosts.messages import LEADER_KEY, LeaderMessage
from tests.iobench.runner.hosts.threads import PATIENCE_S, Hosts, at_once, lobby, measuring, spec


def parts(trial: Trial) -> dict[int, HostPart]:
    """Return the parts of a trial by the host's number."""
    assert trial.hosts is not None
    return {part.host: part for part in trial.hosts.parts}


def hosts(trial: Trial) -> Together:
    """Return the figures of all hosts together."""
    assert trial.hosts is not None
    return trial.hosts


def failing(reason: str, *, prepared: bool) -> Callable[..., Mapping[str, Any]]:
    """Return a measurement that fails with this reason, before or after its begin."""

    def body(of: TrialSpec, begin: Callable[[], None]) -> Mapping[str, Any]:
        if prepared:
            begin()
        raise TrialFailed(reason)

    return body


def test_figures_of_all_hosts_are_collected() -> None:
    """The trial has sums, the slowest host, the figures of each host, and the spread of starts."""
    with Hosts(at_once(30.0), at_once(10.0)) as run:
        trial = run.measure(spec(), at_once(20.0))
    assert trial.status == "done"
    assert trial.metrics == {"mb_per_s": 20.0}
    of_all = hosts(trial)
    assert of_all.sums == {"mb_per_s": 60.0}
    assert of_all.slowest == 2
    assert [part.metrics["mb_per_s"] for part in of_all.parts] == [20.0, 30.0, 10.0]
    assert of_all.start_spread_s is not None
    assert of_all.start_spread_s >= 0
    assert list(of_all.missing) == []


def test_no_host_begins_before_all_are_prepared() -> None:
    """The last host to be prepared releases the others."""
    prepared, begun = threading.Semaphore(0), []

    def waiting(of: TrialSpec, begin: Callable[[], None]) -> Mapping[str, Any]:
        begin()
        begun.append(last_is_prepared.is_set())
        return {"mb_per_s": 1.0}

    last_is_prepared = threading.Event()

    def last(of: TrialSpec, begin: Callable[[], None]) -> Mapping[str, Any]:
        assert prepared.acquire(timeout=PATIENCE_S)
        last_is_prepared.set()
        return waiting(of, begin)

    def first(of: TrialSpec, begin: Callable[[], None]) -> Mapping[str, Any]:
        prepared.release()
        return waiting(of, begin)

    with Hosts(waiting, last) as run:
        assert run.measure(spec(), first).status == "done"
    assert begun == [True, True, True]


def test_hosts_are_told_the_trial_the_repeat_and_the_seed() -> None:
    """Each other host reads in an order of its own, which depends on the run's seed."""
    third = spec("b", repeat=2, workers=3)
    with Hosts(at_once(1.0), at_once(1.0), specs=(spec(), third)) as run:
        run.measure(third, at_once(1.0))
    seeds = set()
    for other in run.others:
        (requested,) = other.requested_trials
        assert {**requested.params, "seed": None} == {**third.params, "seed": None}
        assert requested == with_own_order(third, other.host, 7)
        seeds.add((requested.params["seed"], requested.repeat))
    assert len(seeds | {(0, third.repeat)}) == 3


@pytest.mark.parametrize("prepared", [False, True])
def test_a_host_that_fails_is_named_and_fails_the_trial_alone(prepared: bool) -> None:
    """The next trial is measured by all hosts."""
    turns: list[TrialSpec] = []

    def sometimes(of: TrialSpec, begin: Callable[[], None]) -> Mapping[str, Any]:
        turns.append(of)
        body = failing("no data", prepared=prepared) if len(turns) == 1 else at_once(5.0)
        return body(of, begin)

    with Hosts(at_once(1.0), sometimes) as run:
        broken = run.measure(spec(), at_once(1.0))
        sound = run.measure(spec(), at_once(1.0))
    assert (broken.status, broken.metrics) == ("failed", {})
    assert broken.reason == "host 2: no data"
    assert sound.status == "done"
    assert hosts(sound).sums == {"mb_per_s": 7.0}


def test_a_failure_of_host_0_fails_the_trial_of_all() -> None:
    """The others are released and measure the next trial."""
    with Hosts(at_once(1.0)) as run:
        before = run.measure(spec(), failing("no disk", prepared=False))
        during = run.measure(spec(), failing("disk broke", prepared=True))
        sound = run.measure(spec(), at_once(1.0))
    assert (before.status, before.reason) == ("failed", "no disk")
    assert (during.status, during.reason) == ("failed", "host 0: disk broke")
    assert sound.status == "done"
    assert len(run.others[0].requested_trials) >= 2


def test_a_host_that_missed_why_its_trial_ended_refers_to_host_0() -> None:
    """Host 0 may abandon a trial and go on between two looks of another host."""
    room = lobby(MemoryStore("memory://missed")).within("meeting")
    room.put(LEADER_KEY, asdict(LeaderMessage(1, "prepare", hosts=(0, 1), trial=spec().id)))
    reasons = []

    def overtaken(of: TrialSpec, begin: Callable[[], None]) -> Mapping[str, Any]:
        room.put(LEADER_KEY, asdict(LeaderMessage(2, "end")))
        try:
            begin()
        except TrialFailed as error:
            reasons.append(str(error))
            raise
        return {}

    def measure(_: TrialSpec, own: TrialSpec, begin: Callable[[], None]) -> tuple[Trial, Outcome]:
        return measuring(overtaken)(own, begin)

    ended = Follower(room, 1, PATIENCE_S).measure_trials({spec().id: spec()}, measure)
    assert ended.phase == "end"
    assert reasons == ["host 0 has gone on to the next trial; its output has the reason"]


def test_a_late_host_ends_its_trial_and_takes_part_again() -> None:
    """The others wait for a late host no longer than the limit, and it joins the next trial."""
    delay, turns = threading.Event(), []

    def late_once(of: TrialSpec, begin: Callable[[], None]) -> Mapping[str, Any]:
        turns.append(of)
        if len(turns) == 1:
            assert delay.wait(PATIENCE_S)
        return at_once(10.0)(of, begin)

    with Hosts(at_once(1.0), late_once, wait_s=0.5) as run:
        missed = run.measure(spec(), at_once(1.0))
        alone = run.measure(spec(), at_once(1.0))
        delay.set()
        again = alone
        for _ in range(2_000):
            again = run.measure(spec(), at_once(1.0))
            if not hosts(again).missing:
                break
        later = run.measure(spec(), at_once(1.0))
    assert missed.status == "failed"
    assert missed.reason.startswith("host 2: it was not prepared within 0.5 s")
    assert alone.status == "done"
    assert list(hosts(alone).missing) == [2]
    assert hosts(alone).sums == {"mb_per_s": 2.0}
    assert hosts(again).sums == {"mb_per_s": 12.0}
    assert list(hosts(later).missing) == []
    assert run.notes.getvalue().count("host 2 is back") == 1


def test_a_host_that_disappears_during_a_trial_is_named() -> None:
    """The trial fails after its limit; the others go on without waiting again."""
    gone = threading.Event()

    def vanishing(of: TrialSpec, begin: Callable[[], None]) -> Mapping[str, Any]:
        begin()
        gone.wait(PATIENCE_S)
        return {}

    with Hosts(at_once(1.0), vanishing, trial_limit_s=-14.5) as run:
        lost = run.measure(spec(), at_once(1.0))
        after = run.measure(spec(), at_once(1.0))
        gone.set()
    assert lost.status == "failed"
    assert lost.reason.startswith("host 2: it gave no result")
    assert (after.status, list(hosts(after).missing)) == ("done", [2])
    assert parts(after)[2].reason.startswith("absent: it gave no result")


def test_a_host_that_ends_says_so_and_is_not_waited_for() -> None:
    """A host that ends, such as by Ctrl-C, is not waited for."""

    def interrupted(of: TrialSpec, begin: Callable[[], None]) -> Mapping[str, Any]:
        raise KeyboardInterrupt

    with Hosts(at_once(1.0), interrupted) as run:
        lost = run.measure(spec(), at_once(1.0))
        after = run.measure(spec(), at_once(1.0))
    assert lost.reason == "host 2: it ended: KeyboardInterrupt"
    assert list(hosts(after).missing) == [2]
    assert isinstance(run.others[1].error, KeyboardInterrupt)


def test_a_trial_can_be_measured_on_fewer_hosts() -> None:
    """The hosts that are left out do nothing, and take part in the next trial."""
    with Hosts(at_once(1.0), at_once(1.0)) as run:
        outcome = run.measure(spec(hosts=1), at_once(4.0))
        two = run.measure(spec(hosts=2), at_once(4.0))
        three = run.measure(spec(), at_once(4.0))
    assert [hosts(trial).hosts for trial in (outcome, two, three)] == [1, 2, 3]
    assert [hosts(trial).sums["mb_per_s"] for trial in (outcome, two, three)] == [4.0, 5.0, 6.0]
    assert [len(other.requested_trials) for other in run.others] == [2, 1]
    assert (outcome.params["hosts"], outcome.id) == (1, spec(hosts=1).id)


def test_the_end_reaches_all_hosts_and_leaves_nothing() -> None:
    """Each host gets the run's exit code; no object stays in the rendezvous."""
    with Hosts(at_once(1.0), at_once(1.0)) as run:
        run.measure(spec(), at_once(1.0))
        run.first.exit_code = 1
    assert [other.leader_messages[-1].exit_code for other in run.others] == [1, 1]
    assert list(run.store.list()) == []


def test_requests_of_all_hosts_are_counted() -> None:
    """The result has the requests of the rendezvous."""
    with Hosts(at_once(1.0)) as run:
        run.measure(spec(), at_once(1.0))
        facts = run.first.host_facts()
    assert [fact.host for fact in facts] == [0, 1]
    assert all(fact.requests["puts"] >= 3 for fact in facts)
    assert facts[1].requests["gets"] > 0
