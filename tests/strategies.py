"""Hypothesis strategies for all tests."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, get_args

from hypothesis import strategies as st

from dataprep.formats import Buffer
from dataprep.formats.example import BytesList, Feature, FloatList, Int64List
from dataprep.formats.recordio import MAGIC
from dataprep.image import ImagePolicy, Mode
from dataprep.image.policy import Encoding
from dataprep.output.receipt import Receipt, Row, Samples, StoredFile, StoredShard

payloads = st.binary(max_size=200)

buffers: st.SearchStrategy[Buffer] = st.one_of(
    payloads, payloads.map(bytearray), payloads.map(lambda data: memoryview(data))
)

magic_payloads = st.lists(
    st.one_of(
        st.just(MAGIC),
        st.integers(1, 3).map(lambda count: MAGIC[:count]),
        st.integers(1, 3).map(lambda count: MAGIC[count:]),
        st.binary(max_size=9),
    ),
    max_size=12,
).map(b"".join)
"""Bytes with many complete and partial magics of RecordIO, at every alignment."""


@st.composite
def chopped(draw: st.DrawFn, content: st.SearchStrategy[bytes]) -> list[bytes]:
    """Bytes in parts, cut at random positions. Some parts are empty."""
    data = draw(content)
    cuts = draw(st.lists(st.integers(0, len(data)), max_size=6))
    bounds = [0, *sorted(cuts), len(data)]
    return [data[start:stop] for start, stop in pairwise(bounds)]


@st.composite
def mutated(draw: st.DrawFn, content: st.SearchStrategy[bytes]) -> bytes:
    """Almost the same bytes: one byte is changed, or some are removed or inserted."""
    data = draw(content)
    start = draw(st.integers(0, len(data)))
    stop = draw(st.integers(start, min(start + 4, len(data))))
    return data[:start] + draw(st.binary(max_size=4)) + data[stop:]


@st.composite
def cut(draw: st.DrawFn, content: st.SearchStrategy[bytes]) -> bytes:
    """The bytes without their end."""
    data = draw(content)
    return data[: draw(st.integers(0, len(data)))]


features: st.SearchStrategy[Feature] = st.one_of(
    st.lists(st.binary(max_size=300), max_size=4).map(BytesList),
    st.lists(st.floats(width=32, allow_nan=False), max_size=50).map(FloatList),
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20).map(Int64List),
)

examples = st.dictionaries(st.text(max_size=8), features, max_size=5)

label_lists = st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=9)

file_names = st.one_of(
    st.binary(min_size=1, max_size=12).map(os.fsdecode),
    st.text(st.sampled_from("ab/\\x0é\t\n\r\x85\u2028\x7f"), max_size=12),
)
"""Names from `os.fsdecode`: any bytes, with surrogates for bytes that are not UTF-8."""

distinct_names = st.lists(file_names, min_size=1, max_size=40, unique=True)

sides = st.integers(1, 3000)


@st.composite
def image_policies(draw: st.DrawFn, mode: Mode | None = None) -> ImagePolicy:
    """A policy of any mode, or of the given mode, with a size that fits the mode."""
    modes: tuple[Mode, ...] = get_args(Mode) if mode is None else (mode,)
    chosen = draw(st.sampled_from(modes))
    size: int | tuple[int, int] | None = draw(sides)
    if chosen == "none":
        size = None
    elif chosen in ("exact", "crop") and draw(st.booleans()):
        size = draw(st.tuples(sides, sides))
    return ImagePolicy(mode=chosen, size=size, upscale=draw(st.booleans()))


@st.composite
def trait_policies(draw: st.DrawFn) -> ImagePolicy:
    """A policy with any value of every key that is a choice, for small images."""
    values: dict[str, Any] = {
        name: draw(st.sampled_from(schema["enum"]))
        for name, schema in ImagePolicy.model_json_schema()["properties"].items()
        if "enum" in schema and name not in ("mode", "encoding")
    }
    encoding = draw(st.sampled_from(get_args(Encoding)))
    if encoding == "jpeg":
        values |= {"progressive": draw(st.booleans()), "optimize": draw(st.booleans())}
        values["alpha"] = "flatten" if values["alpha"] == "keep" else values["alpha"]
    if encoding == "webp":
        values["webp_lossless"] = draw(st.booleans())
    return ImagePolicy(
        **values,
        encoding=encoding,
        size=draw(st.sampled_from([None, 5, 8, 16, 40])),
        upscale=draw(st.booleans()),
        background=draw(st.tuples(*[st.integers(0, 255)] * 3)),
        min_size=draw(st.sampled_from([0, 0, 17])),
        max_pixels=10**6,
    )


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)

counts = st.integers(0, 2**53)
short_text = st.text(max_size=6)


def placed(rows: Sequence[Row], formats: Iterable[str]) -> Samples:
    """The columns of rows, with their positions in some formats."""
    records = {name: [(row.records or {}).get(name) for row in rows] for name in formats}
    return Samples(Samples.of(rows).columns, records)


def receipt_rows(formats: Sequence[str]) -> st.SearchStrategy[Row]:
    """One row of a receipt, whose sample is written to all of ``formats`` or to none."""
    locations = st.fixed_dictionaries({name: st.tuples(counts, counts, counts) for name in formats})
    return st.builds(
        Row,
        number=counts,
        source=short_text,
        label=st.integers(-1, 2**31 - 1),
        synset=short_text,
        status=st.sampled_from(["written", "failed", "skipped"]),
        reason=short_text,
        kind=short_text,
        action=st.sampled_from(["", "passthrough", "retagged", "reencoded"]),
        notes=st.sampled_from(["", "recovered", "recovered,icc_dropped"]),
        source_width=st.integers(0, 2**31 - 1),
        source_height=st.integers(0, 2**31 - 1),
        source_bytes=counts,
        source_sha256=short_text,
        colorspace=short_text,
        exif_orientation=st.integers(0, 8),
        width=st.integers(0, 2**31 - 1),
        height=st.integers(0, 2**31 - 1),
        image_bytes=st.integers(0, 2**31 - 1),
        boxes=st.none(),
        values=st.none(),
        records=st.just({}) | locations,
    )


stored_files = st.builds(
    StoredFile, key=short_text, bytes=counts, sha256=short_text, etag=st.none() | short_text
)


@st.composite
def receipts(draw: st.DrawFn) -> Receipt:
    """A receipt in one or two formats."""
    formats = draw(st.sampled_from([("tfrecord",), ("recordio", "tfrecord")]))
    stored_formats = st.builds(
        StoredShard, stored_files, counts, st.lists(stored_files, max_size=2).map(tuple)
    )
    return Receipt(
        fingerprint=draw(short_text),
        split=draw(short_text),
        shard=draw(st.integers(0, 2**31 - 1)),
        shards=draw(st.integers(0, 2**31 - 1)),
        formats={name: draw(stored_formats) for name in formats},
        samples=placed(draw(st.lists(receipt_rows(formats), max_size=5)), formats),
    )
