"""The checksum of TFRecord: CRC-32C, masked.

Source: TensorFlow, ``tensorflow/core/lib/hash/crc32c.h`` (``crc32c::Mask``), which has it from
LevelDB: the CRC of bytes that themselves hold CRCs is weak, so stored ones are disguised.
"""

from __future__ import annotations

from crc32c import crc32c

from dataprep.formats.records import Buffer

MASK_DELTA = 0xA282EAD8


def mask(crc: int) -> int:
    """Rotate a 32-bit CRC right by 15 bits and add a constant, modulo 2^32."""
    return ((crc >> 15 | crc << 17) + MASK_DELTA) & 0xFFFFFFFF


def masked_crc32c(data: Buffer) -> int:
    """Masked CRC-32C (Castagnoli) of the bytes of ``data``, as TFRecord stores it."""
    return mask(crc32c(data))
