"""Tests of dataprep.image.jpeg_repair: flaws that cost no pixel, alone and before others."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dataprep.errors import CorruptImage
from dataprep.image import ImagePolicy, check, convert
from dataprep.image.jpeg_decode import decode
from dataprep.image.jpeg_repair import without
from dataprep.sample.drawing import draw_image
from tests import encodings as enc

IMAGE = draw_image(8, 120, 96, detail=0.3)
PLAIN = enc.jpeg(IMAGE, "444", 92)
PROGRESSIVE = enc.pillow(IMAGE, "JPEG", quality=92, progressive=True)
RESTARTING = enc.pillow(IMAGE, "JPEG", quality=92, restart_marker_blocks=2)
STRAY = b"\x00\x01\x02" + b"stray" * 4


def before(marker: bytes, data: bytes, which: int = 0) -> bytes:
    """Stray bytes before a marker: the first of the kind, or the last for -1."""
    at = [i for i in range(len(data)) if data.startswith(marker, i)][which]
    return data[:at] + STRAY + data[at:]


def odd_scan(data: bytes) -> bytes:
    """A sequential scan that says it ends with coefficient 0."""
    start = data.index(b"\xff\xda") + 2
    last = start + int.from_bytes(data[start : start + 2], "big") - 2
    return data[:last] + b"\0" + data[last + 1 :]


def unknown_transform(data: bytes) -> bytes:
    """Adobe's segment with a colour transform that there is not, in place of JFIF's."""
    adobe = b"\xff\xee\0\x0eAdobe\0\x64\0\0\0\0\x07"
    return data[:2] + adobe + data[4 + int.from_bytes(data[4:6], "big") :]


SOUND: Mapping[str, bytes] = {"p": PROGRESSIVE, "r": RESTARTING, "b": PLAIN}
FLAWED: Mapping[str, tuple[str, Callable[[bytes], bytes]]] = {
    "before tables": ("b", lambda data: before(b"\xff\xdb", data)),
    "before a scan": ("b", lambda data: before(b"\xff\xda", data)),
    "before the end": ("b", lambda data: before(b"\xff\xd9", data, -1)),
    "scan parameters": ("b", odd_scan),
    "transform": ("b", unknown_transform),
    "between scans": ("p", lambda data: before(b"\xff\xda", data, 2)),
    "before a late scan": ("p", lambda data: before(b"\xff\xda", data, -1)),
    "between scans twice": (
        "p",
        lambda data: before(b"\xff\xda", before(b"\xff\xc4", data, -1), 3),
    ),
    "restart": ("r", lambda data: before(b"\xff\xd3", data)),
    "late restart": ("r", lambda data: before(b"\xff\xd2", data, -1)),
    "three": ("b", lambda data: odd_scan(before(b"\xff\xc0", unknown_transform(data)))),
}


def flawed(name: str) -> tuple[bytes, bytes]:
    """A sound JPEG, and the same with a flaw."""
    kind, spoil = FLAWED[name]
    return SOUND[kind], spoil(SOUND[kind])


@pytest.mark.parametrize("name", FLAWED)
def test_flaws_that_cost_nothing(name: str) -> None:
    """Every pixel decodes; the file is stored as it is, and told to be recovered."""
    sound, data = flawed(name)
    found = decode(data, "RGB")
    assert found.notes == ("recovered",)
    assert np.array_equal(found.pixels, decode(sound, "RGB").pixels)
    stored = convert(data)
    assert (stored.data, stored.notes) == (data, ("recovered",))
    assert check(data) == (120, 96, 3)
    small = ImagePolicy(size=40)
    assert convert(data, small).data == convert(sound, small).data


@given(name=st.sampled_from(sorted(FLAWED)), share=st.floats(0, 0.999), keep=st.booleans())
def test_what_is_cut_behind_a_flaw_is_truncated(name: str, share: float, keep: bool) -> None:
    """A flaw that costs nothing hides none that does."""
    _, data = flawed(name)
    cut = data[: int(len(data) * share)]
    assume(len(cut) > 2)
    policy = ImagePolicy(truncated="keep" if keep else "fail")
    try:
        found = convert(cut, policy)
    except CorruptImage:
        return
    assert keep
    assert found.action == "reencoded"
    assert "truncated_kept" in found.notes


@pytest.mark.parametrize("name", FLAWED)
@pytest.mark.parametrize("size", [None, 40])
def test_pixels_that_are_lost_behind_a_flaw(name: str, size: int | None) -> None:
    """Also where an end marker follows, and whether it is resized or not."""
    _, data = flawed(name)
    scan = data.index(b"\xff\xda")
    lost = data[: scan + (len(data) - scan) * 6 // 10]
    with pytest.raises(CorruptImage, match="truncated JPEG"):
        convert(lost, ImagePolicy(size=size))
    kept = convert(lost, ImagePolicy(size=size, truncated="keep"))
    assert kept.action == "reencoded"
    assert "truncated_kept" in kept.notes
    if name not in ("between scans", "before a late scan", "between scans twice"):
        with pytest.raises(CorruptImage, match="corrupt JPEG"):
            convert(lost + b"\xff\xd9", ImagePolicy(size=size))


def test_four_colours() -> None:
    """The transform of four unknown ones is YCCK, as libjpeg has it."""
    data = enc.ycck_jpeg(IMAGE)
    at = data.index(b"Adobe") + 11
    unknown = data[:at] + b"\x07" + data[at + 1 :]
    assert np.array_equal(decode(unknown, "CMYK").pixels, decode(data, "CMYK").pixels)
    assert convert(unknown).data == convert(data).data


def test_too_many_flaws() -> None:
    """What needs no end of mending is corrupt."""
    data = RESTARTING
    for number in range(8):
        data = before(bytes([0xFF, 0xD0 + number]), data)
    assert decode(data, "RGB").notes == ("recovered",)
    with pytest.raises(CorruptImage, match="extraneous bytes"):
        decode(before(b"\xff\xd0", data, 1), "RGB")


@pytest.mark.parametrize(
    "warning",
    [
        "Corrupt JPEG data: premature end of data segment",
        "Corrupt JPEG data: 9 extraneous bytes before marker 0xd9",
        "Corrupt JPEG data: bad ICC marker",
        "Unknown Adobe color transform code 7",
        "Invalid SOS parameters for sequential JPEG",
    ],
)
def test_nothing_to_take_out(warning: str) -> None:
    """A warning that is not harmless, or not of these bytes, leaves nothing to try."""
    assert without(PLAIN, warning, lambda _: "") is None
