"""PURE. Access modes beside each other: which is best for a first epoch, and which from then on.

Of two modes one is called better only where the intervals of their medians do not overlap, and
cover 95 %: what the intervals do not tell apart is not told apart here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from iobench.access.modes import MODES
from iobench.summary.points import by_point, cold_label, figure
from iobench.trial import Params, Trial
from iobench.words import number_words

_FIGURES = (
    *("time_to_first_batch_s", "first_epoch_s", "steady_samples_per_s", "samples_per_s"),
    *("disk_needed_bytes", "memory_needed_bytes", "shuffle_buffer_bytes"),
    *("store_read_bytes", "store_requests", "whole_epochs", "data_bytes", "memory_limit_bytes"),
)
# What the modes are compared over: all else must be alike.
_HOW = {"access", "loader", "data", "cache", "connections", "shuffle_buffer", "workers", "prefetch"}
_PLAIN = ("loader", "data", "cache")
_TELLING = (*_PLAIN, "workers", "prefetch", "connections", "shuffle_buffer")
_COVERAGE = 0.95
Entry = Mapping[str, Any]


def access_modes(trials: Iterable[Trial]) -> list[dict[str, Any]]:
    """One entry a point of a loader or a training loop that has a mode: params and figures.

    ``cache_resident`` where later epochs of so much data may come from memory.
    """
    done = list(trials)
    return [
        _entry(kind, params, repeats)
        for kind in ("loader", "train")
        for params, repeats in by_point(done, kind)
        if params.get("access") in MODES
    ]


def sentences(entries: Sequence[Entry]) -> list[str]:
    """One for each kind of work that modes were compared at; none where there is one mode alone."""
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry["kind"] == "loader":
            groups.setdefault(json.dumps(entry["work"], sort_keys=True), []).append(entry)
    return [_sentence(group) for group in groups.values() if len(group) > 1]


def telling(entries: Sequence[Entry]) -> list[str]:
    """Params in which entries of one mode differ."""
    return [key for key in _TELLING if any(_differ(mode, key) for mode in _by_mode(entries))]


def _by_mode(entries: Sequence[Entry]) -> list[list[Entry]]:
    return [[entry for entry in entries if entry["access"] == mode] for mode in MODES]


def _differ(entries: Sequence[Entry], key: str) -> bool:
    return len({str(entry[key]) for entry in entries if key in entry}) > 1


def named(entry: Entry, keys: Sequence[str], *more: str) -> str:
    """``file``, or ``file (torch-map)`` with those of ``keys`` that it has; then ``more``."""
    told = ", ".join([*(_told(entry, key) for key in keys if key in entry), *more])
    return f"{entry['access']} ({told})" if told else str(entry["access"])


def _told(entry: Entry, key: str) -> str:
    return str(entry[key]) if key in _PLAIN else f"{key.replace('_', ' ')} {entry[key]}"


def _entry(kind: str, params: Params, repeats: Sequence[Trial]) -> dict[str, Any]:
    cold = [trial.cold.cache_resident for trial in repeats if trial.cold is not None]
    return {
        **params,
        "kind": kind,
        "label": cold_label(repeats),
        "cache_resident": any(cold),
        "work": {key: value for key, value in params.items() if key not in _HOW},
        **{name: figure(repeats, name) for name in _FIGURES},
    }


def _sentence(group: Sequence[Entry]) -> str:
    first = _best(group, "first_epoch_s", lower=True)
    later = _best(group, "steady_samples_per_s", lower=False)
    if not first and not later:
        return "No epoch was seen to its end, so that modes cannot be compared: set epochs: 2."
    if not first or not later:
        return "No second epoch was seen to its end: set epochs: 2 to compare modes."
    if not (_bears(group, "first_epoch_s") and _bears(group, "steady_samples_per_s")):
        return "Too few repeats to call a mode the best: intervals cover 95 % from 6 on."
    keys = telling(group)
    begun = _said(first, "first_epoch_s", "s", keys)
    then = _said(later, "steady_samples_per_s", "samples/s", keys)
    return f"For a first epoch {begun}; from the second one on {then}."


def _best(group: Sequence[Entry], key: str, *, lower: bool) -> list[Entry]:
    """The best first, then those whose intervals overlap with its own."""
    measured = [entry for entry in group if entry[key]]
    ranked = sorted(measured, key=lambda entry: entry[key]["median"], reverse=not lower)
    if len(ranked) < 2:
        return []
    best = ranked[0][key]
    return [
        entry
        for entry in ranked
        if entry[key]["low"] <= best["high"] and best["low"] <= entry[key]["high"]
    ]


def _bears(group: Sequence[Entry], key: str) -> bool:
    return all(entry[key]["coverage"] >= _COVERAGE for entry in group if entry[key])


def _said(best: Sequence[Entry], key: str, unit: str, keys: Sequence[str]) -> str:
    told = [named(e, keys, f"{number_words(e[key]['median'])} {unit}") for e in best]
    if len(told) == 1:
        return f"{told[0]} is the best"
    return f"{', '.join(told[:-1])} and {told[-1]} cannot be told apart as the best"
