"""Implementations by name."""

from __future__ import annotations

import pytest

from dataprep.errors import ConfigError
from dataprep.formats import RecordFormat
from dataprep.formats.imagenet import TFRecordFormat
from dataprep.registry import Registry

FORMATS: Registry[RecordFormat] = Registry("dataprep.formats", "format")


def test_what_is_registered() -> None:
    """Names are sorted, each has its class."""
    assert list(FORMATS.names()) == ["recordio", "tfrecord"]
    assert FORMATS.check("tfrecord") == "tfrecord"
    assert FORMATS.load("tfrecord") is TFRecordFormat


def test_what_is_not() -> None:
    """The error names what there is."""
    for call in (FORMATS.check, FORMATS.load):
        with pytest.raises(ConfigError, match="no format 'lmdb': use one of recordio, tfrecord"):
            call("lmdb")
