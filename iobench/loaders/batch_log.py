"""When the workers of a DataLoader of torch made their batches, for a trace of the run.

DataLoader does not say when a worker works. A worker asks its data set for samples, and puts them
together by ``collate_fn``: both are wrapped here. Each batch appends 24 bytes to a file in memory
that all workers share, which is open for appending, so that a worker that is killed leaves neither
a lock nor half an entry of another worker.
"""

from __future__ import annotations

import fcntl
import os
import struct
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from torch.utils.data import Dataset, IterableDataset, get_worker_info

from iobench.clock import Clock
from iobench.loaders.protocol import WorkerBatch

_ENTRY = struct.Struct("<3d")  # worker, begin and end of the batch


class BatchLog:
    """The batches of all workers of one loader, which are forks of this process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._descriptor = os.memfd_create("iobench-batches")
        flags = fcntl.fcntl(self._descriptor, fcntl.F_GETFL)
        fcntl.fcntl(self._descriptor, fcntl.F_SETFL, flags | os.O_APPEND)
        weakref.finalize(self, os.close, self._descriptor)
        self._begin_s: float | None = None

    def reading(self, dataset: Any) -> Any:
        """The same data set, which notes when the first sample of a batch is asked for."""
        if isinstance(dataset, IterableDataset):
            return _TimedSequence(dataset, self)
        return _TimedSamples(dataset, self)

    def collating(self, collate: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """The same collate function, which logs the batch when it is put together."""

        def logged(samples: Any) -> Any:
            batch = collate(samples)
            self._end()
            return batch

        return logged

    def begin(self) -> None:
        """The first sample of a batch is asked for, unless the batch has begun already."""
        if self._begin_s is None:
            self._begin_s = self._clock.now_s()

    def forget(self) -> None:
        """Drop the begin of a batch that did not come, because the epoch had ended."""
        self._begin_s = None

    def batches(self) -> Sequence[WorkerBatch]:
        """The batches so far, in the order of their ends."""
        data = os.pread(self._descriptor, os.fstat(self._descriptor).st_size, 0)
        entries = _ENTRY.iter_unpack(data[: len(data) // _ENTRY.size * _ENTRY.size])
        return [WorkerBatch(int(worker), begin_s, end_s) for worker, begin_s, end_s in entries]

    def _end(self) -> None:
        worker = get_worker_info()
        if worker is not None and self._begin_s is not None:
            entry = _ENTRY.pack(worker.id, self._begin_s, self._clock.now_s())
            os.write(self._descriptor, entry)
        self._begin_s = None


class _TimedSamples(Dataset[Any]):
    """A data set that is read by sample number, a batch at a time."""

    def __init__(self, dataset: Any, log: BatchLog) -> None:
        self._dataset, self._log = dataset, log

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitems__(self, numbers: Sequence[int]) -> Any:
        self._log.begin()
        return self._dataset.__getitems__(numbers)


class _TimedSequence(IterableDataset[Any]):
    """A data set that gives its samples one after the other."""

    def __init__(self, dataset: Any, log: BatchLog) -> None:
        self._dataset, self._log = dataset, log

    def __iter__(self) -> Iterator[Any]:
        # Not a generator function, because some data sets choose their epoch in ``iter``.
        self._log.forget()
        return self._timed(iter(self._dataset))

    def _timed(self, samples: Iterator[Any]) -> Iterator[Any]:
        self._log.begin()
        for sample in samples:
            yield sample
            # The next sample is asked for; it begins a batch if the last one was put together.
            self._log.begin()
