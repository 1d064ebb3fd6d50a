"""PURE. Decide whether a trial was cold: first each epoch, then all epochs together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from iobench.machine.storage_kinds import has_server
from iobench.results.numbers import percent_rounded_down
from iobench.results.trial import FIRST_EPOCH_COLD, HOST_ONLY, Cold

MAX_RESIDENT_SHARE = 0.01
"""Largest share of pages in memory before a cold trial."""

MIN_PHYSICAL_SHARE = 0.95
"""Smallest share of bytes that storage gave in a cold trial."""

UNCACHED_MULTIPLE = 5
"""Data of at least this multiple of the memory do not stay cached between epochs."""

NOT_PREPARED = "as left"
"""Requested state of an epoch whose page cache was not reset after the epoch before."""

IN_MEMORY = frozenset({"tmpfs", "ramfs", "hugetlbfs"})
"""File systems whose files exist only in the page cache."""


def judge(
    *,
    requested: str,
    resident_before: float | None,
    physical_ratio: float | None,
    sequential: bool,
    data_bytes: int,
    memory_bytes: int,
    file_system: str = "",
    limits: Sequence[str] = (),
) -> Cold:
    """Decide the label of a trial on local files, or of one of its epochs.

    A trial is cold if at most 1 % of its pages were in memory before, and at least 95 % of its
    bytes came from storage. If physical bytes are not counted, random reads are judged by residency
    alone, and reads of whole files are warm. Random reads may get more bytes from storage than they
    request, because the kernel reads ahead. Their physical ratio is then the amplification.

    Args:
        requested: the requested state: ``cold``, ``warm`` or ``direct`` (O_DIRECT).
        resident_before: share of pages in memory when the trial began; None if unknown.
        physical_ratio: bytes from storage / bytes read, each byte at most once; None if unknown.
        sequential: whether whole files were read, not parts of them.
        data_bytes: bytes of all files that the trial may read.
        memory_bytes: memory that the page cache may take.
        file_system: the type of the file system, as the kernel calls it.
        limits: sentences about what could not be done or observed on this machine.
    """
    is_served = has_server(file_system)
    if requested == "cold" and is_served and physical_ratio == 0:
        physical_ratio = None  # The kernel does not count bytes from a server.
    label = requested
    why = ""
    if requested == "cold":
        why = _why_not_cold(resident_before, physical_ratio, sequential, file_system)
        if why:
            label = "warm"
        elif is_served:
            limits = (HOST_ONLY, *limits)
    elif requested == "direct":
        why = _why_not_the_device(physical_ratio, file_system)
    elif requested == "warm":
        why = _why_not_all_warm(resident_before, physical_ratio)
    may_stay_cached = cache_resident(data_bytes, memory_bytes)
    return Cold(
        asked=requested,
        label=label,
        resident_before=resident_before,
        physical_ratio=physical_ratio,
        cache_resident=None if requested == "direct" else may_stay_cached,
        why=why,
        amplification=None if sequential else physical_ratio,
        limits=tuple(limits),
    )


def judge_remote(requested: str) -> Cold:
    """Return the label of a trial on an object store, whose own cache cannot be seen."""
    return Cold(
        asked=requested,
        label="server cache unknown",
        why="an object store's own cache cannot be seen from here",
    )


def cache_resident(data_bytes: int, memory_bytes: int) -> bool | None:
    """Return whether later epochs of the data may come from memory; None if unknown."""
    if memory_bytes <= 0:
        return None
    return data_bytes < UNCACHED_MULTIPLE * memory_bytes


def combine_epochs(epochs: Sequence[Cold], samples: Sequence[int]) -> Cold:
    """Combine the labels of the epochs of a trial into one label.

    A trial is cold only if every epoch was cold. It is ``first epoch cold`` if the first epoch was
    cold, no later epoch was prepared, and at least one later epoch was not cold. The residency is
    the largest residency before a prepared epoch. The physical ratio is the mean over the epochs,
    weighted by samples.

    Args:
        epochs: the labels of the epochs; at least one.
        samples: the number of samples of each epoch.
    """
    first = epochs[0]
    if len(epochs) == 1:
        return first
    label, why = _combined_label(epochs)
    ratios = []
    for epoch in epochs:
        ratio = epoch.physical_ratio
        if ratio is not None and epoch.amplification is None:
            # Whole files were read. A ratio above 1 includes samples that the epoch did not take,
            # because workers read ahead.
            ratio = min(1.0, ratio)
        ratios.append(ratio)
    limits: dict[str, None] = {}  # a set that keeps the order
    for epoch in epochs:
        limits |= dict.fromkeys(epoch.limits)
    return replace(
        first,
        label=label,
        why=why,
        resident_before=_largest_residency(epochs),
        physical_ratio=_mean(ratios, samples),
        amplification=_mean([epoch.amplification for epoch in epochs], samples),
        limits=tuple(limits),
    )


def _combined_label(epochs: Sequence[Cold]) -> tuple[str, str]:
    """Return the label of several epochs together, and the reason for it; empty if there is none.

    The reason is that of the first epoch that has one.
    """
    first, later = epochs[0], epochs[1:]
    reasons = []
    for number, epoch in enumerate(epochs, start=1):
        if epoch.why:
            reasons.append(f"epoch {number} of {len(epochs)}: {epoch.why}")
    only_first_prepared = all(epoch.asked == NOT_PREPARED for epoch in later)
    if first.label == "cold" and any(epoch.label != "cold" for epoch in later):
        return FIRST_EPOCH_COLD if only_first_prepared else "warm", reasons[0]
    if not first.why and not only_first_prepared and reasons:
        return first.label, reasons[0]
    return first.label, first.why


def _largest_residency(epochs: Sequence[Cold]) -> float | None:
    """Return the largest residency before a prepared epoch; None if one of them is unknown."""
    prepared_epochs = [epoch for epoch in epochs if epoch.asked != NOT_PREPARED]
    shares = [epoch.resident_before for epoch in prepared_epochs]
    known_shares = [share for share in shares if share is not None]
    if not known_shares or len(known_shares) < len(shares):
        return None
    return max(known_shares)


def _mean(ratios: Sequence[float | None], samples: Sequence[int]) -> float | None:
    """Return the mean weighted by samples; None if the ratio of an epoch is unknown."""
    known_ratios = [ratio for ratio in ratios if ratio is not None]
    if len(known_ratios) < len(samples) or not sum(samples):
        return None
    weighted = [ratio * count for ratio, count in zip(known_ratios, samples, strict=True)]
    return sum(weighted) / sum(samples)


def _why_not_cold(
    resident: float | None, physical: float | None, sequential: bool, file_system: str
) -> str:
    """Return why a trial that should be cold is warm; empty if it is cold."""
    where = f" on {file_system}" if file_system else ""
    if file_system in IN_MEMORY:
        return f"{file_system} is memory"
    if resident is None:
        return f"the residency is unknown{where}"
    if resident > MAX_RESIDENT_SHARE:
        return f"{percent_rounded_down(resident)} of the pages were resident before{where}"
    if physical is None:
        return f"physical bytes are not counted{where}" if sequential else ""
    if physical < MIN_PHYSICAL_SHARE:
        return f"only {percent_rounded_down(physical)} of the bytes read came from storage{where}"
    return ""


def _why_not_the_device(physical: float | None, file_system: str) -> str:
    """Return why a direct trial may not have read from the device; empty if it has."""
    if physical is None or physical >= MIN_PHYSICAL_SHARE:
        return ""
    where = f" on {file_system}" if file_system else ""
    share = percent_rounded_down(physical)
    return f"only {share} of the bytes are counted as read from a device{where}"


def _why_not_all_warm(resident: float | None, physical: float | None) -> str:
    """Return why a warm trial has not read everything from memory; empty if it has."""
    if resident is not None and resident < 1 - MAX_RESIDENT_SHARE:
        return f"only {percent_rounded_down(resident)} of the pages were in memory before"
    if physical is None or physical <= 1 - MIN_PHYSICAL_SHARE:
        return ""
    share = percent_rounded_down(physical)
    return f"{share} of the bytes read came from storage: not all stayed in memory"
