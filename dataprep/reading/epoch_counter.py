"""Count the epochs of a data set whose iterations run in several processes.

``DataLoader`` starts the workers of an iteration, or wakes up those of the last one, without
calling the data set in the process that trains. The workers therefore agree among themselves: each
claims an epoch for its iteration in a small table in shared memory, under a file lock. Workers of
one iteration have the same key, which is the seed of the loader's iteration and the number of
iterations in the worker's process. The first worker with a new key gets the next epoch, and the
others with that key get the same epoch.
"""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass, replace
from multiprocessing import reduction
from multiprocessing.context import get_spawning_popen
from typing import Any

_HEADER = struct.Struct("<6q")
_ITERATION = struct.Struct("<10q128s")
_KEPT = 64
"""Iterations that the table keeps. More live iterators of one data set are not expected."""

_WORKERS = 8 * 128
"""Workers of one iteration that are told apart."""


@dataclass(frozen=True, slots=True)
class LoaderWorker:
    """A worker process of a ``DataLoader``.

    Attributes:
        number: the number of the worker, from 0.
        workers: the number of all workers of the loader.
        base_seed: the seed of the loader's iteration, which all its workers share.
    """

    number: int
    workers: int
    base_seed: int


@dataclass(frozen=True, slots=True)
class Iteration:
    """An iteration over the data set.

    Attributes:
        number: iterations count from 0, in the order in which they began.
        setting: how often the epoch had been set when the iteration began.
        owner: the process that trains.
        base_seed: the seed of the loader's iteration; 0 if no loader's worker reads.
        turn: the number of iterations in the worker's process.
        epoch: the epoch that is read.
        first_worker: the process of the worker that began; 0 if no loader's worker reads.
        workers: the number of workers that read together; 0 if no loader's worker reads.
        ended: the number of workers that have ended.
        ended_ns: when the last of these ended, in nanoseconds since the machine started; 0 if none
            has.
        begun: a bit for each worker that has begun.
    """

    number: int
    setting: int
    owner: int
    base_seed: int
    turn: int
    epoch: int
    first_worker: int
    workers: int
    ended: int
    ended_ns: int
    begun: int

    @property
    def is_being_read(self) -> bool:
        """Whether workers read it: some have not ended, and the first one is alive."""
        return self.ended < self.workers and _is_alive(self.first_worker)


@dataclass(frozen=True, slots=True)
class _Header:
    """What precedes the table.

    Attributes:
        setting: how often the epoch was set.
        first: the epoch that was set.
        current: the epoch of the latest iteration; ``first`` before any.
        iterations: the number of all iterations.
        samples: samples that were read since the epoch was set or claimed; see ``count_samples``.
        is_exceeded: 1 if ``count_samples`` has once reported that they are too many.
    """

    setting: int
    first: int
    current: int
    iterations: int
    samples: int
    is_exceeded: int


class EpochCounter:
    """The epochs of the iterations over a data set, in this process and in loaders' workers.

    It can be forked, and pickled for a process that is being started; all of them share the
    counter. A copy that is pickled otherwise counts for itself.
    """

    def __init__(self, epoch: int) -> None:
        """Begin with ``epoch``."""
        self._open(_HEADER.pack(0, epoch, epoch, 0, 0, 0))
        self._setting, self._first = 0, epoch
        self._process, self._turns = os.getpid(), 0

    def __reduce__(self) -> tuple[Any, ...]:
        content: Any
        if get_spawning_popen() is not None:
            content = reduction.DupFd(self._descriptor)
        else:
            with self._locked():
                content = os.pread(self._descriptor, _TABLE_END, 0)
        return _unpickled, (content, self._setting, self._first, self._process)

    def __del__(self) -> None:
        os.close(self._descriptor)

    def _open(self, content: bytes) -> None:
        self._descriptor = os.memfd_create("dataprep-epochs")
        os.pwrite(self._descriptor, content, 0)

    @property
    def current(self) -> int:
        """The epoch of the latest iteration, or the one that was set after it."""
        return _HEADER.unpack(os.pread(self._descriptor, _HEADER.size, 0))[2]  # type: ignore[no-any-return]

    def set(self, epoch: int) -> None:
        """Set the epoch of the next iteration in this process, or in workers that it starts."""
        with self._locked():
            header = self._header()
            self._setting, self._first = header.setting + 1, epoch
            changed = replace(header, setting=self._setting, first=epoch, current=epoch, samples=0)
            self._write_header(changed)

    def claim(self, worker: LoaderWorker | None = None, epoch: int | None = None) -> Iteration:
        """Begin an iteration in this process.

        Workers of one iteration get the same epoch, and each other iteration the next one.
        ``epoch`` is the epoch of an iteration that goes on after a resume.
        """
        with self._locked():
            header = self._header()
            setting, first = header.setting, header.first
            if self._process != os.getpid():
                self._process, self._turns = os.getpid(), 0
                if worker is not None:
                    # What was set after the loader started this worker is for later iterations.
                    setting, first = self._setting, self._first
            self._turns += 1
            iterations = [
                iteration
                for iteration in self._iterations(header)
                if (iteration.setting, iteration.owner) == (setting, _owner(worker))
            ]
            if worker is not None:
                for iteration in iterations:
                    if self._is_shared(iteration, worker, epoch):
                        bits = iteration.begun | _bit(worker)
                        joined = replace(iteration, begun=bits)
                        self._write(joined)
                        return joined
            if epoch is None:
                epoch = iterations[0].epoch + 1 if iterations else first
            begun = Iteration(
                number=header.iterations,
                setting=setting,
                owner=_owner(worker),
                base_seed=worker.base_seed if worker else 0,
                turn=self._turns,
                epoch=epoch,
                first_worker=os.getpid() if worker else 0,
                workers=worker.workers if worker else 0,
                ended=0,
                ended_ns=0,
                begun=_bit(worker) if worker else 0,
            )
            self._write(begun)
            changed = replace(header, iterations=header.iterations + 1, samples=0)
            if setting == header.setting:
                changed = replace(changed, current=epoch)
            self._write_header(changed)
            return begun

    def end(self, iteration: Iteration) -> None:
        """Note that one of its workers has ended."""
        with self._locked():
            for kept in self._iterations(self._header()):
                if kept.number == iteration.number:
                    ended_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
                    self._write(replace(kept, ended=kept.ended + 1, ended_ns=ended_ns))

    def iterations(self) -> list[Iteration]:
        """The latest iterations for this process since the epoch was set, the latest first."""
        with self._locked():
            header = self._header()
            return [
                iteration
                for iteration in self._iterations(header)
                if (iteration.setting, iteration.owner) == (header.setting, os.getpid())
            ]

    def following(self) -> int:
        """The epoch of the next iteration."""
        iterations = self.iterations()
        if iterations:
            return iterations[0].epoch + 1
        return self._header().first

    def count_samples(self, samples: int, limit: int) -> bool:
        """Count samples that are read outside iterations, and say whether they exceed ``limit``.

        They count from the last time that the epoch was set, or an iteration began. Of all
        processes one gets True, and only once.
        """
        with self._locked():
            header = self._header()
            total = header.samples + samples
            is_exceeded = total > limit and not header.is_exceeded
            self._write_header(
                replace(header, samples=total, is_exceeded=header.is_exceeded or int(is_exceeded))
            )
            return is_exceeded

    def _is_shared(self, iteration: Iteration, worker: LoaderWorker, epoch: int | None) -> bool:
        """Whether ``worker`` takes part in an iteration that another worker began.

        A loader's iteration can have the seed of an earlier one, because programs seed torch anew.
        Then the worker has begun the earlier one already, or its workers are gone. A worker that
        starts slowly may also meet an iteration whose workers are gone, because the program has
        left the loop: then this worker was started before they ended.
        """
        return (
            (iteration.base_seed, iteration.turn) == (worker.base_seed, self._turns)
            and iteration.workers == worker.workers
            and not iteration.begun & _bit(worker)
            and epoch in (None, iteration.epoch)
            and (_is_alive(iteration.first_worker) or _started_ns() <= iteration.ended_ns)
        )

    def _header(self) -> _Header:
        return _Header(*_HEADER.unpack(os.pread(self._descriptor, _HEADER.size, 0)))

    def _write_header(self, header: _Header) -> None:
        os.pwrite(self._descriptor, _HEADER.pack(*astuple(header)), 0)

    def _iterations(self, header: _Header) -> Iterator[Iteration]:
        """The iterations in the table, the latest first."""
        table = os.pread(self._descriptor, _TABLE_END - _HEADER.size, _HEADER.size)
        for number in range(header.iterations - 1, -1, -1)[:_KEPT]:
            yield _unpacked(_ITERATION.unpack_from(table, number % _KEPT * _ITERATION.size))

    def _write(self, iteration: Iteration) -> None:
        packed = _ITERATION.pack(
            iteration.number,
            iteration.setting,
            iteration.owner,
            iteration.base_seed,
            iteration.turn,
            iteration.epoch,
            iteration.first_worker,
            iteration.workers,
            iteration.ended,
            iteration.ended_ns,
            iteration.begun.to_bytes(_WORKERS // 8, "little"),
        )
        place = _HEADER.size + iteration.number % _KEPT * _ITERATION.size
        os.pwrite(self._descriptor, packed, place)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Exclude other threads and processes.

        The lock belongs to a file description of its own, so that it also excludes forks and
        threads. It ends with a process that is killed.
        """
        descriptor = os.open(f"/proc/self/fd/{self._descriptor}", os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            fcntl.flock(descriptor, fcntl.LOCK_UN)  # also if a fork has copied the descriptor
            os.close(descriptor)


_TABLE_END = _HEADER.size + _KEPT * _ITERATION.size


def _unpickled(content: Any, setting: int, first: int, process: int) -> EpochCounter:
    counter = EpochCounter.__new__(EpochCounter)
    if isinstance(content, bytes):
        counter._open(content)
        process = os.getpid()
    else:
        counter._descriptor = content.detach()
    counter._setting, counter._first = setting, first
    counter._process, counter._turns = process, 0
    return counter


def _unpacked(values: tuple[Any, ...]) -> Iteration:
    named = dict(zip(Iteration.__slots__, values, strict=True))
    return Iteration(**{**named, "begun": int.from_bytes(named["begun"], "little")})


def _owner(worker: LoaderWorker | None) -> int:
    """The process that trains."""
    parent = multiprocessing.parent_process()
    if worker is None:
        return os.getpid()
    return os.getppid() if parent is None or parent.pid is None else parent.pid


def _bit(worker: LoaderWorker) -> int:
    return 1 << worker.number % _WORKERS


def _started_ns() -> int:
    """When this process was started, in nanoseconds since the machine started.

    Linux counts it in ticks (proc_pid_stat(5), field 22), which are cut off, not rounded.
    """
    with open("/proc/self/stat", "rb") as file:  # noqa: PTH123
        after_name = file.read().rpartition(b")")[2].split()
    ticks = int(after_name[19])
    return ticks * 10**9 // os.sysconf("SC_CLK_TCK")


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
