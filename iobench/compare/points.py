"""PURE. Trials of two runs by their point: in both, or in one alone.

A point is a kind with its params, repeats pooled, and what the cache was shown to hold: a repeat
that was not cold is no repeat of one that was. So cold is never held against warm.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from dataprep.counted import counted
from dataprep.names import escape
from iobench.compare.names import Key, key_of, named
from iobench.report.model.cells import cache_label
from iobench.trial import Params, Trial

Why = Literal["missing", "stopped", "coldness", "figure", "device"]


@dataclass(frozen=True, slots=True)
class Point:
    """``name`` is escaped. ``cache`` is what was shown: ``cold (proved)``, ``warm``, ..."""

    key: Key
    name: str
    kind: str
    params: Params
    cache: str

    @property
    def title(self) -> str:
        """The name, with what the cache was shown to hold where the name does not say it."""
        asked = {self.params.get("cache"), self.params.get("input"), ""}
        return self.name if self.cache in asked else f"{self.name} [{escape(self.cache)}]"


@dataclass(frozen=True, slots=True)
class Pair:
    """The trials of one point that were done, in both runs."""

    point: Point
    base: Sequence[Trial]
    new: Sequence[Trial]


@dataclass(frozen=True, slots=True)
class Apart:
    """What was not compared, or not with all its repeats. ``said`` is escaped.

    ``why``: ``missing`` in one run, ``stopped`` (failed or skipped), ``coldness`` differs, a
    ``figure`` that some repeats lack, or compared although the ``device`` was another.
    """

    name: str
    why: Why
    said: str


@dataclass
class _Gathered:
    kind: str
    params: Params
    done: dict[str, list[Trial]] = field(default_factory=dict)  # by what the cache held
    stopped: list[Trial] = field(default_factory=list)

    @property
    def count(self) -> int:
        return sum(map(len, self.done.values()))


def match(base: Iterable[Trial], new: Iterable[Trial]) -> tuple[list[Pair], list[Apart]]:
    """Pairs in the order of ``base``, and everything that is in no pair."""
    before, after = _gathered(base), _gathered(new)
    every = {**after, **before}
    names = named((one.kind, one.params) for one in every.values())
    pairs: list[Pair] = []
    apart: list[Apart] = []
    for key in dict.fromkeys([*before, *after]):
        known = every[key]
        nothing = _Gathered(known.kind, known.params)
        sides = before.get(key, nothing), after.get(key, nothing)
        for cache in sides[0].done:
            if cache in sides[1].done:
                point = Point(key, names[key], known.kind, known.params, cache)
                pairs.append(Pair(point, sides[0].done[cache], sides[1].done[cache]))
        apart += [Apart(names[key], why, said) for why, said in _apart(*sides)]
    return pairs, apart


def _gathered(trials: Iterable[Trial]) -> dict[Key, _Gathered]:
    found: dict[Key, _Gathered] = {}
    for trial in trials:
        key = key_of(trial.kind, trial.params)
        one = found.setdefault(key, _Gathered(trial.kind, trial.params))
        if trial.status == "done":
            one.done.setdefault(cache_label([trial]), []).append(trial)
        else:
            one.stopped.append(trial)
    return found


def _apart(base: _Gathered, new: _Gathered) -> Iterator[tuple[Why, str]]:
    sides: Mapping[str, _Gathered] = {"base": base, "new": new}
    for where, side in sides.items():
        for (status, reason), count in Counter((t.status, t.reason) for t in side.stopped).items():
            of = f"{count} of {side.count + len(side.stopped)}"
            yield "stopped", f"{of} repeats {status} in {where}: {escape(reason)}"
    if base.done and new.done:
        alone = [*_alone("base", base, new), *_alone("new", new, base)]
        if alone:
            yield "coldness", ", ".join(alone)
        return
    for where, side, other in (("base", base, new), ("new", new, base)):
        if side.done and not other.stopped:
            yield "missing", f"only in {where} ({counted(side.count, 'repeat')})"


def _alone(where: str, side: _Gathered, other: _Gathered) -> Iterator[str]:
    """Repeats that were shown to be what no repeat of the other run was."""
    for cache, trials in side.done.items():
        if cache not in other.done:
            yield f"{len(trials)} {escape(cache) or 'without a label'} in {where}"
