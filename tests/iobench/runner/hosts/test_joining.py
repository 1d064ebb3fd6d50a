"""Hosts find each other before anything is measured, and those that do not fit are refused."""

from __future__ import annotations

import contextlib
import io
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from dataprep.errors import ConfigError
from dataprep.stores import StoreOptions
from dataprep.stores.memory import MemoryStore
from iobench.clock import SystemClock
from iobench.errors import NothingRan
from iobench.runner.hosts.follower import Follower
from iobench.runner.hosts.joining import Gathering, join
from iobench.runner.hosts.joint_run import leading
from iobench.runner.hosts.messages import LEADER_KEY, Hello, LeaderMessage, answer_key, joined_key
from iobench.runner.hosts.rendezvous import Rendezvous
from iobench.runner.hosts.settings import HostSettings
from iobench.runner.progress import Lines
from tests.iobench.runner.hosts.threads import CONFIG, PATIENCE_S, hello, lobby


class Joining:
    """A host that joins in a thread of its own."""

    def __init__(self, store: MemoryStore, own: Hello, wait_s: float = PATIENCE_S) -> None:
        self.meeting = ""
        self.error: Exception | None = None
        self._own, self._store, self._wait_s = own, store, wait_s
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def ended(self) -> Joining:
        """Wait until the thread has ended, and return the host."""
        self._thread.join(PATIENCE_S)
        return self

    def _run(self) -> None:
        try:
            self.meeting = join(lobby(self._store), self._own, self._wait_s)
        except (ConfigError, NothingRan) as error:
            self.error = error


@pytest.fixture
def store() -> MemoryStore:
    """Return an empty store for a rendezvous."""
    store = MemoryStore("memory://joining")
    for info in list(store.list()):
        store.delete(info.key)
    return store


def gathering(store: MemoryStore, hosts: int, meeting: str = "meeting") -> Gathering:
    """Return the side of host 0, which waits for the other hosts."""
    return Gathering(lobby(store), hello(0, hosts), CONFIG, meeting)


def test_all_hosts_learn_the_name_of_the_meeting(store: MemoryStore) -> None:
    """Hosts may come in any order."""
    others = [Joining(store, hello(host, 3)) for host in (2, 1)]
    joined = gathering(store, 3).wait(PATIENCE_S)
    assert [member.host for member in joined] == [1, 2]
    assert [other.ended().meeting for other in others] == ["meeting", "meeting"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"config": {**CONFIG.model_dump(mode="json"), "repeats": 3}}, r"\(repeats differ\)"),
        ({"version": "0.0"}, "host 1 has version 0.0 and host 0 has"),
        ({"protocol": 99}, "install the same version"),
        ({"hosts": 4}, "--hosts 4 and host 0 with --hosts 2"),
    ],
)
def test_a_host_that_does_not_fit_ends_both(
    store: MemoryStore, changes: dict[str, Any], message: str
) -> None:
    """Both hosts end with the same message and exit code 2."""
    other = Joining(store, hello(1, 2, **changes))
    with pytest.raises(ConfigError, match=message) as refused:
        gathering(store, 2).wait(PATIENCE_S)
    assert str(other.ended().error) == str(refused.value)
    assert refused.value.exit_code == 2


class LateHost:
    """Host 2 of three, which joins when host 0 has already ended the run."""

    def __init__(self, root: Rendezvous) -> None:
        self.statement: LeaderMessage | None = None
        self._root, self._own = root, hello(2, 3)
        self._root.put(self._own.key, asdict(self._own))
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def ended(self) -> LateHost:
        """Wait until the thread has ended, and return the host."""
        self._thread.join(PATIENCE_S)
        return self

    def _run(self) -> None:
        key = answer_key(self._own.token)
        answer = self._root.wait(lambda: self._root.get(key), PATIENCE_S)
        assert answer is not None
        room = self._root.within(answer["meeting"])
        assert room.wait(lambda: room.get(LEADER_KEY), 5.0) is not None
        room.put(joined_key(self._own), {})
        other = Follower(room, 2, PATIENCE_S)
        self.statement = other.wait_for_start()
        other.confirm_end()


def test_a_host_that_joins_while_another_is_refused_ends_too(tmp_path: Path) -> None:
    """The host gets the run's exit code, and nothing is left in the rendezvous."""
    root = Rendezvous.at(str(tmp_path), StoreOptions())
    late = LateHost(root)
    wrong = hello(1, 3, config={**CONFIG.model_dump(mode="json"), "repeats": 3})
    refused = threading.Thread(target=_join_in_vain, args=(root, wrong), daemon=True)
    refused.start()
    settings = HostSettings(0, 3, str(tmp_path), StoreOptions(), PATIENCE_S)
    with (
        pytest.raises(ConfigError, match=r"\(repeats differ\)"),
        leading(settings, CONFIG, Lines(io.StringIO())),
    ):
        pytest.fail("the run began")
    statement = late.ended().statement
    assert statement is not None
    assert (statement.phase, statement.exit_code) == ("end", 2)
    refused.join(PATIENCE_S)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def _join_in_vain(root: Rendezvous, own: Hello) -> None:
    """Join as a host that is refused."""
    with contextlib.suppress(ConfigError):
        join(root, own, PATIENCE_S)


def test_a_limit_that_measures_nothing_else_may_differ(store: MemoryStore) -> None:
    """``trial_timeout_s`` may differ between hosts."""
    config = {**CONFIG.model_dump(mode="json"), "trial_timeout_s": 5.0}
    other = Joining(store, hello(1, 2, config=config))
    gathering(store, 2).wait(PATIENCE_S)
    assert other.ended().meeting == "meeting"


def test_two_processes_with_one_number_are_refused(store: MemoryStore) -> None:
    """The message says to start one process on each host."""
    for _ in range(2):
        Joining(store, hello(1, 3))
    with pytest.raises(ConfigError, match="two processes are host 1: start one process on each"):
        gathering(store, 3).wait(PATIENCE_S)


def test_objects_of_an_earlier_run_are_ignored(store: MemoryStore) -> None:
    """Objects of a killed run in the rendezvous are ignored."""
    stale = hello(1, 2, config={"repeats": 3})
    root = lobby(store)
    root.put(stale.key, asdict(stale))
    root.put("answer-0123", {"meeting": "earlier", "refused": ""})
    root.within("earlier").put("now", {"turn": 9, "phase": "go"})
    other = Joining(store, hello(1, 2))
    gathering(store, 2).wait(PATIENCE_S)
    assert other.ended().meeting == "meeting"
    assert [key for key in root.keys("") if key.startswith("hello-")] == []


def test_a_host_that_does_not_come_is_named(store: MemoryStore) -> None:
    """Host 0 ends after the limit, and names the missing host."""
    Joining(store, hello(1, 3))
    with pytest.raises(NothingRan, match=r"host 2 did not come to memory://joining within 0.3 s"):
        gathering(store, 3).wait(0.3)


class LastMoment(SystemClock):
    """A clock whose last host confirms its answer just after host 0 has looked for the last time.

    The time of the wait is over at the second look at the clock.
    """

    def __init__(self, store: MemoryStore, own: Hello) -> None:
        self._room, self._own = lobby(store).within("meeting"), own
        self._looks = 0

    def now_s(self) -> float:
        """Return 0 at first. After that, the wait is over."""
        self._looks += 1
        if self._looks == 2:
            self._room.put(joined_key(self._own), {})
        return 0.0 if self._looks == 1 else 100.0


def test_a_host_that_joins_in_the_last_moment_takes_part(store: MemoryStore) -> None:
    """A host counts that confirms its answer after the last look, before the wait is given up."""
    other = hello(1, 2)
    root = lobby(store)
    root.put(other.key, asdict(other))
    root.clock = LastMoment(store, other)
    joined = Gathering(root, hello(0, 2), CONFIG, "meeting").wait(1.0)
    assert [member.host for member in joined] == [1]


def test_host_0_may_not_come_either(store: MemoryStore) -> None:
    """The other host ends after the limit, and removes its greeting."""
    other = Joining(store, hello(1, 2), wait_s=0.1).ended()
    assert "host 0 did not answer at memory://joining within 0.1 s" in str(other.error)
    assert list(store.list()) == []
