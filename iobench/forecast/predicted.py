"""PURE. What one step of a run will take, move and ask for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from iobench.forecast.bounds import NOTHING, Bounds, total
from iobench.requests import Requests

_MOVED = ("disk_read", "disk_written", "store_read", "store_written")


@dataclass(frozen=True, slots=True)
class Predicted:
    """A trial, or data that are made first.

    Attributes:
        seconds: how long it lasts; a trial at most ``trial_timeout_s``.
        likely_s: how long it probably lasts, by measurement or by what is assumed; None where
            that depends on what nobody knows beforehand.
        disk_read, disk_written: bytes that a disk is asked for or given.
        store_read, store_written: bytes that a store is asked for or given.
        store: which store, a key of ``Facts.stores``; empty for none.
        requests: the fewest and the most that are sent; the most are None where nothing bounds
            them.
        unknown: what cannot be predicted, and what it depends on.
        assumed: what the figures rest on.
    """

    seconds: Bounds = NOTHING
    likely_s: float | None = 0.0
    disk_read: Bounds = NOTHING
    disk_written: Bounds = NOTHING
    store_read: Bounds = NOTHING
    store_written: Bounds = NOTHING
    store: str = ""
    requests: tuple[Requests, Requests | None] = (Requests(), Requests())
    unknown: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()


def moved(steps: Iterable[Predicted]) -> dict[str, Bounds]:
    """Bytes of all steps, by ``disk_read`` and so on."""
    steps = list(steps)
    return {name: total(getattr(step, name) for step in steps) for name in _MOVED}


def requests_of(steps: Iterable[Predicted]) -> tuple[Requests, Requests | None]:
    """The fewest and the most of all steps."""
    low, high = Requests(), Requests()
    open_ended = False
    for step in steps:
        low += step.requests[0]
        if step.requests[1] is None:
            open_ended = True
        else:
            high += step.requests[1]
    return low, None if open_ended else high
