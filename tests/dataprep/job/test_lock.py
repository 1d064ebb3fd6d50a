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
from dataprep.errors import (
    DataprepError,
    LeaseLost,
    OutputConflict,
    PermissionRefused,
    StoreUnreachable,
)
from dataprep.job import lock
from dataprep.job.lock import Locks
from dataprep.sample import draw_tree
from dataprep.split_plan import Part
from dataprep.stores import Buffer
from dataprep.stores.memory import MemoryStore
from tests.commandline import objects

KEY = "leases/train"


class Clocked(MemoryStore):
    """A store whose clock only ``time.sleep`` moves, and that can be away or refuse removals."""

    def __init__(self) -> None:
        super().__init__(f"memory://{secrets.token_hex(6)}")
        self.ages: dict[str, float] = {}
        self.replaced = threading.Event()
        self.is_away = self.refuses_removal = False

    def age_s(self, key: str) -> float:
        """As it was set."""
        self.version(key)
        return self.ages.get(key, 0.0)

    def replace(self, key: str, data: Buffer, version: str) -> bool:
        """As its parent, if it is not away."""
        self.replaced.set()
        if self.is_away:
            raise StoreUnreachable("away")
        return super().replace(key, data, version)

    def delete(self, key: str) -> None:
        """As its parent, if that is allowed."""
        if self.refuses_removal:
            raise PermissionRefused(key)
        super().delete(key)


@pytest.fixture
def store() -> Clocked:
    """An empty one."""
    return Clocked()


@pytest.fixture
def slept(store: Clocked, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Pauses of those who wait; they make every lock older.

    Threads that earlier tests have left, such as Dask's profiler, sleep as before.
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
    """Those of one more run."""
    return Locks(store, part, lambda line: None, **options)


def written(**changes: object) -> bytes:
    """The lock of another machine, as this version and the one before write it."""
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


def taken(store: Clocked) -> tuple[dict[str, Any], list[str]]:
    """The lock of a new run on ``train``, and what was said until it had it."""
    notes: list[str] = []
    with Locks(store, None, notes.append) as mine:
        mine.take(["train"])
        mine.check()
        return own(store), notes


def own(store: MemoryStore) -> dict[str, Any]:
    """What the lock on ``train`` holds now."""
    content: dict[str, Any] = json.loads(store.get(KEY))
    return content


def clash(one: Part | None, other: Part | None) -> bool:
    """Whether two runs must not write together."""
    return one is None or other is None or one.count != other.count


parts = st.none() | st.integers(1, 3).flatmap(
    lambda count: st.builds(Part, st.integers(0, count - 1), st.just(count))
)


@given(runs=st.lists(parts, min_size=2, max_size=5, unique=True))
def test_only_parts_of_one_job_write_together(runs: list[Part | None]) -> None:
    """A run is let in if it goes with each of those that were, and refused otherwise."""
    store, let_in = MemoryStore(f"memory://{secrets.token_hex(6)}"), dict[Part | None, Locks]()
    for part in runs:
        new = locks(store, part)
        if any(clash(part, other) for other in let_in):
            with pytest.raises(OutputConflict, match="another run is making"), new:
                new.take(["train"])
        else:
            new.take(["train"])
            let_in[part] = new
    assert len(list(store.list("leases/"))) == len(let_in)
    for run in let_in.values():
        run.check()
        run.__exit__(None, None, None)


def test_other_splits_do_not_matter(store: Clocked) -> None:
    """Also one whose name begins as this one's does."""
    with locks(store) as mine, locks(store, Part(0, 2)) as part, locks(store) as other:
        mine.take(["train"])
        part.take(["train2"])
        other.take(["val", "val"])
        assert {*objects(store)} == {KEY, "leases/train2.0-of-2", "leases/val"}


def test_a_lock_of_another_machine_is_waited_for_until_it_expires(
    store: Clocked, slept: list[float]
) -> None:
    """By the store's clock; what is left is said now and then."""
    store.put(KEY, written())
    store.ages[KEY] = 10.0
    lock, notes = taken(store)
    assert lock["machine"] != "fedcba9876543210"
    assert sum(slept) == pytest.approx(110.0)
    assert "its lock expires, in 110 s unless that run renews it (--takeover skips" in notes[0]


def test_a_lock_that_is_renewed_is_waited_for_longer(
    store: Clocked, slept: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its run lives: nobody takes over from it."""
    store.put(KEY, written())
    store.ages[KEY] = 0.0
    age_s, renewals = store.age_s, [60.0, 60.0, 60.0]

    def renewed(key: str) -> float:
        if renewals and age_s(key) >= renewals[-1]:
            renewals.pop()
            store.ages[key] = 0.0
        return age_s(key)

    monkeypatch.setattr(store, "age_s", renewed)
    taken(store)
    assert sum(slept) == pytest.approx(3 * 60.0 + 120.0)


def test_takeover_skips_the_wait(store: Clocked, slept: list[float]) -> None:
    """Of a lock for the same, and of one that would be refused."""
    for key in (KEY, "leases/train.0-of-2"):
        store.put(key, written())
    with locks(store, takeover=True) as mine:
        mine.take(["train"])
        assert {*objects(store)} == {KEY}
    assert slept == []


@pytest.mark.parametrize(
    "changes",
    [{"released": True}, {"machine": "here"}, {"machine": "here", "process": os.getpid()}],
    ids=["released", "ended", "number used again"],
)
def test_a_lock_that_nobody_has_is_taken_at_once(
    store: Clocked, slept: list[float], changes: dict[str, object]
) -> None:
    """Earlier versions wrote the same; a process is known by when it began."""
    here = taken(store)[0]["machine"]
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    changes = {"process": ended.pid, **changes}
    if "machine" in changes:
        changes["machine"] = here
    store.put(KEY, written(**changes))
    taken(store)
    assert slept == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[" * 100_000,
        written(process="../../etc/passwd\0"),
        written(said=["x"]),
    ],
    ids=lambda content: ascii(content[:60]),
)
def test_what_is_no_lock_expires_as_one(store: Clocked, slept: list[float], content: bytes) -> None:
    """It may be a later version's."""
    store.put(KEY, content)
    store.ages[KEY] = 0.0
    notes = taken(store)[1]
    assert sum(slept) == pytest.approx(120.0)
    assert "another run is making an unknown split (its lock file is unreadable) in" in notes[0]


def test_what_a_lock_says_is_shown_as_one_short_line(store: Clocked) -> None:
    """It may be anybody's: nothing in it moves a terminal."""
    store.put(KEY, written(said="\x1b[2Jsplit\n'train'" + "x" * 9999))
    with pytest.raises(OutputConflict) as refused, locks(store, Part(0, 2)) as mine:
        mine.take(["train"])
    said = str(refused.value)
    assert r"\x1b[2Jsplit\x0a'train'" in said
    assert len(said) < 600


@pytest.fixture
def renewing(store: Clocked, monkeypatch: pytest.MonkeyPatch) -> Iterator[Locks]:
    """A run that renews its lock all the time."""
    monkeypatch.setattr(lock, "RENEWAL_INTERVAL_S", 0.001)
    monkeypatch.setattr(lock, "_RENEWAL_RETRY_INTERVAL_S", 0.001)
    with locks(store) as mine:
        mine.take(["train"])
        yield mine


def renewed(store: Clocked) -> None:
    """Wait for two renewals, done or tried: the first may have begun before."""
    for _ in range(2):
        store.replaced.clear()
        assert store.replaced.wait(60)


def test_a_lock_is_renewed(store: Clocked, renewing: Locks) -> None:
    """Each time as another version; a renewal that fails is tried again."""
    for is_away in (False, True, False):
        store.is_away = is_away
        before = store.version(KEY)
        renewed(store)
        assert (store.version(KEY) != before) is not is_away
        renewing.check()
    assert own(store)["renewals"] > 0


def test_a_lock_of_another_run_is_not_renewed(store: Clocked, renewing: Locks) -> None:
    """Nor removed in the end."""
    store.put(KEY, written())
    with pytest.raises(LeaseLost):
        renewing.check()
    renewing.__exit__(None, None, None)
    assert store.get(KEY) == written()


def test_a_lock_that_was_removed_is_lost(store: Clocked) -> None:
    """Somebody may have begun anew."""
    with locks(store) as mine:
        mine.take(["train"])
        store.delete(KEY)
        with pytest.raises(LeaseLost):
            mine.check()


def test_where_nothing_may_be_removed_a_lock_says_that_it_is_free(
    store: Clocked, slept: list[float]
) -> None:
    """And is taken again at once, by this run and by one that it would exclude."""
    store.refuses_removal = True
    for part in (None, Part(0, 2), None):
        with locks(store, part) as mine:
            mine.take(["train"])
        assert own(store)["released"] is True
    assert slept == []


def test_no_name_of_a_machine_or_person_is_written(store: Clocked) -> None:
    """A number stands for the machine and its boot, which no other has."""
    content, _ = taken(store)
    assert {*content} == {
        *("said", "token", "machine", "process", "started", "renewals", "released")
    }
    assert (content["said"], content["process"]) == ("split 'train'", os.getpid())
    assert len(content["machine"]) == 16
    assert socket.gethostname() not in json.dumps(content)


class Plain:
    """A store of another package, which keeps no locks."""

    def __init__(self) -> None:
        self.tidied = 0

    def tidy(self) -> None:
        """Count it, and fail."""
        self.tidied += 1
        raise DataprepError("the disk is gone")


def test_a_store_that_keeps_no_locks_keeps_nobody_out() -> None:
    """What interrupted writers left in it is removed all the same, if that works."""
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
    """Another one with --takeover began when the last receipt was stored."""
    source = draw_tree(tmp_path / "photos", images=8, classes=2, seed=1).root
    output = f"memory://{secrets.token_hex(6)}"
    create = MemoryStore.create

    def taken_over(self: MemoryStore, key: str, data: Buffer) -> bool:
        if key.startswith("receipts/"):
            self.put(KEY, written())
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
    """Its tasks may go on: such a lock expires, even on the machine where the driver ran."""
    with Locks(store, None, lambda line: None, outlives_driver=outlives_driver) as earlier:
        earlier.take(["train"])
        owner = own(store)
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    store.put(KEY, json.dumps({**owner, "process": ended.pid}).encode())
    store.ages[KEY] = 0.0
    taken(store)
    assert sum(slept) == pytest.approx(120.0 if outlives_driver else 0.0)


def test_a_lock_that_is_left_to_expire_is_not_released(store: Clocked) -> None:
    """Tasks of its run may still write."""
    with locks(store) as mine:
        mine.take(["train"])
        mine.leave_to_expire()
    assert own(store)["released"] is False


def test_a_process_that_sees_another_output_says_so(store: Clocked) -> None:
    """A worker where the output is not mounted finds neither the lock nor the job file."""
    with locks(store) as mine:
        mine.take(["train"])
        elsewhere = MemoryStore(f"memory://{secrets.token_hex(6)}")
        lock_elsewhere = replace(mine.by_split["train"], store=elsewhere)
        with pytest.raises(LeaseLost) as caught:
            lock_elsewhere.check()
    (line,) = str(caught.value).splitlines()
    assert f"on host {socket.gethostname()} does not see the output {elsewhere.uri}" in line
    assert "under the same path" in line
