"""Network cards and what they can carry."""

from __future__ import annotations

import json
from pathlib import Path

from iobench.environment.networks import networks
from tests.iobench.targets.machines import PLANTED, link


def card(root: Path, name: str, driver: str | None, **files: str) -> None:
    """A card as it lies in sysfs; without a driver it is no device of the machine's."""
    folder = root / "class" / "net" / name
    folder.mkdir(parents=True)
    for file, text in {"address": PLANTED, "ifalias": PLANTED, **files}.items():
        (folder / file).write_text(f"{text}\n")
    if driver is not None:
        device = root / "devices" / name
        device.mkdir(parents=True)
        (root / "bus" / "drivers" / driver).mkdir(parents=True, exist_ok=True)
        link(device / "driver", root / "bus" / "drivers" / driver)
        link(folder / "device", device)


def test_cards_that_are_up_are_counted_by_what_they_carry(tmp_path: Path) -> None:
    """Two of a kind once; what is no card, or has no cable, not at all."""
    for i in (0, 1):
        card(tmp_path, f"ens{i}", "mlx5_core", speed="100000", operstate="up")
    card(tmp_path, "eth0", "ena", operstate="up")
    card(tmp_path, "eth1", "virtio_net", speed="-1", operstate="unknown")
    card(tmp_path, "eth2", "ixgbe", speed="10000", operstate="down")
    card(tmp_path, f"docker-{PLANTED}", None, speed="10000", operstate="up")
    found = networks(tmp_path)
    told = {one["driver"]: (one.get("mbit_per_s"), one["count"]) for one in found}
    assert told == {"mlx5_core": (100000, 2), "ena": (None, 1), "virtio_net": (None, 1)}
    assert PLANTED not in json.dumps(found)


def test_no_sysfs_no_cards(tmp_path: Path) -> None:
    """And this machine's can be read."""
    assert networks(tmp_path) == []
    assert all(one["count"] > 0 for one in networks())
