"""The rows of the table of samples that belong to a data set, and arrays of their columns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dataprep.errors import CorruptRecord, DatasetError
from dataprep.output import keys
from dataprep.output.manifest import Manifest
from dataprep.output.samples_table import StoredTable, stored_table, to_numpy_array
from dataprep.output.snapshot import Snapshot
from dataprep.reading.epoch_order import Integers
from dataprep.reading.split_part import SplitPart
from dataprep.stores import location

if TYPE_CHECKING:
    import pandas as pd


class Place(NamedTuple):
    """The location of a record.

    Attributes:
        key: the key of the shard below the output.
        offset: the first byte of the record in the shard.
        length: the size of the record in bytes.
    """

    key: str
    offset: int
    length: int


class Places(NamedTuple):
    """The location and the label of each sample: int64 arrays of shape (samples,).

    Attributes:
        shards: the number of the shard, from 0, in the order of the manifest.
        offsets: the first byte of the record in its shard.
        lengths: the size of the record in bytes.
        labels: the label of the sample, from 0; -1 if it has none.
    """

    shards: Integers
    offsets: Integers
    lengths: Integers
    labels: Integers


class OpenState:
    """Whether a data set is open. Its readers check this before they read."""

    def __init__(self, dataset: str) -> None:
        """Begin with an open data set. ``dataset`` describes it in errors."""
        self._dataset = dataset
        self._is_closed = False

    def close(self) -> None:
        """Let all later reads fail."""
        self._is_closed = True

    def require_open(self) -> None:
        """Raise DatasetError if the data set was closed."""
        if self._is_closed:
            raise DatasetError(f"{self._dataset} is closed: open it again")


def wrong_checksum(name: str) -> CorruptRecord:
    """Return the error for a record that does not have its checksum in the table of samples."""
    return CorruptRecord(
        f"{name}: its CRC-32C is not the one in the table of samples; run dataprep verify"
    )


class SampleRows:
    """The rows of the table of samples that belong to a data set.

    The table is read when it is first needed. Arrays have one value for each sample of the data
    set, in the order of the samples.

    Attributes:
        part: the part of the split that the data set has.
        state: whether the data set is open.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        manifest: Manifest,
        format_name: str,
        part: SplitPart,
        state: OpenState,
        *,
        reads_checksums: bool,
    ) -> None:
        """Choose the rows. Nothing is read yet.

        Args:
            snapshot: reads the objects of the split.
            manifest: the manifest with the shards of the data set.
            format_name: the format whose records are located.
            part: the part of the split that the data set has.
            state: whether the data set is open.
            reads_checksums: whether to read ``checksums``. They are not needed if records have
                checksums of their own.
        """
        self.part = part
        self.state = state
        self._snapshot = snapshot
        self._manifest = manifest
        self._format_name = format_name
        self._reads_checksums = reads_checksums
        self._shard_keys = [shard.key for shard in manifest.formats[format_name].shards]
        self._table: StoredTable | None = None

    def use_table_of(self, other: SampleRows) -> None:
        """Use the table of another data set of the same split, if it was read already."""
        self._table = other._table

    @property
    def table(self) -> StoredTable:
        """The table of samples of the split, with all its rows.

        Raises:
            DatasetError: the table is missing, damaged, or belongs to another split.
        """
        if self._table is None:
            self.state.require_open()
            with self._snapshot.unchanged():
                self._table = stored_table(self._snapshot.store, self._manifest)
        return self._table

    def all_sources(self) -> pd.DataFrame:
        """Return a row for each sample of the source, also for samples that failed.

        If the data set has chosen shards, only the rows of these shards are returned.

        Raises:
            DatasetError: the table is missing, damaged, or belongs to another split.
        """
        frame = self.table.frame()
        if self.part.chosen_shards is None:
            return frame
        return frame[frame["shard"].isin(self._shard_numbers)].reset_index(drop=True)

    def written(self, names: Sequence[str] | None = None) -> pd.DataFrame:
        """Return a row for each sample of the data set, in the order of the samples.

        Args:
            names: the columns; None for all columns.

        Raises:
            DatasetError: the table is missing or damaged, or lacks a column.
        """
        frame = self.table.frame(names, written=True)
        rows = self._rows(len(frame))
        if rows is None:
            return frame
        return frame.iloc[rows].reset_index(drop=True)

    @cached_property
    def places(self) -> Places:
        """The shard, offset, length and label of each sample: int64 arrays of shape (samples,).

        Raises:
            DatasetError: the table is missing, damaged, or belongs to another split.
        """
        name = self._format_name
        places = Places(*self._integers(["shard", f"{name}_offset", f"{name}_length", "label"]))
        # The table has the numbers of shards in the whole split. A host's share and a data set of
        # chosen shards have only some of these shards, which count from 0 here.
        return places._replace(shards=np.searchsorted(self._shard_numbers, places.shards))

    def place(self, number: int) -> Place:
        """Return the location of the record of a sample.

        Args:
            number: the number of the sample, which must be in range and not negative.
        """
        places = self.places
        key = self._shard_keys[int(places.shards[number])]
        return Place(key, int(places.offsets[number]), int(places.lengths[number]))

    @cached_property
    def checksums(self) -> Integers | None:
        """The CRC-32C of each record: int64 of shape (samples,).

        It is None if ``reads_checksums`` is False, and for outputs of early versions, whose table
        does not have this column.

        Raises:
            DatasetError: the table is missing, damaged, or belongs to another split.
        """
        column = f"{self._format_name}_crc32c"
        if not self._reads_checksums or column not in self.table.schema().names:
            return None
        (checksums,) = self._integers([column])
        return checksums

    @property
    def _shard_numbers(self) -> list[int]:
        """The numbers that the shards have in the whole split, ascending, taken from their keys."""
        return [keys.shard_number(key) for key in self._shard_keys]

    def _integers(self, names: Sequence[str]) -> list[Integers]:
        """Return these columns as int64 arrays of shape (samples,).

        Raises:
            DatasetError: the table is missing or damaged, or lacks a column.
        """
        columns = self.table.columns(names).columns
        arrays = [to_numpy_array(column).astype(np.int64, copy=False) for column in columns]
        rows = self._rows(len(arrays[0]))
        if rows is None:
            return arrays
        return [array[rows] for array in arrays]

    def _rows(self, written_rows: int) -> Integers | None:
        """Return the positions of the data set's samples among the written rows of the table.

        None stands for all rows.

        Args:
            written_rows: the number of rows of samples that were written.

        Raises:
            DatasetError: the table has fewer written rows than the manifest has records.
        """
        if self.part.is_whole:
            return None
        records = self.part.samples_in_split
        if written_rows < records:
            table_key = keys.samples(self._manifest.split)
            raise DatasetError(
                f"{location(self._snapshot.store, table_key)}: it has {written_rows:,} written "
                f"samples, the manifest has {records:,} records; run dataprep verify"
            )
        return self.part.numbers
