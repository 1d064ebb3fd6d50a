"""An Example read around its image."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given

from dataprep.errors import CorruptRecord
from dataprep.formats.example import BytesList, Feature, FloatList, Int64List, encode_example
from dataprep.inspection.partial_example import SMALL_BYTES, Large, read_partial
from tests.dataprep.inspection.held import Held
from tests.strategies import examples, mutated, payloads


@given(examples)
def test_small_ones_whole(features: dict[str, Feature]) -> None:
    """Of an example of small features nothing is left out."""
    data = encode_example(features)
    found = read_partial(Held(b"ab" + data), 2, len(data))
    assert encode_example(found.features) == data
    assert not found.large


@pytest.mark.parametrize("size", [SMALL_BYTES, 5000, 10**6])
def test_a_large_one_by_its_place(size: int) -> None:
    """A large byte string is told by place and size, and not read; what surrounds it is."""
    image = b"\xff\xd8" + bytes(size - 2)
    data = encode_example(
        {
            "a": Int64List([7]),
            "image/encoded": BytesList([image]),
            "label": Int64List([3, -1]),
            "z": FloatList([0.5]),
        }
    )
    held = Held(data)
    found = read_partial(held, 0, len(data))
    place = found.large["image/encoded"]
    assert data[place.offset : place.offset + place.bytes] == image
    assert {key: tuple(feature.values) for key, feature in found.features.items()} == {
        "a": (7,),
        "label": (3, -1),
        "z": (0.5,),
    }
    assert held.bytes_read < 500


def test_large_numbers() -> None:
    """A long list of numbers has no byte string to point at, and what follows is still read."""
    data = encode_example({"a": FloatList([0.5] * 1000), "b": Int64List([1])})
    found = read_partial(Held(data), 0, len(data))
    assert tuple(found.features["b"].values) == (1,)
    assert list(found.large) == ["a"]


def test_of_two_large_ones() -> None:
    """Each has its own place."""
    one, two = b"1" * 3000, b"2" * 4000
    data = encode_example({"a": BytesList([one]), "b": BytesList([two])})
    found = read_partial(Held(data), 0, len(data))
    assert found.large == {
        "a": Large(data.index(one), 3000),
        "b": Large(data.index(two), 4000),
    }


@given(mutated(examples.map(encode_example)) | payloads)
def test_anything_else(data: bytes) -> None:
    """Whatever the bytes are, they are read or refused, never followed out of the record."""
    with contextlib.suppress(CorruptRecord):
        for place in read_partial(Held(data), 0, len(data)).large.values():
            assert 0 <= place.offset <= place.offset + place.bytes <= len(data)
