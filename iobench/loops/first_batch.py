"""PURE. The time to a loop's first batch, in the parts that its loader can tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum
from typing import NamedTuple

from iobench.loaders import Loader, SplitsFirstBatch

_ROUNDING_S = 1e-9


class Split(NamedTuple):
    """``first_batch_listing_s`` and so on, seconds, the rest last; empty where nothing is told."""

    metrics: Mapping[str, float] = {}
    notes: Sequence[str] = ()


def first_batch(loader: Loader, time_to_first_batch_s: float) -> Split:
    """Parts and rest, which together are ``time_to_first_batch_s``.

    Parts that cannot be those of that time are left out, all of them, and a note says so.
    """
    told = loader.first_batch() if isinstance(loader, SplitsFirstBatch) else None
    given = told._asdict() if told else {}
    parts = {name: seconds for name, seconds in given.items() if seconds is not None}
    if not parts:
        return Split()
    sum_s = fsum(parts.values())
    parts["rest_s"] = time_to_first_batch_s - sum_s
    if not all(seconds >= -_ROUNDING_S for seconds in parts.values()):
        return Split(
            notes=(
                "the loader's parts of its first batch are left out: they add up to "
                f"{sum_s:.6g} s of {time_to_first_batch_s:.6g} s, or one is negative",
            )
        )
    return Split({f"first_batch_{name}": max(seconds, 0.0) for name, seconds in parts.items()})
