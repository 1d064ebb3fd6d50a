"""Versions of what takes part."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest

from iobench.environment.packages import LIBRARIES, libraries
from tests.iobench.small_runs import ThirdParty


def test_each_is_named_as_it_is_installed() -> None:
    """One that is not there has no version."""
    found = libraries()
    assert found["numpy"] == version("numpy")
    assert "mxnet" in LIBRARIES
    assert all(found.values())
    assert "dataprep-iobench" not in found


@pytest.mark.usefixtures("third_party")
def test_packages_that_bring_loaders_are_named() -> None:
    """They take part as much as any."""
    assert libraries()["odd-loaders"] == "1.0"


def test_without_them_there_is_none(
    third_party: ThirdParty, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only who brings an entry point of ours is looked for."""
    monkeypatch.setattr("iobench.environment.packages._GROUPS", ())
    assert "odd-loaders" not in libraries()
    assert third_party.folder.exists()


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("echo fio-3.33", "3.33"),
        ("echo 'welcome, jane'", None),
        ("exit 3", None),
        (None, None),
    ],
)
def test_fio_is_asked_for_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, told: str | None
) -> None:
    """It is a program, and no package knows it."""
    if script is not None:
        (tmp_path / "fio").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "fio").chmod(0o755)
    where = str(tmp_path / "fio") if script else None
    monkeypatch.setattr("iobench.programs.found", lambda name: where)
    assert libraries().get("fio") == told
