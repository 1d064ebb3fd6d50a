"""PURE. Badges: the state of the page cache in a few words beside a figure."""

from __future__ import annotations

from collections.abc import Sequence

from iobench.results.trial import FIRST_EPOCH_COLD, HOST_ONLY, Cold

NOT_PROVED = "cold requested, not proved"

_FROM_STORAGE = 0.05
"""Share from storage above which the badge of a warm figure names it."""
_FROM_DEVICE = 0.95
"""Share from storage below which the badge of a direct figure names it."""
_AMPLIFIED = 1.05
"""Bytes from storage / bytes that were read, above which the badge names the amplification."""


def badge(repeats: Sequence[Cold]) -> str:
    """Return the badge of a figure.

    It is ``cold 100 %``, ``warm``, ``direct``, ``server cache unknown`` or ``cold requested, not
    proved``. ``cold`` names the share of the bytes read that came from storage, the minimum over
    repeats, or the amplification by read-ahead. ``warm`` names that share if it is above 5 %. A
    single repeat that was requested cold and not proved decides for all. On NFS, Lustre, FUSE and
    others, ``cold`` is ``cold on this host; server cache unknown``.

    Args:
        repeats: the proofs of all repeats.

    Returns:
        The badge; empty if nothing is known.
    """
    colds = [cold for cold in repeats if cold.label != "not applicable"]
    if not colds:
        return ""
    labels = {cold.label for cold in colds}
    is_cold_requested = any(cold.asked == "cold" for cold in colds)
    if is_cold_requested and labels != {"cold"} and labels & {"cold", "warm"}:
        return NOT_PROVED
    if len(labels) > 1:
        return ", ".join(sorted(labels))
    (label,) = labels
    if label == "cold" and any(HOST_ONLY in cold.limits for cold in colds):
        return f"cold on this host{_storage_words(colds)}; server cache unknown"
    if label == "cold":
        return f"cold{_storage_words(colds)}"
    if label == FIRST_EPOCH_COLD:
        return f"{label}{_amplification_words(colds) or _epoch_words(colds)}"
    shares = _storage_shares(colds)
    if label == "direct" and min(shares, default=1.0) < _FROM_DEVICE:
        return f"direct, {_percent_rounded_down(min(shares))} counted from a device"
    if label == "warm" and max(shares, default=0.0) > _FROM_STORAGE:
        return f"warm, {_percent_rounded_down(max(shares))} from storage"
    return label


def trial_badge(cold: Cold | None) -> str:
    """Return the badge of one trial: ``cold 100 %, cache-resident``; empty without a proof."""
    return "" if cold is None else badge_with_reason([cold])


def badge_with_reason(repeats: Sequence[Cold]) -> str:
    """Return the badge with its reason and ``cache-resident``, for terminals and tables."""
    reasons = [cold.why for cold in repeats if cold.why and cold.label == "warm"]
    if badge(repeats) == NOT_PROVED and reasons:
        return badge_with_residency(repeats, f": {reasons[0]}")
    return badge_with_residency(repeats)


def badge_with_residency(repeats: Sequence[Cold], reason: str = "") -> str:
    """Return the badge, with ``cache-resident`` if the data of any repeat may stay in memory."""
    text = f"{badge(repeats)}{reason}"
    if text and any(cold.cache_resident for cold in repeats):
        return f"{text}, cache-resident"
    return text


def _storage_words(colds: Sequence[Cold]) -> str:
    """Return the share from storage, or the amplification for reads of single samples."""
    shares = _storage_shares(colds)
    if len(shares) < len(colds):
        return ", by residency"
    return _amplification_words(colds) or f" {_percent_rounded_down(min(shares))}"


def _epoch_words(colds: Sequence[Cold]) -> str:
    """Return the share of the bytes of all epochs that came from storage."""
    shares = _storage_shares(colds)
    if len(shares) < len(colds):
        return ""
    return f", {_percent_rounded_down(min(shares))} of all bytes from storage"


def _amplification_words(colds: Sequence[Cold]) -> str:
    amplification = max((cold.amplification or 0.0 for cold in colds), default=0.0)
    return f", amplification {amplification:.3g}" if amplification > _AMPLIFIED else ""


def _storage_shares(colds: Sequence[Cold]) -> list[float]:
    """Return the shares from storage, at most 1: workers may have read ahead more than was used."""
    return [min(1.0, cold.physical_ratio) for cold in colds if cold.physical_ratio is not None]


def _percent_rounded_down(share: float) -> str:
    """Return a share in percent, rounded down, because 99.97 % is not 100 %."""
    return f"{int(share * 1000) / 10:g} %"
