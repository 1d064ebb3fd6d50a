"""PURE. Decide whether a trial was cold: first each epoch, then all epochs together.

The *residency* is the share of the pages of files that were in the page cache. The *physical ratio*
is the number of bytes that came from storage, divided by the number of bytes that were read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from iobench.machine.storage_kinds import has_server
from iobench.results.numbers import percent_rounded_down
from iobench.results.trial import FIRST_EPOCH_COLD, HOST_ONLY, Cold

MAX_RESIDENT_SHARE = 0.01
"""The largest residency before a cold trial."""

MIN_PHYSICAL_SHARE = 0.95
"""The smallest physical ratio of a cold trial."""

UNCACHED_MULTIPLE = 5
"""Data of at least this multiple of the memory are assumed not to stay cached between epochs."""

NOT_PREPARED = "as left"
"""The requested state of an epoch whose page cache was left as the previous epoch left it."""

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

    A trial for which ``cold`` was requested is cold if at most 1 % of its pages were in memory
    before, and at least 95 % of its bytes came from storage. Otherwise it is warm, with a reason.
    If physical bytes are not counted, random reads are judged by residency alone, and reads of
    whole files are warm. A file system in memory is never cold. Every other trial has the requested
    state as its label. If its figures contradict this state, the label has the reason.

    Random reads may get more bytes from storage than they request, because the kernel reads ahead.
    Their physical ratio is therefore also the amplification.

    Args:
        requested: the requested state: ``cold``, ``warm`` or ``direct`` (O_DIRECT); ``cold`` also
            for an epoch that was not prepared.
        resident_before: the residency when the trial began; None if unknown.
        physical_ratio: the physical ratio, with each byte read counted once; None if unknown.
        sequential: whether whole files were read, not parts of them.
        data_bytes: the size of all files that the trial may read, in bytes.
        memory_bytes: the memory that the page cache may take, in bytes; 0 if unknown.
        file_system: the type of the file system, as the kernel calls it; empty if unknown.
        limits: sentences about what could not be done or observed on this machine.
    """
    is_served = has_server(file_system)
    if requested == "cold" and is_served and physical_ratio == 0:
        # For most file systems with a server, the kernel counts no bytes. Zero means unknown.
        physical_ratio = None
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
    """Return whether later epochs may be read from memory; None if the memory is unknown.

    Args:
        data_bytes: the size of the data, in bytes.
        memory_bytes: the memory that the page cache may take, in bytes; 0 if unknown.
    """
    if memory_bytes <= 0:
        return None
    return data_bytes < UNCACHED_MULTIPLE * memory_bytes


def combine_epochs(epochs: Sequence[Cold], samples: Sequence[int]) -> Cold:
    """Combine the labels of the epochs of a trial into one label.

    A trial is cold only if every epoch was cold. It is ``first epoch cold`` if the first epoch was
    cold, no later epoch was prepared, and at least one later epoch was not cold. It is warm if the
    first epoch was cold, a later epoch was not cold, and at least one later epoch was prepared. In
    all other cases, it has the label of the first epoch. The residency is the largest residency
    before a prepared epoch. The physical ratio is the mean over the epochs, weighted by samples.

    Args:
        epochs: the labels of the epochs; at least one.
        samples: the number of samples in each epoch.
    """
    first = epochs[0]
    if len(epochs) == 1:
        return first
    label, why = _combined_label(epochs)
    ratios = []
    for epoch in epochs:
        ratio = epoch.physical_ratio
        if ratio is not None and epoch.amplification is None:
            # Whole files were read. A ratio above 1 includes files that workers read ahead, and
            # whose samples the epoch did not use.
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

    The reason is that of the first epoch, if it has one. Otherwise it is the first reason of a
    later epoch, with the number of that epoch. If the later epochs were not prepared, they give a
    reason only if they change the label.
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
    """Return the largest residency before a prepared epoch.

    It is None if no epoch was prepared, or if the residency before one of them is unknown.
    """
    prepared_epochs = [epoch for epoch in epochs if epoch.asked != NOT_PREPARED]
    residencies = [epoch.resident_before for epoch in prepared_epochs]
    known_residencies = [residency for residency in residencies if residency is not None]
    if not known_residencies or len(known_residencies) < len(residencies):
        return None
    return max(known_residencies)


def _mean(ratios: Sequence[float | None], samples: Sequence[int]) -> float | None:
    """Return the mean of the ratios of epochs, weighted by their samples.

    It is None if the ratio of an epoch is unknown, or if the epochs have no samples.
    """
    known_ratios = [ratio for ratio in ratios if ratio is not None]
    if len(known_ratios) < len(samples) or not sum(samples):
        return None
    weighted = [ratio * count for ratio, count in zip(known_ratios, samples, strict=True)]
    return sum(weighted) / sum(samples)


def _why_not_cold(
    resident: float | None, physical: float | None, sequential: bool, file_system: str
) -> str:
    """Return why a trial for which ``cold`` was requested is warm; empty if it is cold."""
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
    """Return why a direct trial may not have read from the device.

    The reason is empty if the trial has read from the device, or if physical bytes are not counted.
    """
    if physical is None or physical >= MIN_PHYSICAL_SHARE:
        return ""
    where = f" on {file_system}" if file_system else ""
    share = percent_rounded_down(physical)
    return f"only {share} of the bytes are counted as read from a device{where}"


def _why_not_all_warm(resident: float | None, physical: float | None) -> str:
    """Return why a warm trial has not read everything from memory.

    The reason is empty if nothing shows that bytes came from storage.
    """
    if resident is not None and resident < 1 - MAX_RESIDENT_SHARE:
        return f"only {percent_rounded_down(resident)} of the pages were in memory before"
    if physical is None or physical <= 1 - MIN_PHYSICAL_SHARE:
        return ""
    share = percent_rounded_down(physical)
    return f"{share} of the bytes read came from storage: not all stayed in memory"
