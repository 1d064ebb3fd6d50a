"""PURE. The ladder of each training loop: from what its device consumes down to what it got."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from iobench.report.model.cells import cache_badges
from iobench.report.model.drawings import Fall, Tip, Waterfall
from iobench.report.model.numbers import as_estimate, between, interval, number, percent
from iobench.report.model.shapes import Badge, Block, Chart, Entry, Key, Section, Table, Words
from iobench.result import Result
from iobench.stats import Estimate

_UNIT = "seconds per 1,000 samples"
_DEVICE, _PREPARING, _READING, _GOT = 2, 4, 1, 0
_COLOURS = {"synthetic": _DEVICE, "warm": _READING, "cold": _READING, "store": _READING}
_KEYS = (
    Key("the device, on data in its own memory", "■", _DEVICE),
    Key("copying, collating, augmenting, decoding", "■", _PREPARING),
    Key("reading", "■", _READING),
    Key("what the loop got", "■", _GOT),
)
_NOTE = (
    "The same loop again with one more real part each time: what a part adds becomes visible in "
    "this order, since parts overlap. Pale: cannot be told from none. Thin, reaching back: the "
    "loop was faster with it. Differences are taken within repeats: their medians add up to that "
    "of the whole loop as far as repeats agree."
)
_COLUMNS = ("rung", "cache", "s per 1,000 samples", "adds", "share of the loop")


def section(result: Result) -> Section | None:
    """A waterfall and a table for each loop; None where there is no ladder to climb."""
    found = shown(result)
    blocks = tuple(block for entry in found for block in _blocks(result, entry))
    return Section("ladder", "The ladder", blocks) if blocks else None


def shown(result: Result) -> list[Mapping[str, Any]]:
    """The ladders that are drawn: from the device to something farther."""
    stored = result.summary.get("ladder") or ()
    return [
        entry
        for entry in stored
        if isinstance(entry, Mapping) and as_estimate(entry.get("stall")) is not None
    ]


def _blocks(result: Result, entry: Mapping[str, Any]) -> Iterator[Block]:
    rungs = [rung for rung in entry.get("rungs") or () if _time(rung) is not None]
    falls = (*_falls(result, entry, rungs), *_got(entry, rungs))
    drawn = {fall.colour for fall in falls}
    yield Chart(
        f"The ladder: {_named(entry)}",
        Waterfall(_UNIT, falls),
        tuple(key for key in _KEYS if key.colour in drawn),
        _NOTE,
        _badges(result, entry),
        wide=True,
    )
    before = [None, *(rung["rung"] for rung in rungs)]
    rows = tuple(
        _row(result, entry, rung, beside=rung.get("above") != upper)
        for rung, upper in zip(rungs, before, strict=False)
    )
    yield Table(f"Rungs: {_named(entry)}{_sure(entry)}", _COLUMNS, rows)
    if missing := _missing(entry):
        yield Words((f"Not measured: {missing}.",))


def _falls(
    result: Result, entry: Mapping[str, Any], rungs: Sequence[Mapping[str, Any]]
) -> Iterator[Fall]:
    ends: dict[Any, float] = {}
    for rung in rungs:
        above = rung.get("above")
        start = ends.get(above, 0.0)
        part = _scaled(rung.get("part") if above in ends else rung.get("seconds_per_sample"))
        if part is None:
            continue
        ends[rung["rung"]] = end = start + part.median
        share = as_estimate(rung.get("share"))
        said = f"{number(part.median)} s" + (f", {percent(share.median)}" if share else "")
        yield Fall(
            label=str(rung.get("words") or rung["rung"]),
            start=start,
            end=end,
            low=start + part.low,
            high=start + part.high,
            said=said,
            colour=_COLOURS.get(rung["rung"], _PREPARING),
            tip=_tip(result, entry, rung, part),
            pale=above in ends and not rung.get("tells"),
        )


def _got(entry: Mapping[str, Any], rungs: Sequence[Mapping[str, Any]]) -> Iterator[Fall]:
    """The whole, from 0: the last row."""
    for rung in rungs:
        whole = _scaled(rung.get("seconds_per_sample"))
        if rung["rung"] == entry.get("farthest") and whole is not None:
            said = f"{number(whole.median)} s"
            tip = Tip("what the loop got", f"{said} per 1,000 samples", between(whole))
            yield Fall(
                *("what the loop got", 0.0, whole.median, whole.low, whole.high, said, _GOT, tip)
            )


def _tip(result: Result, entry: Mapping[str, Any], rung: Mapping[str, Any], part: Estimate) -> Tip:
    return Tip(
        str(rung.get("words") or rung["rung"]),
        f"{number(part.median)} s per 1,000 samples",
        interval(part),
        str(part.repeats),
        ", ".join(badge.text for badge in _cache(result, entry, rung)),
    )


def _row(
    result: Result, entry: Mapping[str, Any], rung: Mapping[str, Any], *, beside: bool
) -> tuple[Entry, ...]:
    """``beside``: it is compared with another rung than that of the row above."""
    cache = ", ".join(badge.text for badge in _cache(result, entry, rung))
    against = f"compared with {rung.get('above')}" if beside and rung.get("above") else ""
    return (
        Entry(str(rung.get("words") or rung["rung"]), note=against),
        Entry(cache),
        _figure(_scaled(rung.get("seconds_per_sample")), number),
        _figure(_scaled(rung.get("part")), number),
        _figure(as_estimate(rung.get("share")), percent),
    )


def _figure(found: Estimate | None, say: Callable[[float], str]) -> Entry:
    if found is None:
        return Entry("")
    return Entry(say(found.median), repr(found.median), True, between(found, say))


def _sure(entry: Mapping[str, Any]) -> str:
    """What stands below the figures, in words."""
    found = as_estimate(entry.get("stall"))
    if found is None or found.repeats <= 1:
        return ", 1 repeat, no intervals"
    if found.coverage < 0.95:
        return f", all of {found.repeats} repeats (no 95 % intervals)"
    return f", {percent(found.coverage)} intervals of {found.repeats} repeats"


def _cache(result: Result, entry: Mapping[str, Any], rung: Mapping[str, Any]) -> tuple[Badge, ...]:
    """How cold a rung was shown to be."""
    return cache_badges(
        [
            trial
            for trial in result.trials
            if trial.kind == "train"
            and trial.status == "done"
            and trial.cold is not None
            and trial.params.get("group") == entry.get("group")
            and trial.params.get("input") == rung["rung"]
        ]
    )


def _badges(result: Result, entry: Mapping[str, Any]) -> tuple[Badge, ...]:
    emulated = (Badge("emulated", "alert"),) if entry.get("emulated") else ()
    return (*emulated, *_cache(result, entry, {"rung": entry.get("farthest")}))


def _missing(entry: Mapping[str, Any]) -> str:
    """Rungs by what is the matter with them."""
    reasons: dict[str, list[str]] = {}
    for rung, why in (entry.get("not_measured") or {}).items():
        reasons.setdefault(str(why), []).append(str(rung))
    return "; ".join(f"{', '.join(rungs)}: {why}" for why, rungs in reasons.items())


def _named(entry: Mapping[str, Any]) -> str:
    emulated = " (emulated)" if entry.get("emulated") else ""
    return f"{entry.get('group', '')}{emulated}"


def _time(rung: Mapping[str, Any]) -> float | None:
    found = _scaled(rung.get("seconds_per_sample"))
    return found.median if found else None


def _scaled(stored: Any) -> Estimate | None:
    """Seconds per 1,000 samples."""
    found = as_estimate(stored)
    if found is None:
        return None
    median, low, high = (1000 * value for value in (found.median, found.low, found.high))
    return Estimate(median, low, high, found.coverage, found.repeats)
