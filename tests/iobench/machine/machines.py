"""Trees of sysfs as on real machines, in which every private name is ``PLANTED``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

PLANTED = "jane-of-acme"
"""The value of every serial number and the name of every volume; no description may have it."""


class Sysfs:
    """Block devices below ``root``, the ``/sys`` of ``machine``, in the kernel's layout."""

    def __init__(self, machine: Path) -> None:
        self.machine, self.root = machine, machine / "sys"

    def write(self, path: str, text: str) -> Path:
        """Write a file of sysfs, whose path is returned."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")
        return file

    def block(self, path: str, number: str, files: Mapping[str, str] | None = None) -> Path:
        """Add a block device with a queue at ``devices/PATH``, whose folder is returned."""
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
        """Add a partition below the folder of its disk."""
        folder = self.write(f"{disk.relative_to(self.root)}/{name}/partition", "1").parent
        self._named(folder, number)
        return folder

    def over(self, folder: Path, *below: Path) -> Path:
        """Make a device a layer over other devices."""
        for device in below:
            link(folder / "slaves" / device.name, device)
        return folder

    def nvme(self, number: int, model: str, transport: str = "pcie", link_width: str = "4") -> Path:
        """Add ``nvmeNn1``: its controller is on PCI Express, and the namespace is below it."""
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
        """Add ``sdX`` of a host adapter at ``devices/WAY/target/LUN/block/NAME``."""
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
        """Add ``vda``, whose vendor is an id of PCI, and which Linux calls rotational."""
        way = "pci0000:00/0000:00:02.0/virtio1"
        self.write(f"devices/{way}/vendor", "0x1af4")
        folder = self.block(f"{way}/block/{name}", number, {"queue/rotational": "1"})
        link(folder / "device", self.root / "devices" / way)
        return folder

    def md(self, level: str, *below: Path) -> Path:
        """Add ``md127``, a RAID whose state has the name of a host."""
        folder = self.block(
            "virtual/block/md127", "9:127", {"md/level": level, "md/array_state": PLANTED}
        )
        return self.over(folder, *below)

    def mapped(self, name: str, number: str, prefix: str, *below: Path) -> Path:
        """Add ``dm-N``, a volume with a name that a person has chosen."""
        files = {"dm/name": f"vg_{PLANTED}-home", "dm/uuid": f"{prefix}-{PLANTED}"}
        return self.over(self.block(f"virtual/block/{name}", number, files), *below)

    def _named(self, folder: Path, number: str) -> None:
        link(self.root / "dev" / "block" / number, folder)
        link(self.root / "class" / "block" / folder.name, folder)


def link(name: Path, to: Path) -> None:
    """Make a relative link, as in sysfs."""
    name.parent.mkdir(parents=True, exist_ok=True)
    name.symlink_to(os.path.relpath(to, name.parent))
