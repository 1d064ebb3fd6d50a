"""PURE. Loops with prefetch: a step takes what the slowest stage takes for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from iobench.selftest.cases import WITHIN, Case, Plan

Side = Literal["workers", "copy and device"]


@dataclass(frozen=True, slots=True)
class Prefetched:
    """One loop whose workers prepare ahead.

    Attributes:
        case: what was slowed: by injected delays, or the device.
        workers: processes that prepare, each ``prefetch`` batches ahead.
        slowest: which stage a step should take as long as: the workers together, who fetch, decode
            and augment; or the training process, which copies and lets the device compute.
        expected_s, found_s: seconds a step.
    """

    case: str
    workers: int
    slowest: Side
    expected_s: float
    found_s: float

    @property
    def error(self) -> float:
        """Share of the step by which it took too long."""
        return self.found_s / self.expected_s - 1

    @property
    def ok(self) -> bool:
        """Within a tenth."""
        return abs(self.error) <= WITHIN

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        return {**asdict(self), "error": self.error, "ok": self.ok}


def expected(
    case: Case, plan: Plan, without_s: Mapping[str, float], device_s: float
) -> tuple[Side, float]:
    """The slowest stage and its seconds a step.

    Args:
        case: what was injected.
        plan: batch and workers.
        without_s: seconds a sample of the rungs without prefetch and without any delay: what real
            work there is at either side.
        device_s: that the device computes for a batch.
    """
    work_s = without_s["store"] - without_s["copy"] + case.delays.prepare_s
    copy_s = without_s["copy"] - without_s["synthetic"] + case.delays.copy_s
    sides: dict[Side, float] = {
        "workers": plan.batch_size * work_s / plan.workers,
        "copy and device": plan.batch_size * copy_s + device_s,
    }
    slowest = max(sides, key=lambda side: sides[side])
    return slowest, sides[slowest]
