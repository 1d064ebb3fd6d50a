"""What one trial of the disk probe moved, whichever engine did it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from iobench.trial import Metrics


class Moved(NamedTuple):
    """Bytes, seconds from the first start to the last end, operations.

    ``latency_s``: quantiles of an operation by name (``p50``), those that enough operations stand
    behind. ``physical_ratio``: bytes that storage gave / bytes moved, None where the kernel does
    not count them. ``others``: further metrics.
    """

    bytes: int
    seconds: float
    operations: int
    latency_s: Mapping[str, float]
    physical_ratio: float | None
    others: Mapping[str, Any]

    def metrics(self) -> Metrics:
        """A disk trial's metrics."""
        seconds = max(self.seconds, 1e-9)
        return {
            "mb_per_s": self.bytes / 1e6 / seconds,
            "iops": self.operations / seconds,
            "bytes": self.bytes,
            "seconds": self.seconds,
            "operations": self.operations,
            **{f"latency_s_{name}": value for name, value in self.latency_s.items()},
            **self.others,
        }
