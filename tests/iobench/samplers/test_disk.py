"""Bytes of block devices as the kernel counts them."""

from __future__ import annotations

from pathlib import Path

import pytest

from iobench.errors import Unavailable
from iobench.samplers.disk import DiskSampler


def write(proc: Path, **sectors: tuple[int, int]) -> None:
    """``/proc/diskstats`` with sectors read and written by device."""
    (proc / "diskstats").write_text(
        "".join(
            f" 8 0 {name} 10 0 {read} 5 10 0 {written} 5 0 0 0\n"
            for name, (read, written) in sectors.items()
        )
    )


@pytest.fixture
def devices(tmp_path: Path) -> Path:
    """``/sys/block`` of a machine with a disk and a volume that is made of it."""
    folder = tmp_path / "block"
    for name in ("nvme0n1", "vda", "dm-0", "loop3", "md127"):
        (folder / name).mkdir(parents=True)
    return folder


def test_devices_are_added_up_once(tmp_path: Path, devices: Path) -> None:
    """Sectors of 512 bytes; no partition, and no volume made of devices that are counted."""
    before = {"nvme0n1": (100, 10), "nvme0n1p1": (90, 10), "dm-0": (90, 10), "vda": (0, 0)}
    write(tmp_path, **before)
    sampler = DiskSampler(1, tmp_path, devices)
    assert sampler.read(0.0) == {}
    write(tmp_path, **{name: (2 * read + 50, 30) for name, (read, _) in before.items()})
    assert sampler.read(2.0) == {
        "read_bytes_per_s": (150 + 50) * 512 / 2,
        "written_bytes_per_s": (20 + 30) * 512 / 2,
    }


def test_it_says_what_it_cannot_see(tmp_path: Path, devices: Path) -> None:
    """A file system of the network shows nothing here."""
    write(tmp_path, vda=(0, 0))
    assert "network" in DiskSampler(1, tmp_path, devices).notes[0]


@pytest.mark.parametrize("shown", [True, False])
def test_no_devices_are_unavailable(tmp_path: Path, shown: bool) -> None:
    """A container may show none, or their counts and not their names."""
    if shown:
        write(tmp_path, vda=(0, 0))
    with pytest.raises(Unavailable, match="no block device"):
        DiskSampler(1, tmp_path, tmp_path / "absent")
