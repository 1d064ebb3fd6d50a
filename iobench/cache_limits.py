"""What of the page cache cannot be emptied or seen here, and why."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from iobench.coldness import IN_MEMORY
from iobench.environment.machine import container
from iobench.mounts import file_system
from iobench.residency import cachestat_works

DROP_CACHES = Path("/proc/sys/vm/drop_caches")
_OWN_IO = Path("/proc/self/io")


@dataclass(frozen=True, slots=True)
class Access:
    """What this process may do: ``may_drop`` caches of the machine, read ``counts`` of its bytes.

    ``told``: whether the residency of the trial's files was told. ``container``: signs of one.
    """

    file_system: str
    told: bool
    has_cachestat: bool
    may_drop: bool
    counts: bool
    container: str


def access_to(path: Path, *, told: bool) -> Access:
    """To the page cache over ``path``."""
    return Access(
        file_system=file_system(path),
        told=told,
        has_cachestat=cachestat_works(),
        may_drop=os.access(DROP_CACHES, os.W_OK),
        counts=os.access(_OWN_IO, os.R_OK),
        container=container(),
    )


def limits(found: Access) -> tuple[str, ...]:
    """PURE. Sentences without a full stop; none where everything could be done."""
    return tuple(_limits(found))


def _limits(found: Access) -> Iterator[str]:
    if found.file_system in IN_MEMORY:
        yield f"{found.file_system}: files lie in memory, nothing of them can be evicted"
    elif not found.told:
        yield (
            "what is resident is not told: the kernel tells it of files alone that one owns or may "
            "write (mincore since Linux 5.2, cachestat since 6.14)"
        )
    if found.file_system == "overlay":
        yield "overlay: cachestat sees nothing of the layer below, so that mincore is asked"
    elif not found.has_cachestat:
        yield "no cachestat (before Linux 6.5, or refused): mincore is asked"
    if not found.may_drop:
        yield (
            "drop_caches is not permitted (no root, or a container): names and inodes of the files "
            "stay in memory, and so do pages that another process has mapped"
        )
    if not found.counts:
        yield "no /proc/PID/io: physical bytes are not counted, reads of whole files not proved"
    if found.container:
        yield (
            f"{found.container}: the page cache is the host's, and others on it may read or map "
            "the same files"
        )
