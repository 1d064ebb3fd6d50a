"""``network``: bytes of the network interfaces, from ``/proc/net/dev``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from iobench.errors import Unavailable
from iobench.samplers.rates import Rates

_LOOPBACK = "lo"


class NetworkSampler:
    """Bytes received and sent a second; the loopback's apart, where a server on this machine is."""

    notes: Sequence[str] = ()

    def __init__(
        self, process: int, proc: Path = Path("/proc"), interfaces: Path = Path("/sys/class/net")
    ) -> None:
        self._path = proc / "net" / "dev"
        self._rates = Rates()
        found = self._lines()
        self._cards = {name for name in found if (interfaces / name / "device").exists()}
        if not found:
            raise Unavailable("no bytes of the network: /proc/net/dev cannot be read")

    def read(self, now_s: float) -> Mapping[str, float]:
        """Rates since the call before."""
        lines = self._lines()
        # A bridge counts again what went through a card; in a container there may be no card.
        names = lines.keys() & self._cards or lines.keys() - {_LOOPBACK}
        counted = [lines[name] for name in names]
        counters: dict[str, float] = {}
        if counted:
            counters["received_bytes_per_s"] = sum(int(words[0]) for words in counted)
            counters["sent_bytes_per_s"] = sum(int(words[8]) for words in counted)
        if _LOOPBACK in lines:
            counters["loopback_bytes_per_s"] = int(lines[_LOOPBACK][0])
        return self._rates.of(counters, now_s)

    def close(self) -> None:
        """Nothing is open."""

    def _lines(self) -> dict[str, list[str]]:
        try:
            text = self._path.read_text(errors="replace")
        except OSError:
            return {}
        parts = (line.rpartition(":") for line in text.splitlines())
        found = {name.strip(): after.split() for name, colon, after in parts if colon}
        return {name: words for name, words in found.items() if len(words) >= 9}
