"""The shards of a data set once more, their images decoded: what decoding costs its readers.

As many shards with the same samples in the same order, so that reading them differs in nothing
but what a record holds. For measuring, not for keeping: of dataprep's own tools only the record
readers know them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dataprep import keys
from dataprep.arrow_bytes import parquet
from dataprep.dataset import Dataset, Shard
from dataprep.formats import Sample, get_format
from dataprep.image.rgb import decode_whole
from dataprep.manifest import FormatEntry, ShardEntry
from dataprep.record_file import RecordFile
from dataprep.stored_table import stored_table
from iobench.pixels import packed
from iobench.stored import open_shards
from iobench.trial import Place

_FORMAT = "tfrecord"


def write_pixel_shards(source: Place, dest: Path) -> None:
    """The TFRecord shards at ``source``, with pixels for JPEGs, as a data set at ``dest``.

    Raises:
        Unavailable: the data set has no TFRecord shards.
        ImageError: an image of it cannot be decoded.
        DatasetError: its table of samples is damaged.
    """
    with open_shards(source, _FORMAT) as dataset:
        entries: list[ShardEntry] = []
        places: list[tuple[int, int]] = []
        for shard in dataset.shards():
            places += _written(dataset, shard, dest / shard.key)
            entries.append(_entry(dest, shard))
        (dest / keys.LABELS).write_bytes(dataset.store.get(keys.LABELS))
        table = pq.read_table(parquet(stored_table(dataset.store, dataset.manifest).content))
        others = [name for name in dataset.manifest.formats if name != _FORMAT]
        pq.write_table(_placed(table, places, others), dest / keys.samples(source.split))
        entry = FormatEntry(
            label_offset=dataset.manifest.formats[_FORMAT].label_offset,
            records=len(places),
            bytes=sum(shard.bytes for shard in entries),
            shards=tuple(entries),
        )
        manifest = replace(dataset.manifest, formats={_FORMAT: entry}, table=None)
        # Last, as in every data set: it is there when all else is.
        (dest / keys.manifest(source.split)).write_bytes(manifest.to_json())


def _written(dataset: Dataset, shard: Shard, path: Path) -> list[tuple[int, int]]:
    """Offset and length of each record."""
    path.parent.mkdir(parents=True, exist_ok=True)
    options = dataset.manifest.record_options(_FORMAT)
    with RecordFile(path) as file:
        writer = get_format(_FORMAT).writer(file, options)
        return [writer.write(_decoded(sample)) for sample in shard]


def _decoded(sample: Sample) -> Sample:
    pixels = packed(decode_whole(sample.image))
    return replace(sample, image=pixels, encoding="RGB", colorspace="RGB", channels=3)


def _entry(dest: Path, shard: Shard) -> ShardEntry:
    with (dest / shard.key).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return ShardEntry(shard.key, (dest / shard.key).stat().st_size, len(shard), digest)


def _placed(table: pa.Table, places: Sequence[tuple[int, int]], others: Sequence[str]) -> pa.Table:
    """The table of samples with the places of their new records, and none of ``others``."""
    written = np.array(table["status"].to_pylist()) == "written"
    for what, values in zip(("offset", "length"), np.array(places, np.int64).T, strict=True):
        column = np.zeros(len(table), np.int64)
        column[written] = values
        name = f"{_FORMAT}_{what}"
        made = pa.array(column, mask=~written)
        table = table.set_column(table.schema.get_field_index(name), name, made)
    return table.drop_columns(
        [f"{name}_{what}" for name in others for what in ("offset", "length")]
    )
