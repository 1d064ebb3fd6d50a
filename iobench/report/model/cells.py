"""PURE. Trials that repeat each other, as one measured cell."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from iobench import badges
from iobench.report.model.numbers import is_number
from iobench.report.model.shapes import Badge, Entry, Tone
from iobench.stats import Estimate, estimate
from iobench.trial import Params, Trial

PROVED = "cold (proved)"
NOT_PROVED = "not proved cold"


@dataclass(frozen=True, slots=True)
class Cell:
    """Repeats of one set of params. ``cache`` is what was shown, not what was asked."""

    params: Params
    trials: tuple[Trial, ...]
    cache: str

    @property
    def shown(self) -> str:
        """The badge in words: ``cold 100 %, cache-resident``."""
        return ", ".join(badge.text for badge in cache_badges(self.trials)) or self.cache

    @property
    def cache_entry(self) -> Entry:
        """The same in a table, what was not shown with the reason below."""
        colds = [trial.cold for trial in self.trials if trial.cold is not None]
        text = badges.badge(colds) or self.cache
        notes = [badges.doubt(colds) if text == badges.NOT_SHOWN else ""]
        notes.append("cache-resident" if badges.is_cache_resident(colds) else "")
        return Entry(text, note=", ".join(filter(None, notes)))

    def figure(self, metric: str) -> Estimate | None:
        """The metric over the repeats that have it."""
        values = [
            float(trial.metrics[metric])
            for trial in self.trials
            if is_number(trial.metrics.get(metric))
        ]
        return estimate(values) if values else None


def cells(trials: Iterable[Trial], kind: str) -> list[Cell]:
    """Cells of the trials of ``kind`` that were done, in their order."""
    groups: dict[str, list[Trial]] = {}
    for trial in trials:
        if trial.kind == kind and trial.status == "done":
            key = json.dumps(dict(trial.params), sort_keys=True, default=str)
            groups.setdefault(key, []).append(trial)
    return [Cell(group[0].params, tuple(group), cache_label(group)) for group in groups.values()]


def cache_label(trials: Sequence[Trial]) -> str:
    """``cold (proved)``, ``warm``, ``direct``, ``server cache unknown``, or what was not shown.

    One trial that could not be shown cold takes the proof from all its repeats.
    """
    labels = {_label(trial) for trial in trials} - {""}
    if labels == {"cold"}:
        return PROVED
    asked = {trial.cold.asked for trial in trials if trial.cold}
    if "cold" in asked | labels and labels & {"cold", "warm"}:
        return NOT_PROVED
    return ", ".join(sorted(labels))


def cache_badges(trials: Sequence[Trial]) -> tuple[Badge, ...]:
    """The label as a badge with the share of storage, and whether later epochs come from memory."""
    label = cache_label(trials)
    colds = [trial.cold for trial in trials if trial.cold is not None]
    text = badges.badge(colds) or label
    if NOT_PROVED in (text, label):
        why = badges.doubt(colds)
        text = f"{badges.NOT_SHOWN}: {why}" if why else badges.NOT_SHOWN
    found = []
    if text:
        tone: Tone = "plain"
        if label == PROVED:
            tone = "good"
        elif label not in ("warm", "direct"):
            tone = "caution"
        found.append(Badge(text, tone))
    if badges.is_cache_resident(colds):
        found.append(Badge("cache-resident", "caution"))
    return tuple(found)


def _label(trial: Trial) -> str:
    if trial.cold is None:
        asked = trial.params.get("cache", "")
        # Nothing was shown: what was asked cold is not cold.
        return "warm" if asked == "cold" else str(asked or "")
    return "" if trial.cold.label == "not applicable" else trial.cold.label
