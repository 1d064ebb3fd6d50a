"""Hypothesis strategies for all tests."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import strategies as st

from dataprep.formats.example import BytesList, Feature, FloatList, Int64List
from dataprep.formats.recordio import MAGIC
from dataprep.formats.records import Buffer

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
"""Bytes dense in RecordIO's magic, whole and broken, at every alignment."""


@st.composite
def chopped(draw: st.DrawFn, whole: st.SearchStrategy[bytes]) -> list[bytes]:
    """Bytes cut into parts at random places, some of them empty."""
    data = draw(whole)
    cuts = draw(st.lists(st.integers(0, len(data)), max_size=6))
    bounds = [0, *sorted(cuts), len(data)]
    return [data[start:stop] for start, stop in pairwise(bounds)]


@st.composite
def mutated(draw: st.DrawFn, whole: st.SearchStrategy[bytes]) -> bytes:
    """Bytes with one changed, some removed or some inserted: almost what they were."""
    data = draw(whole)
    start = draw(st.integers(0, len(data)))
    stop = draw(st.integers(start, min(start + 4, len(data))))
    return data[:start] + draw(st.binary(max_size=4)) + data[stop:]


features: st.SearchStrategy[Feature] = st.one_of(
    st.lists(st.binary(max_size=300), max_size=4).map(BytesList),
    st.lists(st.floats(width=32, allow_nan=False), max_size=50).map(FloatList),
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20).map(Int64List),
)

examples = st.dictionaries(st.text(max_size=8), features, max_size=5)

label_lists = st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=9)

index_pairs = st.lists(st.tuples(st.integers(0, 2**63), st.integers(0, 2**63)), max_size=9)
