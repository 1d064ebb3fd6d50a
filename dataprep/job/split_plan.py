"""The plan of a split, which is stored as ``SPLIT.plan.parquet``."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dataprep.errors import DatasetError
from dataprep.labels import LabelSpace
from dataprep.labels.boxes import AnnotatedImage, BoxColumns
from dataprep.name_encoding import escape, escape_all, unescape_all
from dataprep.output.receipt import Row, Samples
from dataprep.output.samples_table import number_column, read_table, text_column, to_numpy_array
from dataprep.sources import Located
from dataprep.sources.protocol import Integers


class PlannedSample(NamedTuple):
    """A sample of a plan in the form that workers get.

    Attributes:
        located: the name of the sample, and the location of its bytes.
        label: the 0-based label; -1 if the job is unlabelled.
        values: all labels, as the record contains them; empty if the sample has one label.
        annotated: the boxes in the source image; None if the job has no boxes.
    """

    located: Located
    label: int
    values: tuple[float, ...] = ()
    annotated: AnnotatedImage | None = None


@dataclass(frozen=True)
class SplitPlan:
    """The rows of ``SPLIT.plan.parquet``: samples in the order in which they are written.

    Some entries of a source are not samples, such as unreadable files. Their rows come last. The
    rows of samples are in ascending order of their shards.

    Attributes:
        names: the name of each row.
        sizes: the source bytes of each row.
        labels: the 0-based label of each row; -1 if it has none.
        predicted_bytes: the predicted record bytes of each row; 0 if it is not a sample.
        shards: the shard of each row; -1 for an entry that is not a sample.
        statuses: ``failed`` or ``skipped`` for an entry that is not a sample, else empty.
        reasons: the reason of ``statuses``, else empty.
        containers: the file that contains the sample; no elements if every sample is a separate
            file.
        offsets: the position of the sample in its container, in bytes; no elements if every sample
            is a separate file.
        values: all labels, float32 of shape (rows, k); None if samples have one label only.
        boxes: the boxes of each row; None if the job has no boxes.
    """

    names: Sequence[str]
    sizes: Integers
    labels: NDArray[np.int32]
    predicted_bytes: Integers
    shards: NDArray[np.int32]
    statuses: Sequence[str]
    reasons: Sequence[str]
    containers: Sequence[str] = ()
    offsets: Integers = field(default_factory=lambda: np.empty(0, np.int64))
    values: NDArray[np.float32] | None = None
    boxes: BoxColumns | None = None

    @cached_property
    def shard_count(self) -> int:
        """The number of shards of the split."""
        return int(self.shards.max(initial=-1)) + 1

    @cached_property
    def samples(self) -> int:
        """The number of rows that are samples. They come first."""
        return int((self.shards >= 0).sum())

    def rows_of(self, shard: int) -> slice:
        """Return the rows of a shard's samples, which are neighbours in the plan."""
        start, stop = np.searchsorted(self.shards[: self.samples], [shard, shard + 1])
        return slice(int(start), int(stop))

    def samples_in(self, shard: int) -> int:
        """Return the number of samples in a shard."""
        rows = self.rows_of(shard)
        return int(rows.stop) - int(rows.start)

    def planned_samples(self, rows: slice) -> tuple[PlannedSample, ...]:
        """Return the samples in a range of rows, in the form that workers get."""
        location_columns = [self.names[rows], self.sizes[rows].tolist()]
        if self.containers:
            location_columns += [self.containers[rows], self.offsets[rows].tolist()]
        located = [Located(*fields) for fields in zip(*location_columns, strict=True)]
        labels = self.labels[rows].tolist()
        values: list[tuple[float, ...]] = [()] * len(labels)
        if self.values is not None:
            values = [tuple(row) for row in self.values[rows].tolist()]
        annotated: list[AnnotatedImage | None] = [None] * len(labels)
        if self.boxes is not None:
            annotated = [*self.boxes.annotated_images(rows)]
        return tuple(map(PlannedSample, located, labels, values, annotated))

    def entries_without_shard(self, label_space: LabelSpace) -> Samples:
        """Return rows of the samples table for the entries that are in no shard.

        Args:
            label_space: the classes, from which the rows get their class names.
        """
        rows = []
        for position in range(self.samples, len(self.names)):
            label = int(self.labels[position])
            row = Row(
                number=-1,
                source=escape(self.names[position]),
                label=label,
                synset=escape(label_space.synset_of(label)),
                status=self.statuses[position],
                reason=self.reasons[position],
                kind="refused",
                source_bytes=int(self.sizes[position]),
            )
            rows.append(row)
        return Samples.of(rows)

    def to_parquet(self) -> bytes:
        """Return the plan as a Parquet file, with escaped names."""
        columns = {
            "source": text_column(escape_all(self.names)),
            "source_bytes": number_column(self.sizes),
            "label": number_column(self.labels),
            "predicted_bytes": number_column(self.predicted_bytes),
            "shard": number_column(self.shards),
            "status": text_column(self.statuses),
            "reason": text_column(self.reasons),
        }
        if self.containers:
            columns["container"] = text_column(escape_all(self.containers))
            columns["offset"] = number_column(self.offsets)
        if self.values is not None:
            columns["values"] = pa.array(list(self.values), pa.list_(pa.float32()))
        if self.boxes is not None:
            columns |= self.boxes.to_arrow()
        sink = io.BytesIO()
        pq.write_table(pa.table(columns), sink, compression="zstd")
        return sink.getvalue()

    @classmethod
    def from_parquet(cls, data: bytes, name: str = "the plan") -> SplitPlan:
        """Read a plan that ``to_parquet`` wrote; ``name`` is the name of the file in errors.

        Raises:
            DatasetError: the data are damaged, or are not a plan.
        """
        try:
            table = read_table(data)
            containers: Sequence[str] = ()
            offsets = np.empty(0, np.int64)
            if "container" in table.column_names:
                containers = unescape_all(table["container"].to_pylist())
                offsets = to_numpy_array(table["offset"])
            values = None
            if "values" in table.column_names:
                values = np.array(table["values"].to_pylist(), dtype=np.float32)
            return cls(
                names=unescape_all(table["source"].to_pylist()),
                sizes=to_numpy_array(table["source_bytes"]),
                labels=to_numpy_array(table["label"]),
                predicted_bytes=to_numpy_array(table["predicted_bytes"]),
                shards=to_numpy_array(table["shard"]),
                statuses=table["status"].to_pylist(),
                reasons=table["reason"].to_pylist(),
                containers=containers,
                offsets=offsets,
                values=values,
                boxes=BoxColumns.from_arrow(table),
            )
        except (pa.ArrowException, KeyError, TypeError, ValueError) as error:
            problem = " ".join(str(error).split())[:200]
            raise DatasetError(f"{name}: damaged, or not a plan: {problem}") from None


def used_labels(plans: Iterable[SplitPlan]) -> set[int]:
    """Return the labels of the samples in some plans, with -1 for samples without a class."""
    labels: set[int] = set()
    for plan in plans:
        labels.update(np.unique(plan.labels[: plan.samples]).tolist())
    return labels


def classes_in_a_shard(plan: SplitPlan) -> tuple[float, float]:
    """Return the mean number of classes in a shard: in this plan, and with shuffled samples."""
    labels = plan.labels[: plan.samples].astype(np.int64)
    shards = plan.shards[: plan.samples].astype(np.int64)
    # Combine shard and label into one number for each pair. Labels begin with -1, so that there are
    # up to ``max + 2`` different labels.
    label_count = int(labels.max(initial=0)) + 2
    pairs = np.unique(shards * label_count + labels)
    _, samples_per_class = np.unique(labels, return_counts=True)
    class_shares = samples_per_class / max(plan.samples, 1)
    samples_per_shard = plan.samples / max(plan.shard_count, 1)
    # A shuffled shard has a class unless none of its samples has it.
    shuffled_classes = float(np.sum(1 - (1 - class_shares) ** samples_per_shard))
    return len(pairs) / max(plan.shard_count, 1), shuffled_classes
