"""PURE. The first screen: verdict, where a step's time goes, what to change, accelerators fed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from markupsafe import Markup

from dataprep.counted import counted
from iobench.analysis.advice import Advice, gain_words
from iobench.analysis.analyse import Analysis, how_words, prediction_accuracy_words
from iobench.analysis.hosts import leading_point
from iobench.analysis.input_cost import entry_median
from iobench.analysis.loops import Loop, step_parts
from iobench.analysis.recommendations import Recommendation
from iobench.analysis.run_verdict import best_loader
from iobench.analysis.sizing import Feeds, FeedsRow
from iobench.report import starts, watched
from iobench.report.charts import Bar, pile
from iobench.report.numbers import number, percent, size
from iobench.result import Result
from iobench.words import model_words

PART_WORDS = {
    "device": "device works",
    "start": "start of each epoch",
    "prepare": "decode and augment",
    "read": "read, from memory",
    "storage": "read, cold",
    "store": "read, object store",
    "input": "input, not split",
}
"""Parts of a step in words; others are called as they are."""

_BADGES = {
    "emulated": "emulated device",
    "few-repeats": "smoke run",
    "cache-resident": "data below 5 times the memory: later epochs may read no disk",
    "store-on-this-machine": "the store runs on this machine",
    "not-shown-cold": "cold was not proved",
    "not-all-warm": "warm, but some storage was read",
    "scattered": "repeats differ widely",
    "unfinished": "the run was stopped early",
    "stood-still": "a trial was suspended",
    "beyond-limit": "faster than the link: a cache answered",
    "faster-than-storage": "faster than its storage: measure again",
    "ceiling-not-measured": "the storage was not measured by itself",
    "target-in-memory": "the target is memory, not a disk",
}
_NOTHING_HELPS = "Nothing that was measured would make it faster."
_NO_EVIDENCE = "No change is recommended, since the figures are no evidence. Measure again."
_SETTINGS = {
    "workers": "workers",
    "prefetch": "prefetch",
    "resize": "resizing beforehand",
    "normalise": "uint8 batches, normalised on the device",
    "sharding": "packing into shards",
    "shard_size": "shard size",
    "stage": "copying to a local disk",
    "loader": "reading in sequence",
    "pin_memory": "pinned memory",
}


@dataclass(frozen=True, slots=True)
class Change:
    """A recommendation as the page shows it."""

    action: str
    gain: str
    more: str
    how: Sequence[str]


@dataclass(frozen=True, slots=True)
class Front:
    """Everything above the evidence."""

    name: str
    meta: Sequence[str]
    headline: str
    lead: str
    badges: Sequence[str]
    pile: Markup | None
    changes: Sequence[Change]
    no_changes: str
    note: str
    feeds: Feeds | None
    feeds_note: str


def front(found: Analysis) -> Front:
    """The first screen of a result."""
    loop = found.loop if found.loop is not None and found.loop.farthest else None
    lead = _lead(loop) if loop is not None else _lead_of_loader(found)
    if (point := leading_point(found.result)) is not None:
        lead = f"All hosts: {point.description}. Host 0: {lead}"
    changes = [_change(change) for change in found.advice.changes]
    bar = _pile(loop) if loop is not None else None
    if watched_loops := found.summary["watched"]:
        lead = watched.lead(watched_loops[0])
        bar = watched.step_bar(watched_loops[0])
        changes = [
            Change(action[0].upper() + action[1:], watched.gain_words(watched_loops), "", ())
            for action in watched.actions(found.findings)
        ]
    return Front(
        name=found.result.name,
        meta=tuple(_meta(found.result, found.loop)),
        headline=found.verdict,
        lead=lead,
        badges=tuple(_badges(found)),
        pile=bar,
        changes=changes,
        no_changes=no_changes_words(found),
        note=_note(found),
        feeds=found.feeds,
        feeds_note=_feeds_note(found.feeds),
    )


def no_changes_words(analysis: Analysis) -> str:
    """The sentence that stands in the place of the changes where none is recommended."""
    return _NO_EVIDENCE if analysis.doubt else _NOTHING_HELPS


def settings_words(names: Sequence[str]) -> str:
    """Settings in words."""
    return ", ".join(_SETTINGS.get(name, name) for name in names)


def no_effect_words(found: Advice) -> str:
    """Settings that bring nothing, or nothing more after the recommended changes."""
    further = "further " if found.changes else ""
    return f"No {further}effect expected: {settings_words(found.without_effect)}."


def feeds_cell(row: FeedsRow, name: str) -> str:
    """``0.3``, or ``1.0 or more`` where the device was the limit; empty if it is not known."""
    count = row.feeds.get(name)
    if count is None:
        return ""
    shown = f"{count:.2g}" if count < 100 else f"{count:,.0f}"
    return f"{shown} or more" if row.at_least else shown


def how_fed(row: FeedsRow) -> str:
    """``measured``, or ``computed from the loop's rate``."""
    return "measured" if row.how == "measured" else f"computed from {row.basis}"


def _meta(result: Result, loop: Loop | None) -> Iterator[str]:
    try:
        moment = datetime.fromisoformat(result.started)
        yield f"{moment:%Y-%m-%d %H:%M} UTC"
    except ValueError:
        yield result.started
    environment = result.environment
    machine = [f"{environment.get('processors', '?')} CPUs"]
    if memory := environment.get("memory_bytes"):
        machine.append(size(memory))
    gpus = environment.get("gpus") or ()
    names = dict.fromkeys(str(gpu.get("name", "GPU")) for gpu in gpus)
    machine.append(f"{len(gpus)} × {', '.join(names)}" if gpus else "no GPU")
    yield ", ".join(machine)
    if loop is not None:
        params = loop.params
        data = f", {params['data']}" if params.get("data") else ""
        yield f"{model_words(str(params.get('model', '')))}, batch {params.get('batch_size')}{data}"
        if loop.facts.get("device"):
            yield str(loop.facts["device"])
    yield _counts(result)


def _counts(result: Result) -> str:
    said = []
    for status in ("done", "failed", "skipped"):
        count = sum(trial.status == status for trial in result.trials)
        if count or status == "done":
            said.append(f"{count} {status}")
    return f"{counted(len(result.trials), 'trial')}: {', '.join(said)}"


def _lead(loop: Loop) -> str:
    """The rate, the loss and the waiting, which are two figures, and the starts of epochs."""
    said = [_rate_sentence(loop)]
    if (loss := loop.loss) is not None:
        between = ""
        if loss.repeats > 1:
            between = f" ({percent(loss.low)} to {percent(loss.high)})"
        said.append(
            f"Loss {percent(loss.median)}{between}: a step on data in the device's memory takes "
            "that much less time."
        )
    if (waiting := loop.waiting) is not None:
        share = percent(waiting.median)
        said.append(f"Waiting {share}: in that share of the time the device has no batch.")
    first_s, later_s, share_of_starts = (
        loop.metric(name)
        for name in ("time_to_first_batch_s", "epoch_start_s", "epoch_start_share")
    )
    starting = starts.sentence(first_s, later_s, share_of_starts)
    if share_of_starts is not None and share_of_starts > starts.MAIN:
        said.insert(0, starting)
    else:
        said.append(starting)
    return " ".join(filter(None, said))


def _rate_sentence(loop: Loop) -> str:
    """``877 of 2,000 samples/s.``"""
    consumes = f" of {number(loop.device_rate.median)}" if loop.device_rate is not None else ""
    if (bounds := loop.bounds) is not None:
        low, high = bounds
        return f"Between {number(low)} and {number(high)}{consumes} samples/s."
    rate = loop.rate()
    return f"{number(rate.median)}{consumes} samples/s." if rate is not None else ""


def _lead_of_loader(found: Analysis) -> str:
    """The starts of epochs of the fastest loader, where there is no loop; and the trials."""
    entry = best_loader(found.summary["loaders"])
    starting = ""
    if entry is not None:
        starting = starts.sentence(
            entry_median(entry, "time_to_first_batch_s"),
            entry_median(entry, "epoch_start_s"),
            entry_median(entry, "epoch_start_share"),
        )
    return f"{starting} {_counts(found.result)}.".strip()


def _badges(found: Analysis) -> Iterator[str]:
    """Confidence, then qualifications of the leading loop or the whole run."""
    if found.confidence is not None:
        yield f"confidence: {found.confidence}"
    loop, seen = found.loop, set[str]()
    for finding in found.findings:
        text = _BADGES.get(finding.code)
        if text is None or text in seen or finding.of not in ("", loop.group if loop else ""):
            continue
        if finding.code == "store-on-this-machine" and loop and loop.farthest != "store":
            continue
        if finding.of == "" and loop and finding.code in ("cache-resident", "scattered"):
            continue  # of probes and loaders alone
        seen.add(text)
        yield text


def _pile(loop: Loop) -> Markup | None:
    parts = step_parts(loop)
    if not parts:
        return None
    rows, shares = [], []
    for part in parts:
        words = PART_WORDS.get(part.name, part.name)
        shares.append(f"{words} {percent(part.share)}")
        if part.seconds > 0:
            rows.append(Bar(words, part.seconds, f"{number(part.seconds * 1e3)} ms", part.name))
    return pile(rows, f"Where the time of a step goes: {', '.join(shares)}")


def _change(change: Recommendation) -> Change:
    gain = gain_words(change.gain) if change.gain is not None else "gain not predicted"
    more = ""
    if change.rate is not None:
        more = f", to {number(change.rate)} samples/s, {change.basis}."
        if change.limit:
            limit = {"decode": "Decoding", "disk": "The disk", "store": "The store"}
            more += f" {limit.get(change.limit, f'The {change.limit}')} is then the limit."
    return Change(change.action, gain, more, how_words(change))


def _note(found: Analysis) -> str:
    said = []
    if found.advice.without_effect:
        said.append(no_effect_words(found.advice))
    if found.advice.not_measured:
        said.append(f"No prediction: {settings_words(found.advice.not_measured)}.")
    if len([change for change in found.advice.changes if change.gain]) > 1:
        said.insert(0, "Each gain comes on top of those above it.")
    if found.advice.changes and found.loop is not None:
        said.append(prediction_accuracy_words(found.checks, found.loop.group))
    return " ".join(said)


def _feeds_note(feeds: Feeds | None) -> str:
    if feeds is None:
        return ""
    limits = {
        "CPUs": "The CPUs are the limit, not the storage.",
        "disk": "The disk is the limit.",
        "store": "The store is the limit.",
        "network": "The network is the limit.",
    }
    said = [limits.get(feeds.limit, "")]
    if feeds.rates:
        rates = ", ".join(f"{name} {number(rate)}" for name, rate in feeds.rates.items())
        said.append(f"Images/s of one device: {rates}.")
    hows = {row.how for row in feeds.rows}
    if "measured" in hows:
        said.append("Measured: the devices were emulated side by side, each with its own loader.")
        said += [row.basis for row in feeds.rows if row.how == "measured"]
    if "computed" in hows:
        said.append("Computed: samples/s divided by the rate of one device.")
    return " ".join(said).strip()
