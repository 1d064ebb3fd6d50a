"""Locks of runs act alike in every store: one run at a time, and dead runs block nobody."""

from __future__ import annotations

import os
import pickle
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from dataprep.errors import LeaseLost, OutputConflict
from dataprep.job import lock
from dataprep.job.lock import Locks
from dataprep.job.parts import Part
from dataprep.stores import Store, StoreOptions, open_store

HAVING = """
import sys, time
from dataprep.job.lock import Locks
from dataprep.stores import StoreOptions, open_store
store = open_store(sys.argv[1], StoreOptions(endpoint_url=sys.argv[2] or None))
with Locks(store, None, print) as locks:
    locks.take(["train"])
    print("has it", flush=True)
    time.sleep(600)
"""

Location = tuple[str, str]
"""The URI of a store, and its endpoint."""


@pytest.fixture(params=["folder", "memory", "s3", "s3-radosgw"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    """A store location of each kind."""
    if request.param == "folder":
        (tmp_path / "out").mkdir()
        return str(tmp_path / "out"), ""
    if request.param == "memory":
        return f"memory://{secrets.token_hex(6)}", ""
    server, bucket = {"s3": ("s3_server", "bucket"), "s3-radosgw": ("radosgw", "radosgw_bucket")}[
        request.param
    ]
    url: str = request.getfixturevalue(server).url
    return f"s3://{request.getfixturevalue(bucket)}/out", url


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting runs check the lock at short intervals."""
    monkeypatch.setattr(lock, "_MAX_POLL_INTERVAL_S", 0.05)


def opened(location: Location) -> Store:
    """The store, opened again."""
    return open_store(location[0], StoreOptions(endpoint_url=location[1] or None))


def locks(location: Location, part: Part | None = None, **options: bool) -> Locks:
    """The locks of another run, whose messages are discarded."""
    return Locks(opened(location), part, lambda line: None, **options)


def names(location: Location) -> list[str]:
    """The keys of all objects that are listed."""
    return sorted(info.key for info in opened(location).list())


Elsewhere = Callable[[], "subprocess.Popen[str]"]


@pytest.fixture
def elsewhere(location: Location) -> Iterator[Elsewhere]:
    """A function that starts another process, which gets the lock of ``train``."""
    started: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        if location[0].startswith("memory://"):
            pytest.skip("processes do not share a store in memory")
        command = [sys.executable, "-c", HAVING, *location]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "has it\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_a_lock_is_an_object_that_goes_when_the_run_ends(location: Location) -> None:
    """The lock is removed even if the run fails, and it can be taken a second time."""

    def run() -> None:
        with locks(location) as held_locks:
            held_locks.take(["train", "val"])
            assert names(location) == ["leases/train", "leases/val"]
            held_locks.check()
            raise KeyError

    for _ in range(2):
        with pytest.raises(KeyError):
            run()
        assert names(location) == []


def test_a_second_run_waits_until_the_first_ends(location: Location) -> None:
    """The second run reports what it waits for, and how long it will wait at most."""
    notes: list[str] = []
    waits, has = threading.Event(), threading.Event()

    def second() -> None:
        def note(line: str) -> None:
            notes.append(line)
            waits.set()

        with Locks(opened(location), None, note) as other:
            other.take(["train"])
            has.set()

    thread = threading.Thread(target=second)
    with locks(location) as held_locks:
        held_locks.take(["train"])
        thread.start()
        assert waits.wait(60)
        assert not has.is_set()
    thread.join(60)
    assert has.is_set()
    assert (
        f"another run is making split 'train' in {location[0]}: waiting until it ends" in notes[0]
    )
    assert names(location) == []


@pytest.mark.parametrize("options", [os.WEXITED, os.WEXITED | os.WNOWAIT], ids=["gone", "zombie"])
def test_a_run_that_was_killed_keeps_nobody_waiting(
    location: Location, elsewhere: Elsewhere, options: int
) -> None:
    """On this machine, a killed process is known to have ended, so its locks are removed at once.

    This also holds if its parent has not waited for it.
    """
    process = elsewhere()
    store = opened(location)
    store.put("leases/train.0-of-2", store.get("leases/train"))
    process.kill()
    os.waitid(os.P_PID, process.pid, options)
    assert names(location) == ["leases/train", "leases/train.0-of-2"]
    notes: list[str] = []
    with Locks(store, None, notes.append) as held_locks:
        held_locks.take(["train"])
        held_locks.check()
        assert names(location) == ["leases/train"]
    assert notes == names(location) == []


def test_a_process_that_is_stopped_still_has_its_lock(
    location: Location, elsewhere: Elsewhere
) -> None:
    """A stopped process keeps its lock until it expires: a part beside it is refused."""
    elsewhere().send_signal(signal.SIGSTOP)
    with (
        pytest.raises(OutputConflict, match="another run is making split 'train'"),
        locks(location, Part(0, 2)) as held_locks,
    ):
        held_locks.take(["train"])


def test_who_takes_over_stops_the_other_run(location: Location) -> None:
    """The workers of the other run stop as well, and that run releases only its own lock."""
    with ExitStack() as earlier:
        held_locks = earlier.enter_context(locks(location))
        held_locks.take(["train"])
        copy = pickle.loads(pickle.dumps(held_locks.by_split["train"]))
        copy.check()
        with locks(location, takeover=True) as other:
            other.take(["train"])
            other.check()
            for check in (held_locks.check, copy.check):
                with pytest.raises(LeaseLost, match="another run has taken over split 'train' in"):
                    check()
            earlier.close()
            other.check()
    assert names(location) == []


def test_parts_of_one_job_write_together(location: Location) -> None:
    """A whole run, and parts of another number, are refused while one of the parts is alive."""
    with locks(location, Part(0, 2)) as first, locks(location, Part(1, 2)) as second:
        first.take(["train"])
        second.take(["train"])
        for part in (None, Part(1, 3)):
            with (
                pytest.raises(OutputConflict, match="another run is making part 0/2 of split"),
                locks(location, part) as other,
            ):
                other.take(["train"])
        first.check()
        second.check()
    assert names(location) == []


def test_of_many_at_once_one_gets_it(location: Location) -> None:
    """Of several simultaneous runs one gets the lock, and another one when it is released."""
    having: list[int] = []
    most: list[int] = []

    def run(number: int) -> None:
        with locks(location) as held_locks:
            held_locks.take(["train"])
            having.append(number)
            most.append(len(having))
            having.remove(number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert most == [1, 1, 1, 1]
