"""Write shards again with decoded images, to measure loaders without the cost of decoding."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dataprep.formats import get_format
from dataprep.formats.record_file import RecordFile
from dataprep.image.rgb import decode_rgb
from dataprep.machine.processors import usable_processors
from dataprep.output import keys
from dataprep.output.manifest import FormatEntry, Manifest, ShardEntry
from dataprep.output.samples_table import (
    StoredTable,
    read_table,
    stored_table,
    to_numpy_array,
)
from dataprep.reading.dataset import Dataset, Shard
from dataprep.threaded_map import in_order
from iobench.data.copying import AT_ONCE, require_space
from iobench.data.data_summary import open_shards
from iobench.data.pixels import CHANNELS, packed
from iobench.results.trial import Location

_MAX_FEATURE_BYTES = 1000
"""Assumed maximum size of a record beside its pixels: its other features and its framing."""


@dataclass(frozen=True, slots=True)
class _WrittenShard:
    """A shard that was written, with the offset and the length of each of its records."""

    entry: ShardEntry
    spans: Sequence[tuple[int, int]]


def write_pixel_shards(source: Location, folder: Path, remedy: str = "free some space") -> None:
    """Write TFRecord shards again, with the pixels of each image instead of its encoding.

    There are as many shards, with the same samples in the same order. The new shards are for
    measurements: of dataprep's tools, only the readers of records can read them. Several shards are
    written at the same time, each image by image, so that little memory is needed.

    Args:
        source: the location of the shards.
        folder: where the new data set goes.
        remedy: what to do about too little space, for a message.

    Raises:
        StoreFull: there is too little space; nothing is written.
        Unavailable: the data set has no TFRecord shards.
        ImageError: an image cannot be decoded.
        DatasetError: the table of samples is damaged.
    """
    with open_shards(source, "tfrecord") as dataset:
        rows = stored_table(dataset.store, dataset.manifest)
        needed_bytes = _pixels(rows) * CHANNELS + len(dataset) * _MAX_FEATURE_BYTES
        require_space(Location(str(folder), "empty"), "pixels", needed_bytes, remedy)
        shards = dataset.shards()
        for shard_folder in {(folder / shard.key).parent for shard in shards}:
            shard_folder.mkdir(parents=True, exist_ok=True)
        threads = min(AT_ONCE, usable_processors())
        write_shard = partial(_write_shard, dataset, folder)
        written_shards = list(in_order(write_shard, shards, threads))
        (folder / keys.LABELS).write_bytes(dataset.store.get(keys.LABELS))
        spans = [span for shard in written_shards for span in shard.spans]
        table = _with_spans(read_table(rows.content), spans)
        pq.write_table(table, folder / keys.samples(source.split))
        manifest = _new_manifest(dataset.manifest, [shard.entry for shard in written_shards])
        # The manifest comes last, as in every data set, because its presence means that the data
        # set is complete.
        (folder / keys.manifest(source.split)).write_bytes(manifest.to_json())


def _pixels(rows: StoredTable) -> int:
    """Return the number of pixels of all images in the shards.

    Args:
        rows: the table of samples.
    """
    sides = rows.columns(["width", "height"], written=True)
    widths, heights = (to_numpy_array(column).astype(np.int64) for column in sides.columns)
    return int(np.sum(widths * heights))


def _new_manifest(manifest: Manifest, shards: Sequence[ShardEntry]) -> Manifest:
    """Return the manifest of a data set with new TFRecord shards, and with no other format.

    Args:
        manifest: the manifest of the data set that was read.
        shards: the new shards.
    """
    entry = FormatEntry(
        label_offset=manifest.formats["tfrecord"].label_offset,
        records=sum(shard.records for shard in shards),
        bytes=sum(shard.bytes for shard in shards),
        shards=tuple(shards),
    )
    return replace(manifest, formats={"tfrecord": entry}, table=None)


def _write_shard(dataset: Dataset, folder: Path, shard: Shard) -> _WrittenShard:
    """Write the shard that has the pixels of another shard's images, under the same key.

    Args:
        dataset: the data set that is read.
        folder: the folder of the new data set.
        shard: the shard of ``dataset`` that is read.
    """
    path = folder / shard.key
    spans = []
    with RecordFile(path) as file:
        writer = get_format("tfrecord").writer(file, dataset.manifest.record_options("tfrecord"))
        for number in shard.samples:
            sample = dataset[number]  # This reads one record, not its whole shard.
            image = packed(decode_rgb(sample.image))
            decoded = replace(sample, image=image, encoding="RGB", colorspace="RGB", channels=3)
            spans.append(writer.write(decoded))
    with path.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    entry = ShardEntry(shard.key, path.stat().st_size, len(shard), digest)
    return _WrittenShard(entry, spans)


def _with_spans(table: pa.Table, spans: Sequence[tuple[int, int]]) -> pa.Table:
    """Return the table of samples with the offsets and lengths of the new TFRecord records.

    Columns about the old records are dropped: their offsets and lengths, in all formats, and their
    checksums. Samples that are not in the shards get no offset and no length.

    Args:
        table: the table of samples.
        spans: the offset and the length of each new record in bytes, in the order of the table.
    """
    suffixes = ("_offset", "_length", "_crc32c")
    old_columns = [name for name in table.column_names if name.endswith(suffixes)]
    table = table.drop_columns(old_columns)
    is_written = np.array(table["status"].to_pylist()) == "written"
    offsets, lengths = np.array(spans, np.int64).T
    for name, values in (("tfrecord_offset", offsets), ("tfrecord_length", lengths)):
        column = np.zeros(len(table), np.int64)
        column[is_written] = values
        table = table.append_column(name, pa.array(column, mask=~is_written))
    return table
