"""What the link to a disk can carry at most: PCI Express lanes, or a SATA port.

Rates of PCI Express are those of its base specification after line coding: 8b/10b up to
5 GT/s, 128b/130b from 8 GT/s on. SATA's 8b/10b leaves 600 MB/s of 6 Gb/s.
"""

from __future__ import annotations

import re
from pathlib import Path

from iobench.kernel_files import text


def link_mb_per_s(folder: Path) -> float | None:
    """MB/s (10^6 bytes) to the disk at ``folder`` of sysfs; None where the kernel says nothing.

    Headers take 2 to 20 % more of PCI Express: a disk's own limit lies lower.
    """
    if folder.name.startswith("nvme"):
        return _pci_express(folder / "device" / "device")
    for port in folder.parents:
        if re.fullmatch(r"ata\d+", port.name):
            speeds = [text(path) for path in port.glob("link*/ata_link/link*/sata_spd")]
            found = [
                float(match[1]) for said in speeds if (match := re.match(r"([\d.]+) Gbps", said))
            ]
            return max(found) * 100 if found else None
    return None


def _pci_express(device: Path) -> float | None:
    transfers = re.match(r"([\d.]+) GT/s", text(device / "current_link_speed"))
    lanes = text(device / "current_link_width")
    if not transfers or not lanes.isdecimal() or not 1 <= int(lanes) <= 16:
        return None
    rate = float(transfers[1])
    coding = 8 / 10 if rate < 8 else 128 / 130
    return round(rate * 1000 / 8 * coding * int(lanes), 1)
