"""Where the limits of our control group stand, of either version (cgroups(7))."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

SYSFS = Path("/sys/fs/cgroup")


def folders(
    controller: str, root: Path = SYSFS, groups: str | None = None
) -> Iterator[tuple[Path, int]]:
    """The folders of our group and of those around it, which bind it too, with their version.

    Args:
        controller: ``cpu``, ``memory`` or another.
        root: where control groups are mounted.
        groups: the text of ``/proc/self/cgroup``; read where it is None.
    """
    if groups is None:
        try:
            groups = Path("/proc/self/cgroup").read_text(errors="replace")
        except OSError:
            return
    for line in groups.splitlines():
        _, controllers, name = (*line.split(":", 2), "", "")[:3]
        if controllers and controller not in controllers.split(","):
            continue
        top = root / controller if controllers else root
        own = top / name.strip("/")
        for folder in (own, *own.parents):
            yield folder, 1 if controllers else 2
            if folder == top:
                break
