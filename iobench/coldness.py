"""PURE. Whether a trial was cold, from what was seen before it and after it."""

from __future__ import annotations

from collections.abc import Sequence

from iobench.trial import Cold

RESIDENT_AT_MOST = 0.01
PHYSICAL_AT_LEAST = 0.95
HONEST_MULTIPLE = 5
"""Data of so many times the memory is the least that an epoch cannot keep cached."""

IN_MEMORY = frozenset({"tmpfs", "ramfs", "hugetlbfs"})
"""File systems that are nothing but page cache."""


def judge(
    *,
    asked: str,
    resident_before: float | None,
    physical_ratio: float | None,
    sequential: bool,
    data_bytes: int,
    memory_bytes: int,
    file_system: str = "",
    limits: Sequence[str] = (),
) -> Cold:
    """What a trial on local files may be called, or an epoch of it.

    Cold is what had at most 1 % of its pages in memory before and took at least 95 % of its
    bytes from storage. Without a count of physical bytes random reads are judged by residency
    alone, whole-file reads are warm. Random reads may move more than they ask for, and never less:
    their ratio is the amplification by read-ahead.

    Args:
        asked: ``cold``, ``warm`` or ``direct`` (O_DIRECT).
        resident_before: share of pages in memory when the trial began; None if unknown.
        physical_ratio: bytes from storage / bytes read, each byte at most once; None if unknown.
        sequential: whole files were read, not parts of them.
        data_bytes: of all files that the trial may read.
        memory_bytes: what the page cache may take.
        file_system: its type, as the kernel calls it.
        limits: what could not be done or seen here.
    """
    doubt = {
        "cold": _why_not_cold(resident_before, physical_ratio, sequential, file_system),
        "direct": _why_not_the_device(physical_ratio, file_system),
        "warm": _why_not_all_warm(resident_before, physical_ratio),
    }.get(asked, "")
    return Cold(
        asked=asked,
        label="warm" if asked == "cold" and doubt else asked,
        resident_before=resident_before,
        physical_ratio=physical_ratio,
        cache_resident=None if asked == "direct" else cache_resident(data_bytes, memory_bytes),
        why=doubt,
        amplification=None if sequential else physical_ratio,
        limits=limits,
    )


def judge_remote(asked: str) -> Cold:
    """What a trial on an object store may be called: the server's own cache cannot be seen."""
    return Cold(
        asked=asked,
        label="server cache unknown",
        why="an object store's own cache cannot be seen from here",
    )


def _why_not_cold(
    resident: float | None, physical: float | None, sequential: bool, file_system: str
) -> str:
    where = f" on {file_system}" if file_system else ""
    if file_system in IN_MEMORY:
        return f"{file_system} lies in memory"
    if resident is None:
        return f"what is resident cannot be told{where}"
    if resident > RESIDENT_AT_MOST:
        return f"{_percent(resident)} of the pages were resident before{where}"
    if physical is None:
        return f"physical bytes are not counted{where}" if sequential else ""
    if physical < PHYSICAL_AT_LEAST:
        return f"only {_percent(physical)} of the bytes read came from storage{where}"
    return ""


def _why_not_the_device(physical: float | None, file_system: str) -> str:
    if physical is None or physical >= PHYSICAL_AT_LEAST:
        return ""
    where = f" on {file_system}" if file_system else ""
    return f"only {_percent(physical)} of the bytes are counted as read from a device{where}"


def _why_not_all_warm(resident: float | None, physical: float | None) -> str:
    if resident is not None and resident < 1 - RESIDENT_AT_MOST:
        return f"only {_percent(resident)} of the pages were in memory before"
    if physical is None or physical <= 1 - PHYSICAL_AT_LEAST:
        return ""
    return f"{_percent(physical)} of the bytes read came from storage: not all stayed in memory"


def cache_resident(data_bytes: int, memory_bytes: int) -> bool | None:
    """Whether later epochs of such data may come from memory; None where that is not known."""
    return data_bytes < HONEST_MULTIPLE * memory_bytes if memory_bytes > 0 else None


def _percent(share: float) -> str:
    return f"{100 * share:.4g} %"
