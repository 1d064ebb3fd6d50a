"""PURE. Badges: the state of the page cache in a few words beside a figure."""

from __future__ import annotations

from collections.abc import Sequence

from iobench.machine.coldness import FIRST_EPOCH_COLD, HOST_ONLY
from iobench.numbers import percent_rounded_down
from iobench.trial import Cold

NOT_SHOWN = "asked cold, not proved"
_FROM_STORAGE = 0.05  # a warm figure with less is simply warm
_FROM_A_DEVICE = 0.95
_AMPLIFIED = 1.05


def badge(repeats: Sequence[Cold]) -> str:
    """``cold 100 %``, ``warm``, ``direct``, ``server cache unknown``, ``asked cold, not proved``.

    ``cold`` shows the share of the bytes read that came from storage, the smallest of all repeats,
    or the amplification by read-ahead. ``warm`` shows that share if it is above 5 %. One repeat
    that was asked cold and not proved counts for all. On NFS, Lustre, FUSE and others, ``cold`` is
    ``cold on this host; server cache unknown``. Empty if nothing is known.
    """
    known = [one for one in repeats if one.label != "not applicable"]
    if not known:
        return ""
    labels = {one.label for one in known}
    asked_cold = any(one.asked == "cold" for one in known)
    if asked_cold and labels != {"cold"} and labels & {"cold", "warm"}:
        return NOT_SHOWN
    if len(labels) > 1:
        return ", ".join(sorted(labels))
    (label,) = labels
    if label == "cold" and any(HOST_ONLY in one.limits for one in known):
        return f"cold on this host{_of_storage(known)}; server cache unknown"
    if label == "cold":
        return f"cold{_of_storage(known)}"
    if label == FIRST_EPOCH_COLD:
        return f"{label}{_amplified(known) or _of_all(known)}"
    if label == "direct" and (share := min(_shares(known), default=1.0)) < _FROM_A_DEVICE:
        return f"direct, {percent_rounded_down(share)} counted from a device"
    if label == "warm" and (share := max(_shares(known), default=0.0)) > _FROM_STORAGE:
        return f"warm, {percent_rounded_down(share)} from storage"
    return label


def words(cold: Cold | None) -> str:
    """The badge of one trial in a line: ``cold 100 %, cache-resident``."""
    return "" if cold is None else shown([cold])


def shown(repeats: Sequence[Cold]) -> str:
    """The badge in a line, for terminals and tables, with its reason and ``cache-resident``."""
    reasons = [one.why for one in repeats if one.why and one.label == "warm"]
    has_reason = badge(repeats) == NOT_SHOWN and reasons
    return short(repeats, f": {reasons[0]}" if has_reason else "")


def short(repeats: Sequence[Cold], reason: str = "") -> str:
    """The badge, with ``cache-resident`` if that holds for any repeat."""
    found = f"{badge(repeats)}{reason}"
    if found and any(one.cache_resident for one in repeats):
        return f"{found}, cache-resident"
    return found


def _of_storage(known: Sequence[Cold]) -> str:
    """The share from storage; the amplification for reads of single samples."""
    shares = _shares(known)
    if len(shares) < len(known):
        return ", by residency"
    return _amplified(known) or f" {percent_rounded_down(min(shares))}"


def _of_all(known: Sequence[Cold]) -> str:
    shares = _shares(known)
    whole = len(shares) == len(known)
    return f", {percent_rounded_down(min(shares))} of all bytes from storage" if whole else ""


def _amplified(known: Sequence[Cold]) -> str:
    most = max((one.amplification or 0.0 for one in known), default=0.0)
    return f", amplification {most:.3g}" if most > _AMPLIFIED else ""


def _shares(known: Sequence[Cold]) -> list[float]:
    """Shares from storage, at most 1: workers may have read ahead more than was taken."""
    return [min(1.0, one.physical_ratio) for one in known if one.physical_ratio is not None]
