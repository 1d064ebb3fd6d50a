"""The records of the samples of a split, for ``dataprep inspect``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from dataprep.formats.shard_reader import Record, ShardReader, read_record, require_record_number
from dataprep.reading.dataset import Dataset
from dataprep.stores import location
from dataprep.threaded_map import in_order

_CONCURRENT_REQUESTS = 16  # They hide the latency of a remote store.


class SplitRecords:
    """The records of samples of a split.

    It has the members of a ``ShardReader`` that are needed to draw records: ``uri``, ``fault``,
    ``count`` and ``read``.

    Attributes:
        fault: always None. The table of samples has the location of each record. Therefore damaged
            framing, which is the ``fault`` of a ShardReader, does not stop the reading.
        uri: a description of the samples, for messages.
    """

    fault = None

    def __init__(self, dataset: Dataset, numbers: Sequence[int] | None = None) -> None:
        """Choose the samples.

        Args:
            dataset: the split.
            numbers: the numbers of the samples; None for all samples of the split.
        """
        self._dataset = dataset
        self._numbers = range(len(dataset)) if numbers is None else numbers
        self._first_samples = {shard.key: shard.samples.start for shard in dataset.shards()}
        self.uri = f"{dataset.split} in {dataset.store.uri}"

    def count(self) -> int:
        """Return the number of samples."""
        return len(self._numbers)

    def read(self, index: int) -> Record:
        """Read the record of the sample at ``index`` in the chosen samples.

        Raises:
            ConfigError: the sample does not exist.
        """
        dataset = self._dataset
        require_record_number(index, len(self._numbers), self.uri)
        number = self._numbers[index]
        key, offset, length = dataset.place(number)
        data = dataset.read(key, offset, length)
        record_number = number - self._first_samples[key]
        uri = location(dataset.store, key)
        record = read_record(data, uri, dataset.format, record_number, offset)
        row = json.loads(dataset.written.iloc[number].dropna().to_json())
        return replace(record, sample=number, row=row)


def read_evenly_spaced(records: SplitRecords | ShardReader, images: int) -> list[Record]:
    """Read at most ``images`` records that are evenly spaced.

    Raises:
        ConfigError: there are no records.
    """
    total = records.count()
    count = max(1, min(total, images))
    # Divide all records into ``count`` equal intervals, and take the middle of each interval.
    numbers = [(2 * interval + 1) * total // (2 * count) for interval in range(count)]
    return list(in_order(records.read, numbers, _CONCURRENT_REQUESTS))


def faults_of(records: Sequence[Record]) -> list[str]:
    """Describe the damage of each damaged record."""
    return [f"{record.location}: {record.damage}" for record in records if record.damage]
