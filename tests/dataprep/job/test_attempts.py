"""Attempts at a shard: how many were lost is known, and what becomes of it then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from distributed import KilledWorker
from hypothesis import given
from hypothesis import strategies as st

from dataprep.errors import JobError, SampleLost, StoreUnreachable, WorkerLost
from dataprep.in_hand import UNNOTED
from dataprep.job import attempts
from dataprep.job.attempts import lost_beside_others, on_worker, result_of
from dataprep.job.overdue import Overdue
from dataprep.worker import Progress, ShardResult

TASK: Any = SimpleNamespace(split="train", shard=3, shards=8, limit=SimpleNamespace(seconds=60.0))
SHARD = "train-00003-of-00008"
RESULT = ShardResult(shard=3, samples=5, failed=0)


class Metadata:
    """What a scheduler keeps for others, by names."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, ...], int] = {}
        self.gone = False

    def get_metadata(self, *, keys: Sequence[str], default: int) -> int:
        """What was set last."""
        return self.kept.get(tuple(keys), default)

    def set_metadata(self, *, keys: Sequence[str], value: int) -> None:
        """Keep it."""
        if self.gone:
            raise OSError("nobody answers")
        self.kept[tuple(keys)] = value


class Worker:
    """What a task sees of who runs it."""

    def __init__(self, *, nanny: str | None = "tcp://127.0.0.1:1") -> None:
        self.loop = None
        self.nanny = nanny
        self.scheduler = Metadata()
        self.events: list[tuple[str, object]] = []

    def log_event(self, topic: str, message: object) -> None:
        """As Dask's."""
        self.events.append((topic, message))

    def begin(self) -> AbstractContextManager[int]:
        """An attempt that may be lost: nobody ends it then."""
        return attempts._attempt(self, "job", SHARD)

    @property
    def lost(self) -> int:
        """So many as the scheduler knows of."""
        return self.scheduler.get_metadata(keys=["job", SHARD], default=0)


@pytest.fixture(autouse=True, scope="module")
def directly() -> Iterator[None]:
    """Requests to the scheduler are calls."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("distributed.utils.sync", lambda loop, call, **named: call(**named))
        yield


@given(st.lists(st.sampled_from(["lost", "done", "failed"])))
def test_lost_attempts_are_counted_since_one_that_ended(ends: list[str]) -> None:
    """However it ended, by an error as well; each attempt is told the number."""
    worker, expected, lost = Worker(), 0, []
    for end in ends:
        attempt = worker.begin()
        assert attempt.__enter__() == expected
        expected = expected + 1 if end == "lost" else 0
        if end == "lost":
            lost.append(attempt)  # its process is gone: nothing of it runs any more
        elif end == "done":
            attempt.__exit__(None, None, None)
        else:
            assert not attempt.__exit__(ValueError, ValueError(), None)
        assert worker.lost == expected


def test_shards_and_jobs_are_counted_apart() -> None:
    """A lost attempt isolates its own shard alone, in its own job."""
    worker = Worker()
    with worker.begin(), attempts._attempt(worker, "job", "train-00004-of-00008") as of_another:
        assert of_another == 0
        with attempts._attempt(worker, "another", SHARD) as elsewhere:
            assert elsewhere == 0


def test_a_scheduler_that_is_gone_hides_no_error() -> None:
    """What ended the attempt is told, not that its end could not be."""
    worker = Worker()

    def attempt() -> None:
        with worker.begin():
            worker.scheduler.gone = True
            raise StoreUnreachable("no answer")

    with pytest.raises(StoreUnreachable, match="no answer"):
        attempt()


class Making:
    """In place of the work: notes how it is to be done, and does as it is told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, worker: Worker) -> None:
        self.asked: list[tuple[bool, object]] = []
        self.error: BaseException | None = None
        monkeypatch.setattr("distributed.get_worker", lambda: worker)
        monkeypatch.setattr(attempts, "_slots", lambda *_: nullcontext())
        monkeypatch.setattr(attempts, "beside_dask_tasks", lambda worker, slots: slots)
        monkeypatch.setattr(attempts, "make_shard_or_take_back", self.make)

    def make(
        self, task: Any, report: Any, slots: object, *, isolated: bool = False, in_hand: Any = None
    ) -> ShardResult:
        """The work."""
        self.asked.append((isolated, in_hand))
        report(Progress(2, 300, 1))
        if self.error:
            raise self.error
        return RESULT


def test_a_first_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    """It converts in the worker, which ends over what is overdue; progress is told as events."""
    worker = Worker()
    making = Making(monkeypatch, worker)
    assert on_worker(TASK, 1, "job") is RESULT
    ((isolated, in_hand),) = making.asked
    assert not isolated
    assert isinstance(in_hand, Overdue)
    assert worker.events == [("job", (SHARD, (2, 300, 1)))]
    assert worker.lost == 0


def test_without_a_nanny_nobody_ends_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody would start another one."""
    worker = Worker(nanny=None)
    making = Making(monkeypatch, worker)
    on_worker(TASK, 1, "job")
    assert making.asked == [(False, UNNOTED)]


def test_an_attempt_after_a_lost_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is isolated, and the driver is told first; after it ended well the next one is not."""
    worker = Worker()
    making = Making(monkeypatch, worker)
    lost = worker.begin()
    lost.__enter__()
    assert on_worker(TASK, 1, "job") is RESULT
    assert making.asked == [(True, None)]
    assert worker.events == [("job", (SHARD, None)), ("job", (SHARD, (2, 300, 1)))]
    on_worker(TASK, 1, "job")
    assert making.asked[-1][0] is False


def test_a_lost_sample_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """As an error Dask would try it again, for nothing."""
    worker = Worker()
    making = Making(monkeypatch, worker)
    making.error = SampleLost("killed")
    lost = worker.begin()
    lost.__enter__()
    assert on_worker(TASK, 1, "job") is making.error


def test_errors_of_a_first_attempt_are_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask tries it again; that is no lost worker, so that it is not isolated then."""
    worker = Worker()
    making = Making(monkeypatch, worker)
    making.error = StoreUnreachable("no answer")
    for _ in range(2):
        with pytest.raises(StoreUnreachable):
            on_worker(TASK, 1, "job")
    assert [isolated for isolated, _ in making.asked] == [False, False]


@pytest.mark.parametrize("lost", [0, 1])
def test_what_is_no_exception_is_told(lost: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask would keep it to itself, and the driver wait for ever."""
    worker = Worker()
    for _ in range(lost):
        worker.begin().__enter__()
    making = Making(monkeypatch, worker)
    making.error = SystemExit("now")
    with pytest.raises(JobError, match="a worker failed: SystemExit: now"):
        on_worker(TASK, 1, "job")


class Future:
    """One that is done."""

    def __init__(self, outcome: object) -> None:
        self._outcome = outcome

    def result(self) -> object:
        """What came, or its error."""
        if isinstance(self._outcome, BaseException) and not isinstance(self._outcome, SampleLost):
            raise self._outcome
        return self._outcome

    def exception(self) -> object:
        """Its error, if one came."""
        return self._outcome if isinstance(self._outcome, BaseException) else None


def killed(task: str = f"{SHARD}-dataprep-00ff-7") -> KilledWorker:
    """What Dask says of a task over which too many workers were lost."""
    return KilledWorker(task, SimpleNamespace(address="tcp://127.0.0.1:1"), 3)


def test_a_result() -> None:
    """It is what the worker gave."""
    assert result_of(Future(RESULT)) is RESULT


def test_a_lost_sample_is_raised_by_the_driver() -> None:
    """As it is."""
    with pytest.raises(SampleLost, match="over this one"):
        result_of(Future(SampleLost("over this one")))


def test_lost_workers_name_their_shard() -> None:
    """Not Dask's key of it."""
    with pytest.raises(WorkerLost, match=rf"again over {SHARD}: .* run again to resume"):
        result_of(Future(killed()))


@pytest.mark.parametrize("error", [StoreUnreachable("no answer"), KeyboardInterrupt()])
def test_what_is_known_is_raised_as_it_is(error: BaseException) -> None:
    """Errors of our own, and an interrupt."""
    with pytest.raises(type(error)) as raised:
        result_of(Future(error))
    assert raised.value is error


def test_any_other_error_is_told() -> None:
    """With its kind: the traceback stays in the cause."""
    with pytest.raises(JobError, match="a worker failed: ZeroDivisionError: by zero") as raised:
        result_of(Future(ZeroDivisionError("by zero")))
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


@given(st.integers(0, 6), st.integers(0, 5))
def test_shards_beside_one_that_kills(lost: int, retries: int) -> None:
    """One that Dask gave up is tried again unless its own attempts were lost too often."""
    kept = {("job", SHARD): lost}
    client = SimpleNamespace(get_metadata=lambda keys, default: kept.get(tuple(keys), default))
    assert lost_beside_others(client, Future(killed()), "job", TASK, retries) == (lost <= retries)
    assert lost_beside_others(client, Future(killed()), "other", TASK, retries)  # none of it lost
    for other in (RESULT, StoreUnreachable("no answer")):
        assert not lost_beside_others(client, Future(other), "job", TASK, retries)
