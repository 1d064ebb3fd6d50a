"""PURE. The first screen of the report.

It has the verdict, a bar with the parts of a step, the recommended changes, and a table of how many
accelerators the host can feed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from markupsafe import Markup

from dataprep.message_text import counted
from iobench.analysis.analyse import Analysis
from iobench.analysis.feeds_table import Feeds, FeedsRow
from iobench.analysis.gain_words import gain_words, how_words, prediction_accuracy_words
from iobench.analysis.hosts import leading_point
from iobench.analysis.loops import Loop
from iobench.analysis.recommendation_choice import Advice
from iobench.analysis.recommendations import Recommendation
from iobench.analysis.run_verdict import best_loader
from iobench.analysis.step_parts import step_parts
from iobench.report import epoch_starts, watched_section
from iobench.report.charts import Bar, stacked_bar
from iobench.results.numbers import number, precise_percent, size
from iobench.results.result import Finding, Result
from iobench.results.wording import model_words

PART_WORDS = {
    "device": "device works",
    "start": "start of each epoch",
    "prepare": "decode and augment",
    "read": "read, from memory",
    "storage": "read, cold",
    "store": "read, object store",
    "input": "input (stages not measured separately)",
}
"""The names of the parts of a step on the page. A part that is not listed has its own name."""

_BADGE_TEXTS = {
    "emulated": "emulated device",
    "few-repeats": "smoke run",
    "cache-resident": "data smaller than 5 times the memory: later epochs may not read the disk",
    "store-on-this-machine": "the store runs on this machine",
    "not-shown-cold": "cold requested, not verified",
    "not-all-warm": "warm, but some reads came from storage",
    "scattered": "repeats differ widely",
    "unfinished": "the run was stopped early",
    "stood-still": "a process was suspended during a trial",
    "beyond-limit": "faster than the network link: data came from a cache",
    "faster-than-storage": "a loop is faster than its storage: measure again",
    "ceiling-not-measured": "the storage was not measured separately",
    "target-in-memory": "the target is memory, not a disk",
}
"""The text of the badge beside the verdict, by the code of the finding that limits the figures."""
_NO_GAIN = "None of the measured changes would make the loop faster."
_NO_EVIDENCE = (
    "No change is recommended, because the figures are not reliable enough. Measure again."
)
_SETTING_NAMES = {
    "workers": "workers",
    "prefetch": "prefetch",
    "resize": "resizing before training",
    "normalise": "uint8 batches, normalised on the device",
    "sharding": "packing images into shards",
    "shard_size": "shard size",
    "stage": "copying to a local disk",
    "loader": "sequential reads",
    "pin_memory": "pinned memory",
}
"""The names of settings in sentences. A setting that is not listed has its own name."""


@dataclass(frozen=True, slots=True)
class Change:
    """A recommended change as the page shows it.

    Attributes:
        action: what to do.
        gain: the gain in words.
        after_change: the end of the sentence that ``gain`` begins, with the rate and the limit
            after the change; empty if the rate was not predicted.
        how: commands and code that make the change.
    """

    action: str
    gain: str
    after_change: str
    how: Sequence[str]


@dataclass(frozen=True, slots=True)
class Front:
    """The content of the first screen.

    Attributes:
        name: the name of the run's config.
        facts: the time, the machine, the model, the device and the number of trials.
        headline: the verdict.
        lead: the sentences below the verdict.
        badges: the confidence and the limits of the figures, in a few words each.
        step_bar: the bar with the parts of a step; None if the parts are unknown.
        changes: the recommended changes, best first. Each gain assumes the changes before it.
        no_changes: the sentence that is shown if there are no changes.
        note: the sentences below the changes.
        feeds: the table of how many accelerators the host can feed; None if no rate for it was
            measured.
        feeds_note: the sentences below this table.
    """

    name: str
    facts: Sequence[str]
    headline: str
    lead: str
    badges: Sequence[str]
    step_bar: Markup | None
    changes: Sequence[Change]
    no_changes: str
    note: str
    feeds: Feeds | None
    feeds_note: str


def front(analysis: Analysis) -> Front:
    """The first screen of the report of a run.

    If the run watched loops, the sentences and the bar are about the first of them, and the changes
    are the advice for all. Otherwise they are about the leading loop, or about the loaders.
    """
    watched_loops = analysis.summary["watched"]
    if watched_loops:
        lead = watched_section.lead(watched_loops[0])
        step_bar = watched_section.step_bar(watched_loops[0])
        gain = watched_section.gain_words(watched_loops)
        changes = [
            Change(action[0].upper() + action[1:], gain, "", ())
            for action in watched_section.actions(analysis.findings)
        ]
    else:
        lead = _lead(analysis)
        step_bar = _step_bar(analysis.loop)
        changes = [_change(recommendation) for recommendation in analysis.advice.changes]
    return Front(
        name=analysis.result.name,
        facts=tuple(_facts(analysis.result, analysis.loop)),
        headline=analysis.verdict,
        lead=lead,
        badges=tuple(_badges(analysis)),
        step_bar=step_bar,
        changes=changes,
        no_changes=no_changes_words(analysis),
        note=_note(analysis),
        feeds=analysis.feeds,
        feeds_note=_feeds_note(analysis.feeds),
    )


def no_changes_words(analysis: Analysis) -> str:
    """The sentence that is shown if no change is recommended."""
    return _NO_EVIDENCE if analysis.doubt else _NO_GAIN


def settings_words(names: Sequence[str]) -> str:
    """The names of settings, separated by commas."""
    return ", ".join(_SETTING_NAMES.get(name, name) for name in names)


def no_effect_words(advice: Advice) -> str:
    """A sentence about the settings that have no predicted gain after the recommended changes."""
    further = "further " if advice.changes else ""
    return f"No {further}effect is expected from: {settings_words(advice.without_effect)}."


def gain_or_unknown(recommendation: Recommendation) -> str:
    """The predicted gain of a change in words, or the words ``gain not predicted``."""
    if recommendation.gain is None:
        return "gain not predicted"
    return gain_words(recommendation.gain)


def gpus_words(environment: Mapping[str, Any]) -> str:
    """``8 × NVIDIA H100``: the number and the names of a machine's GPUs; empty without GPUs."""
    gpus = environment.get("gpus") or ()
    if not gpus:
        return ""
    names = dict.fromkeys(str(gpu.get("name", "GPU")) for gpu in gpus)
    return f"{len(gpus)} × {', '.join(names)}"


def feeds_cell(row: FeedsRow, name: str) -> str:
    """The number of accelerators that are fed, such as ``0.3``.

    The text is ``1 or more`` if the device was the limit, and empty if the number is unknown.

    Args:
        row: the row of the table.
        name: the name of the accelerator.
    """
    count = row.feeds.get(name)
    if count is None:
        return ""
    text = f"{count:.2g}" if count < 100 else f"{count:,.0f}"
    return f"{text} or more" if row.at_least else text


def feeds_basis(row: FeedsRow) -> str:
    """The basis of a row's numbers: ``measured``, or ``computed from the loop's rate``."""
    return "measured" if row.how == "measured" else f"computed from {row.basis}"


def _facts(result: Result, loop: Loop | None) -> Iterator[str]:
    """The time, the machine, the model and its data, the device, and the number of trials."""
    try:
        moment = datetime.fromisoformat(result.started)
        yield f"{moment:%Y-%m-%d %H:%M} UTC"
    except ValueError:
        yield result.started
    environment = result.environment
    machine = [f"{environment.get('processors', '?')} CPUs"]
    memory_bytes = environment.get("memory_bytes")
    if memory_bytes:
        machine.append(size(memory_bytes))
    machine.append(gpus_words(environment) or "no GPU")
    yield ", ".join(machine)
    if loop is not None:
        params = loop.params
        data = f", {params['data']}" if params.get("data") else ""
        yield f"{model_words(str(params.get('model', '')))}, batch {params.get('batch_size')}{data}"
        if loop.facts.get("device"):
            yield str(loop.facts["device"])
    yield _trial_counts(result)


def _trial_counts(result: Result) -> str:
    """``48 trials: 46 done, 2 failed``."""
    counts = []
    for status in ("done", "failed", "skipped"):
        count = sum(trial.status == status for trial in result.trials)
        if count or status == "done":
            counts.append(f"{count} {status}")
    return f"{counted(len(result.trials), 'trial')}: {', '.join(counts)}"


def _lead(analysis: Analysis) -> str:
    """The sentences below the verdict, for a run that watched no loop."""
    loop = _loop_with_data(analysis.loop)
    lead = _lead_of_loop(loop) if loop is not None else _lead_of_loader(analysis)
    point = leading_point(analysis.result)
    if point is not None:
        return f"All hosts: {point.description}. Host 0: {lead}"
    return lead


def _loop_with_data(loop: Loop | None) -> Loop | None:
    """The loop, if it was measured with data."""
    return loop if loop is not None and loop.farthest else None


def _lead_of_loop(loop: Loop) -> str:
    """The rate of a loop, its loss, its waiting, and the starts of its epochs."""
    sentences = [_rate_sentence(loop)]
    loss = loop.loss
    if loss is not None:
        interval = ""
        if loss.repeats > 1:
            interval = f" ({precise_percent(loss.low)} to {precise_percent(loss.high)})"
        sentences.append(
            f"Loss {precise_percent(loss.median)}{interval}: a step on data in the device's memory "
            "takes that much less time."
        )
    waiting = loop.waiting
    if waiting is not None:
        share = precise_percent(waiting.median)
        sentences.append(f"Waiting {share}: in that share of the time the device has no batch.")
    share_of_starts = loop.metric("epoch_start_share")
    starts_text = epoch_starts.sentences(
        loop.metric("time_to_first_batch_s"), loop.metric("epoch_start_s"), share_of_starts
    )
    if share_of_starts is not None and share_of_starts > epoch_starts.MAIN_SHARE:
        sentences.insert(0, starts_text)
    else:
        sentences.append(starts_text)
    return " ".join(sentence for sentence in sentences if sentence)


def _rate_sentence(loop: Loop) -> str:
    """``877 of 2,000 samples/s.``: the loop's rate, and what its device can consume."""
    consumes = f" of {number(loop.device_rate.median)}" if loop.device_rate is not None else ""
    bounds = loop.bounds
    if bounds is not None:
        low, high = bounds
        return f"Between {number(low)} and {number(high)}{consumes} samples/s."
    rate = loop.rate()
    return f"{number(rate.median)}{consumes} samples/s." if rate is not None else ""


def _lead_of_loader(analysis: Analysis) -> str:
    """For a run without a loop: how epochs of the fastest loader start, and the trial counts."""
    loader = best_loader(analysis.tables.loaders)
    starts_text = ""
    if loader is not None:
        starts_text = epoch_starts.sentences(
            loader.median("time_to_first_batch_s"),
            loader.median("epoch_start_s"),
            loader.median("epoch_start_share"),
        )
    return f"{starts_text} {_trial_counts(analysis.result)}.".strip()


def _badges(analysis: Analysis) -> Iterator[str]:
    """The confidence, then a badge for each finding that limits the figures of the first screen."""
    if analysis.confidence is not None:
        yield f"confidence: {analysis.confidence}"
    limits = [finding for finding in analysis.findings if _limits_figures(finding, analysis.loop)]
    yield from dict.fromkeys(_BADGE_TEXTS[finding.code] for finding in limits)


def _limits_figures(finding: Finding, loop: Loop | None) -> bool:
    """Whether a finding has a badge, and is about the leading loop or about the whole run.

    Without a leading loop, the finding must be about the whole run.
    """
    if finding.code not in _BADGE_TEXTS:
        return False
    if loop is None:
        return finding.of == ""
    if finding.code == "store-on-this-machine" and loop.farthest != "store":
        return False
    # These two findings are about probes and loaders if they name no loop.
    if finding.of == "":
        return finding.code not in ("cache-resident", "scattered")
    return finding.of == loop.group


def _step_bar(loop: Loop | None) -> Markup | None:
    """A bar with the parts of a step; None if they are unknown."""
    loop = _loop_with_data(loop)
    parts = step_parts(loop) if loop is not None else []
    if not parts:
        return None
    bars, shares = [], []
    for part in parts:
        name = PART_WORDS.get(part.name, part.name)
        shares.append(f"{name} {precise_percent(part.share)}")
        if part.seconds > 0:
            bars.append(Bar(name, part.seconds, f"{number(part.seconds * 1e3)} ms", part.name))
    return stacked_bar(bars, f"How the time of a step is spent: {', '.join(shares)}")


def _change(recommendation: Recommendation) -> Change:
    """A recommended change with the rate and the limit after it, if they were predicted."""
    after_change = ""
    if recommendation.rate is not None:
        rate = number(recommendation.rate)
        after_change = f", to {rate} samples/s, {recommendation.basis}."
        if recommendation.limit:
            limit = "Decoding"
            if recommendation.limit != "decode":
                limit = f"The {recommendation.limit}"
            after_change += f" {limit} is the limit after this change."
    gain = gain_or_unknown(recommendation)
    return Change(recommendation.action, gain, after_change, how_words(recommendation))


def _note(analysis: Analysis) -> str:
    """The sentences below the recommended changes."""
    advice = analysis.advice
    sentences = []
    changes_with_gain = [change for change in advice.changes if change.gain]
    if len(changes_with_gain) > 1:
        sentences.append("Each gain assumes that the changes above it are made.")
    if advice.without_effect:
        sentences.append(no_effect_words(advice))
    if advice.not_measured:
        sentences.append(f"There is no prediction for: {settings_words(advice.not_measured)}.")
    if advice.changes and analysis.loop is not None:
        sentences.append(prediction_accuracy_words(analysis.checks, analysis.loop.group))
    return " ".join(sentences)


def _feeds_note(feeds: Feeds | None) -> str:
    """The sentences below the table of accelerators."""
    if feeds is None:
        return ""
    limits = {
        "CPUs": "The CPUs are the limit, not the storage.",
        "disk": "The disk is the limit.",
        "store": "The store is the limit.",
        "network": "The network is the limit.",
    }
    sentences = [limits.get(feeds.limit, "")]
    if feeds.rates:
        rates = ", ".join(f"{name} {number(rate)}" for name, rate in feeds.rates.items())
        sentences.append(f"Images/s of one device: {rates}.")
    measured = [row for row in feeds.rows if row.how == "measured"]
    if measured:
        sentences.append(
            "Measured: the devices were emulated side by side, each with its own loader."
        )
        sentences += [row.basis for row in measured]
    if any(row.how == "computed" for row in feeds.rows):
        sentences.append("Computed: samples/s divided by the rate of one device.")
    return " ".join(sentences).strip()
