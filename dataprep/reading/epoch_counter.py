"""Count the epochs of a data set whose iterations run in several processes.

``DataLoader`` starts the workers of an iteration, or wakes up the workers of the last iteration,
without calling the data set in the training process. The workers therefore agree on the epoch
themselves. Each worker claims an epoch for its iteration in a small table in shared memory, under a
file lock. Workers of one iteration have the same key: the seed of the loader's iteration, and the
number of iterations in the worker's process. The first worker with a new key gets the next epoch.
The other workers with that key get the same epoch.

A program may create a data set before it starts its training processes. Each training process sets
and counts epochs at its own time. It therefore has a table of its own in the same file.
"""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass, replace
from multiprocessing import reduction
from multiprocessing.context import get_spawning_popen
from typing import Any

_HEADER = struct.Struct("<7q")  # the attributes of ``_Header``, in their order
_ITERATION = struct.Struct("<9q128s")  # the attributes of ``Iteration``, in their order
_MAX_ITERATIONS = 64
"""Iterations that a table keeps. A newer iteration replaces the oldest one. A data set is not
expected to have more live iterators."""

_WORKER_BITS = 8 * 128
"""Bits of an iteration, one for each worker that has begun. If there are more workers, some share a
bit."""

_TABLE_BYTES = _HEADER.size + _MAX_ITERATIONS * _ITERATION.size


@dataclass(frozen=True, slots=True)
class LoaderWorker:
    """A worker process of a ``DataLoader``.

    Attributes:
        number: the number of the worker, from 0.
        workers: the number of all workers of the loader.
        base_seed: the seed of the loader's iteration, which all its workers share.
        first_process: the number of the loader's worker 0 among the processes that the training
            process has started.
    """

    number: int
    workers: int
    base_seed: int
    first_process: int


_NO_WORKER = LoaderWorker(number=0, workers=0, base_seed=0, first_process=0)


@dataclass(frozen=True, slots=True)
class Iteration:
    """An iteration over the data set.

    Attributes:
        number: the number of the iteration in its table, from 0.
        set_count: how often ``set`` had been called when the iteration began.
        base_seed: the seed of the loader's iteration; 0 without workers.
        first_process: as in ``LoaderWorker``; 0 without workers.
        number_in_process: the number of the iteration in each worker's process, from 1.
        epoch: the epoch that is read.
        first_worker: the process id of the worker that began first; 0 without workers.
        workers: the number of workers that read together; 0 without workers.
        ended: the number of workers that have ended.
        begun_bits: a bit for each worker that has begun.
    """

    number: int
    set_count: int
    base_seed: int
    first_process: int
    number_in_process: int
    epoch: int
    first_worker: int
    workers: int
    ended: int
    begun_bits: int

    @property
    def is_being_read(self) -> bool:
        """Whether workers are reading: some have not ended, and the first worker is alive."""
        return self.ended < self.workers and _is_alive(self.first_worker)


@dataclass(frozen=True, slots=True)
class _Header:
    """The beginning of a table, before its iterations.

    Attributes:
        owner: the process id of the training process.
        set_count: how often ``set`` has been called.
        first_epoch: the epoch that was set last. The first iteration after that reads it.
        current: the epoch of the latest iteration; ``first_epoch`` before the first iteration.
        iterations: the number of all iterations, including those that the table no longer keeps.
        samples: samples that were read outside iterations; see ``count_samples``.
        is_exceeded: 1 if ``count_samples`` has reported that the limit is exceeded.
    """

    owner: int
    set_count: int
    first_epoch: int
    current: int
    iterations: int
    samples: int
    is_exceeded: int


class EpochCounter:
    """Counts the epochs of a data set, in this process and in the workers of loaders.

    A counter can be forked, and pickled for a process that is being started. Workers of a loader
    share the table of the training process. A copy that is pickled in another way counts on its
    own.
    """

    def __init__(self, epoch: int) -> None:
        """Begin with a table for this process, whose first iteration is ``epoch``."""
        self._descriptor = _in_memory(_empty(_Header(os.getpid(), 0, epoch, epoch, 0, 0, 0)))
        self._set_count, self._first_epoch = 0, epoch
        self._process, self._iterations_begun = os.getpid(), 0

    def __reduce__(self) -> tuple[Any, ...]:
        content: Any
        if get_spawning_popen() is not None:
            content = reduction.DupFd(self._descriptor)
        else:
            with self._locked():
                content = os.pread(self._descriptor, _TABLE_BYTES, self._nearest_table())
        return _unpickled, (content, self._set_count, self._first_epoch, self._process)

    def __del__(self) -> None:
        if hasattr(self, "_descriptor"):  # absent if too many files are open
            os.close(self._descriptor)

    @property
    def current(self) -> int:
        """The epoch of the latest iteration, or the one that was set after it."""
        return self._header(self._nearest_table()).current

    def set(self, epoch: int, worker: LoaderWorker | None = None) -> None:
        """Set the epoch of the next iteration in the training process and in its workers.

        Args:
            epoch: the number of the epoch.
            worker: the loader's worker that this process is; None in a training process.
        """
        with self._locked():
            table_start = self._table_of(_owner(worker))
            header = self._header(table_start)
            self._set_count, self._first_epoch = header.set_count + 1, epoch
            changed = replace(
                header, set_count=self._set_count, first_epoch=epoch, current=epoch, samples=0
            )
            self._write_header(table_start, changed)

    def claim(self, worker: LoaderWorker | None = None, epoch: int | None = None) -> Iteration:
        """Begin an iteration in this process.

        Workers of one iteration get the same epoch. Each other iteration gets the next epoch.

        Args:
            worker: the loader's worker that this process is; None in a training process.
            epoch: the epoch of an iteration that continues after a resume; None for the next epoch.
        """
        with self._locked():
            table_start = self._table_of(_owner(worker))
            header = self._header(table_start)
            set_count, first_epoch = header.set_count, header.first_epoch
            if self._process != os.getpid():
                self._process, self._iterations_begun = os.getpid(), 0
                if worker is not None:
                    # An epoch that was set after the start of this worker is for later iterations.
                    set_count, first_epoch = self._set_count, self._first_epoch
            self._iterations_begun += 1
            iterations = self._iterations(table_start)
            if worker is not None:
                # If this worker is late, its iteration may have begun before the epoch was set.
                shared = self._shared_iteration(iterations, worker, epoch)
                if shared is not None:
                    joined = replace(shared, begun_bits=shared.begun_bits | _bit(worker))
                    self._write(table_start, joined)
                    return joined
            if epoch is None:
                since_set = _since_set(iterations, set_count)
                epoch = since_set[0].epoch + 1 if since_set else first_epoch
            new_iteration = self._new_iteration(header.iterations, set_count, epoch, worker)
            self._write(table_start, new_iteration)
            changed = replace(header, iterations=header.iterations + 1, samples=0)
            if set_count == header.set_count:
                changed = replace(changed, current=epoch)
            self._write_header(table_start, changed)
            return new_iteration

    def end(self, iteration: Iteration) -> None:
        """Note that this worker, which takes part in an iteration, has ended."""
        with self._locked():
            table_start = self._nearest_table()
            for current in self._iterations(table_start):
                if current.number == iteration.number:
                    self._write(table_start, replace(current, ended=current.ended + 1))

    def iterations(self) -> list[Iteration]:
        """Return the iterations of this process since the epoch was set, the latest first."""
        with self._locked():
            table_start = self._existing_table(os.getpid())
            if table_start is None:
                return []
            return _since_set(self._iterations(table_start), self._header(table_start).set_count)

    def next_epoch(self) -> int:
        """Return the epoch of the next iteration of this process."""
        iterations = self.iterations()
        if iterations:
            return iterations[0].epoch + 1
        table_start = self._existing_table(os.getpid())
        return self._first_epoch if table_start is None else self._header(table_start).first_epoch

    def count_samples(self, samples: int, limit: int) -> bool:
        """Count samples that are read outside iterations. Return whether they exceed a limit.

        The count begins anew when the epoch is set or an iteration begins. The result is True only
        once, and in only one of all processes.
        """
        with self._locked():
            table_start = self._nearest_table()
            header = self._header(table_start)
            total = header.samples + samples
            is_exceeded = total > limit and not header.is_exceeded
            changed = replace(
                header, samples=total, is_exceeded=header.is_exceeded or int(is_exceeded)
            )
            self._write_header(table_start, changed)
            return is_exceeded

    def _shared_iteration(
        self, iterations: list[Iteration], worker: LoaderWorker, epoch: int | None
    ) -> Iteration | None:
        """Return the iteration in which a worker takes part; None if no worker has begun it."""
        for iteration in iterations:
            if self._is_shared(iteration, worker, epoch):
                return iteration
        return None

    def _new_iteration(
        self, number: int, set_count: int, epoch: int, worker: LoaderWorker | None
    ) -> Iteration:
        """Return an iteration that this process begins."""
        first_worker = begun_bits = 0
        if worker is not None:
            first_worker, begun_bits = os.getpid(), _bit(worker)
        reader = worker or _NO_WORKER
        return Iteration(
            number=number,
            set_count=set_count,
            base_seed=reader.base_seed,
            first_process=reader.first_process,
            number_in_process=self._iterations_begun,
            epoch=epoch,
            first_worker=first_worker,
            workers=reader.workers,
            ended=0,
            begun_bits=begun_bits,
        )

    def _is_shared(self, iteration: Iteration, worker: LoaderWorker, epoch: int | None) -> bool:
        """Whether ``worker`` takes part in an iteration that another worker began.

        Both must have the same seed, number in their process, number of workers and epoch. This is
        not sufficient, because a program can seed torch again, so that two iterations have the
        same seed. A worker that has begun an iteration does not take part in it again.

        Workers of another loader are recognised by ``first_process``. All workers of a loader have
        the same value, unless other threads of the program start processes between two workers. In
        this case, their values are expected to differ by less than the number of workers. The
        values of two loaders differ by at least this number. If the values of two workers differ,
        the first worker must be alive. If they are equal, the first worker may have ended: this
        worker may start slowly, and the program may have left the loop already.
        """
        if iteration.base_seed != worker.base_seed:
            return False
        if iteration.number_in_process != self._iterations_begun:
            return False
        if iteration.workers != worker.workers or epoch not in (None, iteration.epoch):
            return False
        has_begun = iteration.begun_bits & _bit(worker)
        if has_begun:
            return False
        distance = abs(iteration.first_process - worker.first_process)
        if distance == 0:
            return True
        return distance < worker.workers and _is_alive(iteration.first_worker)

    def _table_of(self, owner: int) -> int:
        """Return the position of the table of a training process. Create it if there is none."""
        table_start = self._existing_table(owner)
        if table_start is None:
            table_start = self._unused_table()
            header = _Header(owner, self._set_count, self._first_epoch, self._first_epoch, 0, 0, 0)
            os.pwrite(self._descriptor, _empty(header), table_start)
        return table_start

    def _nearest_table(self) -> int:
        """Return the position of this process's table. A loader's worker uses its parent's table.

        A process without a table uses the first one, of the process that created the data set.
        """
        for owner in (os.getpid(), _parent()):
            table_start = self._existing_table(owner)
            if table_start is not None:
                return table_start
        return 0

    def _existing_table(self, owner: int) -> int | None:
        """Return the position of the table of a training process; None if it has none."""
        for table_start in self._tables():
            if self._header(table_start).owner == owner:
                return table_start
        return None

    def _unused_table(self) -> int:
        """Return a position for a new table: that of an ended process, or the end of the file."""
        tables = self._tables()
        # The first table stays, because processes without a table use it.
        for table_start in tables[1:]:
            if not _is_alive(self._header(table_start).owner):
                return table_start
        return tables[-1] + _TABLE_BYTES

    def _tables(self) -> range:
        """Return the positions of all tables in the file."""
        return range(0, os.fstat(self._descriptor).st_size, _TABLE_BYTES)

    def _header(self, table_start: int) -> _Header:
        return _Header(*_HEADER.unpack(os.pread(self._descriptor, _HEADER.size, table_start)))

    def _write_header(self, table_start: int, header: _Header) -> None:
        os.pwrite(self._descriptor, _HEADER.pack(*astuple(header)), table_start)

    def _iterations(self, table_start: int) -> list[Iteration]:
        """Return the iterations that a table keeps, the latest first."""
        content = os.pread(self._descriptor, _TABLE_BYTES, table_start)
        header = _Header(*_HEADER.unpack_from(content))
        latest_first = range(header.iterations - 1, -1, -1)
        return [
            _unpacked(_ITERATION.unpack_from(content, _iteration_offset(number)))
            for number in latest_first[:_MAX_ITERATIONS]
        ]

    def _write(self, table_start: int, iteration: Iteration) -> None:
        """Write an iteration into its slot of a table, where it replaces an older iteration."""
        packed = _ITERATION.pack(
            iteration.number,
            iteration.set_count,
            iteration.base_seed,
            iteration.first_process,
            iteration.number_in_process,
            iteration.epoch,
            iteration.first_worker,
            iteration.workers,
            iteration.ended,
            iteration.begun_bits.to_bytes(_WORKER_BITS // 8, "little"),
        )
        os.pwrite(self._descriptor, packed, table_start + _iteration_offset(iteration.number))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Exclude other threads and processes.

        A lock of ``flock`` belongs to an opening of the file. The file is opened again for each
        lock, so that it also excludes forks and other threads, which share ``_descriptor``. The
        lock ends if the process is killed.
        """
        descriptor = os.open(f"/proc/self/fd/{self._descriptor}", os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            fcntl.flock(descriptor, fcntl.LOCK_UN)  # also if a fork has copied the descriptor
            os.close(descriptor)


def _empty(header: _Header) -> bytes:
    """Return a table without iterations."""
    return _HEADER.pack(*astuple(header)).ljust(_TABLE_BYTES, b"\0")


def _in_memory(content: bytes) -> int:
    """Create a file in memory, and return its descriptor."""
    descriptor = os.memfd_create("dataprep-epochs")
    os.pwrite(descriptor, content, 0)
    return descriptor


def _iteration_offset(number: int) -> int:
    """Return the position of an iteration within its table."""
    return _HEADER.size + number % _MAX_ITERATIONS * _ITERATION.size


def _unpickled(content: Any, set_count: int, first_epoch: int, process: int) -> EpochCounter:
    """Return the copy of a counter: with a table of its own, or with a duplicated descriptor."""
    counter = EpochCounter.__new__(EpochCounter)
    if isinstance(content, bytes):
        header = replace(_Header(*_HEADER.unpack_from(content)), owner=os.getpid())
        counter._descriptor = _in_memory(content)
        counter._write_header(0, header)
        set_count, first_epoch, process = header.set_count, header.first_epoch, os.getpid()
    else:
        counter._descriptor = content.detach()
    counter._set_count, counter._first_epoch = set_count, first_epoch
    counter._process, counter._iterations_begun = process, 0
    return counter


def _unpacked(values: tuple[Any, ...]) -> Iteration:
    """Return the iteration with the values of ``_ITERATION``."""
    *numbers, begun_bytes = values
    fields = [*numbers, int.from_bytes(begun_bytes, "little")]
    return Iteration(*fields)


def _since_set(iterations: list[Iteration], set_count: int) -> list[Iteration]:
    """Return the iterations that began while the epoch had been set ``set_count`` times."""
    return [iteration for iteration in iterations if iteration.set_count == set_count]


def _owner(worker: LoaderWorker | None) -> int:
    """Return the process id of the training process."""
    return os.getpid() if worker is None else _parent()


def _parent() -> int:
    """Return the process id of the process that started this one, also through a fork server."""
    parent = multiprocessing.parent_process()
    return os.getppid() if parent is None or parent.pid is None else parent.pid


def _bit(worker: LoaderWorker) -> int:
    """Return the bit of a worker in ``Iteration.begun_bits``."""
    return 1 << worker.number % _WORKER_BITS


def _is_alive(process: int) -> bool:
    """Whether there is a process with this id. It may belong to another user."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
