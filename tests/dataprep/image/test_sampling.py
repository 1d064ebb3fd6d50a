"""Tests of dataprep.image.sampling."""

from __future__ import annotations

import itertools

import pytest
import simplejpeg

from dataprep.image.jpeg import read_header
from dataprep.image.sampling import is_usual, name
from dataprep.sample import encodings as enc
from dataprep.sample.drawing import draw_image
from tests.dataprep.image.samplings import sampled

IMAGE = draw_image(1, 48, 36, detail=0.3)
PLAIN = enc.jpeg(IMAGE)


def taken(data: bytes) -> bool:
    """Whether TurboJPEG takes the header."""
    try:
        simplejpeg.decode_jpeg_header(data, strict=False)
    except (ValueError, KeyError):
        return False
    return True


@pytest.mark.parametrize("plain", [PLAIN, enc.grey_jpeg(IMAGE), enc.adobe_cmyk_jpeg(IMAGE)])
def test_usual_samplings_are_those_of_turbojpeg(plain: bytes) -> None:
    """Of all that a frame may have: 1 to 4 each way, 10 blocks in all."""
    factors = [16 * across + down for across in range(1, 5) for down in range(1, 5)]
    first = read_header(plain)
    for sampling in itertools.product(factors, repeat=first.channels):
        if sum((factor >> 4) * (factor & 15) for factor in sampling) <= 10:
            data = sampled(plain, bytes(sampling))
            assert read_header(data).usual == taken(data), bytes(sampling).hex()


@pytest.mark.parametrize("wanted", ["444", "422", "420", "440", "411"])
def test_names(wanted: str) -> None:
    """Names are those that the encoder was asked for."""
    header = read_header(enc.jpeg(IMAGE, wanted))
    assert (header.subsampling, header.usual) == (wanted, True)
    assert name(b"\x14\x11\x11") == ""
    assert not is_usual(b"\x14\x11\x11")
