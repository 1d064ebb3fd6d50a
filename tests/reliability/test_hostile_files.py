"""Damaged records, tables, archives and settings are read, or refused with the right errors."""

from __future__ import annotations

import io
import json
import tarfile
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dataprep
from dataprep.config.files import read_yaml
from dataprep.config.shard_config import ShardConfig
from dataprep.errors import CorruptRecord, DataprepError, TruncatedRecord
from dataprep.formats import RecordOptions, Sample, get_format
from dataprep.formats.example import decode_example
from dataprep.formats.recordio import read_recordio, unpack_image_record
from dataprep.formats.tfrecord import read_tfrecords
from dataprep.job.job_file import JobFile
from dataprep.job.split_plan import SplitPlan
from dataprep.labels import LabelSpace
from dataprep.output.manifest import Manifest
from dataprep.output.receipt import Receipt
from dataprep.sources.listing_table import parse
from dataprep.sources.options import ListingOptions
from iobench.errors import IobenchError
from iobench.results.result import Result
from tests.strategies import cut, json_values, mutated

pytestmark = [pytest.mark.fuzz, pytest.mark.slow]

GOLDEN = Path(__file__).parents[1] / "golden"


def shard(name: str) -> bytes:
    """The bytes of a small shard of one format."""
    sink = io.BytesIO()
    writer = get_format(name).writer(sink, RecordOptions())
    for number in range(4):
        image = b"\x0a\x23\xd7\xce" * number + bytes(range(40))
        writer.write(Sample(image, label=number, number=number, synset=b"n01440764"))
    return sink.getvalue()


@cache
def files_matching(pattern: str) -> list[bytes]:
    """The files of the golden data sets that match a pattern."""
    return [path.read_bytes() for path in sorted(GOLDEN.glob(f"datasets/*/*/output/{pattern}"))]


def drained(read: Callable[..., object]) -> Callable[[bytes], object]:
    """A function that reads all items of an iterator."""
    return lambda data: list(read(data))  # type: ignore[call-overload]


def through_file(suffix: str, read: Callable[[Path], object]) -> Callable[[bytes], object]:
    """A function that writes bytes to a file and calls a reader of paths."""

    def reader(data: bytes) -> object:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, f"hostile{suffix}")
            path.write_bytes(data)
            return read(path)

    return reader


def listed(kind: str) -> Callable[[Path], object]:
    """A reader that lists a source and reads one of its samples."""

    def read(path: Path) -> object:
        from dataprep.sources import open_source

        source = open_source(str(path), kind, None, None)
        listing = source.list()
        return [source.read(listing.located(row)) for row in range(min(2, len(listing)))]

    return read


def tar() -> bytes:
    """A tar of two images in two classes."""
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as archive:
        for name in ("a/1.JPEG", "b/2.JPEG"):
            info = tarfile.TarInfo(name)
            info.size = 700
            archive.addfile(info, io.BytesIO(bytes(700)))
    return sink.getvalue()


class Reader(NamedTuple):
    """A public reader, and valid files for it."""

    read: Callable[[bytes], object]
    seeds: Callable[[], list[bytes]]


READERS = {
    "tfrecord": Reader(drained(read_tfrecords), lambda: [shard("tfrecord")]),
    "recordio": Reader(drained(read_recordio), lambda: [shard("recordio")]),
    "example": Reader(
        decode_example,
        lambda: [bytes(record.payload) for record in read_tfrecords(shard("tfrecord"))],
    ),
    "image record": Reader(
        unpack_image_record,
        lambda: [bytes(record.payload) for record in read_recordio(shard("recordio"))],
    ),
    "lst": Reader(
        lambda data: parse(data, "x.lst", ListingOptions()), lambda: files_matching("index/*/*.lst")
    ),
    "receipt": Reader(
        lambda data: Receipt.from_json(data, "x"), lambda: files_matching("receipts/*")
    ),
    "receipt's files": Reader(
        lambda data: Receipt.from_json(data, "x").files, lambda: files_matching("receipts/*")
    ),
    "manifest": Reader(
        lambda data: Manifest.from_json(data, "x"), lambda: files_matching("*.manifest.json")
    ),
    "job": Reader(lambda data: JobFile.from_json(data, "x"), lambda: files_matching("*.job.json")),
    "labels": Reader(
        lambda data: LabelSpace.from_json(data, "x"), lambda: files_matching("labels.json")
    ),
    "plan": Reader(
        lambda data: SplitPlan.from_parquet(data, "x"), lambda: files_matching("*.plan.parquet")
    ),
    "config": Reader(
        through_file(".yaml", read_yaml),
        lambda: [b"source: a\noutput: b\nimage: {size: 256, mode: short}\nlabels: {map: {a: b}}\n"],
    ),
    "tar": Reader(through_file(".tar", listed("ilsvrc")), lambda: [tar()]),
    "listing": Reader(
        through_file(".csv", listed("listing")), lambda: [b"path,label\na.jpg,x\nb.jpg,y\n"]
    ),
    "shards as a source": Reader(
        through_file(".tfrecord", listed("records")), lambda: [shard("tfrecord")]
    ),
    "benchmark result": Reader(
        lambda data: Result.from_json(data, "x"),
        lambda: [path.read_bytes() for path in sorted(GOLDEN.glob("run-*/result.json"))],
    ),
}


@settings(max_examples=150)
@given(data=st.data())
@pytest.mark.parametrize("name", READERS)
def test_a_damaged_file_is_refused_by_name(name: str, data: st.DataObject) -> None:
    """Changed, cut and foreign bytes are read, or raise an error of the product."""
    reader = READERS[name]
    sound = st.sampled_from(reader.seeds())
    hostile = mutated(sound) | mutated(mutated(sound)) | cut(sound) | st.binary(max_size=200)
    if name in ("receipt", "manifest", "job", "labels", "benchmark result"):
        hostile |= json_values.map(lambda value: json.dumps(value).encode())
        hostile |= sound.flatmap(other_value)
    with suppress(DataprepError, IobenchError):
        reader.read(data.draw(hostile))


@st.composite
def other_value(draw: st.DrawFn, data: bytes) -> bytes:
    """A JSON file with another value under one of its keys."""
    content = json.loads(data)
    inside = content
    while True:
        key = draw(st.sampled_from(sorted(inside)))
        if not (isinstance(inside[key], dict) and inside[key] and draw(st.booleans())):
            break
        inside = inside[key]
    inside[key] = draw(json_values)
    return json.dumps(content).encode()


@given(position=st.integers(0), bit=st.integers(0, 7))
def test_no_flipped_bit_of_a_tfrecord_goes_unseen(position: int, bit: int) -> None:
    """Both checksums are checked, of lengths and of payloads."""
    data = bytearray(shard("tfrecord"))
    data[position % len(data)] ^= 1 << bit
    with pytest.raises((CorruptRecord, TruncatedRecord)):
        list(read_tfrecords(bytes(data)))


@pytest.mark.parametrize("key", ["tfrecord/", "recordio/", "index/", "receipts/", "labels.json"])
def test_verify_sees_a_flipped_bit(tree: Path, tmp_path: Path, key: str) -> None:
    """verify detects a flipped bit in a shard, an index, a receipt or the labels."""
    output = tmp_path / "out"
    config = {"source": tree, "output": output, "format": ["tfrecord", "recordio"]}
    dataprep.shard(ShardConfig.model_validate(config))
    files = [path for path in sorted(output.rglob("*")) if path.is_file()]
    path, *_ = [path for path in files if path.relative_to(output).as_posix().startswith(key)]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(bytes(data))
    (report,) = dataprep.verify(output)
    assert report.faults
