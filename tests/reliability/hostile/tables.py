"""Targets: receipts, manifests, plans and the other JSON and Parquet files of an output."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dataprep.archives.gzip_points import GzipPoints
from dataprep.archives.handles import Stamp
from dataprep.archives.index_cache import IndexCache
from dataprep.archives.tar_index import Part, TarIndex
from dataprep.job.jobfile import JobFile
from dataprep.job.retry import noted
from dataprep.job.split_plan import SplitPlan
from dataprep.labels import LabelSpace
from dataprep.manifest import Manifest, require_sums
from dataprep.receipt import Receipt, stored_files
from dataprep.sample_table import SampleTable
from dataprep.sources.record_classes import Scanned
from dataprep.sources.scan_cache import KEPT_FROM_BYTES, ScanCache
from dataprep.stored_table import StoredTable, stored_table
from dataprep.stores import ObjectInfo
from dataprep.stores.memory import MemoryStore
from tests.reliability.hostile import mutations as m
from tests.reliability.hostile.fuzz import NAME, Target

DATASETS = Path(__file__).parents[2] / "golden" / "datasets"
_SCHEMA = "schema"


@cache
def stored(pattern: str) -> tuple[bytes, ...]:
    """Files of the golden data sets."""
    return tuple(path.read_bytes() for path in sorted(DATASETS.glob(f"*/*/output/{pattern}")))


def seeds(pattern: str) -> Callable[[], Sequence[bytes]]:
    """As a target wants them."""
    return lambda: stored(pattern)


_JSON = m.stacked(m.json_tree)


def table_mutation(data: bytes, rng: Random) -> bytes:
    """A Parquet file with other columns, types or values, or other bytes."""
    chosen = rng.random()
    try:
        if chosen < 0.55:
            return _other_table(data, rng)
        if chosen < 0.56:
            return _many_rows(data, rng)
        if chosen < 0.8:
            return _other_footer(data, rng)
    except (pa.ArrowException, OSError, ValueError):
        pass
    return m.bytes_at_random(data, rng)


def _other_footer(data: bytes, rng: Random) -> bytes:
    """Another number in what a Parquet file tells of itself (Thrift's varints), its length right.

    Counts of rows, sizes and offsets become such as no file has.
    """
    if len(data) < 12 or data[-4:] != b"PAR1":
        return data
    size = int.from_bytes(data[-8:-4], "little")
    begin = len(data) - 8 - size
    if size < 2 or begin < 4:
        return data
    footer = bytearray(data[begin:-8])
    for _ in range(rng.choice((1, 1, 3))):
        at = rng.randrange(len(footer))
        number = rng.choice((2**64 - 2, 2**64 - 1, 2**62, 2**33, 2**31 - 2, 1, 0))
        found = bytearray()
        while number > 127:
            found.append(number & 127 | 128)
            number >>= 7
        found.append(number)
        footer[at : at + 1] = found
    told = len(footer) if rng.random() < 0.9 else 2**31 - 1
    return data[:begin] + bytes(footer) + told.to_bytes(4, "little") + b"PAR1"


def _many_rows(data: bytes, rng: Random) -> bytes:
    """A small file of so many equal rows that they fit into no memory."""
    row = pq.read_table(pa.BufferReader(data)).slice(0, 1)
    if not len(row):
        return data
    count = 2**21
    columns = [column.combine_chunks().dictionary_encode() for column in row.columns]
    if any(pa.types.is_nested(column.type) for column in row.columns):
        return data
    table = pa.table(
        {
            name: pa.DictionaryArray.from_arrays(
                pa.repeat(pa.scalar(0, pa.int32()), count), column.dictionary
            )
            if len(column.dictionary)
            else pa.nulls(count, column.type.value_type)
            for name, column in zip(row.column_names, columns, strict=True)
        }
    )
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", store_schema=False)
    return sink.getvalue()


def _other_table(data: bytes, rng: Random) -> bytes:
    table = pq.read_table(pa.BufferReader(data))
    if not table.num_columns:
        return m.bytes_at_random(data, rng)
    number = rng.randrange(table.num_columns)
    name, column = table.column_names[number], table.column(number)
    kind = rng.randrange(9)
    if kind == 0:
        table = table.drop_columns([name])
    elif kind == 1:
        table = table.rename_columns(
            [
                rng.choice(("x", "", "source")) if other == name else other
                for other in table.column_names
            ]
        )
    elif kind == 2:
        table = table.slice(0, rng.choice((0, 1, len(table) // 2)))
    elif kind == 3:
        table = pa.concat_tables([table] * rng.choice((2, 3)))
    elif kind == 4:
        table = table.append_column(name, column)
    else:
        table = table.set_column(number, name, _hostile_column(column, rng))
    sink = io.BytesIO()
    pq.write_table(table, sink, compression=rng.choice(("zstd", "none")))
    return sink.getvalue()


def _hostile_column(column: pa.ChunkedArray, rng: Random) -> pa.Array:
    count = len(column)
    if rng.random() < 0.5:
        values: list[Any] = column.to_pylist()
        if values:
            values[rng.randrange(count)] = _value(column.type, rng)
        try:
            return pa.array(values, column.type)
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            return pa.nulls(count, column.type)
    kinds = (pa.int8(), pa.int64(), pa.float64(), pa.string(), pa.binary(), pa.bool_(), pa.date32())
    chosen = rng.choice((*kinds, pa.uint64(), pa.list_(pa.int32()), pa.null(), pa.float16()))
    try:
        return column.cast(chosen).combine_chunks()
    except pa.ArrowException:
        return pa.nulls(count, chosen)


def _value(kind: pa.DataType, rng: Random) -> Any:
    if pa.types.is_integer(kind):
        return rng.choice((None, -1, 0, 1, -(2**31), 2**31 - 1, 2**63 - 1, -(2**63), 2**40))
    if pa.types.is_floating(kind):
        return rng.choice((None, float("nan"), float("inf"), -1.0))
    if pa.types.is_list(kind):
        return rng.choice((None, [], [None], [1], [1, 2, 3, 4, 5]))
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return rng.choice((None, b"", b"\xff" * 100))
    return rng.choice((None, "", "\\xzz", "\\", "x" * 10000, "../../x", "written", "failed"))


_TABLES = m.stacked(table_mutation)


def read_manifest(data: bytes) -> None:
    """What is read is written as the same, and can be used."""
    found = require_sums(Manifest.from_json(data, NAME), NAME)
    assert Manifest.from_json(found.to_json(), NAME) == found
    for name in found.formats:
        found.record_options(name)
    assert found.encoding.isascii()
    for entry in found.formats.values():
        assert entry.records == sum(shard.records for shard in entry.shards)


def read_receipt(data: bytes) -> None:
    """Its rows make a table, and what it says of files is the same without them."""
    found = Receipt.from_json(data, NAME)
    table = SampleTable(list(found.formats))
    table.add(found.rows, found.shard)
    table.table()
    if all((row.records or {}).keys() <= found.formats.keys() for row in found.rows):
        assert Receipt.from_json(found.to_json(), NAME) == found
    files = tuple(file for shard in found.formats.values() for file in shard.files)
    if data.endswith(b"}}\n"):
        assert stored_files(data, NAME) == files


def read_job(data: bytes) -> None:
    """Its fingerprint is made right first, so that it is read on."""
    try:
        content = json.loads(data)
        from dataclasses import fields

        known = {field.name: content[field.name] for field in fields(JobFile)}
        known["calibration"] = tuple(tuple(point) for point in known["calibration"])
        content["fingerprint"] = JobFile(**known).fingerprint
        data = json.dumps(content).encode()
    except Exception:  # noqa: BLE001  left as it is
        pass
    found = JobFile.from_json(data, NAME)
    assert JobFile.from_json(found.to_json(), NAME) == found
    for name in found.label_offsets:
        found.record_options(name)
    assert found.shards > 0


def read_labels(data: bytes) -> None:
    """A label is the index."""
    found = LabelSpace.from_json(data, NAME)
    assert [label.index for label in found.labels] == list(range(len(found.labels)))
    assert len(found.index) == len(found.labels)
    assert LabelSpace.from_json(found.to_json(), NAME) == found


def retried() -> Sequence[bytes]:
    """As one writes it."""
    job = _job()
    samples = {"n01440764/a.JPEG": 100, "n01440764/tab\\x09.JPEG": 7}
    return [json.dumps({"schema": 1, "fingerprint": job.fingerprint, "samples": samples}).encode()]


@cache
def _job() -> JobFile:
    return JobFile.from_json(stored("train.job.json")[-1], NAME)


def read_retried(data: bytes) -> None:
    """Sizes by name."""
    job = _job()
    store = MemoryStore("memory://fuzz")
    store.put("train.retried.json", data)
    assert all(size >= 0 for size in noted(store, job).values())


def read_plan(data: bytes) -> None:
    """A plan whose columns fit each other."""
    found = SplitPlan.from_parquet(data, NAME)
    rows = len(found.names)
    for column in (found.sizes, found.labels, found.predicted, found.shards):
        assert len(column) == rows
        assert column.dtype.kind == "i"
    assert len(found.statuses) == len(found.reasons) == rows
    found.items(found.rows_of(0))
    SplitPlan.from_parquet(found.to_parquet(), NAME)


def read_samples(data: bytes) -> None:
    """The table beside its manifest: places of as many samples as that says."""
    manifest = Manifest.from_json(stored("train.manifest.json")[-1], NAME)
    store = MemoryStore("memory://fuzz")
    store.put("train.samples.parquet", data)
    table = stored_table(store, manifest)
    places = table.columns(["shard", "tfrecord_offset", "tfrecord_length", "label"])
    assert len(places) == manifest.samples.written
    for column in places.columns:
        column.to_numpy().astype(np.int64)
    assert isinstance(table, StoredTable)
    table.frame()
    SampleTable(["tfrecord"]).agrees_with(data)
    SampleTable(["tfrecord"]).differing_shards(data)


_STAMP = Stamp(100, "1")


def index_caches() -> Sequence[bytes]:
    """An index as it is kept."""
    index = TarIndex(
        parts=(Part(b"a.tar", 0, 10240, False), Part(b"b.tar", 512, 4096, True)),
        part=np.array([0, 1], np.int32),
        names=[b"x.jpg", b"\xff.jpg"],
        offsets=np.array([512, 1024], np.int64),
        sizes=np.array([5, 6], np.int64),
        refused={1: "a device"},
        remarks={0: "no end marker"},
    )
    with tempfile.TemporaryDirectory() as folder:
        cache_ = IndexCache(folder)
        cache_.put_index("file.tar", _STAMP, index)
        return [path.read_bytes() for path in cache_.folder.glob("*.parquet")]


def kept(name: str) -> Callable[[bytes, Callable[[str], Any]], Any]:
    """A file of a cache, read by what reads it there."""

    def read(data: bytes, find: Callable[[str], Any]) -> Any:
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            (Path(folder) / name).write_bytes(data)
            return find(folder)

    return read


def _cache_name(make: Callable[[str], object]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        make(folder)
        (path,) = [path for path in Path(folder).rglob("*") if path.is_file()]
        return str(path.relative_to(folder))


@cache
def _index_name() -> str:
    (data,) = index_caches()
    del data
    from dataprep.archives.index_cache import _name

    return _name("file.tar", "parquet")


def read_index_cache(data: bytes) -> None:
    """The index, or none: never one that leads out of the archive."""
    found = kept(_index_name())(data, lambda folder: IndexCache(folder).index("file.tar", _STAMP))
    if found is None:
        return
    rows = len(found)
    assert len(found.part) == len(found.offsets) == len(found.sizes) == rows
    assert all(0 <= part < len(found.parts) for part in found.part.tolist())
    assert all(isinstance(name, bytes) for name in found.names)
    assert all(
        size >= 0 and offset >= 0 for size, offset in zip(found.sizes, found.offsets, strict=True)
    )
    assert all(0 <= row < rows for row in found.refused)


def gzip_points() -> Sequence[bytes]:
    """Points as they are kept."""
    points = GzipPoints(
        packed=np.array([0, 5000], np.int64),
        plain=np.array([0, 40000], np.int64),
        bits=np.array([0, 3], np.uint8),
        windows=pa.array([b"", b"w" * 32768], pa.large_binary()),
        packed_bytes=9000,
        plain_bytes=80000,
    )
    sink = io.BytesIO()
    points.write(sink, "identity")
    return [sink.getvalue()]


def read_points(data: bytes) -> None:
    """Points whose columns fit each other."""
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
        file.write(data)
        file.flush()
        found = GzipPoints.of_file(file.name, "identity")
        assert len(found.packed) == len(found.plain) == len(found.bits) == len(found.windows)
        found.windows[len(found.windows) - 1].as_buffer()


class _Shards(MemoryStore):
    """Shards that are large enough to be kept."""


_INFO = ObjectInfo("x-00000-of-00001", KEPT_FROM_BYTES, etag="e")


def scan_caches() -> Sequence[bytes]:
    """What a pass found, as it is kept."""
    store = MemoryStore("memory://scan")
    records = [
        Scanned(_INFO.key, 0, 0, 9, (1.0,), "s", "t", "f"),
        Scanned(_INFO.key, 1, 50, problem="p"),
    ]
    with tempfile.TemporaryDirectory() as folder:
        ScanCache(folder).keep(store, [_INFO], {"encoded": "image"}, records)
        return [path.read_bytes() for path in Path(folder).rglob("*.parquet")]


def read_scan_cache(data: bytes) -> None:
    """Records of these shards, or none."""
    from dataprep.sources.scan_cache import _name

    store = MemoryStore("memory://scan")
    find = lambda folder: ScanCache(folder).find(store, [_INFO], {"encoded": "image"})  # noqa: E731
    for record in kept(_name(store, [_INFO]))(data, find) or ():
        assert isinstance(record.problem, str)
        assert isinstance(record.offset, int)
        assert record.offset >= 0
        assert record.bytes >= 0
        assert all(isinstance(label, float) for label in record.labels)


def holders() -> Sequence[bytes]:
    """What a lease of a bucket holds."""
    return [b'{"token": "x", "said": "split", "seconds": 60.0, "count": 3}']


def targets() -> list[Target]:
    """All of them."""
    family, own = "tables", ("dataprep/",)
    files = (
        ("manifest", "*.manifest.json", read_manifest, rf"{NAME}|config.layout"),
        ("receipt", "receipts/*.json", read_receipt, NAME),
        ("job", "*.job.json", read_job, rf"{NAME}|config.layout"),
        ("labels", "labels.json", read_labels, NAME),
    )
    return [
        *(
            Target(name, family, seeds(glob), _JSON, read, own, place)
            for name, glob, read, place in files
        ),
        Target("retried", family, retried, _JSON, read_retried, own, r"train\.retried\.json"),
        Target("plan", family, seeds("*.plan.parquet"), _TABLES, read_plan, own),
        Target(
            "samples",
            family,
            lambda: stored("train.samples.parquet")[-1:],
            _TABLES,
            read_samples,
            own,
            r"train\.samples\.parquet",
        ),
        Target("tar index cache", family, index_caches, _TABLES, read_index_cache, own, "$^"),
        Target(
            "gzip points",
            family,
            gzip_points,
            m.stacked(m.bytes_at_random),
            read_points,
            own,
            "",
            (OSError, pa.ArrowException, ValueError, KeyError, TypeError, AttributeError),
        ),
        Target("scan cache", family, scan_caches, _TABLES, read_scan_cache, own, "$^"),
    ]
