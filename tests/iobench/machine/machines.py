"""Trees of sysfs as they lie on real machines, with names planted where machines have names."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

PLANTED = "jane-of-acme"
"""Stands in every serial number, name of a volume and path, and may appear nowhere else."""


class Sysfs:
    """Block devices in ``root``, the ``sys`` of ``machine``, laid out as the kernel does."""

    def __init__(self, machine: Path) -> None:
        self.machine, self.root = machine, machine / "sys"

    def write(self, path: str, text: str) -> Path:
        """A file of sysfs."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")
        return file

    def block(self, path: str, number: str, files: Mapping[str, str] | None = None) -> Path:
        """A block device at ``devices/PATH``, with a queue as a disk has it."""
        folder = self.root / "devices" / path
        settings = {
            "size": "41943040",
            "dev": number,
            "serial": PLANTED,
            "queue/rotational": "0",
            "queue/read_ahead_kb": "128",
            "queue/scheduler": "[none] mq-deadline kyber",
            "queue/nr_requests": "1023",
            "queue/max_sectors_kb": "128",
            "queue/write_cache": "write back",
            **(files or {}),
        }
        for name, text in settings.items():
            self.write(f"devices/{path}/{name}", text)
        self._named(folder, number)
        return folder

    def partition(self, disk: Path, name: str, number: str) -> Path:
        """A partition, which lies below its disk's folder."""
        folder = self.write(f"{disk.relative_to(self.root)}/{name}/partition", "1").parent
        self._named(folder, number)
        return folder

    def over(self, folder: Path, *below: Path) -> Path:
        """Make a device one of others."""
        for device in below:
            link(folder / "slaves" / device.name, device)
        return folder

    def nvme(self, number: int, model: str, transport: str = "pcie", link_width: str = "4") -> Path:
        """``nvmeNn1``: the controller on PCI Express, the namespace below it."""
        port = f"pci0000:00/0000:00:{number + 4:02x}.0"
        self.write(f"devices/{port}/current_link_speed", "8.0 GT/s PCIe")
        self.write(f"devices/{port}/current_link_width", link_width)
        controller = f"{port}/nvme/nvme{number}"
        self.write(f"devices/{controller}/model", model.ljust(40))
        self.write(f"devices/{controller}/transport", transport)
        folder = self.block(f"{controller}/nvme{number}n1", f"259:{number * 4}")
        link(folder / "device", folder.parent)
        link(folder.parent / "device", self.root / "devices" / port)
        return folder

    def scsi(
        self, way: str, name: str, number: str, vendor: str, model: str, *, rotational: bool = False
    ) -> Path:
        """``sdX`` by a host adapter: ``devices/WAY/target/LUN/block/NAME``."""
        unit = f"{way}/target0:0:0/0:0:0:0"
        self.write(f"devices/{unit}/vendor", vendor.ljust(8))
        self.write(f"devices/{unit}/model", model.ljust(16))
        self.write(f"devices/{unit}/wwid", f"t10.{PLANTED}")
        folder = self.block(
            f"{unit}/block/{name}", number, {"queue/rotational": str(int(rotational))}
        )
        link(folder / "device", self.root / "devices" / unit)
        return folder

    def virtio(self, name: str = "vda", number: str = "254:0") -> Path:
        """``vda``: the vendor is PCI's, and Linux calls it rotational."""
        way = "pci0000:00/0000:00:02.0/virtio1"
        self.write(f"devices/{way}/vendor", "0x1af4")
        folder = self.block(f"{way}/block/{name}", number, {"queue/rotational": "1"})
        link(folder / "device", self.root / "devices" / way)
        return folder

    def md(self, level: str, *below: Path) -> Path:
        """``md127``, assembled on a host that gave it its name."""
        folder = self.block(
            "virtual/block/md127", "9:127", {"md/level": level, "md/array_state": PLANTED}
        )
        return self.over(folder, *below)

    def mapped(self, name: str, number: str, prefix: str, *below: Path) -> Path:
        """``dm-N``: volumes have names that people gave them."""
        files = {"dm/name": f"vg_{PLANTED}-home", "dm/uuid": f"{prefix}-{PLANTED}"}
        return self.over(self.block(f"virtual/block/{name}", number, files), *below)

    def _named(self, folder: Path, number: str) -> None:
        link(self.root / "dev" / "block" / number, folder)
        link(self.root / "class" / "block" / folder.name, folder)


def link(name: Path, to: Path) -> None:
    """A relative link, as sysfs has them."""
    name.parent.mkdir(parents=True, exist_ok=True)
    name.symlink_to(os.path.relpath(to, name.parent))
