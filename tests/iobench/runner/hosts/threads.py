"""Several hosts in one process: the others are threads, and their objects are in memory."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dataprep.stores import Store
from dataprep.stores.memory import MemoryStore
from iobench.config.benchmark import BenchConfig
from iobench.errors import TrialFailed
from iobench.results.trial import Outcome, Trial, TrialSpec
from iobench.runner.hosts.follower import Follower
from iobench.runner.hosts.joining import Gathering, join, make_hello
from iobench.runner.hosts.leader import Leader
from iobench.runner.hosts.messages import Hello, LeaderMessage
from iobench.runner.hosts.rendezvous import Polling, Rendezvous
from iobench.runner.hosts.settings import HostSettings
from iobench.runner.progress import Lines

QUICK = Polling(first_s=0.001, growth=1.2, longest_s=0.01, quick_s=0.001, quick_limit_s=20.0)
PATIENCE_S = 60.0
CONFIG = BenchConfig()

Body = Callable[[TrialSpec, Callable[[], None]], Mapping[str, Any]]
"""Measures a trial: calls its second argument, and returns metrics."""


def spec(name: str = "a", repeat: int = 0, **params: Any) -> TrialSpec:
    """Return a trial for the hosts."""
    return TrialSpec("loader", {"loader": name, **params}, repeat)


def lobby(store: Store) -> Rendezvous:
    """Return the root of a rendezvous that is polled often."""
    return Rendezvous(store, QUICK)


def hello(host: int, count: int, **changes: Any) -> Hello:
    """Return the greeting of a host."""
    settings = HostSettings(host, count, "memory://", None, 1.0)  # type: ignore[arg-type]
    return replace(make_hello(settings, CONFIG), **changes)


def measuring(body: Body) -> Callable[[TrialSpec, Callable[[], None]], tuple[Trial, Outcome]]:
    """Return a function that measures as a process would: an error becomes a failed trial."""

    def measure(of: TrialSpec, begin: Callable[[], None]) -> tuple[Trial, Outcome]:
        trial = Trial(of.id, of.kind, of.params, of.repeat, "done")
        try:
            metrics = body(of, begin)
        except TrialFailed as error:
            return replace(trial, status="failed", reason=str(error)), Outcome({})
        return replace(trial, metrics=metrics), Outcome(metrics)

    return measure


def at_once(rate: float) -> Body:
    """Return a measurement that gives a rate and takes no time."""

    def body(of: TrialSpec, begin: Callable[[], None]) -> Mapping[str, Any]:
        begin()
        return {"mb_per_s": rate}

    return body


@dataclass
class Thread:
    """One of the other hosts, with the trials that host 0 asked it to measure."""

    host: int
    requested_trials: list[TrialSpec] = field(default_factory=list)
    leader_messages: list[LeaderMessage] = field(default_factory=list)
    error: BaseException | None = None


class Hosts:
    """Host 0 in this thread, and the others in threads of their own.

    Args:
        bodies: what each of the other hosts does; the first is host 1.
        specs: the trials of the config.
        wait_s, trial_limit_s: the limits of host 0.
    """

    def __init__(
        self,
        *bodies: Body,
        specs: tuple[TrialSpec, ...] = (spec(),),
        wait_s: float = 30.0,
        trial_limit_s: float = 30.0,
    ) -> None:
        self.store = MemoryStore(f"memory://{id(self)}")
        self.notes = io.StringIO()
        self._wait_s = wait_s
        self._specs = {trial_spec.id: trial_spec for trial_spec in specs}
        self._count = 1 + len(bodies)
        self.others = [Thread(1 + number) for number in range(len(bodies))]
        self._threads = [
            threading.Thread(target=self._run, args=(other, body), daemon=True)
            for other, body in zip(self.others, bodies, strict=True)
        ]
        root = lobby(self.store)
        own = hello(0, self._count)
        self._gathering = Gathering(root, own, CONFIG, "meeting")
        self.first = Leader(
            root.within("meeting"),
            own,
            wait_s=wait_s,
            trial_limit_s=trial_limit_s,
            note=Lines(self.notes).note,
        )

    def __enter__(self) -> Hosts:
        for thread in self._threads:
            thread.start()
        self.first.meet(self._gathering.wait(PATIENCE_S))
        self.first.start("run", 7, resumed=False)
        return self

    def __exit__(self, *_: object) -> None:
        self.first.end(self.first.exit_code)
        for thread in self._threads:
            thread.join(PATIENCE_S)

    def measure(self, of: TrialSpec, body: Body) -> Trial:
        """Measure a trial on all hosts; ``body`` is the measurement of host 0."""
        trial, _ = self.first.measure(of, measuring(body))
        return trial

    def _run(self, other: Thread, body: Body) -> None:
        def measure(
            of: TrialSpec, own: TrialSpec, begin: Callable[[], None]
        ) -> tuple[Trial, Outcome]:
            other.requested_trials.append(own)
            return measuring(body)(of, begin)

        try:
            root = lobby(self.store)
            meeting = join(root, hello(other.host, self._count), PATIENCE_S)
            side = Follower(root.within(meeting), other.host, PATIENCE_S)
            other.leader_messages.append(side.wait_for_start())
            other.leader_messages.append(side.measure_trials(self._specs, measure))
            side.confirm_end()
        except BaseException as error:  # noqa: BLE001  looked at by the test
            other.error = error
