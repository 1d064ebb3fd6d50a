"""Implementations are found by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from dataprep.errors import ConfigError
from dataprep.formats import RecordFormat
from dataprep.formats.tfrecord import TFRecordFormat
from dataprep.registry import Registry
from tests.installed import Package, pyproject

FORMATS: Registry[RecordFormat] = Registry("dataprep.formats", "format")


def test_what_is_registered() -> None:
    """Names are sorted, and each has its class."""
    assert list(FORMATS.names()) == ["recordio", "tfrecord", "webdataset"]
    assert FORMATS.check("tfrecord") == "tfrecord"
    assert FORMATS.load("tfrecord") is TFRecordFormat


def test_what_is_not() -> None:
    """The error lists the registered names."""
    for call in (FORMATS.check, FORMATS.load):
        with pytest.raises(ConfigError, match="no format 'lmdb': use one of recordio, tfrecord"):
            call("lmdb")


def test_what_is_installed_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that is installed after the first look is found."""
    assert not FORMATS.has("lmdb")
    metadata = tmp_path / "later-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: later\nVersion: 1.0\n")
    entry = "dataprep.formats.tfrecord:TFRecordFormat"
    (metadata / "entry_points.txt").write_text(f"[dataprep.formats]\nlmdb = {entry}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert FORMATS.has("lmdb")
    assert FORMATS.load("lmdb") is TFRecordFormat
    monkeypatch.undo()
    assert "lmdb" not in FORMATS.names()


def test_this_packages_own_names_are_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another package cannot replace one of these names."""
    files = {
        "pyproject.toml": pyproject("usurper", {"dataprep.formats": {"tfrecord": "no.such:Thing"}})
    }
    Package(tmp_path, files)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert FORMATS.load("tfrecord") is TFRecordFormat
    assert FORMATS.origin("tfrecord") == ""
    assert FORMATS.described("tfrecord") == "format 'tfrecord'"
    assert list(FORMATS.shadowed_packages("tfrecord")) == ["usurper 1.0"]
    assert list(FORMATS.shadowed_packages("recordio")) == []


def test_what_cannot_be_imported_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error has the package, the entry point and the reason.

    A name of two packages is refused.
    """
    groups = {"dataprep.formats": {"lmdb": "no_such_module:Thing"}}
    Package(tmp_path / "a", {"pyproject.toml": pyproject("package-a", groups)})
    monkeypatch.syspath_prepend(str(tmp_path / "a"))
    assert FORMATS.origin("lmdb") == "package-a 1.0"
    why = r"format 'lmdb' of package-a 1\.0 \(no_such_module:Thing\) cannot be loaded: ModuleNot"
    with pytest.raises(ConfigError, match=why):
        FORMATS.load("lmdb")
    Package(tmp_path / "b", {"pyproject.toml": pyproject("package-b", groups)})
    monkeypatch.syspath_prepend(str(tmp_path / "b"))
    with pytest.raises(ConfigError, match=r"two packages have a format 'lmdb': package-.*remove"):
        FORMATS.check("lmdb")
