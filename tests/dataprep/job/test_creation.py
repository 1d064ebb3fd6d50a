"""Create a job: its files are written in order, and of several runs at once one creates it."""

from __future__ import annotations

import secrets
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from dataprep.job.creation import AnotherJobCreated, create_job
from dataprep.stores import Buffer
from dataprep.stores.memory import MemoryStore
from tests.commandline import objects

JOB = ({"train": b"plan"}, {"train": b"job"})
WRITTEN = {"labels.json": b"labels", "train.plan.parquet": b"plan", "train.job.json": b"job"}


@pytest.fixture
def empty() -> MemoryStore:
    """An empty output."""
    return MemoryStore(f"memory://{secrets.token_hex(6)}")


def test_the_job_file_goes_last(empty: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """All other files of a job exist before it. Creating the same job again changes nothing."""
    for method in ("create", "put"):
        write = getattr(MemoryStore, method)

        def before_the_job_file(
            store: MemoryStore, key: str, data: Buffer, write: Any = write
        ) -> Any:
            assert (key == "train.job.json") == (len(objects(store)) == 2)
            return write(store, key, data)

        monkeypatch.setattr(MemoryStore, method, before_the_job_file)
    create_job(empty, b"labels", *JOB)
    assert objects(empty) == WRITTEN
    monkeypatch.undo()
    create_job(empty, b"labels", *JOB)
    assert objects(empty) == WRITTEN


@pytest.mark.parametrize("differs", ["labels", "plan", "job"])
def test_a_second_run_with_another_job_is_refused(empty: MemoryStore, differs: str) -> None:
    """The objects of a job are never replaced after its job file was created."""
    create_job(empty, b"labels", *JOB)
    second = {key: b"other" if key == differs else key.encode() for key in ("labels", "plan")}
    with pytest.raises(AnotherJobCreated):
        create_job(empty, second["labels"], {"train": second["plan"]}, {"train": b"other"})
    assert objects(empty) == WRITTEN


def test_another_split_joins_with_the_same_labels_alone(empty: MemoryStore) -> None:
    """Two splits cannot have different labels."""
    create_job(empty, b"labels", *JOB)
    validation = {"validation": b"p"}, {"validation": b"j"}
    with pytest.raises(AnotherJobCreated):
        create_job(empty, b"other", *validation)
    assert objects(empty) == WRITTEN
    create_job(empty, b"labels", *validation)
    assert objects(empty).items() > WRITTEN.items()


@pytest.mark.parametrize("beside", [[], ["validation.job.json"]], ids=["alone", "beside"])
def test_leftovers_without_a_job_file_are_replaced(empty: MemoryStore, beside: list[str]) -> None:
    """A run that was killed left labels and a plan, but no job file."""
    leftovers = [*beside, "train.plan.parquet"] if beside else ["labels.json", "train.plan.parquet"]
    for key in leftovers:
        empty.put(key, b"old")
    create_job(empty, b"labels", *JOB, wait_s=0.0)
    assert objects(empty).items() >= WRITTEN.items()


def test_leftovers_are_replaced_only_in_the_version_that_was_read(empty: MemoryStore) -> None:
    """Another run replaces them just before this run would. Its labels are kept."""
    empty.put("labels.json", b"old")
    checks = iter(range(9))

    def check_lock() -> None:
        if next(checks) == 1:
            empty.put("labels.json", b"theirs")

    with pytest.raises(AnotherJobCreated):
        create_job(empty, b"labels", *JOB, wait_s=0.0, check_lock=check_lock)
    assert objects(empty) == {"labels.json": b"theirs"}


def test_a_run_waits_for_a_job_that_is_being_created(
    empty: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other labels are no leftovers while their job file is still being written."""
    empty.put("labels.json", b"first")

    def sleep(seconds: float) -> None:
        if seconds:
            empty.put("train.job.json", b"first")

    monkeypatch.setattr("time.sleep", sleep)
    with pytest.raises(AnotherJobCreated):
        create_job(empty, b"labels", *JOB)
    assert objects(empty)["labels.json"] == b"first"


def test_of_several_runs_at_once_one_creates_its_job(empty: MemoryStore) -> None:
    """All files are of the same job. The other runs are refused."""
    start = threading.Barrier(6)

    def begin(number: int) -> bool:
        own_bytes = str(number).encode()
        start.wait()
        try:
            create_job(empty, b"labels", {"train": own_bytes}, {"train": own_bytes})
        except AnotherJobCreated:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        winner = str([*pool.map(begin, range(6))].index(True)).encode()
    assert objects(empty) == {
        "labels.json": b"labels",
        "train.plan.parquet": winner,
        "train.job.json": winner,
    }
