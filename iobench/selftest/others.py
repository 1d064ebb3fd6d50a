"""How busy the processors were with anything else meanwhile."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Self

import psutil

_IDLE = ("idle", "iowait")
# Linux counts these in user and nice as well.
_COUNTED_TWICE = ("guest", "guest_nice")


class Others:
    """While the ``with`` block lasts; ``share`` is there once it has ended.

    Attributes:
        share: of all processors' time, what was neither idle nor this process's, or that of
            children it has waited for.
    """

    share = 0.0

    def __enter__(self) -> Self:
        self._before = _taken()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        total, busy, own = (
            after - before for after, before in zip(_taken(), self._before, strict=True)
        )
        self.share = max(0.0, min(1.0, (busy - own) / total)) if total > 0 else 0.0


def _taken() -> tuple[float, float, float]:
    """Seconds so far: of all processors, of these not idle, of these ours."""
    times = psutil.cpu_times()._asdict()
    counted = {name: spent for name, spent in times.items() if name not in _COUNTED_TWICE}
    total = sum(counted.values())
    own = os.times()
    return (
        total,
        total - sum(counted.get(name, 0.0) for name in _IDLE),
        own.user + own.system + own.children_user + own.children_system,
    )
