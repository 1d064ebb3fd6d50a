"""PURE. Upper limits of the links to disks and stores, and measured rates above them.

A rate above its ceiling came from a cache. Gbit are 10^9 bits, MB 10^6 bytes, MiB 2^20.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from iobench.analysis.finding_rules import make_finding
from iobench.analysis.repeats import by_settings, cold_label, estimate_of, is_number
from iobench.data.given import read_from
from iobench.machine.storage_kinds import reach
from iobench.result import Finding, Result
from iobench.stats import Estimate

_GBIT_MB = 1000 / 8
_MIB_MB = 2**20 / 1e6
_LINKS = {"pcie": "its PCI Express lanes", "sata": "its SATA port"}
# Block devices over a network that is not the one of the machine's own cards.
_VOLUMES = {"ebs", "google-persistent-disk", "azure-managed-disk"}


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The most that ``what`` can carry, in MB/s, according to ``source``."""

    mb_per_s: float
    what: str
    source: str


def of_target(label: str, result: Result) -> Ceiling | None:
    """The lowest limit between this machine and a disk target; None where none is known."""
    target = _section(result.environment, "targets", label)
    settings = _section(result.config, "limits", "targets", label)
    limits = _section(result.references, "limits")
    kind, known = str(target.get("kind", "")), []
    if is_number(settings.get("mb_per_s")):
        known.append(Ceiling(settings["mb_per_s"], "the device", f"limits.targets.{label}"))
    volume = _section(limits, "volumes").get(str(settings.get("volume")))
    if is_number(volume):
        what = f"a volume of type {settings['volume']}"
        known.append(Ceiling(volume * _MIB_MB, what, _source(limits)))
    device = _section(target, "device")
    if kind and reach(kind) == "memory":
        return min(known, key=_rate, default=None)
    if is_number(device.get("link_mb_per_s")):
        what = _LINKS.get(str(device.get("transport")), "its link")
        known.append(Ceiling(device["link_mb_per_s"], what, "the kernel (sysfs)"))
    ebs = _section(limits, "instance").get("ebs_gbit_per_s")
    if kind == "ebs" and is_number(ebs):
        what = f"EBS of {limits.get('instance_type')}"
        known.append(Ceiling(ebs * _GBIT_MB, what, _source(limits)))
    elif kind and reach(kind) == "network" and kind not in _VOLUMES:
        known += filter(None, [network(result)])
    return min(known, key=_rate, default=None)


def of_store(label: str, result: Result) -> Ceiling | None:
    """The lowest limit between this machine and an object store."""
    own = _section(result.config, "limits", "stores").get(label)
    known = [Ceiling(own, "the store", f"limits.stores.{label}")] if is_number(own) else []
    if _section(result.environment, "stores", label).get("kind") != "own-server":
        known += filter(None, [network(result)])
    return min(known, key=_rate, default=None)


def network(result: Result) -> Ceiling | None:
    """The limit of this machine's network: by config, cards and instance type."""
    limits, known = _section(result.references, "limits"), []
    told = _section(result.config, "limits").get("network_gbit_per_s")
    if is_number(told):
        known.append(Ceiling(told * _GBIT_MB, "the network", "limits.network_gbit_per_s"))
    cards = result.environment.get("networks") or ()
    speeds = [card.get("mbit_per_s") for card in cards]
    if speeds and all(map(is_number, speeds)):  # a card that tells no speed may be the fast one
        total = sum(card["mbit_per_s"] * int(card.get("count", 1)) for card in cards)
        known.append(Ceiling(total / 8, "the network cards", "the kernel"))
    most = _section(limits, "instance").get("network_gbit_per_s")
    if is_number(most):
        what = f"the network of {limits.get('instance_type')}"
        known.append(Ceiling(most * _GBIT_MB, what, _source(limits)))
    return min(known, key=_rate, default=None)


def beyond(result: Result) -> Iterator[Finding]:
    """Cold, direct or store rates above their limit, one finding for each place."""
    fastest: dict[str, tuple[float, str, Ceiling]] = {}
    for place, what, rate, ceiling in _rates(result):
        if ceiling is None or rate.median <= ceiling.mb_per_s:
            continue
        if place not in fastest or rate.median > fastest[place][0]:
            fastest[place] = (rate.median, what, ceiling)
    for place, (most, what, ceiling) in fastest.items():
        yield make_finding(
            "beyond-limit",
            f"{place} gave {most:,.0f} MB/s ({what}); {ceiling.what} carries "
            f"{ceiling.mb_per_s:,.0f} at most ({ceiling.source})",
            "read more than the cache holds (file_bytes), or correct the limit under limits",
        )


def _rates(result: Result) -> Iterator[tuple[str, str, Estimate, Ceiling | None]]:
    targets = result.environment.get("targets") or {}
    for kind in ("disk", "object", "loader", "train"):
        for params, trials in by_settings(result.trials, kind):
            rate, label = estimate_of(trials, "mb_per_s"), cold_label(trials)
            data = str(params.get("data") or "")
            if rate is None:
                continue
            if kind == "object" or data.endswith("@s3"):
                store = str(params.get("store", "data"))
                yield store, f"{kind} {params.get('operation', '')}", rate, of_store(store, result)
            elif label in ("cold", "direct"):
                target = str(params.get("target") or read_from(data, targets))
                yield target, f"{kind}, {label}", rate, of_target(target, result)


def _section(content: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    """A part of a result; empty where an older version wrote none."""
    for key in keys:
        section = content.get(key)
        if not isinstance(section, Mapping):
            return {}
        content = section
    return content


def _source(limits: Mapping[str, Any]) -> str:
    return f"{limits.get('file', 'a file of limits')}, as of {limits.get('as_of', 'unknown')}"


def _rate(ceiling: Ceiling) -> float:
    return ceiling.mb_per_s
