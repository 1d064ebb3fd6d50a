"""Tests of iobench.sidebyside.packing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import dataprep
from iobench.sidebyside import packing
from iobench.sidebyside.workplace import Workplace, photographs

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, few: Path) -> Workplace:
    """Where nine images of the target size are made of six."""
    return Workplace(tmp_path_factory.mktemp("packing"), few, 3)


def test_sources_are_of_the_target_size(place: Workplace) -> None:
    """As many as were asked for, and sharding stores every one of them as it is."""
    files = packing.packed(place, 9)
    found = photographs(files)
    assert len(found) == 9
    policy = dataprep.ImagePolicy(size=packing.SIZE)
    assert {dataprep.convert(path.read_bytes(), policy).action for path in found} == {"passthrough"}


@pytest.mark.parametrize("check", ["header", "decode"])
def test_packing_takes_every_file(check: str, place: Workplace) -> None:
    """Their MB, and nothing is left over."""
    files = packing.packed(place, 9)
    measured = packing.shard(str(files), str(place.root), check)
    assert measured.amount == pytest.approx(_mb(files))
    assert measured.others[packing.STEADY] > 0
    assert not list(place.root.glob("shards-*"))


def test_the_copy_takes_every_file(place: Workplace) -> None:
    """Their MB; what it wrote is there by name, and emptied."""
    files = packing.packed(place, 9)
    measured = packing.copy(str(files), str(place.root))
    assert measured.amount == pytest.approx(_mb(files))
    copies = [path for folder in place.root.glob("copy-*") for path in photographs(folder)]
    assert len(copies) == 9
    assert not any(path.stat().st_size for path in copies)


def test_the_steady_rate_is_that_of_shards_after_the_first(tmp_path: Path) -> None:
    """By the times of their receipts; too few tell nothing."""
    for folder in ("receipts", "tfrecord"):
        (tmp_path / folder).mkdir()
    assert packing._steady(tmp_path) is None
    for number in range(6):
        name = f"train-{number:05}-of-00006"
        (tmp_path / "tfrecord" / name).write_bytes(bytes(500_000))
        receipt = tmp_path / "receipts" / f"{name}.json"
        receipt.write_bytes(b"")
        os.utime(receipt, (1000 + number, 1000 + number))
    assert packing._steady(tmp_path) == pytest.approx(0.5)


def _mb(files: Path) -> float:
    return sum(path.stat().st_size for path in photographs(files)) / 1e6
