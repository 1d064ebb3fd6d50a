"""PURE. Points that were measured and differ in one setting alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dataprep.counted import counted
from iobench.advice.entry import WORTH
from iobench.advice.situation import Repeats, Situation, paired
from iobench.stats import Estimate
from iobench.whatif import Setting
from iobench.whatif.capacities import rate_of

_NEAR = ("source", "form", "workers", "batch_size", "prefetch", "pin_memory", "devices")


@dataclass(frozen=True, slots=True)
class Variation:
    """``points`` by the value of ``key``, two or more; ``base`` is one of them.

    ``in_loop``: they are of the training loop itself, not of its loader alone.
    """

    key: str
    base: Setting
    points: Mapping[Any, Repeats]
    in_loop: bool

    def rate(self, value: Any) -> Estimate:
        """Samples/s at one value."""
        found = rate_of(self.points[value])
        assert found is not None  # noqa: S101  points without a rate are none
        return found

    @property
    def best(self) -> Any:
        """The value with the highest median."""
        return max(self.points, key=lambda value: self.rate(value).median)

    def times(self, value: Any, other: Any) -> Estimate | None:
        """The ratio of the rates at two values, within rounds."""
        return paired(self.points[value], self.points[other])

    def enough(self, order: Callable[[Any], Any] = lambda value: value) -> Any:
        """The first value, in ``order``, whose rate is within 2 % of the best."""
        return next(value for value in sorted(self.points, key=order) if self.reaches(value))

    def reaches(self, value: Any) -> bool:
        """Whether that value was measured, and is within 2 % of the best."""
        least = self.rate(self.best).median / WORTH
        return value in self.points and self.rate(value).median >= least

    @property
    def said(self) -> str:
        """``1: 310, 2: 604 samples/s``, and of what."""
        rates = ", ".join(
            f"{_value(value)}: {self.rate(value).median:,.0f}" for value in sorted(self.points)
        )
        return f"samples/s by {self.key.replace('_', ' ')} {rates} ({self.of})"

    @property
    def of(self) -> str:
        """Which points these are."""
        base = self.base
        data = f" over {base.form}" if base.form else ""
        others = [
            counted(base.workers, "worker") if key == "workers" else f"batch {base.batch_size}"
            for key in ("workers", "batch_size")
            if key != self.key
        ]
        told = ", ".join([base.source, *others])
        return f"{'the loop' if self.in_loop else 'the loader alone'}, {base.loader}{data}, {told}"


def varied(found: Situation, key: str) -> Variation | None:
    """Points nearest to now that differ in ``key`` alone: of the loop, else of its loader alone.

    Alone, no workers say nothing: nobody sees there that the device waits meanwhile.
    """
    for there, in_loop in ((found.loops, True), (found.alone, False)):
        groups: dict[Setting, dict[Any, Repeats]] = {}
        bases: dict[Setting, Setting] = {}
        for setting, repeats in there.items():
            value = getattr(setting, key)
            moot = key == "workers" and value == 0 and not in_loop
            if moot or not _is_alike(setting, found.now):
                continue
            same = setting.changed(**{key: getattr(found.now, key)})
            groups.setdefault(same, {})[value] = repeats
            bases[same] = setting
        several = [same for same, points in groups.items() if len(points) > 1]
        if several:
            near = min(several, key=lambda setting: _distance(setting, found.now, key))
            return Variation(key, near, groups[near], in_loop)
    return None


def _is_alike(setting: Setting, now: Setting) -> bool:
    return (setting.loader, setting.kind, setting.work) == (now.loader, now.kind, now.work)


def _distance(setting: Setting, now: Setting, but: str) -> tuple[float, ...]:
    """In how many ways, and how far, a setting is from now."""
    keys = [key for key in _NEAR if key != but]
    differ = [float(getattr(setting, key) != getattr(now, key)) for key in keys]
    return (sum(differ), *differ)


def _value(value: Any) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
