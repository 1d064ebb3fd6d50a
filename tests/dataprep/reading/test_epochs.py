"""Epochs, ranks and states of ``dataprep.to_torch`` are right in one process and in workers."""

from __future__ import annotations

import copy
import gc
import json
import logging
import multiprocessing
import pickle
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import dataprep
from dataprep.errors import ConfigError
from dataprep.reading.augment import Augmentation
from dataprep.reading.dataset import Dataset
from dataprep.reading.epoch_counter import EpochCounter, LoaderWorker
from dataprep.reading.epoch_order import Order
from dataprep.reading.ranks import rank_of
from dataprep.reading.record_reader import Records
from dataprep.reading.staging import stage
from tests.dataprep.reading.conftest import images_of

torch = pytest.importorskip("torch")
data_loader = torch.utils.data.DataLoader
FEW_CORES = pytest.mark.filterwarnings("ignore:This DataLoader will create")
STYLES = pytest.mark.parametrize("iterable", [False, True], ids=["map", "iterable"])
STATEFUL = pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
SMALL = Augmentation(size=8)
GLOBAL_BATCH = 12
SAMPLES = 120


@pytest.fixture(scope="module")
def dataset(output: Path) -> Dataset:
    """A data set of 120 samples in several shards."""
    return dataprep.open(output)


class Numbers(dict[bytes, int]):
    """The number of each image. Messages of failed tests do not show the images."""

    def __repr__(self) -> str:
        return f"the numbers of {len(self)} images"


@pytest.fixture(scope="module")
def numbers(dataset: Dataset) -> dict[bytes, int]:
    """The number of each image of the data set."""
    return Numbers((image, number) for number, image in enumerate(images_of(dataset)))


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


class TestMapStyleOfRanks:
    """In the map style, each rank has a part of its own."""

    def test_a_start_within_an_epoch_leaves_no_sample_out(self, dataset: Dataset) -> None:
        """The start belongs to the sampler, and the part of a rank is the same in every epoch."""
        for rank in range(2):
            batches = dataprep.to_torch(dataset, rank=rank, world_size=2)
            resumed = dataprep.to_torch(dataset, rank=rank, world_size=2, start=50)
            assert len(resumed.sampler) == 35
            assert [resumed[i] for i in range(len(resumed))] == [batches[i] for i in range(60)]

    @pytest.mark.parametrize("even", ["keep", "drop", "pad"])
    @pytest.mark.parametrize("world_size", [1, 2, 7, 8])
    def test_any_sampler_reads_each_sample_once(
        self, dataset: Dataset, numbers: dict[bytes, int], world_size: int, even: Any
    ) -> None:
        """``shuffle=True`` on all ranks reads each sample once, in every epoch the same parts."""
        parts = []
        for rank in range(world_size):
            images = dataprep.to_torch(dataset, rank=rank, world_size=world_size, even=even)
            first, second = (
                {
                    numbers[image]
                    for batch, _ in data_loader(images, 5, shuffle=True)
                    for image in batch
                }
                for _ in range(2)
            )
            assert first == second
            assert len(images) == len({*range(len(images))})
            parts.append(first)
            with pytest.raises(IndexError, match=f"sample {len(images)} of {len(images)}"):
                images[len(images)]
            images.set_epoch(5)
            assert {numbers[images[i][0]] for i in range(len(images))} == first
        everything = set().union(*parts)
        if even == "keep" or SAMPLES % world_size == 0:
            assert sum(map(len, parts)) == SAMPLES == len(everything)
        assert len({len(part) for part in parts}) <= (2 if even == "keep" else 1)
        if even == "drop":
            assert sum(map(len, parts)) == len(everything) == SAMPLES // world_size * world_size
        if even == "pad":
            assert len(everything) == SAMPLES

    def test_the_sampler_mixes_all_ranks(self, dataset: Dataset, numbers: dict[bytes, int]) -> None:
        """Ranks together read all samples in each epoch, each rank other samples every time."""
        ranks = [dataprep.to_torch(dataset, rank=rank, world_size=3) for rank in range(3)]
        epochs = []
        for _ in range(2):
            parts = [[numbers[images[i][0]] for i in images.sampler] for images in ranks]
            assert sorted(number for part in parts for number in part) == list(range(SAMPLES))
            assert [len(images.sampler) for images in ranks] == [len(part) for part in parts]
            epochs.append(set(parts[0]))
        assert epochs[0] != epochs[1]

    @FEW_CORES
    @pytest.mark.process
    @pytest.mark.smoke
    @pytest.mark.parametrize("persistent", [False, True])
    def test_the_sampler_starts_the_next_epoch(self, dataset: Dataset, persistent: bool) -> None:
        """Order and augmentation are those of ``set_epoch``, also of two iterators at once."""
        images = dataprep.to_torch(dataset, transform=SMALL, rank=1, world_size=2)

        def expected_images(epoch: int) -> Any:
            images = dataprep.to_torch(dataset, transform=SMALL, rank=1, world_size=2)
            images.set_epoch(epoch)
            return torch.stack([images[i][0] for i in images.sampler])

        loader = data_loader(
            images, 8, sampler=images.sampler, num_workers=2, persistent_workers=persistent
        )
        next(iter(loader))
        assert torch.equal(torch.cat([batch for batch, _ in loader]), expected_images(1))
        if not persistent:
            old, new = iter(loader), iter(loader)
            next(old)
            assert torch.equal(torch.cat([batch for batch, _ in new]), expected_images(3))
            assert torch.equal(torch.cat([batch for batch, _ in old]), expected_images(2)[8:])
        images.set_epoch(7)
        assert torch.equal(torch.cat([batch for batch, _ in loader]), expected_images(7))

    @FEW_CORES
    @pytest.mark.process
    @pytest.mark.parametrize("context", [pytest.param("fork", marks=pytest.mark.smoke), "spawn"])
    def test_persistent_workers_augment_by_the_epoch_that_is_set(
        self, dataset: Dataset, context: str
    ) -> None:
        """Persistent workers augment by the set epoch, even with a sampler of torch."""
        images = dataprep.to_torch(dataset, transform=SMALL)
        loader = data_loader(
            images,
            8,
            shuffle=True,
            num_workers=2,
            persistent_workers=True,
            multiprocessing_context=context,
        )
        for epoch in (4, 5, 2):
            images.set_epoch(epoch)
            alone = dataprep.to_torch(dataset, transform=SMALL, epoch=epoch)
            expected = {alone[i][0].numpy().tobytes() for i in range(SAMPLES)}
            read = [image.numpy().tobytes() for batch, _ in loader for image in batch]
            assert len(read) == SAMPLES
            is_of_the_epoch = {*read} == expected  # a failed test need not show all pixels
            assert is_of_the_epoch, f"epoch {epoch}"

    def test_frameworks_may_set_the_epoch_of_the_sampler(self, dataset: Dataset) -> None:
        """Lightning and Accelerate call ``set_epoch`` of a sampler, not of its data set."""
        images = dataprep.to_torch(dataset, transform=SMALL)
        list(images.sampler)
        images.sampler.set_epoch(5)
        by_sampler = torch.stack([images[i][0] for i in images.sampler])
        images.set_epoch(5)
        assert torch.equal(by_sampler, torch.stack([images[i][0] for i in images.sampler]))

    def test_a_warning_where_epochs_are_not_set(self, dataset: Dataset) -> None:
        """One warning is given if all samples were read and no epoch was set."""
        images = dataprep.to_torch(dataset, transform=SMALL)
        loader = data_loader(images, 50, shuffle=True)
        for epoch in range(3):
            images.set_epoch(epoch)
            list(loader)
        with pytest.warns(UserWarning, match="120 samples were read without a call of set_epoch"):
            list(loader)
        list(loader)
        for _ in range(3):
            list(data_loader(dataprep.to_torch(dataset), 50))
            list(data_loader(images, 50, sampler=images.sampler))
        centre = Augmentation(size=8, random=False)
        still = dataprep.to_torch(dataset, transform=centre)
        for _ in range(2):
            list(data_loader(still, 50))
        of_pillow = dataprep.to_torch(dataset, transform=lambda image: image.width)
        for _ in range(2):
            list(data_loader(of_pillow, 50))

    @FEW_CORES
    @pytest.mark.process
    def test_the_warning_counts_all_workers(
        self, dataset: Dataset, capfd: pytest.CaptureFixture[str]
    ) -> None:
        """Each worker reads only a part, and its warning is written to stderr."""
        images = dataprep.to_torch(dataset, transform=SMALL)
        loader = data_loader(images, 30, num_workers=2, worker_init_fn=_show_warnings)
        list(loader)
        assert "set_epoch" not in capfd.readouterr().err
        for _ in range(2):
            list(loader)
        errors = capfd.readouterr().err
        assert errors.count("120 samples were read without a call of set_epoch") == 1


def _write_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Write a warning to stderr."""
    sys.stderr.write(f"{message}\n")


def _show_warnings(worker: int) -> None:
    """Show warnings as outside of pytest, which captures them."""
    warnings.simplefilter("default")
    setattr(warnings, "showwarning", _write_warning)  # noqa: B010


class TestRankOfTheEnvironment:
    """If no rank is given, some readers take it from the environment."""

    @pytest.fixture
    def second_of_three(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """torch.distributed as rank 1 of 3 sees it. ``test_ranks`` has real processes."""
        monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
        monkeypatch.setattr(torch.distributed, "get_rank", lambda: 1)
        monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 3)

    @pytest.mark.usefixtures("second_of_three")
    @pytest.mark.parametrize(
        "options",
        [{"iterable": True}, {"iterable": True, "batch_size": 4}, {"batch_size": 4}],
        ids=str,
    )
    def test_torch_distributed(
        self, dataset: Dataset, options: dict[str, Any], caplog: pytest.LogCaptureFixture
    ) -> None:
        """A reader that only this package can divide takes the rank of torch.distributed."""
        caplog.set_level(logging.INFO, "dataprep")
        numbers_read = list(map(str, dataprep.to_torch(dataset, **options)))
        (line,) = [record.getMessage() for record in caplog.records]
        assert line.startswith("to_torch reads as rank 1 of 3, from torch.distributed")
        stated = dataprep.to_torch(dataset, rank=1, world_size=3, **options)
        assert numbers_read == list(map(str, stated))
        batches = dataprep.to_torch(dataset, rank=0, world_size=1, **options)
        assert batches.state_dict()["samples"] == 0
        assert sum(1 for _ in batches) > 2 * len(numbers_read)
        assert len(caplog.records) == 1

    @pytest.mark.usefixtures("second_of_three")
    def test_the_map_style_warns(self, dataset: Dataset) -> None:
        """A DistributedSampler may divide the map style, which warns unless a rank is given."""
        with pytest.warns(UserWarning, match="to_torch reads all .* torch.distributed has 3"):
            images = dataprep.to_torch(dataset)
        assert len(images) == SAMPLES
        assert len(dataprep.to_torch(dataset, rank=0, world_size=1)) == SAMPLES

    @pytest.mark.usefixtures("second_of_three")
    @pytest.mark.parametrize("reader", ["to_tf", "to_mxnet"])
    def test_readers_of_other_frameworks_warn(self, reader: str) -> None:
        """Readers of other frameworks take no rank from torch.distributed, and warn."""
        message = (
            f"{reader} reads all samples in this process, but torch.distributed has 3 processes"
        )
        with pytest.warns(UserWarning, match=message):
            assert rank_of(None, None, reader) == (0, 1)

    @pytest.mark.parametrize("iterable", [False, True])
    def test_world_size_alone(
        self, dataset: Dataset, monkeypatch: pytest.MonkeyPatch, iterable: bool
    ) -> None:
        """The world size of a launcher causes a warning, and is not used as a rank."""
        for processes in (2, 8):
            monkeypatch.setenv("WORLD_SIZE", str(processes))
            with pytest.warns(UserWarning, match=f"SIZE says {processes} processes: give rank"):
                dataprep.to_torch(dataset, iterable=iterable)
        dataprep.to_torch(dataset, iterable=iterable, rank=0, world_size=1)
        for size in ("1", "", "eight"):
            monkeypatch.setenv("WORLD_SIZE", size)
            dataprep.to_torch(dataset, iterable=iterable)

    def test_half_a_rank(self, dataset: Dataset) -> None:
        """A rank without a number of ranks, and the reverse, is refused."""
        halves: list[dict[str, Any]] = [{"rank": 1}, {"world_size": 4}]
        for options in halves:
            with pytest.raises(ConfigError, match="give both, or neither"):
                dataprep.to_torch(dataset, **options)


class TestStates:
    """A state has a content, and some states are refused."""

    @FEW_CORES
    @pytest.mark.process
    @pytest.mark.smoke
    def test_workers_read(self, dataset: Dataset) -> None:
        """With workers, the main process reports that it does not know what was read."""
        batches = dataprep.to_torch(dataset, iterable=True, batch_size=4)
        loader = data_loader(batches, batch_size=None, num_workers=2)
        assert batches.state_dict()["samples"] == 0
        iterator = iter(loader)
        next(iterator)
        for _ in range(2):
            with pytest.raises(ConfigError, match=r"StatefulDataLoader.*start=steps"):
                batches.state_dict()
            list(iterator)
        batches.set_epoch(3)
        assert batches.state_dict()["epoch"] == 3

    def test_plain_map_style(self, dataset: Dataset) -> None:
        """A plain map style never knows what was read: the error has two remedies."""
        images: Any = dataprep.to_torch(dataset)
        with pytest.raises(ConfigError, match=r"StatefulDataLoader.*start=steps"):
            images.state_dict()
        list(images.sampler)
        with pytest.raises(ConfigError, match=r"StatefulDataLoader.*start=steps"):
            images.state_dict()

    @pytest.mark.parametrize("even", ["keep", "drop", "pad"])
    @STYLES
    def test_the_end_of_an_epoch(self, dataset: Dataset, iterable: bool, even: Any) -> None:
        """A state at the end of an epoch continues with the next one, as ``start`` does."""
        options: dict[str, Any] = {"iterable": iterable, "batch_size": 25, "even": even}
        batches = dataprep.to_torch(dataset, epoch=2, **options)
        list(batches)
        state = batches.state_dict()
        resumed = dataprep.to_torch(dataset, **options)
        resumed.load_state_dict(state)
        started = dataprep.to_torch(dataset, epoch=2, start=state["samples"], **options)
        expected = list(map(str, dataprep.to_torch(dataset, epoch=3, **options)))
        assert list(map(str, resumed)) == expected == list(map(str, started))

    @STYLES
    def test_a_last_batch_that_is_dropped(self, dataset: Dataset, iterable: bool) -> None:
        """The epoch has ended without its last batch, which is dropped."""
        options: dict[str, Any] = {"iterable": iterable, "batch_size": 50, "drop_last": True}
        batches = dataprep.to_torch(dataset, **options)
        list(batches)
        resumed = dataprep.to_torch(dataset, **options)
        resumed.load_state_dict(batches.state_dict())
        expected = dataprep.to_torch(dataset, epoch=1, **options)
        assert list(map(str, resumed)) == list(map(str, expected))

    @pytest.mark.parametrize("steps_taken", range(1, 9))
    def test_steps_that_have_begun_count(self, dataset: Dataset, steps_taken: int) -> None:
        """Samples of a step that all ranks take together are not read twice."""
        images = dataprep.to_torch(dataset, iterable=True, rank=0, world_size=2, global_batch=8)
        iterator = iter(images)
        for _ in range(steps_taken):
            next(iterator)
        assert images.state_dict()["samples"] == (8 if steps_taken <= 4 else 16)

    @STYLES
    def test_a_last_step_that_is_smaller(self, dataset: Dataset, iterable: bool) -> None:
        """The state is the end of the epoch, before and after the loop has asked for more."""
        batches = dataprep.to_torch(dataset, iterable=iterable, batch_size=7)
        iterator = iter(batches)
        assert sum(len(images) for images, _ in islice(iterator, 18)) == SAMPLES
        assert batches.state_dict()["samples"] == SAMPLES
        assert list(iterator) == []
        state = batches.state_dict()
        assert state["samples"] == SAMPLES
        batches.load_state_dict(state)
        next_epoch = batches.state_dict()
        assert (next_epoch["epoch"], next_epoch["samples"]) == (1, 0)

    def test_states_of_earlier_versions(self, dataset: Dataset, numbers: dict[bytes, int]) -> None:
        """States that lack the name of the data set are loaded as before."""
        batches = dataprep.to_torch(dataset, iterable=True, batch_size=10)
        batches.load_state_dict({"epoch": 4, "seed": 3, "samples": 30})
        numbers_taken = [numbers[image] for images, _ in batches for image in images]
        order = Order(seed=3, global_batch=10, epoch=4, start=30)
        assert numbers_taken == Records(dataset).samples_of_rank(order, 4).tolist()

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda state: {**state, "samples": 121}, "start 121 is beyond the end"),
            (lambda state: {**state, "samples": -1}, "start -1: it is at least 0"),
            (lambda state: {**state, "dataset": "0"}, "another data set"),
            (lambda state: {"epoch": 0, "seed": 0}, "not a state of dataprep.to_torch"),
            (lambda state: {**state, "epoch": "0"}, "not a state of dataprep.to_torch"),
            (lambda state: {**state, "of_worker": 4}, "a worker of torchdata's"),
            (lambda state: {**state, "order": "as stored"}, "that are read as stored"),
        ],
    )
    def test_refused(
        self,
        dataset: Dataset,
        change: Callable[[dict[str, Any]], dict[str, Any]],
        message: str,
    ) -> None:
        """A state that does not fit these samples leaves the reader unchanged."""
        batches = dataprep.to_torch(dataset, iterable=True, batch_size=4)
        state = batches.state_dict()
        with pytest.raises(ConfigError, match=message):
            batches.load_state_dict(change(state))
        assert batches.state_dict() == state

    def test_other_samples(self, dataset: Dataset, tmp_path: Path) -> None:
        """Other shards, shares and orders are other samples, and a copy has the same ones."""
        options: dict[str, Any] = {"iterable": True, "batch_size": 4}
        state = dataprep.to_torch(dataset, **options).state_dict()
        stage(dataset.store.uri, tmp_path / "copy")
        dataprep.to_torch(dataprep.open(tmp_path / "copy"), **options).load_state_dict(state)
        stage(dataset.store.uri, tmp_path / "share", host=dataprep.Part(0, 2))
        for other in (dataset.of_shards([0, 1]), dataprep.open(tmp_path / "share")):
            with pytest.raises(ConfigError, match="belongs to another data set"):
                dataprep.to_torch(other, **options).load_state_dict(state)
        shutil.copytree(tmp_path / "copy", tmp_path / "alike")
        manifest = tmp_path / "alike" / "train.manifest.json"
        content = {**json.loads(manifest.read_text()), "fingerprint": "0" * 64}
        manifest.write_text(json.dumps(content))
        with pytest.raises(ConfigError, match="belongs to another data set"):
            dataprep.to_torch(dataprep.open(tmp_path / "alike"), **options).load_state_dict(state)
        for changed in ({"iterable": False}, {"shuffle": False}):
            with pytest.raises(ConfigError, match="use the same iterable, shuffle and format"):
                dataprep.to_torch(dataset, **{**options, **changed}).load_state_dict(state)

    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            ({"seed": 1}, "saved with seed 0, not 1"),
            ({"world_size": 4}, "saved with world_size 2, not 4"),
            ({"global_batch": 8}, "saved with global_batch 13, not 8"),
            ({"rank": 1}, "takes 7 samples of a global batch, this one takes 6"),
        ],
        ids=["seed", "ranks", "batch", "rank"],
    )
    def test_a_sampler_goes_on_as_it_was_saved(
        self, dataset: Dataset, changed: dict[str, Any], message: str
    ) -> None:
        """The state of a sampler is that of one rank, and other settings are refused."""
        saved = {"rank": 0, "world_size": 2, "seed": 0, "global_batch": 13}

        def sampler(**options: Any) -> Any:
            return iter(dataprep.to_torch(dataset, **options).sampler)

        iterator, again, earlier = (sampler(**saved) for _ in range(3))
        assert len(list(islice(iterator, 7))) == 7
        state = iterator.state_dict()
        again.load_state_dict(state)
        rest = list(iterator)
        assert list(again) == rest
        del state["global_batch"], state["rank_batch"]
        earlier.load_state_dict(state)
        assert list(earlier) == rest
        with pytest.raises(ConfigError, match=message):
            sampler(**{**saved, **changed}).load_state_dict(again.state_dict())

    def test_a_state_of_batches_is_none_of_a_sampler(self, dataset: Dataset) -> None:
        """A state of batches is refused by a sampler, with the right use of the state."""
        state = dataprep.to_torch(dataset, batch_size=6).state_dict()
        sampler: Any = iter(dataprep.to_torch(dataset).sampler)
        with pytest.raises(ConfigError, match="does not belong to an iterator of images"):
            sampler.load_state_dict(state)

    @FEW_CORES
    @STATEFUL
    @pytest.mark.process
    @pytest.mark.smoke
    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            ({}, None),
            ({"seed": 9}, "saved with seed 0, not 9"),
            ({"world_size": 3, "batch_size": 4}, "saved with world_size 2, not 3"),
            ({"batch_size": 5}, "saved with global_batch 12, not 10"),
        ],
        ids=["same", "seed", "ranks", "batch"],
    )
    def test_workers_go_on_as_they_were_saved(
        self,
        dataset: Dataset,
        changed: dict[str, Any],
        message: str | None,
    ) -> None:
        """The state of a worker counts its own samples, which differ with other settings."""
        stateful = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader
        saved = {"rank": 0, "world_size": 2, "seed": 0, "batch_size": 6}

        def opened(**options: Any) -> Any:
            batches = dataprep.to_torch(dataset, iterable=True, **options)
            return stateful(batches, batch_size=None, num_workers=2)

        first = iter(loader := opened(**saved))
        assert len(list(islice(first, 4))) == 4
        resumed = opened(**{**saved, **changed})
        resumed.load_state_dict(loader.state_dict())
        if message is None:
            assert list(map(str, resumed)) == list(map(str, first))
        else:
            with pytest.raises(ConfigError, match=message):
                next(iter(resumed))

    def test_shares_of_hosts_at_the_end(self, dataset: Dataset, tmp_path: Path) -> None:
        """Hosts with shares of different sizes end an epoch together."""
        states, hosts = [], []
        for host in range(2):
            stage(dataset.store.uri, tmp_path / str(host), host=dataprep.Part(host, 2))
            hosts.append(dataprep.open(tmp_path / str(host)))
        options: dict[str, Any] = {"iterable": True, "batch_size": 7, "world_size": 2}
        assert len(hosts[0]) != len(hosts[1])
        for host, share in enumerate(hosts):
            batches = dataprep.to_torch(share, rank=host, **options)
            list(batches)
            states.append(batches.state_dict())
        for host, share in enumerate(hosts):
            for state in states:
                resumed = dataprep.to_torch(share, rank=host, **options)
                resumed.load_state_dict(state)
                expected = dataprep.to_torch(share, rank=host, epoch=1, **options)
                assert list(map(str, resumed)) == list(map(str, expected))

    @pytest.mark.parametrize("options", [{"iterable": True}, {"batch_size": 8}, {}], ids=str)
    def test_a_start_beyond_the_end(self, dataset: Dataset, options: dict[str, Any]) -> None:
        """A start beyond the end is refused. The last step may be counted as a whole one."""
        with pytest.raises(ConfigError, match="start 500 is beyond the end of an epoch of 120"):
            dataprep.to_torch(dataset, start=500, **options)
        batches = dataprep.to_torch(dataset, batch_size=50, start=150)
        assert list(map(str, batches)) == list(
            map(str, dataprep.to_torch(dataset, batch_size=50, epoch=1))
        )

    @STYLES
    def test_drop_without_a_step(self, dataset: Dataset, iterable: bool) -> None:
        """Epochs without any full step are refused."""
        options: dict[str, Any] = {"iterable": iterable, "even": "drop", "world_size": 2, "rank": 0}
        with pytest.raises(ConfigError, match="even='drop' leaves no step"):
            dataprep.to_torch(dataset, batch_size=61, **options)
        batches = dataprep.to_torch(dataset, batch_size=50, start=100, **options)
        assert sum(1 for _ in batches) == 1
        with pytest.raises(ConfigError, match="even='drop' leaves no step"):
            dataprep.to_torch(dataset, iterable=iterable, even="drop", rank=0, world_size=121)


@FEW_CORES
@STATEFUL
@pytest.mark.process
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("style", ["map", "iterable", "batches"])
def test_stateful_data_loader_over_epochs(
    dataset: Dataset, workers: int, persistent: bool, style: str
) -> None:
    """A loader continues in and after the third epoch, twice, and from the end of an epoch."""
    if persistent and not workers:
        pytest.skip("no workers persist")
    stateful = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader

    def opened() -> Any:
        size = 8 if style == "batches" else None
        how: dict[str, Any] = {"iterable": style != "map", "batch_size": size}
        images: Any = dataprep.to_torch(dataset, **how, seed=4)
        options: dict[str, Any] = {"batch_size": None if size else 8}
        if style == "map":
            options["sampler"] = images.sampler
        return stateful(images, num_workers=workers, persistent_workers=persistent, **options)

    def batches_of(loader: Any, steps: int | None = None) -> list[Any]:
        return [tuple(images) for images, _ in islice(loader, steps)]

    loader = opened()
    epochs = [batches_of(loader) for _ in range(5)]
    assert len({tuple(epoch) for epoch in epochs}) == 5
    first = opened()
    for epoch in epochs[:2]:
        assert batches_of(first) == epoch
    assert batches_of(first, 4) == epochs[2][:4]
    second = opened()
    second.load_state_dict(first.state_dict())
    assert batches_of(second, 1) == epochs[2][4:5]
    third = opened()
    third.load_state_dict(second.state_dict())
    assert batches_of(third) == epochs[2][5:]
    fourth = opened()
    fourth.load_state_dict(third.state_dict())
    for loader in (third, fourth):
        assert batches_of(loader) == epochs[3]
        assert batches_of(loader) == epochs[4]


@STATEFUL
@pytest.mark.parametrize("size", [None, 7])
def test_a_state_from_the_end_is_saved_again(dataset: Dataset, size: int | None) -> None:
    """No epoch is skipped, even if nothing was read between loading and saving a state."""
    stateful = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader

    def opened(state: Any = None) -> Any:
        batches = dataprep.to_torch(dataset, iterable=True, batch_size=size)
        loader = stateful(batches, batch_size=None if size else 7)
        if state:
            loader.load_state_dict(state)
        return loader

    def batches_of(loader: Any, steps: int | None = None) -> list[Any]:
        return [tuple(images) for images, _ in islice(loader, steps)]

    loader = opened()
    epochs = [batches_of(loader) for _ in range(3)]
    first = opened()
    assert batches_of(first, 18) == epochs[0]  # the last batch is smaller
    second = opened(first.state_dict())
    rest = batches_of(second)  # StatefulDataLoader may begin with the empty rest of the epoch
    assert rest in ([], epochs[1])
    third = opened(second.state_dict())
    assert batches_of(third) == epochs[1 + bool(rest)]
