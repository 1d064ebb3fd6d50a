"""Tests of dataprep.image.containers."""

from __future__ import annotations

import pytest

from dataprep.image.containers import contradicts


@pytest.mark.parametrize(
    ("name", "container", "wrong"),
    [
        ("n01/a.JPEG", "JPEG", False),
        ("n01/a.jpg", "MPO", False),
        ("n01/a.JPEG", "PNG", True),
        ("n01/a.png", "JPEG", True),
        ("a.dib", "BMP", False),
        ("a.pgm", "PPM", False),
        ("a.webp", "WEBP", False),
        ("a.tif", "WEBP", True),
        ("photos.png/a", "JPEG", False),
        (".png", "JPEG", False),
        ("a", "JPEG", False),
        ("a.dat", "JPEG", False),
        ("", "JPEG", False),
    ],
)
def test_names_promise_containers(name: str, container: str, wrong: bool) -> None:
    """Only an extension that stands for another container contradicts, in upper case too."""
    assert contradicts(name, container) == wrong
