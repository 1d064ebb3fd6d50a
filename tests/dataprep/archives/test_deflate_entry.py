"""Tests of dataprep.archives.deflate_entry."""

from __future__ import annotations

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.archives.deflate_entry import inflate_from


def shifted(raw: bytes, bits: int, filling: str) -> bytes:
    """A deflate stream that begins ``bits`` bits into its first byte."""
    text = filling * bits + "".join(f"{byte:08b}"[::-1] for byte in raw)
    text += "0" * (-len(text) % 8)
    return bytes(int(text[i : i + 8][::-1], 2) for i in range(0, len(text), 8))


@pytest.mark.parametrize("filling", "01")
@pytest.mark.parametrize("strategy", [zlib.Z_DEFAULT_STRATEGY, zlib.Z_FIXED, zlib.Z_HUFFMAN_ONLY])
@pytest.mark.parametrize("unused", range(8))
def test_blocks_that_begin_at_any_bit(unused: int, strategy: int, filling: str) -> None:
    """A block is entered at every bit of a byte, whatever the bits before it are."""
    text = b"the same words, the same words, and others " * 20
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS, strategy=strategy)
    raw = packer.compress(text) + packer.flush()
    data = shifted(raw, (8 - unused) % 8, filling)
    assert inflate_from(data, unused, b"", 5, 100) == text[5:105]


@given(before=st.binary(max_size=4000), after=st.binary(max_size=4000), skip=st.integers(0, 5000))
def test_the_window_is_what_came_before(before: bytes, after: bytes, skip: int) -> None:
    """Content that repeats what lies before the block is found in the window."""
    content = after + before + after
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS, zdict=before)
    raw = packer.compress(content) + packer.flush()
    assert inflate_from(raw, 0, before, skip, 900) == content[skip : skip + 900]


def test_several_gzip_files_in_a_row() -> None:
    """Reading goes on in the gzip file that follows, as gunzip does, and stops at other bytes."""
    parts = [b"one " * 100, b"", b"three " * 100]
    data = b"".join(gzip.compress(part, mtime=0) for part in parts)
    plain = b"".join(parts)
    for window, beginning in ((None, 0), (b"", 10)):
        assert inflate_from(data[beginning:], 0, window, 300, 600) == plain[300:900]
        assert inflate_from(data[beginning:], 0, window, 0, 10**6) == plain


def test_damage_is_told() -> None:
    """Bytes that are no deflate data raise zlib's error."""
    with pytest.raises(zlib.error):
        inflate_from(b"\xff" * 100, 0, b"", 0, 10)
