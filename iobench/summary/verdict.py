"""PURE. The run in one sentence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from iobench.epoch_coldness import FIRST_EPOCH_COLD
from iobench.loaders.own import SYNTHETIC
from iobench.summary.ladder import largest
from iobench.summary.training import leading
from iobench.summary.watched import sentence as of_watched
from iobench.trial import Trial

_FINE = 0.95  # from here on nothing worth speaking of is lost
_SMALL = 0.02
_COSTS = {
    "copy": "copying to the device costs",
    "collate": "collating, and handing batches over between processes, costs",
    "augment": "augmenting costs",
    "decode": "decoding costs",
    "warm": "reading from the page cache costs",
    "cold": "waiting for storage costs",
    "store": "waiting for the object store costs",
}
_NOISY = ", and repeats differ by more than it waits"


def verdict(summary: Mapping[str, Any], trials: Iterable[Trial]) -> str:
    """What the training loop gets, and what costs the rest; without one, what storage gives."""
    group = leading(summary["training"])
    name = f" ({group['group']})" if len(summary["training"]) > 1 else ""
    if group and group["au_ceiling"]:
        return _of_training(group, name, _costliest(summary, group))
    if group and group["achieved"]:
        rate = group["achieved"]["median"]
        return (
            f"The training loop{name} gets {rate:,.0f} samples/s; what its device can consume was "
            "not measured."
        )
    if summary.get("watched"):
        return of_watched(summary["watched"])
    if loaders := [entry for entry in summary["loaders"] if entry["loader"] not in SYNTHETIC]:
        return _of_loaders(loaders)
    if summary["object_stores"]:
        best = max(summary["object_stores"], key=lambda entry: entry["peak_mb_per_s"])
        return (
            f"The object store {best['store']} gives at most {best['peak_mb_per_s']:,.0f} MB/s "
            f"({best['client']}, {best['operation']})."
        )
    if summary["disks"]:
        return _of_disks(summary["disks"])
    if any(trial.status == "done" for trial in trials):
        return "Measured; there was no training loop to compare with."
    return "Nothing could be measured."


def sentence(summary: Mapping[str, Any]) -> str:
    """The verdict of a summary for a terminal: of a training loop with its badge in brackets."""
    group = leading(summary["training"])
    told = f" [{group['badge']}]" if group.get("badge") and group.get("achieved") else ""
    return f"{summary['verdict']}{told}"


def _of_disks(disks: Sequence[Mapping[str, Any]]) -> str:
    """Of reads that came from the device, else of writes; memory is no disk."""
    reads = [entry for entry in disks if entry["operation"] == "read"]
    proved = [entry for entry in reads if _shown(entry) in ("direct", "cold")]
    writes = [entry for entry in disks if entry["operation"] == "write"]
    best = max(proved or writes or reads, key=lambda entry: entry["mb_per_s"]["median"])
    said = f"{best['pattern']} {best['operation']}, {_shown(best)}"
    what = "takes" if best["operation"] == "write" else "gives"
    subject = f"The disk {best['target']}"
    if not proved and not writes:
        subject = f"The page cache above {best['target']}"
    return f"{subject} {what} at most {best['mb_per_s']['median']:,.0f} MB/s ({said})."


def _shown(disk: Mapping[str, Any]) -> str:
    """What a figure was shown to be; what was asked cold and not shown so is warm."""
    asked: str = disk["cache"]
    return disk["label"] or ("warm" if asked == "cold" else asked)


def _of_loaders(loaders: Sequence[Mapping[str, Any]]) -> str:
    """Of those that decode, if there are any: reading alone is no match for them."""
    decoding = [one for one in loaders if one["loader"] != "raw" and one.get("decode", True)]
    best = max(decoding or loaders, key=lambda entry: entry["samples_per_s"]["median"])
    rate = best["samples_per_s"]["median"]
    where = f" from {best['data']}" if best["data"] else ""
    state = f" ({best['label']})" if best.get("label") else ""
    if "access" in best:
        where += f", access {best['access']}"
    if "processes" in best:
        where += f", {best['processes']} processes"
    if decoding:
        return f"The fastest loader is {best['loader']}{where}: {rate:,.0f} samples/s{state}."
    return f"Reading without decoding, {best['loader']}{where} gives {rate:,.0f} samples/s{state}."


def _costliest(summary: Mapping[str, Any], group: Mapping[str, Any]) -> str:
    """The rung of the loop's ladder that costs most, in words; empty where none can be told."""
    for entry in summary.get("ladder") or ():
        if entry["group"] == group["group"] and entry["farthest"] == group["input"]:
            rung = largest(entry)
            if rung is not None and rung["share"]["median"] > _SMALL:
                return f"{_COSTS[rung['rung']]} {_percent(rung['share']['median'])} of the time"
    return ""


def _of_training(group: Mapping[str, Any], name: str, costliest: str = "") -> str:
    """``name``: which one it is, where there are several."""
    share = group["au_ceiling"]["median"]
    subject = f"The training loop{name}"
    if group["emulated"]:
        subject = f"{subject}, on an emulated device,"
    taker = f"its {group['devices']} devices" if group.get("devices") else "this device"
    got = f"{subject} gets {_percent(share)} of what {taker} can consume"
    if share > 1 + _SMALL:
        noisy = group["au_ceiling"]["repeats"] > 1
        return f"{got}: its data keeps up{_NOISY if noisy else ''}."
    if share >= _FINE:
        return f"{got}: its data keeps up."
    return f"{got}; {costliest or _cause(group)}."


def _cause(group: Mapping[str, Any]) -> str:
    preparation, fetch = group["preparation_stall"], group["fetch_stall"]
    if preparation is None or fetch is None:
        return "reading and decoding cost the rest"
    source = "the object store" if group["input"] == "store" else "the disk"
    if group["input"] == "cold" and not group["cold_proved"]:
        source = "storage, which was not shown to be cold,"
    if group.get("label") == FIRST_EPOCH_COLD:
        source = "the disk, cold in the first epoch alone,"
    if _alone(preparation, fetch):
        return "decoding and augmenting cost the rest"
    if _alone(fetch, preparation):
        return f"waiting for {source} costs the rest"
    if not _costs(preparation) or not _costs(fetch):
        return "reading and decoding cost the rest"
    return (
        f"reading and decoding cost the rest: preparation {_percent(preparation['median'])} of "
        f"the time, waiting for {source} {_percent(fetch['median'])}"
    )


def _alone(stall: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether one is the greater, and the other nothing that can be told."""
    return _costs(stall) and not _costs(other) and bool(stall["median"] >= other["median"])


def _costs(stall: Mapping[str, Any]) -> bool:
    """Whether a stall is worth speaking of, and can be told from none."""
    return bool(stall["median"] > _SMALL and stall["low"] > 0)


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"
