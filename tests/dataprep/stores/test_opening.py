"""Tests of dataprep.stores: which store an address means."""

from __future__ import annotations

from pathlib import Path

import pytest

from dataprep.errors import ConfigError
from dataprep.stores import open_store
from dataprep.stores.local import LocalStore


@pytest.mark.parametrize(
    ("uri", "meant"),
    [
        ("s3:/bucket/x", "s3://"),
        ("s3:bucket/x", "s3://"),
        ("file:/data", "file://"),
        ("memory:/x", "memory://"),
    ],
)
def test_a_slip_is_no_folder(uri: str, meant: str) -> None:
    """What is nearly an address is refused, and the error says how one begins."""
    with pytest.raises(ConfigError) as caught:
        open_store(uri)
    assert f"{uri!r}: write {meant}" in str(caught.value)


@pytest.mark.parametrize("path", ["a:b", "./s3:/bucket", "C:/photos", "x/s3:/y"])
def test_folders_with_colons(path: str) -> None:
    """Any other name with a colon is a folder."""
    store = open_store(path)
    assert isinstance(store, LocalStore)
    assert store.root == Path(path)
