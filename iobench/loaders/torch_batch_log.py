"""A log of when the workers of torch's DataLoader made their batches, for a trace of the run.

DataLoader does not report when its workers work. A worker requests samples from its data set, and
makes a batch of them with ``collate_fn``. Both functions are wrapped here. For each batch, a row
is appended to a file in memory that all workers share. A worker that is killed leaves no lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from torch.utils.data import Dataset, IterableDataset, get_worker_info

from dataprep.machine.shared_rows import SharedRows
from iobench.clock import Clock
from iobench.loaders.protocol import WorkerBatch


class BatchLog:
    """The batches of all workers of one loader, which are forks of this process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # A row has the number of the worker, and the begin and the end of the batch in seconds.
        self._rows = SharedRows("iobench-batches", "d")
        self._begin_s: float | None = None

    def log_begins(self, dataset: Any) -> Any:
        """Wrap a data set, so that it notes when the first sample of a batch is requested."""
        if isinstance(dataset, IterableDataset):
            return _LoggedIterable(dataset, self)
        return _LoggedMap(dataset, self)

    def log_ends(self, collate: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Wrap a collate function, so that it logs each batch that it has put together."""

        def collate_and_log(samples: Any) -> Any:
            batch = collate(samples)
            self._append()
            return batch

        return collate_and_log

    def begin(self) -> None:
        """Note the begin of a batch, unless it has begun already."""
        if self._begin_s is None:
            self._begin_s = self._clock.now_s()

    def forget(self) -> None:
        """Drop the begin of a batch that did not come, because the epoch had ended."""
        self._begin_s = None

    def batches(self) -> Sequence[WorkerBatch]:
        """Return the batches so far, in the order of their ends."""
        rows = self._rows.rows().tolist()
        return [WorkerBatch(int(worker), begin_s, end_s) for worker, begin_s, end_s in rows]

    def _append(self) -> None:
        """Append the batch that ends now, if this is a worker and the begin is known."""
        worker = get_worker_info()
        if worker is not None and self._begin_s is not None:
            self._rows.append(worker.id, self._begin_s, self._clock.now_s())
        self._begin_s = None


class _LoggedMap(Dataset[Any]):
    """A data set that is read by sample number, a batch at a time."""

    def __init__(self, dataset: Any, log: BatchLog) -> None:
        self._dataset, self._log = dataset, log

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitems__(self, numbers: Sequence[int]) -> Any:
        self._log.begin()
        return self._dataset.__getitems__(numbers)


class _LoggedIterable(IterableDataset[Any]):
    """A data set that gives its samples one after the other."""

    def __init__(self, dataset: Any, log: BatchLog) -> None:
        self._dataset, self._log = dataset, log

    def __iter__(self) -> Iterator[Any]:
        # This is not a generator function, because some data sets choose their epoch in ``iter``.
        self._log.forget()
        return self._logged(iter(self._dataset))

    def _logged(self, samples: Iterator[Any]) -> Iterator[Any]:
        self._log.begin()
        for sample in samples:
            yield sample
            # The next sample is requested. It begins a batch if the last batch was put together.
            self._log.begin()
