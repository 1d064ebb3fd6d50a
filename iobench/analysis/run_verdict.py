"""PURE. The verdict on a run in one sentence, and how far the verdict can be trusted.

Verdicts on the changes between two runs are in ``iobench.analysis.regressions``.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dataprep.message_text import counted
from iobench.analysis.finding_rules import ENOUGH_REPEATS, FINE_SHARE
from iobench.analysis.input_cost import (
    UNKNOWN_RATE,
    entry_ceiling_words,
    entry_rate_words,
    input_cost_of_entry,
)
from iobench.analysis.loops import Loop
from iobench.analysis.repeats import is_scattered
from iobench.analysis.summary_rows import DiskRow, SettingRow, StoreRow
from iobench.analysis.summary_tables import Tables
from iobench.loaders.capabilities import capabilities_of
from iobench.results.numbers import percent
from iobench.results.result import Finding
from iobench.results.statistics import Estimate
from iobench.results.wording import samples_words, share_range_words

_BOTTLENECKS = {
    "slow-decode": "Decoding is the bottleneck.",
    "slow-augmentation": "Augmenting is the bottleneck.",
    "slow-preparation": "Decoding and augmenting are the bottleneck.",
    "slow-collate": "Handing over batches is the bottleneck.",
    "unpinned-copy": "Copying to the device is the bottleneck.",
    "slow-copy": "Copying to the device is the bottleneck.",
    "slow-read-path": "Reading from the page cache is the bottleneck.",
    "slow-disk": "Reading from the disk is the bottleneck.",
    "slow-store": "Reading from the object store is the bottleneck.",
    "slow-store-latency": "Waiting for the object store is the bottleneck (latency).",
    "slow-store-bandwidth": "The object store's bandwidth is the bottleneck.",
    "store-throttles": "The object store refuses requests.",
    "tiny-files": "Reading many small files is the bottleneck.",
    "other-programs": "Other programs use the CPUs.",
    "epoch-starts": "The starts of epochs are the bottleneck.",
    "uneven-ranks": "Ranks wait for a slower one.",
}
"""The verdict by the code of the primary finding."""
_DOUBTS = {"unfinished", "stood-still", "not-shown-cold"}
"""The codes of findings that make the confidence low."""
_MIN_READ_AHEAD = 1.05
"""The verdict on a disk has two rates if the disk delivered this many times the bytes that the
probe took, because the kernel read ahead."""
_MAX_SMOKE_REPEATS = 3
"""A run with at most this number of repeats is a smoke run."""
_HIGH_HALF_WIDTH, _MEDIUM_HALF_WIDTH = 0.05, 0.15
"""Half of the interval's width, as a share of the median. Below the first limit the confidence may
be high, below the second limit it may be medium."""
_FEW_STEPS = 20
"""The verdict on a watched loop has the number of steps if there are fewer than this."""


@dataclass(frozen=True, slots=True)
class Confidence:
    """How far a verdict can be trusted, and why."""

    level: Literal["high", "medium", "low"]
    why: str

    def __str__(self) -> str:
        return f"{self.level} ({self.why})"


def bottleneck(findings: Sequence[Finding]) -> str:
    """Return the primary finding as a sentence; empty if it names no bottleneck."""
    for finding in findings:
        if finding.primary:
            return _BOTTLENECKS.get(finding.code, "")
    return ""


def loop_verdict(loop: Loop, findings: Sequence[Finding], *, named: bool, doubt: str = "") -> str:
    """Return the verdict on a loop: its share of the device's rate, and the bottleneck.

    Args:
        loop: the loop.
        findings: the findings of the run.
        named: whether the sentence names the loop, because the run has several.
        doubt: the reason why the loop's figures are not evidence, which the sentence then has
            instead of a cause; empty if they are evidence.
    """
    sentences = [_main_sentences(loop, findings, named, doubt)]
    if loop.emulated and "emulated device" not in sentences[0]:
        sentences.append("The device is emulated.")
    if _is_from_own_store(loop, findings):
        sentences.append("The store runs on this machine.")
    return " ".join(sentences)


def confidence(loop: Loop, findings: Sequence[Finding], doubt: str = "") -> Confidence:
    """Return the confidence in a loop's figures, by their interval and by doubts about them.

    High confidence needs six repeats, and half of the interval's width below 5 % of the median.
    Medium confidence needs half of the width below 15 %. The confidence in a loop that reads from
    storage is at most medium if the device is emulated, or if the store runs on this machine. The
    confidence in any loop is low if its figures are not evidence, if there are at most three
    repeats, if repeats differ widely, or if a finding says that the measurement is doubtful.

    Args:
        loop: the loop.
        findings: the findings of the run.
        doubt: the reason why the loop's figures are not evidence; empty if they are.
    """
    share = _main_figure(loop)
    repeats = share.repeats if share is not None else len(loop.trials)
    repeats_words = counted(repeats, "repeat")
    if loop.au_ceiling is not None and repeats > 1:
        repeats_words += f": {share_range_words(loop.au_ceiling)}"
    if doubt:
        return Confidence("low", f"no evidence: {doubt}")
    if repeats <= _MAX_SMOKE_REPEATS:
        return Confidence("low", f"smoke run, {repeats_words}")
    if any(is_scattered(trials) for trials in loop.inputs.values()):
        return Confidence("low", f"repeats differ widely: {repeats_words}")
    doubtful = _doubtful_finding(loop, findings)
    if doubtful is not None:
        return Confidence("low", f"{doubtful.title.lower()}; {repeats_words}")
    half_width = _half_width(share)
    interval = f"{repeats_words}, half-width {percent(half_width)}"
    if half_width >= _MEDIUM_HALF_WIDTH:
        return Confidence("low", interval)
    if half_width >= _HIGH_HALF_WIDTH or repeats < ENOUGH_REPEATS:
        return Confidence("medium", interval)
    if loop.farthest in ("cold", "store") and loop.emulated:
        return Confidence("medium", f"emulated device; {repeats_words}")
    if _is_from_own_store(loop, findings):
        return Confidence("medium", f"the store runs on this machine; {repeats_words}")
    return Confidence("high", repeats_words)


def device_verdict(loop: Loop, *, named: bool, doubt: str = "") -> str:
    """Return the verdict on a loop that read no stored data: the rate of its device, if known.

    Args:
        loop: the loop.
        named: whether the sentence names the loop, because the run has several.
        doubt: the reason why the loop's figures are not evidence; empty if they are.
    """
    verdict = f"The loop {loop.group!r}" if named else "The loop"
    verdict += " was measured without stored data"
    rate = loop.device_rate
    if rate is not None:
        verdict += f": {_device_words(loop)} can consume {rate.median:,.0f} samples/s"
    return f"{verdict}. {_doubt_words(doubt)}".strip()


def verdict_without_loop(
    tables: Tables, *, of_device: str, any_done: bool, environment: Mapping[str, Any]
) -> str:
    """Return the verdict on a run that has no training loop over stored data.

    Args:
        tables: the tables of the summary.
        of_device: the verdict on a loop that read no stored data; empty if there is none.
        any_done: whether any trial was completed.
        environment: the environment of the run.
    """
    stores = environment.get("stores") or {}
    own_stores = {label for label, store in stores.items() if store.get("kind") == "own-server"}
    if tables.watched:
        return _watched_verdict(tables.watched)
    loader = best_loader(tables.loaders)
    if loader is not None:
        return _loader_verdict(loader, is_store_own="data" in own_stores)
    if tables.object_stores:
        return _store_verdict(tables.object_stores, own_stores)
    if tables.disks:
        return _disk_verdict(tables.disks)
    if of_device:
        return of_device
    if any_done:
        return "The run has no training loop to compare its figures with."
    return "Nothing could be measured."


def best_loader(rows: Sequence[SettingRow]) -> SettingRow | None:
    """Return the fastest loader that decodes, or else the fastest loader that only reads.

    If no loader has a rate, loaders are compared by the lower bounds of their rates. None if no
    loader has a bound either.
    """
    readers = [row for row in rows if capabilities_of(row.params["loader"]).reads_data]
    for metric in ("samples_per_s", "samples_per_s_low"):
        rated = [row for row in readers if row.median(metric) is not None]
        decoding = [row for row in rated if _is_decoding(row)]
        if rated:
            return max(decoding or rated, key=lambda row: row.median(metric) or 0.0)
    return None


def _main_sentences(loop: Loop, findings: Sequence[Finding], named: bool, doubt: str) -> str:
    """Return the first sentences of ``loop_verdict``, which has the same arguments."""
    subject = f"The loop {loop.group!r}" if named else "The loop"
    rate, share = loop.rate(), loop.au_ceiling
    if loop.bounds is not None:
        low, high = loop.bounds
        return (
            f"{subject} gets between {low:,.0f} and {high:,.0f} samples/s; its rate cannot be "
            "determined more exactly."
        )
    if rate is None:
        return f"{subject} was measured without stored data."
    if share is None:
        verdict = (
            f"{subject} gets {rate.median:,.0f} samples/s; its device's rate was not measured."
        )
        return f"{verdict} {_doubt_words(doubt) or bottleneck(findings)}".strip()
    percentage = min(share.median, 1.0) * 100
    verdict = f"{subject} gets {percentage:.0f} % of what {_device_words(loop)} can consume."
    if doubt:
        return f"{verdict} {_doubt_words(doubt)}"
    is_device_limit = any(
        finding.code == "slow-device" and finding.of == loop.group for finding in findings
    )
    if is_device_limit or 1 - share.median < FINE_SHARE:
        return f"{verdict} The device is the limit: its input keeps up."
    cause = bottleneck(findings) or "Which part of the input is slow was not measured."
    return f"{verdict} {cause}"


def _device_words(loop: Loop) -> str:
    """Return ``the emulated device``, ``its 4 devices``."""
    emulated = "emulated " if loop.emulated else ""
    if loop.devices > 1:
        return f"its {loop.devices} {emulated}devices"
    return f"the {emulated}device"


def _doubt_words(doubt: str) -> str:
    """Return the doubt as a sentence; empty if there is none."""
    return f"This is no evidence: {doubt}." if doubt else ""


def _is_from_own_store(loop: Loop, findings: Sequence[Finding]) -> bool:
    """Return whether the loop reads from a store that runs on this machine."""
    codes = {finding.code for finding in findings}
    return loop.farthest == "store" and "store-on-this-machine" in codes


def _doubtful_finding(loop: Loop, findings: Sequence[Finding]) -> Finding | None:
    """Return the first finding that makes the confidence in the loop low."""
    for finding in findings:
        if finding.code in _DOUBTS and finding.of in ("", loop.group):
            return finding
    return None


def _main_figure(loop: Loop) -> Estimate | None:
    """Return the figure that the verdict on a loop is about; None if it was not measured."""
    if not loop.farthest:  # The loop read no stored data.
        return loop.device_rate
    return loop.au_ceiling or loop.rate()


def _half_width(figure: Estimate | None) -> float:
    """Return half of the interval's width as a share of the median; infinite if it is unknown."""
    if figure is None or figure.median <= 0:
        return math.inf
    return (figure.high - figure.low) / 2 / figure.median


def _is_decoding(row: SettingRow) -> bool:
    """Return whether a loader decodes images, instead of only reading them."""
    return bool(row.params["loader"] != "raw" and row.params.get("decode", True))


def _store_verdict(rows: Sequence[StoreRow], own_stores: Collection[str]) -> str:
    """Return the best rate of all object stores.

    Args:
        rows: the stores that were probed.
        own_stores: the labels of the stores that run on this machine.
    """
    best = max(rows, key=lambda row: row.mb_per_s.median)
    verdict = (
        f"The object store {best.store} gives at most {best.mb_per_s.median:,.0f} MB/s "
        f"({best.client}, {best.operation})."
    )
    return f"{verdict} It runs on this machine." if best.store in own_stores else verdict


def _disk_verdict(rows: Sequence[DiskRow]) -> str:
    """Return the fastest read that came from the disk, or else the fastest write."""
    reads = [row for row in rows if row.params["operation"] == "read"]
    from_disk = [row for row in reads if row.label in ("direct", "cold")]
    writes = [row for row in rows if row.params["operation"] == "write"]
    best = max(from_disk or writes or reads, key=lambda row: row.mb_per_s.median)
    params, label = best.params, best.label
    if not label:
        label = "warm" if params["cache"] == "cold" else params["cache"]
    subject = f"The disk {params['target']}"
    if not from_disk and not writes:
        subject = f"The page cache above {params['target']}"
    verb = "takes" if params["operation"] == "write" else "gives"
    mb_per_s = best.mb_per_s.median
    how = f"{params['pattern']} {params['operation']}, {label}"
    arrived_mb_per_s = (best.arrived_mb_per_s or best.mb_per_s).median
    if from_disk and arrived_mb_per_s > _MIN_READ_AHEAD * mb_per_s:
        how += f"; the probe took {mb_per_s:,.0f} MB/s of it, the kernel read the rest ahead"
        mb_per_s = arrived_mb_per_s
    return f"{subject} {verb} at most {mb_per_s:,.0f} MB/s ({how})."


def _loader_verdict(row: SettingRow, *, is_store_own: bool) -> str:
    """Return the rate of the fastest loader.

    Args:
        row: the loader.
        is_store_own: whether the store that holds the data runs on this machine.
    """
    params = row.params
    loader = str(params["loader"])
    if params["data"]:
        loader += f" from {params['data']}"
    if "access" in params:
        loader += f", access {params['access']}"
    if "processes" in params:
        loader += f", {params['processes']} processes"
    metrics = ("samples_per_s", "samples_per_s_low", "samples_per_s_high")
    rate = samples_words({metric: row.median(metric) for metric in metrics}, "{:,.0f}".format)
    if row.label:
        rate += f" ({row.label})"
    verdict = f"The fastest loader is {loader}: {rate}."
    if not _is_decoding(row):
        verdict = f"Reading without decoding, {loader} gives {rate}."
    if is_store_own and str(params["data"]).endswith("@s3"):
        verdict += " The store runs on this machine."
    return verdict


def _watched_verdict(rows: Sequence[SettingRow]) -> str:
    """Return the verdict on the longest watched loop.

    The cost of its input is called fine below 5 %, moderate from 5 to 20 %, and high above 20 %.
    """
    longest = rows[0]
    entry = longest.as_dict()
    cost = input_cost_of_entry(entry)
    subject = "Your loop" if len(rows) == 1 else f"Your loop over {longest.params['loader']}"
    if cost is None:
        return f"{subject} was measured, but the time that it waits for data was not."
    steps = int(longest.median("steps") or 0)
    few_steps = f" (over only {counted(steps, 'step')})" if steps < _FEW_STEPS else ""
    rate, ceiling = entry_rate_words(entry), entry_ceiling_words(entry)
    host_share = longest.median("wait_share")
    if cost.by == "loss":
        verdict = (
            f"{subject} loses {cost.text} of its rate to its loader, which is {cost.grade}"
            f"{few_steps}: {rate} of {ceiling} samples/s"
        )
        if host_share is not None:
            verdict += f"; the host waits for data {percent(host_share)} of its time"
        return f"{verdict}."
    if cost.by == "device":
        subject = f"The GPU of {subject[0].lower()}{subject[1:]}"
    verdict = f"{subject} waits for data {cost.text} of its time, which is {cost.grade}{few_steps}"
    if rate == UNKNOWN_RATE:
        verdict += ", at an unknown rate"
    elif rate:
        verdict += f", at {rate} samples/s"
    if cost.by == "device" and host_share is not None:
        verdict += f"; the host waits {percent(host_share)}"
    if ceiling:
        verdict += f"; without its loader it takes {ceiling} samples/s"
    elif cost.by != "device":
        verdict += "; its device was not measured separately"
    return f"{verdict}."
