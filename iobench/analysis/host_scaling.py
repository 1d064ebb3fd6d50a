"""PURE. The rate that storage gives to several hosts together, by the number of hosts.

Between two measured numbers of hosts, the rate is interpolated by a straight line. For more hosts
than were measured, it is extrapolated:

- from one number of hosts, in proportion;
- from two numbers, by Amdahl's law;
- from three or more, by the universal scalability law (``iobench.analysis.worker_scaling``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from iobench.analysis.hosts import HostPoint
from iobench.analysis.repeats import is_on_store
from iobench.analysis.worker_scaling import AMDAHL, FEWEST_COUNTS, fitted

_MAX_HOSTS = 100_000
"""No larger number of hosts is tried."""


@dataclass(frozen=True, slots=True)
class HostCurve:
    """The sum over hosts by the number of hosts.

    Attributes:
        part: ``store`` or ``disk``.
        samples_per_s: the sum for each measured number of hosts.
        basis: the measured setting in words.
    """

    part: str
    samples_per_s: Mapping[int, float]
    basis: str

    @property
    def largest(self) -> int:
        """The largest measured number of hosts; beyond it the curve is extrapolated."""
        return max(self.samples_per_s)

    def hosts_for(self, samples_per_s: float) -> int | None:
        """Return the minimum number of hosts that get a rate together; None if no number does."""
        points = [(0, 0.0), *sorted(self.samples_per_s.items())]
        for (fewer, lower_rate), (more, upper_rate) in pairwise(points):
            rate_of_a_host = (upper_rate - lower_rate) / (more - fewer)
            for hosts in range(fewer + 1, more + 1):
                if lower_rate + rate_of_a_host * (hosts - fewer) >= samples_per_s:
                    return hosts
        hosts = self.largest + 1
        while hosts <= _MAX_HOSTS:
            if self.extrapolated(hosts) >= samples_per_s:
                return hosts
            # Steps of 1 % keep the search short. A large number is only a guess anyway.
            hosts += max(1, hosts // 100)
        return None

    def extrapolated(self, hosts: int) -> float:
        """Return the sum on more hosts than were measured."""
        if len(self.samples_per_s) == 1:
            return self.samples_per_s[self.largest] * hosts / self.largest
        if len(self.samples_per_s) >= FEWEST_COUNTS:
            return fitted(self.samples_per_s).rate(hosts)
        return fitted(self.samples_per_s, AMDAHL).rate(hosts)

    def as_dict(self) -> dict[str, Any]:
        """Return the curve as ``result.json`` stores it."""
        rates = {str(hosts): rate for hosts, rate in sorted(self.samples_per_s.items())}
        return {"part": self.part, "samples_per_s": rates, "basis": self.basis}


def host_curves(points: Sequence[HostPoint], sample_bytes: float) -> list[HostCurve]:
    """Return the curves of the store and of the disk, each for the setting with the largest sum.

    Args:
        points: what several hosts measured.
        sample_bytes: mean stored bytes of a sample.
    """
    best: dict[str, HostCurve] = {}
    for part, same_setting in _by_part_and_setting(points):
        rates = {point.hosts: _samples_per_s(point, sample_bytes) for point in same_setting}
        curve = HostCurve(part, rates, same_setting[-1].description)
        if part not in best or _rank(curve) > _rank(best[part]):
            best[part] = curve
    return list(best.values())


def _rank(curve: HostCurve) -> tuple[int, float]:
    """Return the largest number of hosts and its sum, by which curves are compared."""
    return curve.largest, curve.samples_per_s[curve.largest]


def _by_part_and_setting(points: Sequence[HostPoint]) -> list[tuple[str, list[HostPoint]]]:
    """Return the points that measure storage alone, grouped by part and setting."""
    groups: dict[tuple[str, str], list[HostPoint]] = {}
    for point in points:
        part = _part_of(point)
        if part:
            groups.setdefault((part, point.description), []).append(point)
    return [(part, same_setting) for (part, _), same_setting in groups.items()]


def _part_of(point: HostPoint) -> str:
    """Return the storage that a point measures, ``store`` or ``disk``; empty for other points."""
    params = point.params
    from_disk = "disk" if point.label in ("direct", "cold") else ""
    if point.kind == "object" and str(params.get("operation", "")).startswith("get"):
        return "store"
    if point.kind == "disk" and params.get("operation") == "read":
        return from_disk
    if point.kind == "loader" and params.get("loader") == "raw":
        return "store" if is_on_store(params) else from_disk
    return ""


def _samples_per_s(point: HostPoint, sample_bytes: float) -> float:
    """Return the sum over hosts in samples/s."""
    rate = point.total.median
    return rate * 1e6 / sample_bytes if point.metric == "mb_per_s" else rate
