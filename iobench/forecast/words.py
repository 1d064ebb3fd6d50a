"""PURE. A forecast in words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from dataprep.counted import counted
from dataprep.names import escape
from iobench.forecast.bounds import Bounds
from iobench.forecast.predicted import Predicted
from iobench.forecast.whole import Forecast, StoreTotal, usd
from iobench.requests import Requests
from iobench.words import point_words

UNKNOWN = "unknown"
_HEAD = (
    *("about", "<= time", "<= read", "<= written"),
    *("<= from store", "<= to store", "<= requests", "<= USD"),
)
_GAP = "  "
_WORTH_A_WORD = 1_000


def text(forecast: Forecast, name: str) -> str:
    """A line a trial, in their order, then what is made first, sums, and what they rest on."""
    rows = [(_cells(found, forecast), point_words(spec)) for spec, found in forecast.trials]
    return "\n".join([*_table(rows), *summary(forecast, name)])


def summary(forecast: Forecast, name: str) -> Iterator[str]:
    """The sums, without the trials."""
    known_s, unknown = forecast.likely_s
    count = len(forecast.trials)
    kept = f", {forecast.before:,} measured before" if forecast.before else ""
    without = f" and {counted(unknown, 'trial')} of unknown length" if unknown else ""
    yield (
        f"{name}: {counted(count, 'trial')} to come{kept}; about {duration(known_s)}{without}, "
        f"at most {duration(forecast.most_s)} if each trial went on to trial_timeout_s"
    )
    if forecast.making:
        yield "  made first, unless it is there:"
        yield from (f"    {escape(made.words)}{_took(made.predicted)}" for made in forecast.making)
    moved = forecast.bytes
    yield (f"  disks: {_size(moved['disk_read'])} read, {_size(moved['disk_written'])} written")
    for label, store in forecast.stores.items():
        yield f"  {_store_name(label)}: {_store(store)}"
    yield from (
        f"  {escape(name)}: brought by {escape(package)}"
        for name, package in forecast.others.items()
    )
    yield from (f"  unknown: {why}" for why in forecast.unknown)
    yield from (f"  assumed: {why}" for why in forecast.assumed)
    yield from (f"  warning: {escape(why)}" for why in forecast.problems)


def duration(seconds: float) -> str:
    """``45 s``, ``12 min``, ``3 h 20 min``, ``4 days``."""
    if not math.isfinite(seconds):  # sums of what a damaged run says
        return UNKNOWN
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes = int(seconds / 60 + 0.5)
    hours, rest = divmod(minutes, 60)
    if hours >= 72:
        return f"{hours / 24:,.0f} days"
    shown = f"{hours} h" * bool(hours) + " " * bool(hours and rest)
    return shown + f"{rest} min" * bool(rest or not hours)


def dollars(cost: Bounds | None) -> str:
    """``$0.12 at most``."""
    if cost is None or cost.high is None:
        return "at an unknown price"
    return f"{_money(cost.high)} at most"


def _money(value: float) -> str:
    return f"${value:,.2f}" if value >= 0.1 else f"${value:.2g}"


def _cells(found: Predicted, forecast: Forecast) -> tuple[str, ...]:
    likely = UNKNOWN if found.likely_s is None else duration(found.likely_s)
    most = UNKNOWN if found.seconds.high is None else duration(found.seconds.high)
    high = found.requests[1]
    store = forecast.stores.get(found.store)
    return (
        likely,
        most,
        *(_amount(b) for b in (found.disk_read, found.disk_written)),
        *(_amount(b) for b in (found.store_read, found.store_written)),
        "" if not found.store else UNKNOWN if high is None else f"{_count(high):,}",
        _price(found, store),
    )


def _price(found: Predicted, store: StoreTotal | None) -> str:
    if store is None or not store.facts.is_amazon:
        return ""
    cost = usd(found.requests, store.facts)
    return UNKNOWN if cost is None or cost.high is None else _money(cost.high)


def _count(requests: Requests) -> int:
    return requests.puts + requests.gets + requests.lists


def _amount(bounds: Bounds) -> str:
    if bounds.high is None:
        return UNKNOWN
    return f"{bounds.high / 1e6:,.1f} MB" if bounds.high >= _WORTH_A_WORD else ""


def _table(rows: Sequence[tuple[tuple[str, ...], str]]) -> Iterator[str]:
    """Columns that hold anything, right-aligned, the trial last."""
    if not rows:
        return
    used = [i for i in range(len(_HEAD)) if any(cells[i] for cells, _ in rows)]
    widths = {i: max(len(_HEAD[i]), *(len(cells[i]) for cells, _ in rows)) for i in used}
    yield _GAP.join([*(_HEAD[i].rjust(widths[i]) for i in used), "trial"])
    for cells, words in rows:
        yield _GAP.join([*(cells[i].rjust(widths[i]) for i in used), words])


def _took(found: Predicted) -> str:
    told = [] if found.likely_s is None else [f"about {duration(found.likely_s)}"]
    if (written := found.disk_written.plus(found.store_written)) != Bounds():
        told.append(f"{_size(written)}")
    return f": {', '.join(told)}" if told else ""


def _size(bounds: Bounds) -> str:
    """Bytes in the unit that fits, MB being 10^6."""
    if bounds.high is None:
        return "an unknown amount"
    if bounds.low == bounds.high:
        return _bytes(bounds.high)
    if bounds.low <= 0.01 * bounds.high:
        return f"at most {_bytes(bounds.high)}"
    return f"{_bytes(bounds.low)} to {_bytes(bounds.high)}"


def _bytes(value: float) -> str:
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if value >= factor:
            return f"{value / factor:,.1f} {unit}"
    return f"{value / 1e3:,.1f} kB" if value else "0 MB"


def _store(store: StoreTotal) -> str:
    high = store.requests[1]
    counts = "an unknown number of requests"
    if high is not None:
        counts = f"at most {high.puts:,} PUT, {high.gets:,} GET, {high.lists:,} LIST"
    moved = f"{_size(store.read)} read, {_size(store.written)} written; {counts}"
    if not store.facts.is_amazon:
        return f"{moved}; no price: {store.facts.server} is not Amazon's S3"
    if store.usd is None:
        return f"{moved}; no price: {store.facts.prices}"
    return f"{moved}; {dollars(store.usd)} ({store.facts.prices})"


def _store_name(label: str) -> str:
    return "store of the data" if label == "bucket" else label.replace("/", " ", 1)
