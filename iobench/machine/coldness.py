"""PURE. Judge whether a trial was cold: each epoch, then all epochs together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from iobench.machine.storage_kinds import has_server
from iobench.numbers import percent_rounded_down
from iobench.trial import Cold

RESIDENT_AT_MOST = 0.01
PHYSICAL_AT_LEAST = 0.95
HONEST_MULTIPLE = 5
"""Data of at least this multiple of the memory do not stay cached between epochs."""

FIRST_EPOCH_COLD = "first epoch cold"
"""Label of a trial whose first epoch was cold and whose later epochs were not prepared."""

LEFT = "as left"
"""State of an epoch that is not prepared: its cache is as the epoch before left it."""

HOST_ONLY = (
    "cold on this host; server cache unknown: the file system has a server or a FUSE program, "
    "whose cache cannot be seen from here"
)
"""Limit of a cold trial on NFS, Lustre, FUSE and other file systems that have a server."""

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
    """Label a trial on local files, or an epoch of it.

    A trial is cold if at most 1 % of its pages were in memory before, and at least 95 % of its
    bytes came from storage. If physical bytes are not counted, random reads are judged by residency
    alone, and reads of whole files are warm. Random reads may read more from storage than they ask
    for, but not less: their ratio is the amplification by read-ahead.

    Args:
        asked: ``cold``, ``warm`` or ``direct`` (O_DIRECT).
        resident_before: share of pages in memory when the trial began; None if unknown.
        physical_ratio: bytes from storage / bytes read, each byte at most once; None if unknown.
        sequential: whole files were read, not parts of them.
        data_bytes: of all files that the trial may read.
        memory_bytes: what the page cache may take.
        file_system: its type, as the kernel calls it.
        limits: what is not possible or not visible on this machine.
    """
    served = has_server(file_system)
    if asked == "cold" and served and physical_ratio == 0:
        physical_ratio = None
    doubt = {
        "cold": _why_not_cold(resident_before, physical_ratio, sequential, file_system),
        "direct": _why_not_the_device(physical_ratio, file_system),
        "warm": _why_not_all_warm(resident_before, physical_ratio),
    }.get(asked, "")
    if asked == "cold" and served and not doubt:
        limits = (HOST_ONLY, *limits)
    return Cold(
        asked=asked,
        label="warm" if asked == "cold" and doubt else asked,
        resident_before=resident_before,
        physical_ratio=physical_ratio,
        cache_resident=None if asked == "direct" else cache_resident(data_bytes, memory_bytes),
        why=doubt,
        amplification=None if sequential else physical_ratio,
        limits=tuple(limits),
    )


def judge_remote(asked: str) -> Cold:
    """Label a trial on an object store, whose own cache cannot be seen."""
    return Cold(
        asked=asked,
        label="server cache unknown",
        why="an object store's own cache cannot be seen from here",
    )


def cache_resident(data_bytes: int, memory_bytes: int) -> bool | None:
    """Whether later epochs of such data may come from memory; None if unknown."""
    return data_bytes < HONEST_MULTIPLE * memory_bytes if memory_bytes > 0 else None


def whole(epochs: Sequence[Cold], samples: Sequence[int]) -> Cold:
    """Combine the epochs of a trial, each with its number of ``samples``, into one label.

    A trial is cold only if every epoch was. It is ``first epoch cold`` if only the first epoch was
    prepared, and was cold, and a later one was not. The residency is the largest before any
    prepared epoch. The ratio is that of all bytes together; bytes that workers read ahead in one
    epoch do not count for another.

    Raises:
        ValueError: no epochs.
    """
    first, later = epochs[0], epochs[1:]
    if not later:
        return first
    doubts = [
        f"epoch {number} of {len(epochs)}: {one.why}"
        for number, one in enumerate(epochs, start=1)
        if one.why
    ]
    left = all(one.asked == LEFT for one in later)
    label, why = first.label, first.why
    if label == "cold" and any(one.label != "cold" for one in later):
        label, why = FIRST_EPOCH_COLD if left else "warm", doubts[0]
    elif not why and not left:
        why = doubts[0] if doubts else ""
    resident = [one.resident_before for one in epochs if one.asked != LEFT]
    known = [share for share in resident if share is not None]
    # For whole files, bytes beyond those of the epoch are samples that it did not take.
    ratios = [
        one.physical_ratio if one.amplification is not None else min(1.0, one.physical_ratio)
        for one in epochs
        if one.physical_ratio is not None
    ]
    return replace(
        first,
        label=label,
        why=why,
        resident_before=max(known) if known and len(known) == len(resident) else None,
        physical_ratio=_mean(ratios, samples),
        amplification=_mean([one.amplification for one in epochs], samples),
        limits=tuple(dict.fromkeys(limit for one in epochs for limit in one.limits)),
    )


def _mean(ratios: Sequence[float | None], samples: Sequence[int]) -> float | None:
    """The mean weighted by samples; None if the ratio of an epoch is unknown."""
    known = [ratio for ratio in ratios if ratio is not None]
    if len(known) < len(samples) or not sum(samples):
        return None
    return sum(r * n for r, n in zip(known, samples, strict=True)) / sum(samples)


def _why_not_cold(
    resident: float | None, physical: float | None, sequential: bool, file_system: str
) -> str:
    where = f" on {file_system}" if file_system else ""
    if file_system in IN_MEMORY:
        return f"{file_system} is memory"
    if resident is None:
        return f"the residency is unknown{where}"
    if resident > RESIDENT_AT_MOST:
        return f"{percent_rounded_down(resident)} of the pages were resident before{where}"
    if physical is None:
        return f"physical bytes are not counted{where}" if sequential else ""
    if physical < PHYSICAL_AT_LEAST:
        return f"only {percent_rounded_down(physical)} of the bytes read came from storage{where}"
    return ""


def _why_not_the_device(physical: float | None, file_system: str) -> str:
    if physical is None or physical >= PHYSICAL_AT_LEAST:
        return ""
    where = f" on {file_system}" if file_system else ""
    share = percent_rounded_down(physical)
    return f"only {share} of the bytes are counted as read from a device{where}"


def _why_not_all_warm(resident: float | None, physical: float | None) -> str:
    if resident is not None and resident < 1 - RESIDENT_AT_MOST:
        return f"only {percent_rounded_down(resident)} of the pages were in memory before"
    if physical is None or physical <= 1 - PHYSICAL_AT_LEAST:
        return ""
    share = percent_rounded_down(physical)
    return f"{share} of the bytes read came from storage: not all stayed in memory"
