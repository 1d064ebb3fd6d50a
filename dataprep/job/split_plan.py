"""The plan of a split: which sample goes into which shard, stored as ``SPLIT.plan.parquet``."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dataprep.arrow_bytes import parquet, require_enough
from dataprep.arrow_columns import numbers, texts
from dataprep.errors import DatasetError
from dataprep.job.worker import Item
from dataprep.labels import LabelSpace
from dataprep.labels.boxes import BoxColumns
from dataprep.names import escape, escape_all, unescape_all
from dataprep.receipt import Row, Samples
from dataprep.sources import Located


@dataclass(frozen=True)
class SplitPlan:
    """The rows of ``SPLIT.plan.parquet``: samples in the order and shard they are written to.

    ``shards`` is -1 for entries that are no samples; ``statuses`` and ``reasons`` say why.
    ``containers`` and ``offsets`` are empty where every sample is a file of its own. ``values``,
    float32 of shape (rows, k), is None where a sample has one label only, ``boxes`` where the job
    has none.
    """

    names: Sequence[str]
    sizes: NDArray[np.int64]
    labels: NDArray[np.int32]
    predicted: NDArray[np.int64]
    shards: NDArray[np.int32]
    statuses: Sequence[str]
    reasons: Sequence[str]
    containers: Sequence[str] = ()
    offsets: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    values: NDArray[np.float32] | None = None
    boxes: BoxColumns | None = None

    @cached_property
    def shard_count(self) -> int:
        """How many shards."""
        return int(self.shards.max(initial=-1)) + 1

    @cached_property
    def samples(self) -> int:
        """How many rows are samples; they come first."""
        return int((self.shards >= 0).sum())

    def rows_of(self, shard: int) -> slice:
        """Where the samples of one shard stand."""
        start, stop = np.searchsorted(self.shards[: self.samples], [shard, shard + 1])
        return slice(int(start), int(stop))

    def items(self, rows: slice) -> tuple[Item, ...]:
        """What a worker is told of some samples."""
        columns = [self.names[rows], self.sizes[rows].tolist()]
        if self.containers:
            columns += [self.containers[rows], self.offsets[rows].tolist()]
        labels = self.labels[rows].tolist()
        values = (
            [()] * len(labels) if self.values is None else map(tuple, self.values[rows].tolist())
        )
        places = zip(*columns, strict=True)
        annotated = [
            None if self.boxes is None else self.boxes.of(row)
            for row in range(*rows.indices(len(self.names)))
        ]
        items = [
            Item(Located(*place), label, several, boxes)
            for place, label, several, boxes in zip(places, labels, values, annotated, strict=True)
        ]
        return tuple(items)

    def others(self, label_space: LabelSpace) -> Samples:
        """Entries that are in no shard."""
        rows = [
            Row(
                number=-1,
                source=escape(self.names[i]),
                label=int(self.labels[i]),
                synset=escape(label_space.labels[self.labels[i]].synset)
                if self.labels[i] >= 0
                else "",
                status=self.statuses[i],
                reason=self.reasons[i],
                kind="refused",
                source_bytes=int(self.sizes[i]),
            )
            for i in range(self.samples, len(self.names))
        ]
        return Samples.of(rows)

    def to_parquet(self) -> bytes:
        """As stored; names escaped."""
        columns = {
            "source": texts(escape_all(self.names)),
            "source_bytes": numbers(self.sizes),
            "label": numbers(self.labels),
            "predicted_bytes": numbers(self.predicted),
            "shard": numbers(self.shards),
            "status": texts(self.statuses),
            "reason": texts(self.reasons),
        }
        if self.containers:
            columns["container"] = texts(escape_all(self.containers))
            columns["offset"] = numbers(self.offsets)
        if self.values is not None:
            columns["values"] = pa.array(list(self.values), pa.list_(pa.float32()))
        if self.boxes is not None:
            columns |= self.boxes.to_arrow()
        sink = io.BytesIO()
        pq.write_table(pa.table(columns), sink, compression="zstd")
        return sink.getvalue()

    @classmethod
    def from_parquet(cls, data: bytes, name: str = "the plan") -> SplitPlan:
        """Read what ``to_parquet`` wrote; ``name`` is what errors call it.

        Raises:
            DatasetError: no such table, or one that is damaged.
        """
        try:
            table = pq.read_table(parquet(data))
            found = cls._of(table)
            found._require_sound()
        except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
            require_enough(error)
            why = " ".join(str(error).split())[:200]
            raise DatasetError(f"{name}: damaged, or not a plan: {why}") from None
        return found

    @classmethod
    def _of(cls, table: pa.Table) -> SplitPlan:
        """Every column of its own type, without nulls."""

        def column(name: str, kind: pa.DataType) -> pa.ChunkedArray:
            found = table[name]
            if found.type != kind or found.null_count:
                raise TypeError(f"column {name!r} is not of {kind} without gaps")
            return found

        def words(name: str) -> list[str]:
            found: list[str] = column(name, pa.string()).to_pylist()
            return found

        within: dict[str, Any] = {}
        if "container" in table.column_names:
            within["containers"] = unescape_all(words("container"))
            within["offsets"] = column("offset", pa.int64()).to_numpy()
        if "values" in table.column_names:
            values = column("values", pa.list_(pa.float32())).to_pylist()
            within["values"] = np.array(values, dtype=np.float32)
        return cls(
            names=unescape_all(words("source")),
            sizes=column("source_bytes", pa.int64()).to_numpy(),
            labels=column("label", pa.int32()).to_numpy(),
            predicted=column("predicted_bytes", pa.int64()).to_numpy(),
            shards=column("shard", pa.int32()).to_numpy(),
            statuses=words("status"),
            reasons=words("reason"),
            boxes=BoxColumns.from_arrow(table),
            **within,
        )

    def _require_sound(self) -> None:
        """Refuse what no plan is: shards out of order, numbers below 0.

        Raises:
            ValueError: with what is wrong.
        """
        of_samples = self.shards[: self.samples]
        steps = np.diff(of_samples, prepend=-1)
        if len(steps) and not ((steps == 0) | (steps == 1)).all():
            raise ValueError("its shards do not count from 0 without a gap")
        if min(self.sizes.min(initial=0), self.predicted.min(initial=0)) < 0:
            raise ValueError("a sample has a size below 0")
        if self.labels[: self.samples].min(initial=0) < 0:
            raise ValueError("a sample has a label below 0")
        if len(self.offsets) and self.offsets[: self.samples].min(initial=0) < 0:
            raise ValueError("a sample has an offset below 0")
