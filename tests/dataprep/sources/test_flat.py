"""Tests of dataprep.sources.flat."""

from __future__ import annotations

import secrets

import pytest

from dataprep.errors import SourceNotFound
from dataprep.sources import Located, open_source
from dataprep.sources.protocol import Problem
from dataprep.stores.memory import MemoryStore


def test_images_in_no_class() -> None:
    """Every image at any depth is a sample without a class; the rest is skipped by name."""
    store = MemoryStore(f"memory://{secrets.token_hex(4)}")
    for key in ("b.JPEG", "a/c.png", "a/notes.txt", ".hidden.jpg"):
        store.put(key, b"data")
    source = open_source(store.uri, "flat")
    listing = source.list()
    assert list(listing.names) == [".hidden.jpg", "a/c.png", "a/notes.txt", "b.JPEG"]
    assert set(listing.classes) == {""}
    assert listing.problems == {
        0: Problem("skipped", "hidden or system file"),
        2: Problem("skipped", "not named as an image"),
    }
    assert source.read(Located("a/c.png", 4)) == b"data"


def test_nothing_there() -> None:
    """An empty place is refused."""
    with pytest.raises(SourceNotFound):
        open_source(f"memory://{secrets.token_hex(4)}", "flat").list()
