"""Each iteration of ``dataprep.to_torch`` is the next epoch, in one process and in workers."""

from __future__ import annotations

import copy
import gc
import multiprocessing
import pickle
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import dataprep
from dataprep.reading.dataset import Dataset
from dataprep.reading.epoch_counter import EpochCounter, LoaderWorker
from dataprep.reading.epoch_order import Order
from dataprep.reading.record_reader import Records
from tests.dataprep.reading.torch_training import FEW_CORES, GLOBAL_BATCH, SAMPLES, STYLES

torch = pytest.importorskip("torch")
data_loader = torch.utils.data.DataLoader


@pytest.fixture(scope="module")
def dataset(output: Path) -> Dataset:
    """A data set of 120 samples in several shards."""
    return dataprep.open(output)


@dataclass(frozen=True)
class Workers:
    """The workers of a DataLoader: none, or two."""

    context: str = ""
    persistent: bool = False

    def loader(self, batches: Any) -> Any:
        """The batches over which the training loop iterates."""
        if not self.context:
            return batches
        return data_loader(
            batches,
            batch_size=None,
            num_workers=2,
            multiprocessing_context=self.context,
            persistent_workers=self.persistent,
        )


IN_PROCESS = Workers()


class Training:
    """Ranks that train together, with the next epoch and the samples that are expected."""

    def __init__(self, dataset: Dataset, numbers: dict[bytes, int], workers: Workers) -> None:
        self._dataset, self._numbers, self._workers = dataset, numbers, workers
        self._records = Records(dataset)
        self._epoch, self._start = 0, 0
        self._position = (0, 0)
        self.begin(2, None)

    def begin(self, world_size: int, state: Any) -> None:
        """Start ranks, which continue from a state, or from the number of steps without one."""
        epoch, start = self._position
        counted: dict[str, Any] = {} if state else {"epoch": epoch, "start": start}
        self._world_size = world_size
        self._ranks = [
            dataprep.to_torch(
                self._dataset,
                iterable=True,
                batch_size=GLOBAL_BATCH // world_size,
                rank=rank,
                world_size=world_size,
                **counted,
            )
            for rank in range(world_size)
        ]
        for rank in self._ranks:
            if state:
                rank.load_state_dict(state)
        self._loaders = [self._workers.loader(rank) for rank in self._ranks]
        if start == SAMPLES:
            epoch, start = epoch + 1, 0
        self._epoch, self._start = epoch, start
        self._resumed = (epoch, start)

    def _wanted(self, rank: int, epoch: int) -> list[int]:
        """The samples of an epoch, which do not depend on the history."""
        first, start = self._resumed
        order = Order(
            rank=rank,
            world_size=self._world_size,
            global_batch=GLOBAL_BATCH,
            epoch=first,
            start=start,
        )
        expected: list[int] = self._records.samples_of_rank(order, epoch).tolist()
        return expected

    def _taken(self, batches: Iterator[Any]) -> list[int]:
        """The numbers of the samples in some batches."""
        return [self._numbers[image] for images, _ in batches for image in images]

    def _next_epoch(self) -> int:
        """The next epoch, which is counted."""
        self._epoch += 1
        return self._epoch - 1

    def read(self, steps: int) -> None:
        """Read some steps of the next epoch, then leave the loop. An epoch has at most 10 steps."""
        epoch = self._next_epoch()
        for rank, loader in enumerate(self._loaders):
            expected = self._wanted(rank, epoch)
            iterator = iter(loader)
            numbers = self._taken(islice(iterator, steps))
            assert numbers == expected[: steps * GLOBAL_BATCH // self._world_size]
            if steps < len(loader):
                assert len(loader) == len(expected) * self._world_size // GLOBAL_BATCH
            if steps == 10:
                assert list(iterator) == []
                assert len(loader) == 10
            del iterator
        gc.collect()
        start = self._resumed[1] if epoch == self._resumed[0] else 0
        self._position = (epoch, min(start + steps * GLOBAL_BATCH, SAMPLES))

    def read_two(self) -> None:
        """Check that two iterators that exist together have an epoch each."""
        if self._workers.persistent:
            return
        first, second = self._next_epoch(), self._next_epoch()
        for rank, loader in enumerate(self._loaders):
            first_iterator = iter(loader)
            begun = self._taken(islice(first_iterator, 1))
            other = iter(loader)
            numbers = self._taken(islice(other, 1)) + self._taken(other)
            assert begun + self._taken(first_iterator) == self._wanted(rank, first)
            assert numbers == self._wanted(rank, second)
        self._position = (second, SAMPLES)

    def set_epoch(self, epoch: int) -> None:
        """Choose the next epoch, and ask for the length, which claims no epoch."""
        for rank, loader in zip(self._ranks, self._loaders, strict=True):
            rank.set_epoch(epoch)
            assert len(loader) == len(self._wanted(0, epoch)) * self._world_size // GLOBAL_BATCH
        start = self._resumed[1] if epoch == self._resumed[0] else 0
        self._epoch, self._position = epoch, (epoch, start)

    def resume(self, world_size: int) -> None:
        """Continue with another number of ranks, from a state or from the number of steps."""
        state = None
        if self._workers is IN_PROCESS:
            state = self._ranks[0].state_dict()
            if self._position == (0, 0):
                assert state["samples"] == 0
        for loader in self._loaders:
            del loader
        if state:
            start = state["samples"]
            self._position = (state["epoch"], start)
        self.begin(world_size, state)


OPERATIONS = st.one_of(
    st.tuples(st.just(Training.read), st.sampled_from([1, 3, 10])),
    st.tuples(st.just(Training.read_two)),
    st.tuples(st.just(Training.set_epoch), st.integers(0, 9)),
    st.tuples(st.just(Training.resume), st.sampled_from([1, 2, 3])),
)
SEQUENCES = st.lists(OPERATIONS, min_size=2, max_size=6)
HISTORY: list[tuple[Any, ...]] = [
    (Training.read, 3),
    (Training.resume, 3),
    (Training.read, 10),
    (Training.read_two,),
    (Training.set_epoch, 7),
    (Training.read, 1),
    (Training.read, 10),
]
"""Two ranks, then three: a resume, whole epochs, two iterators, and an epoch that is set."""

SHORT_HISTORY: list[tuple[Any, ...]] = [
    (Training.resume, 1),
    (Training.read, 3),
    (Training.resume, 1),
    (Training.read, 10),
    (Training.read, 1),
    (Training.read_two,),
]
"""One rank, because spawned workers start slowly."""


def check(training: Training, sequence: list[tuple[Any, ...]]) -> None:
    """Carry out operations. Each one compares the samples that it reads."""
    for operation, *arguments in sequence:
        operation(training, *arguments)


@pytest.mark.slow
@pytest.mark.smoke
@given(SEQUENCES)
@example([(Training.read, 1), (Training.resume, 1), (Training.set_epoch, 0), (Training.resume, 1)])
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_sequence(
    dataset: Dataset, numbers: dict[bytes, int], sequence: list[tuple[Any, ...]]
) -> None:
    """Each iteration is the next epoch, complete or as far as a state has not counted it."""
    check(Training(dataset, numbers, IN_PROCESS), sequence)


@FEW_CORES
@pytest.mark.process
@pytest.mark.slow
@pytest.mark.parametrize("persistent", [False, True])
@given(SEQUENCES)
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_sequence_in_workers(
    dataset: Dataset,
    numbers: dict[bytes, int],
    persistent: bool,
    sequence: list[tuple[Any, ...]],
) -> None:
    """Workers read the samples of one process, persistent or not."""
    check(Training(dataset, numbers, Workers("fork", persistent)), sequence)


@FEW_CORES
@pytest.mark.process
@pytest.mark.parametrize(
    ("context", "persistent", "history"),
    [
        ("fork", False, HISTORY),
        pytest.param("fork", True, HISTORY, marks=pytest.mark.smoke),
        pytest.param("spawn", False, SHORT_HISTORY, marks=pytest.mark.slow),
        pytest.param("spawn", True, SHORT_HISTORY, marks=pytest.mark.slow),
        pytest.param("forkserver", False, SHORT_HISTORY, marks=pytest.mark.slow),
    ],
    ids=["fork", "fork-persistent", "spawn", "spawn-persistent", "forkserver"],
)
def test_a_history_in_workers(
    dataset: Dataset,
    numbers: dict[bytes, int],
    context: str,
    persistent: bool,
    history: list[tuple[Any, ...]],
) -> None:
    """Forked and spawned workers agree on the epoch of each iteration."""
    check(Training(dataset, numbers, Workers(context, persistent)), history)


def epoch_of(
    dataset: Dataset, batches_taken: list[Any], iterable: bool = True, **options: Any
) -> list[int]:
    """The epochs whose order begins with these batches."""
    matches = []
    for epoch in range(12):
        batches = dataprep.to_torch(
            dataset, iterable=iterable, batch_size=4, epoch=epoch, **options
        )
        if [images for images, _ in islice(batches, len(batches_taken))] == batches_taken:
            matches.append(epoch)
    return matches


@FEW_CORES
@pytest.mark.process
@pytest.mark.smoke
def test_torch_is_seeded_anew_before_each_epoch(dataset: Dataset) -> None:
    """The epoch advances even if the loader's seed is always the same, also after a break."""
    batches = dataprep.to_torch(dataset, iterable=True, batch_size=4)
    loader = data_loader(batches, batch_size=None, num_workers=3)
    for epoch in range(4):
        torch.manual_seed(0)
        batches_taken = [images for images, _ in islice(loader, 1 if epoch % 2 else 9)]
        assert epoch_of(dataset, batches_taken) == [epoch]


def _start_slowly(worker: int) -> None:
    """Delay all workers but worker 0, so that its first batch is ready before they begin."""
    time.sleep(0.5 * (worker > 0))


@FEW_CORES
@pytest.mark.process
@pytest.mark.parametrize("is_seeded", [False, True])
def test_a_loop_that_is_left_before_all_workers_have_begun(
    dataset: Dataset, is_seeded: bool
) -> None:
    """The loop is one epoch, even if a worker begins after the first one has ended."""
    batches = dataprep.to_torch(dataset, iterable=True, batch_size=4)
    loader = data_loader(batches, batch_size=None, num_workers=2, worker_init_fn=_start_slowly)
    for epoch in range(3):
        if is_seeded:
            torch.manual_seed(0)
        batches_taken = [images for images, _ in islice(loader, 5 if epoch == 2 else 1)]
        assert epoch_of(dataset, batches_taken) == [epoch]


def _read_at_own_pace(
    batches: Any, workers: int, pauses: tuple[float, float], results: Any, rank: int
) -> None:
    """As a rank, read the start of epochs, each set at another time than on the other rank."""
    loader = data_loader(batches, batch_size=None, num_workers=workers) if workers else batches
    batches_per_epoch = [[images for images, _ in islice(loader, 3)] for _ in range(2)]
    for epoch in (5 + rank, 7 + rank):
        time.sleep(pauses[rank])
        batches.set_epoch(epoch)
        time.sleep(pauses[1 - rank])
        batches_per_epoch.append([images for images, _ in islice(loader, 3)])
        assert len(loader) == SAMPLES // 4
    results.put((rank, batches_per_epoch))


@FEW_CORES
@pytest.mark.process
@pytest.mark.parametrize(
    ("context", "workers"),
    [("fork", 0), ("fork", 2), pytest.param("spawn", 0, marks=pytest.mark.slow)],
)
def test_ranks_that_are_started_with_one_object(
    dataset: Dataset, context: str, workers: int
) -> None:
    """Each rank counts and sets epochs independently, as with an object of its own."""
    batches = dataprep.to_torch(dataset, iterable=True, batch_size=4, epoch=1)
    processes: Any = multiprocessing.get_context(context)
    results = processes.Queue()
    ranks = [
        processes.Process(
            target=_read_at_own_pace, args=(batches, workers, (0.1, 0.3), results, rank)
        )
        for rank in range(2)
    ]
    for process in ranks:
        process.start()
    numbers_by_rank = dict(results.get(timeout=120) for _ in ranks)
    for process in ranks:
        process.join()
    for rank in range(2):
        epochs = [epoch for images in numbers_by_rank[rank] for epoch in epoch_of(dataset, images)]
        assert epochs == [1, 2, 5 + rank, 7 + rank]
    assert epoch_of(dataset, [images for images, _ in islice(batches, 3)]) == [1]


@FEW_CORES
@pytest.mark.process
@pytest.mark.smoke
def test_two_live_iterators_of_one_seed(dataset: Dataset) -> None:
    """Workers of the second iterator do not join the first one, whose workers have begun."""
    loader = data_loader(
        dataprep.to_torch(dataset, iterable=True, batch_size=4), batch_size=None, num_workers=2
    )
    torch.manual_seed(0)
    first = iter(loader)
    begun = [images for images, _ in islice(first, 2)]
    torch.manual_seed(0)
    second = [images for images, _ in islice(loader, 5)]
    assert epoch_of(dataset, begun + [images for images, _ in islice(first, 3)]) == [0]
    assert epoch_of(dataset, second) == [1]


@pytest.mark.process
@pytest.mark.smoke
@pytest.mark.parametrize(
    ("is_alive", "is_another_loader", "epochs"),
    [(True, False, [0, 0]), (False, True, [0, 1]), (False, False, [0, 0])],
)
def test_a_worker_joins_only_an_iteration_of_its_loader(
    is_alive: bool, is_another_loader: bool, epochs: list[int]
) -> None:
    """A loader that was left before its second worker began has no part in the next iteration.

    Its own second worker, which starts slowly, has.
    """
    counter, context = EpochCounter(0), multiprocessing.get_context("fork")
    received, sent = context.Pipe(duplex=False)
    over = context.Event()

    def begin(number: int) -> None:
        first_process = 1 + number if is_another_loader else 1
        worker = LoaderWorker(number, workers=2, base_seed=7, first_process=first_process)
        sent.send(counter.claim(worker).epoch)
        if is_alive:
            over.wait(60)

    claimed, workers = [], []
    for number in range(2):
        worker = context.Process(target=begin, args=(number,))
        worker.start()
        assert received.poll(60), "the worker has claimed nothing"
        claimed.append(received.recv())
        workers.append(worker)
        if not is_alive:
            worker.join()
    over.set()
    for worker in workers:
        worker.join()
    assert claimed == epochs


@pytest.mark.process
@pytest.mark.smoke
@pytest.mark.parametrize("order", [[0, 3, 2, 1], [2, 1, 0, 3], [3, 0, 1, 2]], ids=str)
def test_two_loaders_of_one_seed_that_start_slowly(order: list[int]) -> None:
    """Each loader has an epoch of its own, in any order in which the workers begin."""
    counter, context = EpochCounter(0), multiprocessing.get_context("fork")
    received, sent = context.Pipe(duplex=False)
    over = context.Event()

    def begin(process: int) -> None:
        loader, number = divmod(process, 2)
        worker = LoaderWorker(number, workers=2, base_seed=7, first_process=1 + 2 * loader)
        sent.send((loader, counter.claim(worker).epoch))
        over.wait(60)

    claimed = []
    for process in order:
        context.Process(target=begin, args=(process,), daemon=True).start()
        assert received.poll(60), "the worker has claimed nothing"
        claimed.append(received.recv())
    over.set()
    first = order[0] // 2
    assert sorted(claimed) == sorted([(first, 0), (first, 0), (1 - first, 1), (1 - first, 1)])


@pytest.mark.process
@pytest.mark.smoke
def test_an_epoch_that_is_set_before_a_persistent_worker_has_begun() -> None:
    """A late worker joins the iteration that was left. The set epoch is that of the next one."""
    counter, context = EpochCounter(0), multiprocessing.get_context("fork")

    def claim_on_request(worker: LoaderWorker, requests: Any) -> None:
        while requests.recv():
            requests.send(counter.claim(worker).epoch)

    processes, connections = [], []
    for number in range(2):
        connection, requests = context.Pipe()
        worker = LoaderWorker(number, workers=2, base_seed=7, first_process=1)
        process = context.Process(target=claim_on_request, args=(worker, requests), daemon=True)
        process.start()
        processes.append(process)
        connections.append(connection)

    def claimed(number: int) -> int:
        connections[number].send(True)
        assert connections[number].poll(60), "the worker has claimed nothing"
        epoch: int = connections[number].recv()
        return epoch

    assert [claimed(0), claimed(1)] == [0, 0]
    assert claimed(0) == 1
    counter.set(5)
    assert claimed(1) == 1
    assert counter.next_epoch() == 5
    assert [claimed(1), claimed(0)] == [5, 5]
    assert [claimed(0), claimed(1)] == [6, 6]
    for connection, process in zip(connections, processes, strict=True):
        connection.send(False)
        process.join()


@FEW_CORES
@pytest.mark.process
@pytest.mark.smoke
def test_an_epoch_that_is_set_after_the_loader_began(dataset: Dataset) -> None:
    """A set epoch is that of the next iteration, and the one that has begun does not change."""
    batches = dataprep.to_torch(dataset, iterable=True, batch_size=4, epoch=1)
    loader = data_loader(batches, batch_size=None, num_workers=2)
    iterator = iter(loader)
    batches.set_epoch(8)
    assert epoch_of(dataset, [images for images, _ in islice(iterator, 5)]) == [1]
    assert epoch_of(dataset, [images for images, _ in islice(loader, 5)]) == [8]


def test_iterators_claim_their_epoch_when_they_are_made(dataset: Dataset) -> None:
    """The order of reading does not matter, and an iterator that is not read counts as well."""
    batches = dataprep.to_torch(dataset, iterable=True, batch_size=4)
    iterators = [iter(batches) for _ in range(3)]
    for epoch in (2, 0, 1):
        batches_taken = [images for images, _ in islice(iterators[epoch], 3)]
        assert epoch_of(dataset, batches_taken) == [epoch]


@pytest.mark.parametrize("order", [[0, 1], [1, 0]], ids=str)
@STYLES
def test_two_iterators_after_a_state_from_the_end(
    dataset: Dataset, iterable: bool, order: list[int]
) -> None:
    """The iterator that is read first has the next epoch, and the other one the epoch after it."""
    options: dict[str, Any] = {"iterable": iterable, "batch_size": 4}
    ended = dataprep.to_torch(dataset, **options)
    list(ended)
    batches = dataprep.to_torch(dataset, **options)
    batches.load_state_dict(ended.state_dict())
    iterators = [iter(batches) for _ in range(2)]
    begun = {number: [next(iterators[number])[0]] for number in order}
    for epoch, number in enumerate(order, start=1):
        batches_taken = begun[number] + [images for images, _ in iterators[number]]
        assert len(batches_taken) == SAMPLES // 4
        assert epoch_of(dataset, batches_taken, iterable) == [epoch]
    batches_taken = [images for images, _ in islice(batches, 3)]
    assert epoch_of(dataset, batches_taken, iterable) == [3]


def test_copies_count_for_themselves(dataset: Dataset) -> None:
    """A copy continues from the position of the original, and does not move it."""
    batches = dataprep.to_torch(dataset, iterable=True, batch_size=4, epoch=2)
    next(iter(batches))
    for clone in (copy.deepcopy(batches), pickle.loads(pickle.dumps(batches))):
        batches_taken = [images for images, _ in islice(clone, 2)]
        assert epoch_of(dataset, batches_taken) == [3]
    assert epoch_of(dataset, [images for images, _ in islice(batches, 2)]) == [3]


def test_shards_come_in_another_order_in_each_epoch(
    dataset: Dataset, numbers: dict[bytes, int]
) -> None:
    """The order of shards differs between epochs."""
    images = dataprep.to_torch(dataset, iterable=True)
    orders = set()
    for _ in range(8):
        shards = dataset.places.shards[[numbers[image] for image, _ in images]].tolist()
        orders.add(tuple(dict.fromkeys(shards)))
    assert len(orders) > 1


@STYLES
@pytest.mark.parametrize("start", [0, 50])
def test_pad_repeats_the_beginning_of_the_epoch(
    dataset: Dataset, numbers: dict[bytes, int], iterable: bool, start: int
) -> None:
    """All ranks read each remaining sample once, then the first samples of the epoch again."""

    def numbers_read(even: Any, world_size: int, start: int) -> list[int]:
        """The numbers that all ranks read, in the order of steps."""
        ranks = [
            dataprep.to_torch(
                dataset,
                iterable=iterable,
                batch_size=dataprep.per_rank_batch(25, rank, world_size),
                global_batch=25,
                rank=rank,
                world_size=world_size,
                even=even,
                start=start,
                seed=2,
            )
            for rank in range(world_size)
        ]
        steps = zip(*ranks, strict=True)
        return [numbers[image] for step in steps for images, _ in step for image in images]

    unpadded = numbers_read("keep", 1, 0)
    assert numbers_read("pad", 3, start) == unpadded[start:] + unpadded[:5]
