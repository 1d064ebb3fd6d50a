"""Examples are encoded and decoded as protobuf and TensorFlow do it."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dataprep.errors import CorruptRecord, RecordError
from dataprep.formats.example import (
    BytesList,
    Feature,
    FloatList,
    Int64List,
    bytes_head,
    decode_example,
    encode_feature,
    example_head,
    first_byte_string,
)
from tests.dataprep.formats.examples import encode_example
from tests.strategies import examples, mutated, payloads

NEGATIVE = "ff" * 9 + "01"


def delimited(tag: int, content: str | bytes) -> bytes:
    """A field of fewer than 128 bytes, whose tag is a single byte."""
    data = bytes.fromhex(content) if isinstance(content, str) else content
    return bytes((tag, len(data))) + data


def entry(feature: str | bytes, key: bytes = b"a") -> bytes:
    """A map entry of an encoded Feature."""
    return delimited(0x0A, delimited(0x0A, key) + delimited(0x12, feature))


def message(*entries: bytes) -> bytes:
    """An Example of map entries."""
    return delimited(0x0A, b"".join(entries))


@pytest.mark.parametrize(
    ("feature", "encoded"),
    [
        (BytesList([]), "0a00"),
        (FloatList([]), "1200"),
        (Int64List([]), "1a00"),
        (BytesList([b""]), "0a020a00"),
        (BytesList([b"x", b"yz"]), "0a070a01780a02797a"),
        (FloatList([0.5, -2.0]), "120a0a080000003f000000c0"),
        (Int64List([1, 300]), "1a050a0301ac02"),
        (Int64List([-1]), "1a0c0a0a" + NEGATIVE),
        (Int64List([-(2**63), 2**63 - 1]), "1a150a13" + "80" * 9 + "01" + "ff" * 8 + "7f"),
    ],
    ids=str,
)
def test_known_features(feature: Feature, encoded: str) -> None:
    """Each kind of list is encoded as protobuf does it, and read back."""
    data = message(entry(encoded))
    assert encode_example({"a": feature}) == data
    assert decode_example(data) == {"a": feature}


def test_an_example_without_features() -> None:
    """An Example without features has an empty map. A message without any map is equal to it."""
    assert encode_example({}) == b"\x0a\x00"
    assert decode_example(b"\x0a\x00") == decode_example(b"") == {}


def test_keys_are_sorted_by_their_utf8_bytes() -> None:
    """Keys are sorted by their UTF-8 bytes, in any order of the features."""
    keys = ["b", "", "a/b", "a", "\U0001f600", "é", "z", "\uffff"]
    data = encode_example({key: Int64List([1]) for key in keys})
    assert list(decode_example(data)) == sorted(keys, key=str.encode)
    assert data == encode_example({key: Int64List([1]) for key in reversed(keys)})


@given(features=examples)
def test_features_come_back(features: dict[str, Feature]) -> None:
    """Decoding gives the keys, kinds and values that were encoded."""
    assert decode_example(encode_example(features)) == features


@given(value=payloads)
def test_every_kind_of_buffer_is_a_byte_string(value: bytes) -> None:
    """bytes, a bytearray and a memoryview are encoded alike."""
    expected = encode_example({"image": BytesList([value])})
    assert encode_example({"image": BytesList([bytearray(value)])}) == expected
    assert encode_example({"image": BytesList([memoryview(value)])}) == expected


def test_a_buffer_of_larger_items_counts_in_bytes() -> None:
    """The length of a memoryview of four-byte items is that of its bytes."""
    items = memoryview(b"abcdefgh").cast("I")
    assert encode_feature("a", BytesList([items])) == encode_feature("a", BytesList([b"abcdefgh"]))


@pytest.mark.parametrize("size", [0, 5, 127, 128, 2**14, 2**21])
def test_the_head_of_a_byte_string_needs_its_size_alone(size: int) -> None:
    """The head of a byte string depends only on its size, and gives the entry with the string."""
    value = bytes(size)
    assert bytes_head("clé", size) + value == encode_feature("clé", BytesList([value]))


def test_long_byte_strings_are_views() -> None:
    """Decoding does not copy an image."""
    data = bytearray(encode_example({"a": BytesList([b"image" * 40])}))
    decoded = decode_example(data)["a"]
    data[-5:] = b"IMAGE"
    assert decoded == BytesList([b"image" * 39 + b"IMAGE"])


@given(features=examples)
def test_one_byte_string_is_that_of_the_whole_example(features: dict[str, Feature]) -> None:
    """``first_byte_string`` returns the first value of a feature of byte strings, or None."""
    data = encode_example(features)
    for key, feature in features.items():
        string = first_byte_string(data, key)
        if string is not None:
            assert isinstance(feature, BytesList)
            assert string == feature.values[0]
    assert first_byte_string(data, "no such feature" * 20) is None


def test_a_key_in_the_text_of_another_feature_is_not_taken_for_the_key() -> None:
    """Features are found by the structure of the Example, not by a search for bytes."""
    image = encode_feature("image", BytesList([b"a picture"]))
    decoy = encode_feature("image", BytesList([b"not a picture"]))
    entries = encode_feature("a", BytesList([decoy])) + image
    string = first_byte_string(example_head(len(entries)) + entries, "image")
    assert string is not None
    assert bytes(string) == b"a picture"


def test_what_was_decoded_before_is_not_lost_with_its_buffer() -> None:
    """A short entry is decoded once, from bytes of its own."""
    data = bytearray(message(entry(delimited(0x0A, delimited(0x0A, b"tench")))))
    first = decode_example(data)["a"]
    data[-5:] = b"TENCH"
    assert decode_example(data)["a"] == BytesList([b"TENCH"])
    assert first == decode_example(message(entry(delimited(0x0A, delimited(0x0A, b"tench")))))["a"]


def test_kinds_differ_and_values_may_be_any_sequence() -> None:
    """Lists of different kinds are never equal. A list and a tuple of equal values are."""
    empty: list[Feature] = [BytesList([]), FloatList([]), Int64List([])]
    assert [empty.count(feature) for feature in empty] == [1, 1, 1]
    assert Int64List([1, 2]) == Int64List((1, 2)) == Int64List(range(1, 3))
    assert len({Int64List([1]), Int64List((1,))}) == 1


@pytest.mark.parametrize(
    "feature",
    [
        Int64List([2**63]),
        Int64List([-(2**63) - 1]),
        Int64List([1.5]),  # type: ignore[list-item]
        FloatList([1e39]),
        FloatList(["1"]),  # type: ignore[list-item]
    ],
    ids=str,
)
def test_a_number_that_does_not_fit_is_refused(feature: Feature) -> None:
    """A number that its list cannot hold is an error with the key, and is never truncated."""
    with pytest.raises(RecordError, match="feature 'key'"):
        encode_feature("key", feature)


def test_two_gibibytes_are_refused() -> None:
    """An Example that protobuf would not read back is refused."""
    with pytest.raises(RecordError, match="below 2 GiB"):
        example_head(2**31 - 6)
    assert len(example_head(2**31 - 7)) == 6


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (message(entry("1a0408010802")), Int64List([1, 2])),
        (message(entry("1a0808010a0202030804")), Int64List([1, 2, 3, 4])),
        (message(entry("1a0b08" + NEGATIVE)), Int64List([-1])),
        (message(entry("120a0d0000003f0d000000c0")), FloatList([0.5, -2.0])),
        (message(entry("1a030a0101"), entry("1a030a0102")), Int64List([2])),
        (message(entry("1a030a0101")) + message(entry("0a00")), BytesList([])),
        (message(entry("1a030a0101" + "1a030a0102")), Int64List([1, 2])),
        (message(entry("1a030a0101" + "12060a040000003f")), FloatList([0.5])),
        (message(delimited(0x0A, "1205" + "1a030a0101" + "0a0161")), Int64List([1])),
        (message(entry("9a00030a0101")), Int64List([1])),
    ],
    ids=[
        "unpacked integers",
        "packed and unpacked integers",
        "negative unpacked integer",
        "unpacked floats",
        "repeated key",
        "repeated key in a second map",
        "one list in two fields",
        "another kind of list replaces the first",
        "value before key",
        "tag longer than it needs to be",
    ],
)
def test_other_writers_forms_are_read(data: bytes, expected: Feature) -> None:
    """Forms that protobuf reads and TensorFlow does not write are read as protobuf reads them."""
    assert decode_example(data) == {"a": expected}


@pytest.mark.parametrize(
    "unknown",
    ["1001", "2a0161", "1d01020304", "110102030405060708"],
    ids=["varint", "delimited", "fixed32", "fixed64"],
)
def test_unknown_fields_are_skipped(unknown: str) -> None:
    """Unknown fields of every wire type are skipped at every level."""
    extra = bytes.fromhex(unknown)
    feature = delimited(0x1A, extra + delimited(0x0A, "01") + extra)
    inner = delimited(0x0A, extra + b"\x0a\x01a" + extra + delimited(0x12, extra + feature))
    data = extra + delimited(0x0A, extra + inner + extra) + extra
    assert decode_example(data) == {"a": Int64List([1])}


def test_a_feature_without_a_list_is_left_out() -> None:
    """A feature of no kind does not count, and removes an earlier one of its name."""
    assert decode_example(message(entry(""))) == {}
    assert decode_example(message(entry("1a00"), entry(""))) == {}


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ("0a", "at its byte 1, a number does not end"),
        ("0a05", "at its byte 2, a field has 5 bytes, but only 0 bytes follow"),
        ("0aff", "at its byte 1, a number does not end"),
        ("0a" + "ff" * 11, "at its byte 1, a number does not end"),
        ("02", "at its byte 0, 0 is not a field number"),
        ("0f", "at its byte 1, 7 is not a wire type"),
        ("0b", "at its byte 1, 3 is not a wire type"),
        ("0d000000", "at its byte 1, a field has 4 bytes, but only 3 bytes follow"),
        (message(entry("12050a03000000")).hex(), "at its byte 13, packed floats are not"),
        (message(entry("1a030a01ff")).hex(), "at its byte 13, a number does not end"),
        (message(entry("1a00", key=b"\xff")).hex(), "at its byte 6, the key is not UTF-8"),
        ("0a020a05", "at its byte 4, a field has 5 bytes, but only 0 bytes follow"),
    ],
)
def test_what_is_not_an_example_is_corrupt(data: str, problem: str) -> None:
    """A malformed message is a CorruptRecord with the byte and the problem."""
    with pytest.raises(CorruptRecord, match=problem):
        decode_example(bytes.fromhex(data))


def test_a_field_stays_within_the_message_that_holds_it() -> None:
    """A length that fits the buffer but not its own message is corrupt."""
    data = bytearray(message(entry("1a030a0101")) + bytes(16))
    data[3] += 1
    with pytest.raises(CorruptRecord, match="bytes follow"):
        decode_example(data)


@given(data=st.binary() | mutated(examples.map(encode_example)))
@example(data=b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")
def test_any_bytes_are_an_example_or_corrupt(data: bytes) -> None:
    """Arbitrary bytes are decoded or raise a RecordError, and nothing else."""
    message = "at its byte"
    try:
        decode_example(memoryview(data))
    except CorruptRecord as error:
        message = str(error)
    assert "at its byte" in message
