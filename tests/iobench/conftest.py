"""Fixtures for all tests of iobench: a package of a third party, and small data and configs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.iobench import odd_ranks
from tests.iobench.odd_loaders import ENTRY_POINTS
from tests.iobench.small_runs import Configs, ThirdParty


@pytest.fixture(scope="session")
def odd_package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for ``PYTHONPATH`` in which ``odd-loaders`` is installed."""
    folder = tmp_path_factory.mktemp("third-party")
    package = folder / "odd_loaders-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: odd-loaders\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(
        ENTRY_POINTS.replace("[iobench.loaders]\n", f"[iobench.loaders]\n{odd_ranks.ENTRY_POINTS}")
    )
    return folder


@pytest.fixture(scope="module")
def third_party(
    odd_package: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ThirdParty]:
    """Yield the package of a third party, whose loaders all started processes find by name."""
    third_party_package = ThirdParty(tmp_path_factory.mktemp("marks"))
    root = Path(__file__).parents[2]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "path", [*sys.path, str(odd_package)])
        patched.setenv("PYTHONPATH", f"{odd_package}{os.pathsep}{root}")
        patched.setenv("ODD_FOLDER", str(third_party_package.folder))
        yield third_party_package


@pytest.fixture(scope="session")
def small_data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the ``data`` part of a config: 40 small images, which the first run makes."""
    folder = tmp_path_factory.mktemp("data")
    return {"images": 40, "classes": 2, "size": 64, "shard_size": "1MB", "folder": str(folder)}


@pytest.fixture
def configs(tmp_path: Path, small_data: dict[str, Any]) -> Configs:
    """Return a writer of small configs into the folder of the test."""
    return Configs(tmp_path, small_data)
