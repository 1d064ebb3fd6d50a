"""How many processors this process may use, by its affinity and by its control groups.

A container's CPU limit is a quota of its control group (cgroups(7)), of which the affinity says
nothing: a process in a container of 4 CPUs on a machine of 64 may run on each of the 64. With a
thread for each of these, the kernel would stop all of them for most of the time.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

from dataprep.kernel_files import ROOT, text

_QUOTA = re.compile(r"([1-9]\d*) ([1-9]\d*)")


def usable_processors(root: Path = ROOT) -> int:
    """The default number of workers or threads: at least 1; part of a processor counts as one."""
    processors = len(os.sched_getaffinity(0))
    quota = processor_quota(root)
    if quota is None:
        return processors
    return max(1, min(processors, math.ceil(quota)))


def processor_quota(root: Path = ROOT) -> float | None:
    """Processors' worth of time that the control group allows; None without a limit.

    ``cpu.max`` of version 2, ``cpu.cfs_quota_us`` of version 1.
    """
    quotas: list[re.Match[str] | None] = []
    for folder in control_groups("cpu", root):
        first = f"{text(folder / 'cpu.cfs_quota_us')} {text(folder / 'cpu.cfs_period_us')}"
        quotas += map(_QUOTA.fullmatch, (first, text(folder / "cpu.max")))
    # "max" and -1 are no limit.
    return min((int(quota[1]) / int(quota[2]) for quota in quotas if quota), default=None)


def control_groups(controller: str, root: Path = ROOT) -> Iterator[Path]:
    """Folders of our control group and of those around it, which also limit it."""
    for line in text(root / "proc/self/cgroup").splitlines():
        _, controllers, name = (*line.split(":", 2), "", "")[:3]
        for top in _mounts(controller, controllers, root / "sys/fs/cgroup"):
            own = top / name.strip("/")
            yield from (folder for folder in (own, *own.parents) if folder.is_relative_to(top))


def _mounts(controller: str, controllers: str, parent: Path) -> Iterator[Path]:
    """Where the tree of a line of ``/proc/self/cgroup`` may be mounted."""
    if not controllers:  # version 2 has one tree
        yield parent
        return
    together = controllers.split(",")
    if controller in together:  # version 1 has a tree for each controller, or for some together
        yield parent / controller
        if 2 <= len(together) <= 3:
            yield from (parent / ",".join(order) for order in permutations(together))
