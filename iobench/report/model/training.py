"""PURE. The training loop: where its time goes, synthetic, warm and cold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from iobench.report.model import ladder, ranks
from iobench.report.model.cells import cells
from iobench.report.model.drawings import Part, Pile, Piles, Tip
from iobench.report.model.numbers import as_estimate, interval, number, percent
from iobench.report.model.params import worded
from iobench.report.model.shapes import Block, Chart, Entry, Key, Section, Table, Words
from iobench.report.model.steps import step_charts
from iobench.report.model.verdict import device, farthest, group_badges, title, training_groups
from iobench.result import Result
from iobench.stats import Estimate

Series = Mapping[str, Mapping[str, Sequence[float]]]

_UNIT = "seconds per 1,000 samples"
_STAGES = (
    ("device", "T1: the same loop on data in the device's memory", 2),
    ("preparation stall", "T3 − T1: decode, augment, collate, copy", 4),
    ("fetch stall", "T2 − T3: reading from storage", 1),
    ("stall", "T2 − T1: preparing and reading, not told apart", 3),
)
_FIGURES: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("consumes", "the device consumes, samples/s", number),
    ("warm", "the loop gets warm, samples/s", number),
    ("cold", "the loop gets cold, samples/s", number),
    ("store", "the loop gets from the store, samples/s", number),
    ("au_ceiling", "au_ceiling", percent),
    ("au_mlperf", "au_mlperf", percent),
    ("stall_fraction", "stall fraction", percent),
    ("preparation_stall", "preparation stall, (T3 − T1) ÷ T2", percent),
    ("fetch_stall", "fetch stall, (T2 − T3) ÷ T2", percent),
)


def section(result: Result, series: Series) -> Section | None:
    """Stacked seconds, utilisations and stalls of each loop, and steps over time."""
    groups = training_groups(result)
    # A loop alone stands in its ladder already; of several this is what compares them.
    drawn = {entry["group"] for entry in ladder.shown(result)} if len(groups) == 1 else set()
    apart = [group for group in groups if group.get("group") not in drawn]
    piles = tuple(pile for group in apart if (pile := _pile(result, group)) is not None)
    charts: list[Chart] = []
    if piles:
        drawn = {part.colour for pile in piles for part in pile.parts}
        keys = tuple(
            Key(f"{name} ({meaning})", "■", colour)
            for name, meaning, colour in _STAGES
            if colour in drawn
        )
        note = (
            "Differences of wall times of the same loop, so that they add up to the whole loop; "
            "a negative one is drawn reaching back, not clipped. Shares of time waiting, in the "
            "tables, are something else: what loops spent until next() gave a batch. They need not "
            "be the stalls, since loops also wait while a device still computes, and loading also "
            "slows what it runs beside."
        )
        charts.append(Chart("Where the time goes", Piles(_UNIT, piles), keys, note, wide=True))
    made = (_stalls(result, groups), _scaling(result), ranks.table(result), _latencies(result))
    tables = [table for table in made if table]
    steps = step_charts(result, series)
    blocks: tuple[Block, ...] = (*charts, *tables, *steps, *_notes(result))
    return Section("training", "The training loop", blocks) if blocks else None


def _scaling(result: Result) -> Table | None:
    """A row for each number of devices; None if every loop has a single number."""
    found = result.summary.get("scaling", ())
    if not found:
        return None
    rows = []
    for row in found:
        rate, efficiency = as_estimate(row["samples_per_s"]), as_estimate(row["efficiency"])
        rows.append(
            (
                Entry(f"{row['model']}, {row['loader']}"),
                Entry(str(row["input"])),
                Entry(str(row["devices"]), is_number=True),
                _told(rate, number),
                _told(efficiency, percent),
            )
        )
    columns = ("loop", "input", "devices", "samples/s", "scaling efficiency")
    title = (
        "Scaling: the rate of N devices over N times the rate of one (published: 97.5 % from 4 to "
        "8 GPUs, 92 % at 64, 90 % at 256)"
    )
    return Table(title, columns, tuple(rows))


def _told(found: Estimate | None, say: Callable[[float], str]) -> Entry:
    if found is None:
        return Entry("")
    return Entry(f"{say(found.median)} ({interval(found, say)})", repr(found.median), True)


def _times(group: Mapping[str, Any]) -> dict[str, float]:
    """Seconds per 1,000 samples by input: ``consumes``, ``warm``, the farthest; those there are."""
    # Where the farthest cannot be split, warm is no step on the way there.
    warm = ("warm",) if as_estimate(group.get("preparation_stall")) else ()
    inputs = dict.fromkeys(("consumes", *warm, farthest(group)))
    rates = {key: as_estimate(group.get(key)) for key in inputs}
    times = {key: 1000 / rate.median for key, rate in rates.items() if rate and rate.median > 0}
    return times if "consumes" in times else {}


def _parts(times: Mapping[str, float]) -> list[tuple[int, float]]:
    """Which stage takes how long. Without a warm loop the stalls cannot be told apart."""
    stages = [0, 1, 2] if "warm" in times else [0, 3]
    reached = list(times.values())
    return [
        (stage, after - before)
        for stage, before, after in zip(stages, [0.0, *reached], reached, strict=False)
    ]


def _pile(result: Result, group: Mapping[str, Any]) -> Pile | None:
    times = _times(group)
    if not times:
        return None
    name = _named(group)
    far = list(times)[-1]
    repeats = as_estimate(group.get(far))
    total = times[far]
    parts = []
    for place, step in _parts(times):
        stage, meaning, colour = _STAGES[place]
        shown = Tip(
            f"{name}: {stage}",
            f"{number(step)} s per 1,000 samples, {percent(step / total)} of the loop",
            meaning,
            str(repeats.repeats if repeats else 1),
            _labels(result, group),
        )
        parts.append(Part(step, colour, shown))
    return Pile(name, tuple(parts), f"{number(total)} s")


def _named(group: Mapping[str, Any]) -> str:
    name = title(group)
    return f"{name} (emulated)" if group.get("emulated") else name


def _stalls(result: Result, groups: Sequence[Mapping[str, Any]]) -> Table | None:
    """A column a loop, a row a figure."""
    if not groups:
        return None
    parts = [dict(_parts(_times(group))) for group in groups]
    rows: list[tuple[Entry, ...]] = [
        (Entry("device"), *(Entry(device(group)) for group in groups)),
        (Entry("fed by"), *(Entry(_fed_by(group)) for group in groups)),
        (Entry("labels"), *(Entry(_labels(result, group)) for group in groups)),
    ]
    for key, words, say in _FIGURES:
        marks = [_of_input(result, group, key) for group in groups]
        entries = [
            _figure(group.get(key), say, mark) for group, mark in zip(groups, marks, strict=True)
        ]
        if any(entry.text for entry in entries):
            rows.append((Entry(words), *entries))
    for place, words in enumerate(("T1", "T3 − T1", "T2 − T3", "T2 − T1")):
        if any(place in part for part in parts):
            rows.append((Entry(f"{words}, {_UNIT}"), *(_step(part.get(place)) for part in parts)))
    columns = ("figure", *map(_named, groups))
    return Table("Rates, stalls and utilisations", columns, tuple(rows))


def _fed_by(group: Mapping[str, Any]) -> str:
    keys = ("loader", "data", "workers")
    said = ", ".join(worded(key, group[key]) for key in keys if group.get(key))
    return f"{said} of each rank" if group.get("devices") and group.get("workers") else said


def _labels(result: Result, group: Mapping[str, Any]) -> str:
    return ", ".join(badge.text for badge in group_badges(result, group))


def _latencies(result: Result) -> Table | None:
    """Step times as percentiles, as far as enough steps stand behind them."""
    measured = cells(result.trials, "train")
    keys = [
        key
        for key in (
            "time_to_first_batch_s",
            *(f"step_s_{q}" for q in ("p50", "p90", "p95", "p99", "p999")),
            "wait_share",
        )
        if any(cell.figure(key) for cell in measured)
    ]
    if not keys:
        return None
    rows = []
    for cell in measured:
        emulated = any(trial.metrics.get("emulated") for trial in cell.trials)
        row = [
            Entry(f"{cell.params.get('group', '')}{' (emulated)' if emulated else ''}"),
            Entry(str(cell.params.get("input", ""))),
            cell.cache_entry,
        ]
        for key in keys:
            figure = cell.figure(key)
            scale = 1 if key == "wait_share" else 1000
            row.append(
                Entry(number(figure.median * scale), repr(figure.median), True)
                if figure
                else Entry("")
            )
        rows.append((*row, Entry(str(len(cell.trials)), is_number=True)))
    words = {"time_to_first_batch_s": "first batch, ms", "wait_share": "share of time waiting"}
    columns = [words.get(key) or f"step {key.removeprefix('step_s_')}, ms" for key in keys]
    return Table(
        "Step times, medians over repeats",
        ("loop", "input", "cache", *columns, "repeats"),
        tuple(rows),
        folded=True,
    )


def _notes(result: Result) -> tuple[Words, ...]:
    said = dict.fromkeys(
        str(note)
        for trial in result.trials
        if trial.kind == "train"
        for note in trial.metrics.get("notes") or ()
    )
    return (Words(tuple(said), listed=True),) if said else ()


def _of_input(result: Result, group: Mapping[str, Any], key: str) -> str:
    """What the cache held for a rate of one input; of the farthest all labels stand above."""
    if key not in ("warm", "cold", "store") or key == farthest(group):
        return ""
    marks = group_badges(result, group, key)
    return ", ".join(badge.text for badge in marks if badge.text != "emulated")


def _figure(stored: Any, say: Callable[[float], str], mark: str = "") -> Entry:
    found = as_estimate(stored)
    if found is None:
        return Entry("")
    note = "; ".join(filter(None, (interval(found, say), mark)))
    return Entry(say(found.median), repr(found.median), True, note)


def _step(value: float | None) -> Entry:
    return Entry("") if value is None else Entry(number(value), repr(value), True)
