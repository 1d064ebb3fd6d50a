"""PURE. The top of the page: one sentence, two utilisations, what they rest on."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from iobench.report.model import watched
from iobench.report.model.cells import cache_badges
from iobench.report.model.numbers import as_estimate, interval, number, percent
from iobench.report.model.shapes import Badge, Figure
from iobench.result import Result
from iobench.summary.training import leading
from iobench.words import model_words

_INPUTS = (
    ("store", "from the store", "achieved from the object store"),
    ("cold", "cold", "achieved from storage, not a supply"),
    ("warm", "warm", "achieved from the page cache"),
)
_CEILING = "achieved samples/s ÷ what the same model consumes on data in the device's own memory"
_MLPERF = (
    "compute time ÷ running time, first step left out: MLPerf Storage’s formula on your own loop, "
    "no result of that benchmark"
)


def sentence(result: Result) -> str:
    """The run's verdict, or what became of the trials where there is none."""
    verdict = result.summary.get("verdict")
    if verdict:
        return re.sub(r"(?<=\d) %", "\u00a0%", str(verdict))
    if not result.trials:
        return "Nothing was measured yet: this run holds no trial."
    counts = _counts(result)
    if not counts["done"]:
        return f"Nothing was measured: {_tally(counts)}."
    return f"{_tally(counts)[0].upper()}{_tally(counts)[1:]}; no verdict was drawn."


def facts(result: Result) -> tuple[str, ...]:
    """When, how many trials, for how long."""
    counts = _counts(result)
    spent_s = sum(trial.seconds for trial in result.trials)
    said = [_when(result.started), _tally(counts)]
    if spent_s:
        said.append(f"{_duration(spent_s)} of measuring")
    return tuple(filter(None, said))


def badges(result: Result) -> tuple[Badge, ...]:
    """What qualifies the whole page."""
    found = []
    repeats = {trial.repeat for trial in result.trials if trial.status == "done"}
    if 0 < len(repeats) < 6:
        count = len(repeats)
        found.append(
            Badge(f"{count} repeat{'s' * (count != 1)}: smoke run, no interval of 95 %", "caution")
        )
    counts = _counts(result)
    if counts["failed"]:
        found.append(Badge(f"{counts['failed']} failed", "alert"))
    if counts["skipped"]:
        found.append(Badge(f"{counts['skipped']} skipped", "caution"))
    return tuple(found)


def figures(result: Result) -> tuple[Figure, ...]:
    """Those of the loop of which the verdict speaks; none where no loop was measured."""
    group = leading(training_groups(result))
    if not group:
        return watched.figures(result)
    marks = group_badges(result, group)
    consumer = "The devices consume" if group.get("devices") else "The device consumes"
    said = [
        _share(
            "au_ceiling", "share of the device’s ceiling", group.get("au_ceiling"), _CEILING, marks
        ),
        _share("au_mlperf", "by MLPerf Storage’s formula", group.get("au_mlperf"), _MLPERF, marks),
        _rate(consumer, group.get("consumes"), device(group), _emulated(group)),
        *(
            _rate(
                f"The loop gets, {words}",
                group.get(source),
                meaning,
                group_badges(result, group, source),
            )
            for source, words, meaning in _INPUTS
        ),
    ]
    return tuple(figure for figure in said if figure is not None)


def training_groups(result: Result) -> list[Mapping[str, Any]]:
    """What the summary says of each training loop."""
    stored = result.summary.get("training") or ()
    return [group for group in stored if isinstance(group, Mapping)]


def device(group: Mapping[str, Any]) -> str:
    """``ResNet-50 on NVIDIA H200, float16``."""
    model, where = model_words(str(group.get("model") or "")), group.get("device")
    if group.get("emulated"):
        name = str(where or group.get("consumer") or "a device")
        return name if "emulated" in name.lower() else f"{name} (emulated)"
    named = " on ".join(str(part) for part in (model, where) if part)
    return ", ".join(str(part) for part in (named, group.get("precision")) if part)


def title(group: Mapping[str, Any]) -> str:
    """What a training loop is called."""
    return str(group.get("group") or device(group))


def farthest(group: Mapping[str, Any]) -> str:
    """The input from the farthest that was measured: ``store``, ``cold`` or ``warm``."""
    measured = (source for source in ("store", "cold") if as_estimate(group.get(source)))
    return next(measured, "warm")


def group_badges(
    result: Result, group: Mapping[str, Any], source: str | None = None
) -> tuple[Badge, ...]:
    """How cold the loop's figures from ``source`` are, and whether its device is real.

    Without a source: from the farthest, on which its utilisations rest.
    """
    wanted = source or farthest(group)
    trials = [
        trial
        for trial in result.trials
        if trial.kind == "train"
        and trial.status == "done"
        and trial.params.get("group") == group.get("group")
        and trial.params.get("input") == wanted
    ]
    found = list(cache_badges(trials))
    if not any(badge.text != "cache-resident" for badge in found):
        if wanted == "warm":
            found.insert(0, Badge("warm"))
        elif wanted == "store":
            found.insert(0, Badge("server cache unknown", "caution"))
        elif group.get("cold_proved"):
            found.insert(0, Badge("cold (proved)", "good"))
        else:
            found.insert(0, Badge("asked cold, not proved: warm", "caution"))
    return (*_emulated(group), *found)


def _emulated(group: Mapping[str, Any]) -> tuple[Badge, ...]:
    return (Badge("emulated", "alert"),) if group.get("emulated") else ()


def _share(
    name: str, words: str, stored: Any, meaning: str, marks: tuple[Badge, ...]
) -> Figure | None:
    found = as_estimate(stored)
    if found is None:
        return None
    return Figure(
        f"{name}: {words}",
        percent(found.median),
        interval(found, percent),
        meaning,
        marks,
        leading=True,
    )


def _rate(name: str, stored: Any, meaning: str, marks: tuple[Badge, ...]) -> Figure | None:
    found = as_estimate(stored)
    if found is None:
        return None
    return Figure(name, f"{number(found.median)} samples/s", interval(found), meaning, marks)


def _counts(result: Result) -> Counter[str]:
    return Counter(trial.status for trial in result.trials)


def _tally(counts: Mapping[str, int]) -> str:
    total = sum(counts.values())
    shown = f"{total:,}".replace(",", "\u202f")
    parts = [
        f"{counts[status]} {status}" for status in ("done", "failed", "skipped") if counts[status]
    ]
    return f"{shown} trial{'s' * (total != 1)}: {', '.join(parts)}" if parts else "no trials"


def _duration(spent_s: float) -> str:
    if spent_s < 120:
        return f"{number(spent_s)} s"
    return f"{number(spent_s / 60)} min" if spent_s < 7200 else f"{number(spent_s / 3600)} h"


def _when(started: str) -> str:
    try:
        moment = datetime.fromisoformat(started)
    except ValueError:
        return started
    return f"{moment.day} {moment:%B %Y, %H:%M} UTC"
