"""What the machine's network cards can carry: what no object store and no file server exceeds.

Names of interfaces, addresses and hosts are not read.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

from iobench.kernel_files import text

SYSFS = Path("/sys")


def networks(root: Path = SYSFS) -> list[dict[str, Any]]:
    """``driver``, ``mbit_per_s`` (10^6 bits) and ``count`` of cards that are up.

    The speed is left out where the driver does not tell one, as those of virtual machines. What
    has no device (bridges, tunnels, loopback) is no card.
    """
    try:
        folders = sorted((root / "class/net").iterdir())
    except OSError:
        return []
    counted = Counter(
        (_driver(folder), text(folder / "speed"))
        for folder in folders
        if (folder / "device").exists() and text(folder / "operstate") != "down"
    )
    return [_card(driver, speed, count) for (driver, speed), count in counted.items()]


def _card(driver: str, speed: str, count: int) -> dict[str, Any]:
    # -1 where the driver does not know.
    told = {"mbit_per_s": int(speed)} if speed.isdecimal() and int(speed) else {}
    return {**({"driver": driver} if driver else {}), **told, "count": count}


def _driver(folder: Path) -> str:
    try:
        name = (folder / "device" / "driver").resolve(strict=True).name
    except (OSError, RuntimeError):
        return ""
    return name if re.fullmatch(r"[A-Za-z0-9_-]{1,32}", name) else ""
