"""PURE. The run in one sentence, and how sure it is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dataprep.counted import counted
from iobench.analysis.loops import Loop, scatters
from iobench.analysis.rules import ENOUGH, FINE, range_words
from iobench.analysis.watched import (
    UNKNOWN_RATE,
    InputCost,
    ceiling_words,
    entry_input_cost,
    median_of,
    rate_words,
)
from iobench.loaders.own import SYNTHETIC
from iobench.numbers import percent
from iobench.result import Finding
from iobench.stats import Estimate
from iobench.words import samples_words

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
_DOUBTS = {"unfinished", "stood-still", "not-shown-cold"}
_READ_AHEAD = 1.05
"""Delivered bytes / taken bytes of a disk probe from which on both are named."""
_SMOKE = 3
"""Repeats up to which a run is a smoke run."""
_HIGH, _MEDIUM = 0.05, 0.15
"""Half-widths of the interval, as shares of the median, below which confidence is high or
medium."""


@dataclass(frozen=True, slots=True)
class Confidence:
    """How far a verdict can be trusted, and why."""

    level: Literal["high", "medium", "low"]
    why: str

    def __str__(self) -> str:
        return f"{self.level} ({self.why})"


def bottleneck(findings: Sequence[Finding]) -> str:
    """The primary finding of a loop as a sentence; empty if no cause is known."""
    first = next((finding for finding in findings if finding.primary), None)
    return _BOTTLENECKS.get(first.code, "") if first is not None else ""


def of_loop(loop: Loop, findings: Sequence[Finding], *, named: bool, doubt: str = "") -> str:
    """The verdict on a loop: its share of the device's rate, the bottleneck, and what is simulated.

    ``doubt`` says why its figures are no evidence: no cause is then named.
    """
    said = _of_loop(loop, findings, named, doubt)
    if loop.emulated and "emulated device" not in said:
        said += " The device is emulated."
    if _is_own_store(loop, findings):
        said += " The store runs on this machine."
    return said


def _is_own_store(loop: Loop, findings: Sequence[Finding]) -> bool:
    codes = {finding.code for finding in findings}
    return loop.farthest == "store" and "store-on-this-machine" in codes


def _of_loop(loop: Loop, findings: Sequence[Finding], named: bool, doubt: str) -> str:
    subject = f"The loop {loop.group!r}" if named else "The loop"
    rate, share = loop.rate(), loop.au_ceiling
    if (bounds := loop.bounds) is not None:
        low, high = bounds
        got = f"{subject} gets between {low:,.0f} and {high:,.0f} samples/s"
        return f"{got}; its rate cannot be told more exactly."
    if rate is None:
        return f"{subject} was measured without stored data."
    if share is None:
        said = f"{subject} gets {rate.median:,.0f} samples/s; its device's rate was not measured."
        return f"{said} {_doubted(doubt) or bottleneck(findings)}".strip()
    taker = "the emulated device" if loop.emulated else "the device"
    if loop.devices > 1:
        taker = f"its {loop.devices} {'emulated ' * loop.emulated}devices"
    got = f"{subject} gets {percent(min(share.median, 1.0), 0)} of what {taker} can consume."
    if doubt:
        return f"{got} {_doubted(doubt)}"
    is_device = any(f.code == "slow-device" and f.of == loop.group for f in findings)
    if is_device or 1 - share.median < FINE:
        return f"{got} The device is the limit: its input keeps up."
    cause = bottleneck(findings) or "Which part of the input is slow was not measured."
    return f"{got} {cause}"


def _doubted(doubt: str) -> str:
    return f"This is no evidence: {doubt}." if doubt else ""


def confidence(loop: Loop, findings: Sequence[Finding], doubt: str = "") -> Confidence:
    """Confidence in a loop's figures, by its interval and by findings that qualify it.

    High needs six repeats and a half-width below 5 % of the median, medium one below 15 %. Nothing
    that an emulated device or a store on this machine shows about storage is high.
    """
    share = loop.au_ceiling or loop.rate()
    repeats = share.repeats if share is not None else len(loop.trials)
    doubts = [f for f in findings if f.code in _DOUBTS and f.of in ("", loop.group)]
    said = counted(repeats, "repeat")
    if loop.au_ceiling is not None and repeats > 1:
        said = f"{said}: {range_words(loop.au_ceiling)}"
    if doubt:
        return Confidence("low", f"no evidence: {doubt}")
    if repeats <= _SMOKE:
        return Confidence("low", f"smoke run, {said}")
    if any(scatters(trials) for trials in loop.inputs.values()):
        return Confidence("low", f"repeats differ widely: {said}")
    if doubts:
        return Confidence("low", f"{doubts[0].title.lower()}; {said}")
    width = _half_width(share)
    if width >= _MEDIUM:
        return Confidence("low", f"{said}, half-width {percent(width)}")
    if width >= _HIGH or repeats < ENOUGH:
        return Confidence("medium", f"{said}, half-width {percent(width)}")
    if loop.farthest in ("cold", "store") and loop.emulated:
        return Confidence("medium", f"emulated device; {said}")
    if _is_own_store(loop, findings):
        return Confidence("medium", f"the store runs on this machine; {said}")
    return Confidence("high", said)


def _half_width(figure: Estimate | None) -> float:
    """Half of the interval's width as a share of the median; infinite if unknown."""
    if figure is None or figure.median <= 0:
        return math.inf
    return (figure.high - figure.low) / 2 / figure.median


def without_loop(summary: Mapping[str, Any], any_done: bool, environment: Mapping[str, Any]) -> str:
    """The verdict of a run that has no training loop."""
    stores = environment.get("stores") or {}
    own = {label for label, store in stores.items() if store.get("kind") == "own-server"}
    if summary["watched"]:
        return _watched(summary["watched"])
    if (best := best_loader(summary["loaders"])) is not None:
        return _loader(best, own_store="data" in own)
    if summary["object_stores"]:
        best = max(summary["object_stores"], key=lambda entry: entry["peak_mb_per_s"])
        return (
            f"The object store {best['store']} gives at most {best['peak_mb_per_s']:,.0f} MB/s "
            f"({best['client']}, {best['operation']})."
            + (" It runs on this machine." if best["store"] in own else "")
        )
    if summary["disks"]:
        return _disks(summary["disks"])
    if any_done:
        return "Measured; there was no training loop to compare with."
    return "Nothing could be measured."


def _disks(disks: Sequence[Mapping[str, Any]]) -> str:
    """The fastest read that came from the device, else the fastest write."""
    reads = [entry for entry in disks if entry["operation"] == "read"]
    proved = [entry for entry in reads if entry["label"] in ("direct", "cold")]
    writes = [entry for entry in disks if entry["operation"] == "write"]
    best = max(proved or writes or reads, key=lambda entry: entry["mb_per_s"]["median"])
    label = best["label"] or ("warm" if best["cache"] == "cold" else best["cache"])
    subject = f"The disk {best['target']}"
    if not proved and not writes:
        subject = f"The page cache above {best['target']}"
    verb = "takes" if best["operation"] == "write" else "gives"
    rate, how = best["mb_per_s"]["median"], f"{best['pattern']} {best['operation']}, {label}"
    arrived = (best.get("arrived_mb_per_s") or best["mb_per_s"])["median"]
    if proved and arrived > _READ_AHEAD * rate:
        how += f"; the probe took {rate:,.0f} MB/s of it, the kernel read the rest ahead"
        rate = arrived
    return f"{subject} {verb} at most {rate:,.0f} MB/s ({how})."


def best_loader(entries: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The fastest loader that decodes, else the fastest that only reads; None without a rate.

    A loader of which only bounds are known is chosen if no loader has a rate, by its lower bound.
    """
    readers = [entry for entry in entries if entry["loader"] not in SYNTHETIC]
    for name in ("samples_per_s", "samples_per_s_low"):
        rated = [entry for entry in readers if entry[name]]
        decoding = [one for one in rated if one["loader"] != "raw" and one.get("decode", True)]
        if rated:
            return max(decoding or rated, key=lambda entry: float(entry[name]["median"]))
    return None


def _loader(best: Mapping[str, Any], *, own_store: bool) -> str:
    where = f" from {best['data']}" if best["data"] else ""
    where += f", access {best['access']}" if "access" in best else ""
    where += f", {best['processes']} processes" if "processes" in best else ""
    names = ("samples_per_s", "samples_per_s_low", "samples_per_s_high")
    rate = samples_words({name: median_of(best, name) for name in names}, "{:,.0f}".format)
    rate += f" ({best['label']})" if best["label"] else ""
    said = f"The fastest loader is {best['loader']}{where}: {rate}."
    if best["loader"] == "raw" or not best.get("decode", True):
        said = f"Reading without decoding, {best['loader']}{where} gives {rate}."
    if own_store and str(best["data"]).endswith("@s3"):
        said += " The store runs on this machine."
    return said


def _watched(entries: Sequence[Mapping[str, Any]]) -> str:
    """The longest watched loop. A cost of its input below 5 % is fine, above 20 % high."""
    first = entries[0]
    cost = entry_input_cost(first)
    subject = "Your loop" if len(entries) == 1 else f"Your loop over {first['loader']}"
    if cost is None:
        return f"{subject} was measured; its waiting was not."
    steps = int(first["steps"]["median"]) if first["steps"] else 0
    few = f" (over only {counted(steps, 'step')})" if steps < 20 else ""
    if cost.by == "loss":
        return _watched_loss(first, cost, subject, few)
    by_device = cost.by == "device"
    subject = f"The GPU of {subject[0].lower()}{subject[1:]}" if by_device else subject
    said = f"{subject} waits for data {cost.words} of its time, which is {cost.grade}{few}"
    rate, ceiling = rate_words(first), ceiling_words(first)
    if rate == UNKNOWN_RATE:
        said += ", at an unknown rate"
    elif rate:
        said += f", at {rate} samples/s"
    if by_device and first["wait_share"]:
        said += f"; the host waits {percent(first['wait_share']['median'])}"
    if ceiling:
        said += f"; without its loader it takes {ceiling} samples/s"
    elif not by_device:
        said += "; what its device could take was not measured"
    return f"{said}."


def _watched_loss(entry: Mapping[str, Any], cost: InputCost, subject: str, few: str) -> str:
    """The loss, both rates, and the waiting, which is another figure."""
    said = f"{subject} loses {cost.words} of its rate to its loader, which is {cost.grade}{few}"
    said += f": {rate_words(entry)} of {ceiling_words(entry)} samples/s"
    if entry["wait_share"]:
        said += f"; the host waits for data {percent(entry['wait_share']['median'])} of its time"
    return f"{said}."
