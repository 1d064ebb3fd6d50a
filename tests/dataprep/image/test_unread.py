"""Images that are known and not read."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dataprep.image.unread import unread_kind
from dataprep.sample import encodings as enc
from tests.dataprep.image.test_pixels import IMAGE


def test_what_is_read_is_none_of_them() -> None:
    """No kind that is read is taken for one of these, AVIF included, which begins like HEIC."""
    for kind in ("JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP", "PPM", "JPEG2000", "AVIF"):
        assert unread_kind(enc.pillow(IMAGE, kind, "RGB")) == ""


@given(st.binary(max_size=40))
def test_any_bytes(data: bytes) -> None:
    """Whatever a file holds, the answer is a sentence or nothing."""
    assert unread_kind(data) == "" or "is not read: " in unread_kind(data)
