"""Tests of dataprep.job.claims."""

from __future__ import annotations

import secrets
import threading

import pytest

from dataprep.job.claims import Overtaken, stored_splits, write_down
from dataprep.stores import Buffer, ObjectInfo
from dataprep.stores.memory import MemoryStore
from tests.commandline import objects

JOB = ({"train": b"plan"}, {"train": b"job"})
WRITTEN = {"labels.json": b"labels", "train.plan.parquet": b"plan", "train.job.json": b"job"}


class Recorded(MemoryStore):
    """Remembers in which order keys were written."""

    def __init__(self) -> None:
        super().__init__(f"memory://{secrets.token_hex(6)}")
        self.written: list[str] = []

    def create(self, key: str, data: Buffer) -> bool:
        """As its parent."""
        created = super().create(key, data)
        if created:
            self.written.append(key)
        return created

    def put(self, key: str, data: Buffer) -> ObjectInfo:
        """As its parent."""
        self.written.append(key)
        return super().put(key, data)


@pytest.fixture
def store() -> Recorded:
    """An empty store."""
    return Recorded()


def test_the_job_file_goes_last(store: Recorded) -> None:
    """A job file stands for a job all of whose description is stored."""
    write_down(store, b"labels", *JOB)
    assert store.written == list(WRITTEN)
    assert objects(store) == WRITTEN
    assert stored_splits(store) == {"train"}


def test_the_same_again_writes_nothing(store: Recorded) -> None:
    """Who finds the very bytes that it would write leaves them alone."""
    write_down(store, b"labels", *JOB)
    write_down(store, b"labels", *JOB)
    assert store.written == list(WRITTEN)


@pytest.mark.parametrize("differs", ["labels", "plan", "job"])
def test_who_comes_second_with_another_job_is_told(store: Recorded, differs: str) -> None:
    """Another job's objects are never replaced once its job file is there."""
    write_down(store, b"labels", *JOB)
    second = {key: b"other" if key == differs else key.encode() for key in ("labels", "plan")}
    with pytest.raises(Overtaken):
        write_down(store, second["labels"], {"train": second["plan"]}, {"train": b"other"})
    assert objects(store) == WRITTEN


def test_another_split_with_other_labels_is_told(store: Recorded) -> None:
    """Two splits cannot both decide what the labels are."""
    write_down(store, b"labels", *JOB)
    with pytest.raises(Overtaken):
        write_down(store, b"other", {"validation": b"plan"}, {"validation": b"job"})
    assert objects(store) == WRITTEN


def test_another_split_with_the_same_labels(store: Recorded) -> None:
    """A second split that gives the same labels joins the first."""
    write_down(store, b"labels", *JOB)
    write_down(store, b"labels", {"validation": b"p"}, {"validation": b"j"})
    assert stored_splits(store) == {"train", "validation"}


def test_what_was_left_before_a_job_file_is_replaced(store: Recorded) -> None:
    """Labels and a plan without a job file were left by a run that was killed."""
    MemoryStore.put(store, "labels.json", b"old")
    MemoryStore.put(store, "train.plan.parquet", b"old")
    write_down(store, b"labels", *JOB, patience_s=(0.0, 0.0))
    assert objects(store) == WRITTEN


def test_a_job_that_is_being_written_is_waited_for(store: Recorded) -> None:
    """Other labels are no leftover while their job file is still on its way."""
    MemoryStore.put(store, "labels.json", b"first")
    timer = threading.Timer(0.05, lambda: store.put("train.job.json", b"first"))
    timer.start()
    with pytest.raises(Overtaken):
        write_down(store, b"labels", *JOB, patience_s=(0.0, *[0.05] * 400))
    timer.join()
    assert objects(store)["labels.json"] == b"first"


def test_many_at_once_write_one_job() -> None:
    """Of jobs that differ and begin together one is written whole, and the others are told."""
    store = MemoryStore(f"memory://{secrets.token_hex(6)}")
    told: list[int] = []
    start = threading.Barrier(6)

    def begin(number: int) -> None:
        mine = str(number).encode()
        start.wait()
        try:
            write_down(store, b"labels", {"train": mine}, {"train": mine}, [0.02] * 100)
        except Overtaken:
            told.append(number)

    threads = [threading.Thread(target=begin, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(told) == 5
    (winner,) = set(range(6)) - set(told)
    assert objects(store) == {
        "labels.json": b"labels",
        "train.plan.parquet": str(winner).encode(),
        "train.job.json": str(winner).encode(),
    }
