"""Records of an output or of one shard by number: where they lie, and the request that gets one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, Protocol

import pandas as pd

from dataprep.counted import counted
from dataprep.dataset import Dataset
from dataprep.errors import ConfigError, RecordError
from dataprep.inspection.framing import SPANS, Span
from dataprep.inspection.ranges import Ranges
from dataprep.inspection.record import Place, Record, damaged, read_record
from dataprep.inspection.table import format_at, is_near
from dataprep.inspection.target import ShardTarget
from dataprep.ordered import in_order
from dataprep.receipt import Row
from dataprep.stores import Store

_REQUESTS = 16
_HEADER_BYTES = 16
_KNOWN = (
    *("source", "label", "synset", "action", "notes", "source_width", "source_height"),
    *("source_bytes", "source_sha256", "colorspace", "exif_orientation", "width", "height"),
)


class Records(Protocol):
    """Some records, numbered from 0; ``title`` says of what.

    ``fault`` is why there are no more of them, where they end in damage.
    """

    title: str
    store: Store
    fault: str

    def __len__(self) -> int: ...

    def place(self, number: int) -> tuple[str, Place]:
        """Key of the object that it lies in, and where; ConfigError where there is none."""
        ...

    def read(self, key: str, offset: int, length: int) -> bytes:
        """Part of that object; ObjectNotFound where it is missing."""
        ...


class OutputRecords:
    """The samples of one split."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self.store = dataset.store
        self.title = f"{dataset.split} in {self.store.uri}"
        self.fault = ""

    def __len__(self) -> int:
        return len(self._dataset)

    def place(self, number: int) -> tuple[str, Place]:
        """By the table of samples."""
        _require(number, len(self), self.title)
        key, offset, length = self._dataset.place(number)
        shard = next(shard for shard in self._dataset.shards() if number in shard.samples)
        known = _of_table(self._dataset.written.iloc[number])
        within = number - shard.samples.start
        uri = f"{self.store.uri}/{key}"
        return key, Place(uri, self._dataset.format, within, offset, length, number, known)

    def read(self, key: str, offset: int, length: int) -> bytes:
        """Of the manifest that was opened, or DatasetChanged."""
        return self._dataset.read(key, offset, length)


class ShardRecords:
    """The records of one object, by its receipt or by the headers of its framing."""

    def __init__(self, target: ShardTarget) -> None:
        self._target = target
        self._rows = target.rows if target.receipt else None
        self._ranges = Ranges(target.store, target.info.key, target.info.bytes, _HEADER_BYTES)
        self._format = target.format or format_at(self._ranges, target.uri)
        self.store = target.store
        self.title = target.uri
        self.fault = ""

    def __len__(self) -> int:
        return len(self._rows if self._rows is not None else self._spans)

    def place(self, number: int) -> tuple[str, Place]:
        """By the receipt; else the framing is read up to this record."""
        if self._rows is not None:
            _require(number, len(self), self.title)
            row = self._rows[number]
            offset, length, _ = (row.records or {})[self._format]
            return self._placed(number, offset, length, _of_row(row))
        if number < 0:
            raise ConfigError(f"--record {number}: records count from 0")
        spans = self.__dict__.get("_spans") or list(islice(self._walk(), number + 1))
        _require(number, len(spans), self.title)
        return self._placed(number, spans[number].offset, spans[number].length, {})

    def read(self, key: str, offset: int, length: int) -> bytes:
        """Of the object as it is now."""
        return self.store.get_range(key, offset, length)

    @cached_property
    def _spans(self) -> Sequence[Span]:
        spans: list[Span] = []
        try:
            for span in self._walk():
                spans.append(span)  # noqa: PERF402  those before the damage are kept
        except RecordError as error:
            self.fault = str(error)
        return spans

    def _walk(self) -> Iterator[Span]:
        return SPANS[self._format](self._ranges, self._target.uri)

    def _placed(
        self, number: int, offset: int, length: int, known: Mapping[str, Any]
    ) -> tuple[str, Place]:
        place = Place(self.title, self._format, number, offset, length, -1, known)
        return self._target.info.key, place


def fetch(records: Records, number: int) -> Record:
    """One record: where it lies is known from elsewhere, itself is one range request.

    Raises:
        ConfigError: there is none of that number.
        RecordError: it is damaged.
    """
    return _fetch(records, *records.place(number))


def fetch_some(records: Records, numbers: Sequence[int]) -> Iterator[Record]:
    """Several records in order, a few requests at a time where the store is remote.

    One that is damaged has its ``damage`` told, and neither fields nor image.
    """
    places = [records.place(number) for number in numbers]
    threads = 0 if is_near(records.store) else _REQUESTS

    def one(placed: tuple[str, Place]) -> Record:
        try:
            return _fetch(records, *placed)
        except RecordError as error:
            return damaged(placed[1], str(error))

    return in_order(one, places, threads)


def spread_evenly(count: int, wanted: int) -> list[int]:
    """``wanted`` numbers below ``count`` at equal distances, or all of them."""
    wanted = min(count, wanted)
    return [(2 * i + 1) * count // (2 * wanted) for i in range(wanted)]


def _fetch(records: Records, key: str, place: Place) -> Record:
    return read_record(records.read(key, place.offset, place.length), place)


def _require(number: int, count: int, title: str) -> None:
    if not 0 <= number < count:
        raise ConfigError(
            f"--record {number}: {title} has {counted(count, 'record')}, counted from 0"
        )


def _of_table(row: pd.Series[Any]) -> dict[str, Any]:
    values = {name: row[name] for name in _KNOWN}
    return {
        name: value.item() if hasattr(value, "item") else value
        for name, value in values.items()
        if not pd.isna(value)
    }


def _of_row(row: Row) -> dict[str, Any]:
    return {name: getattr(row, name) for name in _KNOWN if getattr(row, name) not in ("",)}
