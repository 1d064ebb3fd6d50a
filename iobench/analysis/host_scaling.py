"""PURE. What storage gives to several hosts together, and how many hosts get a given rate.

Between two measured numbers of hosts the sum is interpolated by a straight line. Beyond the largest
one it is extrapolated: by the universal scalability law (``iobench.analysis.worker_scaling``) if at least
two numbers were measured, else in proportion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from iobench.analysis.hosts import HostPoint
from iobench.analysis.worker_scaling import AMDAHL, FEWEST_COUNTS, fitted
from iobench.data.settings import split_name

_MOST_HOSTS = 100_000


@dataclass(frozen=True, slots=True)
class HostCurve:
    """The sum over hosts by the number of hosts.

    Attributes:
        part: ``store`` or ``disk``.
        samples_per_s: the sum for each measured number of hosts.
        basis: what was measured, in words.
    """

    part: str
    samples_per_s: Mapping[int, float]
    basis: str

    @property
    def largest(self) -> int:
        """The largest measured number of hosts; beyond it the curve is extrapolated."""
        return max(self.samples_per_s)

    def hosts_for(self, samples_per_s: float) -> int | None:
        """The smallest number of hosts that get this rate together; None if no number does."""
        points = [(0, 0.0), *sorted(self.samples_per_s.items())]
        for (few, low), (many, high) in pairwise(points):
            for hosts in range(few + 1, many + 1):
                if low + (high - low) * (hosts - few) / (many - few) >= samples_per_s:
                    return hosts
        hosts = self.largest + 1
        while hosts <= _MOST_HOSTS:
            if self.extrapolated(hosts) >= samples_per_s:
                return hosts
            # Steps of 1 % keep the search short, and a larger number is a guess in any case.
            hosts += max(1, hosts // 100)
        return None

    def extrapolated(self, hosts: int) -> float:
        """The sum on more hosts than were measured."""
        if len(self.samples_per_s) == 1:
            return self.samples_per_s[self.largest] * hosts / self.largest
        rates = dict(self.samples_per_s)
        law = fitted(rates) if len(rates) >= FEWEST_COUNTS else fitted(rates, AMDAHL)
        return law.rate(hosts)

    def as_dict(self) -> dict[str, Any]:
        """As ``result.json`` stores it."""
        rates = {str(hosts): rate for hosts, rate in sorted(self.samples_per_s.items())}
        return {"part": self.part, "samples_per_s": rates, "basis": self.basis}


def curves(points: Sequence[HostPoint], sample_bytes: float) -> list[HostCurve]:
    """The curves of the store and of the disk, each of the point with the largest sum.

    Args:
        points: what several hosts measured.
        sample_bytes: mean stored bytes of a sample.
    """
    best: dict[str, HostCurve] = {}
    for part, alike in _by_part(points):
        rates = {point.hosts: _samples_per_s(point, sample_bytes) for point in alike}
        curve = HostCurve(part, rates, alike[-1].words)
        if part not in best or _top(curve) > _top(best[part]):
            best[part] = curve
    return list(best.values())


def _top(curve: HostCurve) -> tuple[int, float]:
    return curve.largest, curve.samples_per_s[curve.largest]


def _by_part(points: Sequence[HostPoint]) -> list[tuple[str, list[HostPoint]]]:
    """Points of storage alone, those of one setting together."""
    groups: dict[tuple[str, str], list[HostPoint]] = {}
    for point in points:
        part = _part_of(point)
        if part:
            groups.setdefault((part, point.words), []).append(point)
    return [(part, alike) for (part, _), alike in groups.items()]


def _part_of(point: HostPoint) -> str:
    """The part of a host's surroundings that a point measures; empty for any other point."""
    params = point.params
    if point.kind == "object" and str(params.get("operation", "")).startswith("get"):
        return "store"
    if point.kind == "disk" and params.get("operation") == "read":
        return "disk" if point.label in ("direct", "cold") else ""
    if point.kind == "loader" and params.get("loader") == "raw":
        if split_name(str(params["data"]))[2]:
            return "store"
        return "disk" if point.label in ("direct", "cold") else ""
    return ""


def _samples_per_s(point: HostPoint, sample_bytes: float) -> float:
    rate = point.total.median
    return rate * 1e6 / sample_bytes if point.metric == "mb_per_s" else rate
