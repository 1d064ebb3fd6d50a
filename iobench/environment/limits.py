"""How much of the processors our control group may use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from iobench import control_groups
from iobench.kernel_files import text


def processor_quota(root: Path = control_groups.SYSFS, groups: str | None = None) -> float | None:
    """Processors' worth of time, the least that our group or one around it is given.

    ``cpu.max`` of version 2, ``cpu.cfs_quota_us`` of version 1. None where there is no limit.
    """
    return min(_quotas(root, groups), default=None)


def _quotas(root: Path, groups: str | None) -> Iterator[float]:
    for folder, version in control_groups.folders("cpu", root, groups):
        if version == 2:
            quota, _, period = text(folder / "cpu.max").partition(" ")
        else:
            quota = text(folder / "cpu.cfs_quota_us")
            period = text(folder / "cpu.cfs_period_us")
        # "max" and -1 are no limit.
        if quota.isdecimal() and period.isdecimal() and int(quota) and int(period):
            yield int(quota) / int(period)
