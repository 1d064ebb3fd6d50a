"""PURE. The epochs of a trial, each judged by itself, as one state of the page cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from iobench.trial import Cold

FIRST_EPOCH_COLD = "first epoch cold"
"""The first was shown cold; later ones had what the page cache had kept of it."""

LEFT = "as left"
"""What is asked of an epoch that is not prepared: it finds what the one before left behind."""


def whole(epochs: Sequence[Cold], samples: Sequence[int]) -> Cold:
    """What a trial of these epochs may be called; each had so many ``samples``.

    Cold only if every epoch was. Where the first alone was prepared and is shown cold, and a later
    one is not, it is ``first epoch cold``. The residency is the largest before any epoch that was
    prepared; the ratio that of all bytes together, where what workers read ahead of the samples
    that an epoch took makes up for nothing that another had from memory. One epoch is a trial by
    itself.

    Raises:
        ValueError: no epochs.
    """
    first = epochs[0]
    if len(epochs) == 1:
        return first
    labels = [one.label for one in epochs]
    label, why = first.label, first.why
    if labels[0] == "cold" and set(labels) != {"cold"}:
        left = all(one.asked == LEFT for one in epochs[1:])
        label = FIRST_EPOCH_COLD if left else "warm"
        why = _first_doubt(epochs, besides="cold")
    elif not why and any(one.asked != LEFT for one in epochs[1:]):
        why = _first_doubt(epochs, besides="")
    prepared = [one for one in epochs if one.asked != LEFT]
    return replace(
        first,
        label=label,
        why=why,
        resident_before=_largest([one.resident_before for one in prepared]),
        physical_ratio=_mean([_share(one) for one in epochs], samples),
        amplification=_mean([one.amplification for one in epochs], samples),
        limits=tuple(dict.fromkeys(limit for one in epochs for limit in one.limits)),
    )


def _first_doubt(epochs: Sequence[Cold], besides: str) -> str:
    """The reason of the first epoch that has one, or is called something else."""
    for number, one in enumerate(epochs, start=1):
        if one.why or (besides and one.label != besides):
            return f"epoch {number} of {len(epochs)}: {one.why or one.label}"
    return ""


def _share(epoch: Cold) -> float | None:
    """Of whole files no more than all; single samples may move more."""
    ratio = epoch.physical_ratio
    return ratio if ratio is None or epoch.amplification is not None else min(1.0, ratio)


def _largest(found: Sequence[float | None]) -> float | None:
    known = [one for one in found if one is not None]
    return max(known) if known and len(known) == len(found) else None


def _mean(ratios: Sequence[float | None], samples: Sequence[int]) -> float | None:
    """Of all bytes: each epoch counts by its samples; None where one of them is not known."""
    known = [ratio for ratio in ratios if ratio is not None]
    total = sum(samples)
    if len(known) < len(ratios) or total <= 0:
        return None
    return sum(r * n for r, n in zip(known, samples, strict=True)) / total
