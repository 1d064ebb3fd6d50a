"""``SPLIT.samples.parquet`` and the counts of the manifest, a shard at a time.

Rows become Arrow columns as they come: a million samples take some hundred megabytes, not the
gigabytes that as many objects would.
"""

from __future__ import annotations

import io
import itertools
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dataprep.arrow_bytes import parquet, require_enough
from dataprep.arrow_columns import numbers, texts
from dataprep.manifest import OUT_OF_BOUNDS, FormatEntry, SampleCounts, out_of_bounds
from dataprep.receipt import Samples

_LATER = "image_bytes"
"""A column that outputs of earlier versions do not have, and no row of theirs a value for."""

_COLUMNS: tuple[tuple[str, pa.DataType], ...] = (
    ("source", pa.string()),
    ("label", pa.int32()),
    ("synset", pa.string()),
    ("status", pa.string()),
    ("reason", pa.string()),
    ("action", pa.string()),
    ("source_width", pa.int32()),
    ("source_height", pa.int32()),
    ("source_bytes", pa.int64()),
    ("source_sha256", pa.string()),
    ("colorspace", pa.string()),
    ("exif_orientation", pa.int8()),
    ("width", pa.int32()),
    ("height", pa.int32()),
    ("notes", pa.string()),
    (_LATER, pa.int64()),
)
# Only where some sample has them.
_OPTIONAL: tuple[tuple[str, pa.DataType], ...] = (
    ("boxes", pa.int32()),
    ("values", pa.list_(pa.float32())),
)

_EXAMPLES = 3
_TOLD = ("source", "status", "reason", "kind")


class SampleTable:
    """One row a source sample: those of the shards in plan order, then those in no shard.

    Nulls stand where nothing is known: no size of a file that is no image, no place of a
    sample that was not written, no shard of a sample that was never planned into one.
    """

    def __init__(self, format_names: Sequence[str]) -> None:
        self._format_names = tuple(format_names)
        self._parts: list[pa.Table] = [self._part(Samples.of([]), None)]
        self._statuses: Counter[str] = Counter()
        self._actions: Counter[str] = Counter()
        self._kinds: Counter[str] = Counter()
        self.failures: list[tuple[str, str]] = []
        """Name and reason of each sample that failed."""
        self.skips: list[tuple[str, str]] = []
        """Name and reason of the first few that were skipped."""
        self.skip_reasons: Counter[str] = Counter()
        """How many were skipped by the listing's reason, or by the kind of what they hold."""

    def add(self, samples: Samples, shard: int | None) -> None:
        """Append the samples of one shard, or of none."""
        self._parts.append(self._part(samples, shard))
        columns = samples.columns
        self._statuses += Counter(columns["status"])
        self._actions += Counter(columns["action"])
        for notes, count in Counter(columns["notes"]).items():
            for note in filter(None, notes.split(",")):
                self._kinds[note] += count
        told = zip(*(columns[name] for name in _TOLD), strict=True)
        for source, status, reason, kind in told:
            if status == "failed":
                self._kinds[f"failed_{kind}"] += 1
                self.failures.append((source, reason))
            elif status == "skipped":
                listed = kind == "refused"
                self.skip_reasons[reason if listed else kind.replace("_", " ")] += 1
                if len(self.skips) < _EXAMPLES:
                    self.skips.append((source, reason))

    @property
    def counts(self) -> SampleCounts:
        """Totals over all rows."""
        return SampleCounts(
            total=self._statuses.total(),
            written=self._statuses["written"],
            failed=self._statuses["failed"],
            skipped=self._statuses["skipped"],
            passthrough=self._actions["passthrough"] + self._actions["retagged"],
            reencoded=self._actions["reencoded"],
        )

    def warnings(self, formats: Mapping[str, FormatEntry]) -> dict[str, int]:
        """How often each policy was met, and how many shards left their bounds."""
        kinds = self._kinds + Counter({OUT_OF_BOUNDS: out_of_bounds(formats)})
        return {kind: kinds[kind] for kind in sorted(kinds)}

    def table(self) -> pa.Table:
        """All rows."""
        table = pa.concat_tables(self._parts).combine_chunks()
        optional = (_LATER, *(name for name, _ in _OPTIONAL))
        unused = [name for name in optional if table[name].null_count == len(table)]
        return table.drop_columns(unused)

    def to_parquet(self) -> bytes:
        """As stored."""
        sink = io.BytesIO()
        pq.write_table(self.table(), sink, compression="zstd")
        return sink.getvalue()

    def agrees_with(self, stored: bytes) -> bool:
        """Whether ``stored`` holds these rows, whichever version of Arrow wrote them."""
        try:
            return bool(pq.read_table(parquet(stored)).equals(self.table()))
        except (pa.ArrowException, OSError, ValueError) as error:
            require_enough(error)
            return False

    def differing_shards(self, stored: bytes) -> list[int]:
        """The shards whose rows ``stored`` has otherwise; none where more than rows differ."""
        try:
            found, wanted = pq.read_table(parquet(stored)), self.table()
        except (pa.ArrowException, OSError, ValueError) as error:
            require_enough(error)
            return []
        if len(found) != len(wanted) or not found.schema.equals(wanted.schema):
            return []
        differing, start = [], 0
        for shard, rows in itertools.groupby(wanted["shard"].to_pylist()):
            count = sum(1 for _ in rows)
            same = found.slice(start, count).equals(wanted.slice(start, count))
            start += count
            if shard is not None and not same:
                differing.append(shard)
        return differing

    def _part(self, samples: Samples, shard: int | None) -> pa.Table:
        count = len(samples)
        columns: dict[str, pa.Array] = {}
        for name, kind in _COLUMNS:
            values = samples.columns[name]
            if kind == pa.string():
                columns[name] = texts(values, null_if_empty=True)
                continue
            array = np.array(values, str(kind))
            # A label counts from 0; -1 marks what belongs to no class. A file may have no bytes.
            empty = {"label": -1, "source_bytes": None}.get(name, 0)
            columns[name] = numbers(array, None if empty is None else array != empty)
        columns["shard"] = _repeated(shard, count)
        for name in self._format_names:
            placed = samples.records.get(name) or [None] * count
            written = np.array([place is not None for place in placed], np.bool_)
            places = np.array([place or (0, 0, 0) for place in placed], np.int64).reshape(-1, 3)
            columns[f"{name}_offset"] = numbers(places[:, 0], written)
            columns[f"{name}_length"] = numbers(places[:, 1], written)
        for name, kind in _OPTIONAL:
            known = samples.columns.get(name)
            columns[name] = pa.nulls(count, kind) if known is None else pa.array(known, kind)
        return pa.table(columns)


def _repeated(shard: int | None, rows: int) -> pa.Array:
    if shard is None:
        return pa.nulls(rows, pa.int32())
    return numbers(np.full(rows, shard, np.int32))
