"""PURE. The rate that storage gives to several hosts together, by the number of hosts.

Between two measured numbers of hosts, the rate is interpolated by a straight line. For fewer hosts
than were measured, the line begins at 0. For more hosts than were measured, the rate is
extrapolated:

- in proportion, if one number of hosts was measured;
- by Amdahl's law, if two numbers were measured;
- by the universal scalability law, if three or more were (``iobench.analysis.worker_scaling``).
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
"""Largest number of hosts that is tried. An extrapolation to more hosts would say nothing."""


@dataclass(frozen=True, slots=True)
class HostCurve:
    """The rate of all hosts together by the number of hosts, measured with one setting.

    Attributes:
        part: the storage: ``store`` or ``disk``.
        samples_per_s: the sum of the rates of all hosts, for each measured number of hosts; at
            least one number.
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
        """Return the smallest number of hosts that together get a rate.

        An extrapolated number of 200 or more may be up to 1 % too large. None if no number up to
        ``_MAX_HOSTS`` is enough.

        Args:
            samples_per_s: the rate.
        """
        points = [(0, 0.0), *sorted(self.samples_per_s.items())]
        for (fewer, lower_rate), (more, upper_rate) in pairwise(points):
            growth_per_host = (upper_rate - lower_rate) / (more - fewer)
            for hosts in range(fewer + 1, more + 1):
                if lower_rate + growth_per_host * (hosts - fewer) >= samples_per_s:
                    return hosts
        hosts = self.largest + 1
        while hosts <= _MAX_HOSTS:
            if self.extrapolated(hosts) >= samples_per_s:
                return hosts
            # Steps of 1 % keep the search short. An extrapolation is less accurate than that.
            hosts += max(1, hosts // 100)
        return None

    def extrapolated(self, hosts: int) -> float:
        """Return the samples/s of more hosts together than were measured."""
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
    """Return the curves of the store and of the disk, if they were measured.

    Of all settings of a part, the curve is that of the setting that was measured on the most hosts.
    Of several such settings, it is the one with the largest sum.

    Args:
        points: the figures of each setting and number of hosts. For one setting, they are ordered
            by the number of hosts.
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
    """Return the largest number of hosts and its sum, as a key for the best curve of a part."""
    return curve.largest, curve.samples_per_s[curve.largest]


def _by_part_and_setting(points: Sequence[HostPoint]) -> list[tuple[str, list[HostPoint]]]:
    """Return the points that measure storage alone, grouped by part and setting.

    Returns:
        Pairs of a part and all points of one of its settings.
    """
    groups: dict[tuple[str, str], list[HostPoint]] = {}
    for point in points:
        part = _part_of(point)
        if part:
            groups.setdefault((part, point.description), []).append(point)
    return [(part, same_setting) for (part, _), same_setting in groups.items()]


def _part_of(point: HostPoint) -> str:
    """Return the storage that a point measures: ``store`` or ``disk``.

    Only the probes of disks and stores, and the loader ``raw``, measure storage alone. Empty for
    all other points, for writes, and for points of a disk that may have read from the page cache.
    """
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
    """Return the rate of all hosts of a point together in samples/s.

    Args:
        point: the point, whose rate is in MB/s or in samples/s.
        sample_bytes: mean stored bytes of a sample.
    """
    rate = point.total.median
    return rate * 1e6 / sample_bytes if point.metric == "mb_per_s" else rate
