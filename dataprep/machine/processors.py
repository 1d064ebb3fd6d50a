"""Count the processors that this process may use, from its affinity and its control groups.

The CPU limit of a container is a quota of its control group (cgroups(7)). The affinity does not
show this limit. For example, a process in a container with a limit of 4 CPUs may run on all 64
processors of its machine. If it started 64 threads, the kernel would suspend them most of the time.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

from dataprep.machine.kernel_files import ROOT, text

_QUOTA_AND_PERIOD = re.compile(r"([1-9]\d*) ([1-9]\d*)")


def usable_processors(root: Path = ROOT) -> int:
    """Return the number of processors that this process may use, which is at least 1.

    It is the default number of workers or threads. A fractional quota is rounded up.
    """
    processors = len(os.sched_getaffinity(0))
    quota = processor_quota(root)
    if quota is None:
        return processors
    return max(1, min(processors, math.ceil(quota)))


def processor_quota(root: Path = ROOT) -> float | None:
    """Return the quota of the control group in processors; None if there is no limit.

    Version 1 of control groups stores the quota in ``cpu.cfs_quota_us``, version 2 in ``cpu.max``.
    """
    quotas = []
    for folder in control_groups("cpu", root):
        version_1 = f"{text(folder / 'cpu.cfs_quota_us')} {text(folder / 'cpu.cfs_period_us')}"
        version_2 = text(folder / "cpu.max")
        for quota_and_period in (version_1, version_2):
            # The pattern does not match "max" and -1, which mean that there is no limit.
            match = _QUOTA_AND_PERIOD.fullmatch(quota_and_period)
            if match:
                quotas.append(int(match[1]) / int(match[2]))
    return min(quotas, default=None)


def control_groups(controller: str, root: Path = ROOT) -> Iterator[Path]:
    """Yield the folders of this process's control group and of the groups that contain it.

    The limits of all these groups apply.

    Args:
        controller: the name of the controller, such as ``cpu``.
        root: the root of the file system.
    """
    for line in text(root / "proc/self/cgroup").splitlines():
        # Each line has the form "number:controllers:path".
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        for mount in _mounts(controller, controllers, root / "sys/fs/cgroup"):
            own_folder = mount / group.strip("/")
            for folder in (own_folder, *own_folder.parents):
                if folder.is_relative_to(mount):
                    yield folder


def _mounts(controller: str, controllers: str, parent: Path) -> Iterator[Path]:
    """Yield the folders in which a hierarchy of control groups may be mounted.

    Args:
        controller: the name of the controller.
        controllers: the controllers of the hierarchy, with commas; empty for version 2.
        parent: the folder of all hierarchies.
    """
    if not controllers:
        yield parent  # version 2 has one hierarchy
        return
    # In version 1, the folder of a hierarchy has the names of all its controllers, which may be in
    # another order. A link with the name of one controller may point to it.
    names = controllers.split(",")
    if controller in names:
        yield parent / controller
        if 2 <= len(names) <= 3:
            for order in permutations(names):
                yield parent / ",".join(order)
