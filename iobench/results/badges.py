"""PURE. Badges: the state of the page cache in a few words beside a figure."""

from __future__ import annotations

from collections.abc import Sequence

from iobench.results.numbers import percent_rounded_down, precise_number
from iobench.results.trial import FIRST_EPOCH_COLD, HOST_ONLY, Cold

NOT_PROVED = "cold requested, not proved"

_MAX_WARM_SHARE = 0.05
"""The badge of a warm figure has the share of bytes from storage if it is larger than this."""
_MIN_DIRECT_SHARE = 0.95
"""The badge of a direct figure has the share of bytes from storage if it is smaller than this."""
_MIN_AMPLIFICATION = 1.05
"""Amplification is bytes from storage / bytes read. The badge has it if it is larger than this."""


def badge(repeats: Sequence[Cold]) -> str:
    """Return the badge of a figure: the state of the page cache in all its repeats.

    - ``cold 100 %``: every repeat was proved cold. The percentage is the share of the bytes read
      that came from storage, the minimum over repeats. If read-ahead made storage give more bytes
      than were read, the badge has the amplification instead: ``cold, amplification 1.4``.
    - ``cold, by residency``: the share is unknown. The only proof is that the pages were not in
      memory before the trial.
    - ``cold on this host 100 %; server cache unknown``: one of these forms on NFS, Lustre, FUSE and
      other file systems with a server.
    - ``cold requested, not proved``: at least one repeat that should have been cold was not proved
      cold.
    - ``first epoch cold``: later epochs found the page cache as the epoch before them left it. The
      amplification follows, or the share of the bytes of all epochs that came from storage.
    - ``warm`` or ``warm, 12 % from storage``: the second form is for shares above 5 %.
    - ``direct`` or ``direct, 80 % counted from a device``: the reads bypassed the page cache. The
      second form is for shares below 95 %.
    - All other labels are shown as they are. Different labels are separated by commas.

    Args:
        repeats: the states of the page cache in all repeats.

    Returns:
        The badge; empty if the state is unknown.
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
    if label == "direct" and min(shares, default=1.0) < _MIN_DIRECT_SHARE:
        return f"direct, {percent_rounded_down(min(shares))} counted from a device"
    if label == "warm" and max(shares, default=0.0) > _MAX_WARM_SHARE:
        return f"warm, {percent_rounded_down(max(shares))} from storage"
    return label


def trial_badge(cold: Cold | None) -> str:
    """Return the badge of one trial: ``cold 100 %, cache-resident``; empty for ``None``."""
    return "" if cold is None else badge_with_reason([cold])


def badge_with_reason(repeats: Sequence[Cold]) -> str:
    """Return the badge for terminals and tables, with ``cache-resident`` if it applies.

    If the trial was not proved cold, the reason follows: ``cold requested, not proved: why``.
    """
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
    """Return how coldness was proved: by residency, by amplification or by a share.

    If the share of bytes from storage is unknown for a repeat, coldness was proved only by the
    pages that were in memory before the trial.
    """
    shares = _storage_shares(colds)
    if len(shares) < len(colds):
        return ", by residency"
    return _amplification_words(colds) or f" {percent_rounded_down(min(shares))}"


def _epoch_words(colds: Sequence[Cold]) -> str:
    """Return the share of the bytes of all epochs that came from storage.

    Empty if it is unknown for a repeat.
    """
    shares = _storage_shares(colds)
    if len(shares) < len(colds):
        return ""
    return f", {percent_rounded_down(min(shares))} of all bytes from storage"


def _amplification_words(colds: Sequence[Cold]) -> str:
    """Return the largest amplification by read-ahead; empty if there is none worth a mention."""
    amplification = max((cold.amplification or 0.0 for cold in colds), default=0.0)
    if amplification <= _MIN_AMPLIFICATION:
        return ""
    return f", amplification {precise_number(amplification)}"


def _storage_shares(colds: Sequence[Cold]) -> list[float]:
    """Return the shares of bytes that came from storage.

    A share is at most 1, although workers may have read more ahead than was used.
    """
    return [min(1.0, cold.physical_ratio) for cold in colds if cold.physical_ratio is not None]
