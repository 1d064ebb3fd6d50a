"""``disk``: bytes of the machine's block devices, from ``/proc/diskstats``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from iobench.errors import Unavailable
from iobench.samplers.rates import Rates

_SECTOR_BYTES = 512  # of the kernel's counters, whatever a device's own is
_MADE_OF_OTHERS = ("loop", "ram", "zram", "dm-", "md", "nbd", "sr", "fd")


class DiskSampler:
    """Bytes read and written a second, all devices together, partitions not counted again."""

    notes: Sequence[str] = (
        "disk: of the whole machine; a file system of the network moves no bytes of a disk",
    )

    def __init__(
        self, process: int, proc: Path = Path("/proc"), devices: Path = Path("/sys/block")
    ) -> None:
        self._path = proc / "diskstats"
        self._devices = _whole(devices)
        self._rates = Rates()
        if not self._devices or self._counters() is None:
            raise Unavailable("no bytes of disks: the kernel shows no block device here")

    def read(self, now_s: float) -> Mapping[str, float]:
        """Rates since the call before."""
        counters = self._counters()
        return {} if counters is None else self._rates.of(counters, now_s)

    def close(self) -> None:
        """Nothing is open."""

    def _counters(self) -> dict[str, float] | None:
        try:
            text = self._path.read_text(errors="replace")
        except OSError:
            return None
        lines = [words for line in text.splitlines() if len(words := line.split()) >= 10]
        ours = [words for words in lines if words[2] in self._devices]
        if not ours:
            return None
        return {
            "read_bytes_per_s": sum(int(words[5]) for words in ours) * _SECTOR_BYTES,
            "written_bytes_per_s": sum(int(words[9]) for words in ours) * _SECTOR_BYTES,
        }


def _whole(devices: Path) -> set[str]:
    """Devices that are none's part and made of no others: what is written there is written once."""
    try:
        return {
            path.name for path in devices.iterdir() if not path.name.startswith(_MADE_OF_OTHERS)
        }
    except OSError:
        return set()
