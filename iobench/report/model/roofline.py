"""PURE. Measured rates against what link, volume and device can do at most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from iobench.report.model.curves import MARKS
from iobench.report.model.drawings import Curve, Curves, Point, Tip
from iobench.report.model.numbers import (
    as_estimate,
    between,
    is_number,
    number,
    percent,
    size,
)
from iobench.report.model.shapes import Badge, Block, Chart, Entry, Key, Section, Table, Words
from iobench.report.model.verdict import training_groups
from iobench.result import Result

_VERDICTS = {
    "within": "within",
    "beyond": "beyond: a cache",
    "above-guaranteed": "above what is guaranteed",
    "cache": "page cache",
    "unknown": "unknown",
}
_COLUMNS = ("place", "measured", "MB/s", "limit, MB/s", "share", "what it is")
_MOST_OPEN = 16
_MOST_CEILINGS = 4
_NO_NUMBER = Entry("", is_number=True)
_NOTE = (
    "Limits are those of the kernel (PCI Express lanes, SATA, network cards), of a dated file, or "
    "your own (limits in the config); the lowest that applies is shown. What nobody tells is "
    "unknown and not guessed."
)
_CHART_NOTE = (
    "A line is a limit in MB/s divided by the stored bytes of a sample: the smaller samples are "
    "stored, the more of them it lets through. What lies above a line did not come through it."
)


def section(result: Result) -> Section | None:
    """The table, and a roofline where samples and a limit are known; none without a rate."""
    rows = _stored(result)
    if not rows:
        return None
    table = Table(
        "Measured rates and the limits on their way",
        _COLUMNS,
        tuple(_cells(row) for row in rows),
        folded=len(rows) > _MOST_OPEN,
    )
    blocks: tuple[Block, ...] = (*_chart(result, rows), table, Words((*_sources(rows), _NOTE)))
    return Section("roofline", "Against what the machine can do", blocks)


def badges(result: Result) -> tuple[Badge, ...]:
    """One for the whole page, where a rate is above its limit."""
    places = dict.fromkeys(
        str(row.get("place")) for row in _stored(result) if row.get("verdict") == "beyond"
    )
    if not places:
        return ()
    return (Badge(f"faster than its limit: {', '.join(places)}: a cache", "alert"),)


def _stored(result: Result) -> list[Mapping[str, Any]]:
    stored = result.summary.get("roofline") or ()
    return [row for row in stored if isinstance(row, Mapping) and as_estimate(row.get("mb_per_s"))]


def _cells(row: Mapping[str, Any]) -> tuple[Entry, ...]:
    found = as_estimate(row["mb_per_s"])
    assert found is not None  # noqa: S101  rows without are left out
    limit, share = row.get("limit_mb_per_s"), row.get("share")
    verdict = str(row.get("verdict", "unknown"))
    # A limit that does not bind is no measure of what came from memory.
    binds = verdict not in ("cache", "unknown")
    about = str(row.get("limit_of") or "")
    return (
        Entry(str(row.get("place"))),
        Entry(str(row.get("what"))),
        Entry(number(found.median), repr(found.median), True, between(found)),
        Entry(number(limit), repr(limit), True, about) if is_number(limit) else _NO_NUMBER,
        Entry(percent(share), repr(share), True) if is_number(share) and binds else _NO_NUMBER,
        Entry(_VERDICTS.get(verdict, verdict)),
    )


def _sources(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Who says what the limits are, and why there is none, once each."""
    told = dict.fromkeys(
        f"{row['limit_of']} by {row.get('limit_source')}" for row in rows if row.get("limit_of")
    )
    if told:
        yield f"Limits: {'; '.join(told)}."
    unknown: dict[str, dict[str, None]] = {}
    for row in rows:
        if row.get("why"):
            unknown.setdefault(str(row["why"]), {})[str(row.get("place"))] = None
    for why, places in unknown.items():
        yield f"No limit is known for {', '.join(places)}: {why}."


def _chart(result: Result, rows: Sequence[Mapping[str, Any]]) -> Iterator[Chart]:
    """Samples/s over stored bytes of a sample, under the limits of those places."""
    seen = [row for row in rows if is_number(row.get("sample_bytes"))]
    if not seen:
        return
    sizes = [float(row["sample_bytes"]) for row in seen]
    low, high = min(sizes) / 1.5, max(sizes) * 1.5
    lines = list(_ceilings(seen, low, high))[:_MOST_CEILINGS]
    lines += _devices(result, low, high, len(lines))
    if not lines:
        return
    curves = (*lines, *_measured(seen, len(lines)))
    named = {curve.name: curve.colour for curve in curves}
    keys = tuple(Key(name, MARKS[colour], colour) for name, colour in named.items())
    drawing = Curves(
        "stored bytes a sample, kB", "samples/s", curves, log_x=True, log_y=True, zero=False
    )
    yield Chart("Roofline", drawing, keys, _CHART_NOTE, wide=True)


def _ceilings(rows: Sequence[Mapping[str, Any]], low: float, high: float) -> Iterator[Curve]:
    limits = {
        str(row["limit_of"]): float(row["limit_mb_per_s"])
        for row in rows
        if is_number(row.get("limit_mb_per_s"))
    }
    for colour, (name, rate) in enumerate(limits.items()):
        tip = Tip(name, f"{number(rate)} MB/s")
        points = tuple(_point(each, rate * 1e6 / each, tip) for each in (low, high))
        yield Curve(f"{name}: {number(rate)} MB/s", colour, points)


def _devices(result: Result, low: float, high: float, colour: int) -> Iterator[Curve]:
    """What the first training loop's device consumes, whatever the size of a sample."""
    for group in training_groups(result)[:1]:
        found = as_estimate(group.get("consumes"))
        if found is not None:
            tip = Tip("the device consumes", f"{number(found.median)} samples/s")
            points = tuple(_point(each, found.median, tip) for each in (low, high))
            yield Curve("the device consumes", colour, points)


def _measured(rows: Sequence[Mapping[str, Any]], after: int) -> Iterator[Curve]:
    named = {"loader": "loaders", "train": "training loops"}
    for number_, (kind, name) in enumerate(named.items()):
        points = tuple(
            _point(float(row["sample_bytes"]), float(row["samples_per_s"]), _tip(row))
            for row in sorted(rows, key=lambda row: float(row["sample_bytes"]))
            if row.get("by") == kind and is_number(row.get("samples_per_s"))
        )
        for point in points:
            yield Curve(name, after + number_, (point,))


def _tip(row: Mapping[str, Any]) -> Tip:
    return Tip(
        str(row.get("what")),
        f"{number(row['samples_per_s'])} samples/s of {size(round(row['sample_bytes']))}",
    )


def _point(sample_bytes: float, samples_per_s: float, tip: Tip) -> Point:
    return Point(sample_bytes / 1e3, samples_per_s, samples_per_s, samples_per_s, tip)
