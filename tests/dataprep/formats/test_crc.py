"""Tests of dataprep.formats.crc."""

from __future__ import annotations

from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from dataprep.formats.crc import mask, masked_crc32c
from tests.strategies import payloads


def test_the_polynomial_is_castagnolis() -> None:
    """The check value of CRC-32C is that of its definition, RFC 3720."""
    assert crc32c(b"123456789") == 0xE3069283


def test_mask_of_known_crcs() -> None:
    """Masking rotates right by 15, then adds the delta."""
    assert mask(0) == 0xA282EAD8
    assert mask(1) == 0xA284EAD8
    assert mask(0x8000) == 0xA282EAD9


def test_masked_crc_of_known_bytes() -> None:
    """The masked CRCs of an empty payload and of a zero length are those TensorFlow writes."""
    assert masked_crc32c(b"").to_bytes(4, "little").hex() == "d8ea82a2"
    assert masked_crc32c(bytes(8)).to_bytes(4, "little").hex() == "29039807"
    assert masked_crc32c(b"hello").to_bytes(4, "little").hex() == "bb1f1c19"


@given(crc=st.integers(0, 2**32 - 1))
def test_mask_can_be_undone(crc: int) -> None:
    """Masking loses nothing: rotating back after subtracting gives the CRC, in 32 bits."""
    masked = mask(crc)
    assert 0 <= masked < 2**32
    turned = (masked - 0xA282EAD8) % 2**32
    assert (turned >> 17 | turned << 15) % 2**32 == crc


@given(data=payloads)
def test_every_kind_of_buffer_has_the_same_crc(data: bytes) -> None:
    """Bytes, a bytearray and a memoryview of the same bytes have the same checksum."""
    expected = masked_crc32c(data)
    assert masked_crc32c(bytearray(data)) == expected
    assert masked_crc32c(memoryview(data)) == expected
