"""Locks of runs: which runs exclude each other, when a lock expires, and what it contains.

``tests/contracts/test_lock_contract.py`` has what every store must do.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dataprep
from dataprep.drawn import draw_tree
from dataprep.errors import (
    DataprepError,
    LeaseLost,
    OutputConflict,
    PermissionRefused,
    StoreUnreachable,
)
from dataprep.job import lock
from dataprep.job.lock import Locks
from dataprep.job.parts import Part
from dataprep.stores import Buffer
from dataprep.stores.memory import MemoryStore
from tests.commandline import objects

KEY = "leases/train"


class Clocked(MemoryStore):
    """A store whose clock only ``time.sleep`` moves. It can be unreachable or refuse removals."""

    def __init__(self) -> None:
        super().__init__(f"memory://{secrets.token_hex(6)}")
        self.ages: dict[str, float] = {}
        self.replaced = threading.Event()
        self.is_unreachable = self.refuses_removal = False

    def age_s(self, key: str) -> float:
        """The age that a test has set."""
        self.version(key)
        return self.ages.get(key, 0.0)

    def replace(self, key: str, data: Buffer, version: str) -> bool:
        """Replace an object unless the store is unreachable."""
        self.replaced.set()
        if self.is_unreachable:
            raise StoreUnreachable("unreachable")
        return super().replace(key, data, version)

    def delete(self, key: str) -> None:
        """Remove an object unless removals are refused."""
        if self.refuses_removal:
            raise PermissionRefused(key)
        super().delete(key)


@pytest.fixture
def store() -> Clocked:
    """An empty store."""
    return Clocked()


@pytest.fixture
def slept(store: Clocked, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses of runs that wait. Each pause makes every lock older.

    Threads of earlier tests, such as Dask's profiler, really sleep.
    """
    pauses: list[float] = []
    test, real_sleep = threading.current_thread(), time.sleep

    def sleep(seconds: float) -> None:
        if threading.current_thread() is not test:
            real_sleep(seconds)
            return
        pauses.append(seconds)
        for key in store.ages:
            store.ages[key] += seconds

    monkeypatch.setattr("time.sleep", sleep)
    return pauses


def locks(store: MemoryStore, part: Part | None = None, **options: bool) -> Locks:
    """The locks of a new run."""
    return Locks(store, part, lambda line: None, **options)


def lock_content(**changes: object) -> bytes:
    """The content of a lock of another machine, as this and earlier versions write it."""
    owner: dict[str, object] = {
        "said": "split 'train'",
        "token": "0123456789abcdef",
        "machine": "fedcba9876543210",
        "process": 4711,
        "started": "1234",
        "renewals": 7,
        "released": False,
    }
    return json.dumps({**owner, **changes}).encode()


def take_lock(store: Clocked) -> tuple[dict[str, Any], list[str]]:
    """The lock of a new run on ``train``, and the messages until the run had it."""
    notes: list[str] = []
    with Locks(store, None, notes.append) as mine:
        mine.take(["train"])
        mine.check()
        return current_lock(store), notes


def current_lock(store: MemoryStore) -> dict[str, Any]:
    """The content of the lock on ``train`` now."""
    content: dict[str, Any] = json.loads(store.get(KEY))
    return content


def exclude_each_other(part: Part | None, other: Part | None) -> bool:
    """Whether two runs must not write at the same time."""
    return part is None or other is None or part.count != other.count


parts = st.none() | st.integers(1, 3).flatmap(
    lambda count: st.builds(Part, st.integers(0, count - 1), st.just(count))
)


@given(runs=st.lists(parts, min_size=2, max_size=5, unique=True))
def test_only_parts_of_one_job_write_together(runs: list[Part | None]) -> None:
    """A run gets the lock if no earlier run excludes it. Otherwise it is refused."""
    store, admitted = MemoryStore(f"memory://{secrets.token_hex(6)}"), dict[Part | None, Locks]()
    for part in runs:
        new = locks(store, part)
        if any(exclude_each_other(part, other) for other in admitted):
            with pytest.raises(OutputConflict, match="another run is making"), new:
                new.take(["train"])
        else:
            new.take(["train"])
            admitted[part] = new
    assert len(list(store.list("leases/"))) == len(admitted)
    for run in admitted.values():
        run.check()
        run.__exit__(None, None, None)


def test_other_splits_do_not_matter(store: Clocked) -> None:
    """A lock does not exclude another split, even one whose name begins with its own."""
    with locks(store) as mine, locks(store, Part(0, 2)) as part, locks(store) as other:
        mine.take(["train"])
        part.take(["train2"])
        other.take(["val", "val"])
        assert {*objects(store)} == {KEY, "leases/train2.0-of-2", "leases/val"}


def test_a_lock_of_another_machine_is_waited_for_until_it_expires(
    store: Clocked, slept: list[float]
) -> None:
    """The store's clock counts, and the remaining time is shown at intervals."""
    store.put(KEY, lock_content())
    store.ages[KEY] = 10.0
    lock, notes = take_lock(store)
    assert lock["machine"] != "fedcba9876543210"
    assert sum(slept) == pytest.approx(110.0)
    assert "its lock expires, in 110 s unless that run renews it (--takeover skips" in notes[0]


def test_a_lock_that_is_renewed_is_waited_for_longer(
    store: Clocked, slept: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that renews its lock is alive, so no other run takes over."""
    store.put(KEY, lock_content())
    store.ages[KEY] = 0.0
    age_s, renewals = store.age_s, [60.0, 60.0, 60.0]

    def renewed(key: str) -> float:
        if renewals and age_s(key) >= renewals[-1]:
            renewals.pop()
            store.ages[key] = 0.0
        return age_s(key)

    monkeypatch.setattr(store, "age_s", renewed)
    take_lock(store)
    assert sum(slept) == pytest.approx(3 * 60.0 + 120.0)


def test_takeover_skips_the_wait(store: Clocked, slept: list[float]) -> None:
    """--takeover takes a lock on the same split, or one that would exclude the run, at once."""
    for key in (KEY, "leases/train.0-of-2"):
        store.put(key, lock_content())
    with locks(store, takeover=True) as mine:
        mine.take(["train"])
        assert {*objects(store)} == {KEY}
    assert slept == []


@pytest.mark.parametrize(
    "changes",
    [{"released": True}, {"machine": "here"}, {"machine": "here", "process": os.getpid()}],
    ids=["released", "ended", "number used again"],
)
def test_a_lock_of_no_living_run_is_taken_at_once(
    store: Clocked, slept: list[float], changes: dict[str, object]
) -> None:
    """The lock of an ended process is taken. The process is identified by its start time.

    Locks of earlier versions have the same form.
    """
    here = take_lock(store)[0]["machine"]
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    changes = {"process": ended.pid, **changes}
    if "machine" in changes:
        changes["machine"] = here
    store.put(KEY, lock_content(**changes))
    take_lock(store)
    assert slept == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[" * 100_000,
        lock_content(process="../../etc/passwd\0"),
        lock_content(said=["x"]),
    ],
    ids=lambda content: ascii(content[:60]),
)
def test_an_unreadable_lock_expires(store: Clocked, slept: list[float], content: bytes) -> None:
    """An unreadable lock, which a later version may have written, expires."""
    store.put(KEY, content)
    store.ages[KEY] = 0.0
    notes = take_lock(store)[1]
    assert sum(slept) == pytest.approx(120.0)
    assert "another run is making an unknown split (its lock file is unreadable) in" in notes[0]


def test_a_lock_is_described_in_one_short_line(store: Clocked) -> None:
    """The description has no control characters, because any program may have written the lock."""
    store.put(KEY, lock_content(said="\x1b[2Jsplit\n'train'" + "x" * 9999))
    with pytest.raises(OutputConflict) as refused, locks(store, Part(0, 2)) as mine:
        mine.take(["train"])
    message = str(refused.value)
    assert r"\x1b[2Jsplit\x0a'train'" in message
    assert len(message) < 600


@pytest.fixture
def renewing(store: Clocked, monkeypatch: pytest.MonkeyPatch) -> Iterator[Locks]:
    """A run that renews its lock without pauses."""
    monkeypatch.setattr(lock, "RENEWAL_INTERVAL_S", 0.001)
    monkeypatch.setattr(lock, "_RENEWAL_RETRY_INTERVAL_S", 0.001)
    with locks(store) as mine:
        mine.take(["train"])
        yield mine


def renewed(store: Clocked) -> None:
    """Wait for two renewals or attempts, because the first may have begun before the call."""
    for _ in range(2):
        store.replaced.clear()
        assert store.replaced.wait(60)


def test_a_lock_is_renewed(store: Clocked, renewing: Locks) -> None:
    """Each renewal makes another version of the lock. A failed renewal is repeated."""
    for is_unreachable in (False, True, False):
        store.is_unreachable = is_unreachable
        before = store.version(KEY)
        renewed(store)
        assert (store.version(KEY) != before) is not is_unreachable
        renewing.check()
    assert current_lock(store)["renewals"] > 0


def test_a_lock_of_another_run_is_not_renewed(store: Clocked, renewing: Locks) -> None:
    """A lock of another run is not renewed, and not removed at the end."""
    store.put(KEY, lock_content())
    with pytest.raises(LeaseLost):
        renewing.check()
    renewing.__exit__(None, None, None)
    assert store.get(KEY) == lock_content()


def test_a_lock_that_was_removed_is_lost(store: Clocked) -> None:
    """A removed lock is lost, because another run may have started since then."""
    with locks(store) as mine:
        mine.take(["train"])
        store.delete(KEY)
        with pytest.raises(LeaseLost):
            mine.check()


def test_a_lock_that_may_not_be_removed_is_marked_as_released(
    store: Clocked, slept: list[float]
) -> None:
    """A lock marked as released is taken at once, by the same run and by excluded ones."""
    store.refuses_removal = True
    for part in (None, Part(0, 2), None):
        with locks(store, part) as mine:
            mine.take(["train"])
        assert current_lock(store)["released"] is True
    assert slept == []


def test_no_name_of_a_machine_or_person_is_written(store: Clocked) -> None:
    """A number identifies the machine and its boot, instead of a name."""
    content, _ = take_lock(store)
    assert {*content} == {
        *("said", "token", "machine", "process", "started", "renewals", "released")
    }
    assert (content["said"], content["process"]) == ("split 'train'", os.getpid())
    assert len(content["machine"]) == 16
    assert socket.gethostname() not in json.dumps(content)


class Plain:
    """A store of another package that cannot keep locks."""

    def __init__(self) -> None:
        self.tidied = 0

    def tidy(self) -> None:
        """Count the call, and fail."""
        self.tidied += 1
        raise DataprepError("the disk is gone")


def test_a_store_without_locks_excludes_no_run() -> None:
    """Without locks, temporary files of interrupted writers are still removed if possible."""
    store: Any = Plain()
    with locks(store) as mine, locks(store) as other:
        for run in (mine, other):
            run.take(["train"])
            run.check()
        assert mine.by_split == {}
    assert store.tidied == 2


def test_a_run_that_lost_its_lock_completes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run whose lock is taken over when it stores its last receipt writes no manifest."""
    source = draw_tree(tmp_path / "photos", images=8, classes=2, seed=1).root
    output = f"memory://{secrets.token_hex(6)}"
    create = MemoryStore.create

    def taken_over(self: MemoryStore, key: str, data: Buffer) -> bool:
        if key.startswith("receipts/"):
            self.put(KEY, lock_content())
        return create(self, key, data)

    monkeypatch.setattr(MemoryStore, "create", taken_over)
    config = dataprep.ShardConfig.model_validate(
        {"source": str(source), "output": output, "dask": {"processes": False}}
    )
    with pytest.raises(LeaseLost, match=f"taken over split 'train' in {output}"):
        dataprep.shard(config)
    left = {*objects(MemoryStore(output))}
    assert not left & {"train.manifest.json", "train.samples.parquet"}
    monkeypatch.undo()
    (done,) = dataprep.shard(config, takeover=True)
    assert done.kept_shards == 1


@pytest.mark.parametrize("outlives_driver", [False, True])
def test_a_dead_driver_does_not_free_the_lock_of_tasks_on_a_cluster(
    store: Clocked, slept: list[float], outlives_driver: bool
) -> None:
    """Tasks outlive their driver, so the lock expires, even on the driver's machine."""
    with Locks(store, None, lambda line: None, outlives_driver=outlives_driver) as earlier:
        earlier.take(["train"])
        owner = current_lock(store)
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    store.put(KEY, json.dumps({**owner, "process": ended.pid}).encode())
    store.ages[KEY] = 0.0
    take_lock(store)
    assert sum(slept) == pytest.approx(120.0 if outlives_driver else 0.0)


def test_a_lock_that_is_left_to_expire_is_not_released(store: Clocked) -> None:
    """A lock is left to expire if tasks of its run may still write."""
    with locks(store) as mine:
        mine.take(["train"])
        mine.leave_to_expire()
    assert current_lock(store)["released"] is False


def test_a_process_that_sees_another_output_says_so(store: Clocked) -> None:
    """A worker without the mounted output, and so without lock and job file, reports this."""
    with locks(store) as mine:
        mine.take(["train"])
        elsewhere = MemoryStore(f"memory://{secrets.token_hex(6)}")
        lock_elsewhere = replace(mine.by_split["train"], store=elsewhere)
        with pytest.raises(LeaseLost) as caught:
            lock_elsewhere.check()
    (line,) = str(caught.value).splitlines()
    assert f"on host {socket.gethostname()} does not see the output {elsewhere.uri}" in line
    assert "under the same path" in line
