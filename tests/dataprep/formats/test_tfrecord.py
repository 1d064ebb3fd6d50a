"""TFRecord has the framing and the checksums of TensorFlow."""

from __future__ import annotations

import pickle

import pytest
from crc32c import crc32c

from dataprep.errors import CorruptRecord, TruncatedRecord
from dataprep.formats.tfrecord import (
    mask,
    masked_crc32c,
    read_tfrecords,
    span_at,
)
from tests.dataprep.formats.test_framing import TFRECORD

EMPTY = bytes.fromhex("0000000000000000 29039807 d8ea82a2")
HELLO = bytes.fromhex("0500000000000000 eab2043e 68656c6c6f bb1f1c19")


@pytest.mark.parametrize(("payload", "record"), [(b"", EMPTY), (b"hello", HELLO)])
def test_known_records(payload: bytes, record: bytes) -> None:
    """An empty record and `hello` are written as TensorFlow writes them, and read."""
    assert TFRECORD.encode([payload]) == record
    assert [bytes(found_record.payload) for found_record in read_tfrecords(record)] == [payload]


@pytest.mark.parametrize("position", range(len(HELLO)))
def test_a_flipped_byte_is_found_wherever_it_is(position: int) -> None:
    """Every change of one byte of a record is a CorruptRecord with the position."""
    for change in range(1, 256):
        damaged = bytearray(EMPTY + HELLO)
        damaged[len(EMPTY) + position] ^= change
        reader = read_tfrecords(damaged, name="shard")
        next(reader)
        with pytest.raises(CorruptRecord, match="shard: record 1 at byte 16") as caught:
            next(reader)
        assert (caught.value.record, caught.value.offset) == (1, 16)


def test_checksums_are_ignored_on_request() -> None:
    """A record with two wrong checksums is read if checks are off."""
    damaged = HELLO[:8] + bytes(4) + HELLO[12:17] + bytes(4)
    assert [bytes(r.payload) for r in read_tfrecords(damaged, check=False)] == [b"hello"]


@pytest.mark.parametrize("length", [6, 2**31, 2**64 - 1])
def test_a_length_past_the_end_is_a_truncated_file(length: int) -> None:
    """A length beyond the end is a truncated file, even if it is 16 EiB."""
    damaged = length.to_bytes(8, "little") + HELLO[8:]
    with pytest.raises(TruncatedRecord, match=rf"its {length} payload bytes run past the end"):
        next(read_tfrecords(damaged, check=False))
    with pytest.raises(CorruptRecord, match="the checksum of the length"):
        next(read_tfrecords(damaged))


def test_a_span_needs_the_header_alone() -> None:
    """The span of a record is read from its header alone, without its payload."""
    assert span_at(memoryview(HELLO[:12] + bytes(9)), 0).payload_bytes == 5


def test_an_error_survives_pickling() -> None:
    """A truncated file is an EOFError, and can be pickled to another process."""
    with pytest.raises(TruncatedRecord) as caught:
        next(read_tfrecords(HELLO[:-1], name="a"))
    error = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(error, TruncatedRecord)
    assert isinstance(error, EOFError)
    assert (error.record, error.offset) == (0, 0)


def test_the_checksum() -> None:
    """CRC-32C has the check value of RFC 3720; masking rotates by 15 bits and adds a constant."""
    assert crc32c(b"123456789") == 0xE3069283
    assert (mask(0), mask(1), mask(0x8000)) == (0xA282EAD8, 0xA284EAD8, 0xA282EAD9)
    assert masked_crc32c(memoryview(b"hello")).to_bytes(4, "little").hex() == "bb1f1c19"
