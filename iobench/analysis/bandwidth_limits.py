"""PURE. Upper limits of the links to disks and stores, and measured rates above these limits.

A rate above its limit came from a cache. A Gbit is 10^9 bits, MB is 10^6 bytes, MiB 2^20 bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iobench.analysis.finding_remarks import remark_on
from iobench.analysis.finding_rules import make_finding
from iobench.analysis.repeats import by_settings, cold_label, estimate_of, is_number, is_on_store
from iobench.data.existing import folder_key
from iobench.machine.storage_kinds import reach
from iobench.results.result import Finding, Result
from iobench.results.statistics import Estimate

_MB_PER_GBIT = 1000 / 8
_MB_PER_MIB = 2**20 / 1e6
_LINKS = {"pcie": "its PCI Express lanes", "sata": "its SATA port"}
"""The names of a disk's links, by their transport."""
_VOLUMES = {"ebs", "google-persistent-disk", "azure-managed-disk"}
"""Block devices that are reached over a network of their own, not over the network cards."""


@dataclass(frozen=True, slots=True)
class BandwidthLimit:
    """The maximum rate of a part between the machine and its storage.

    Attributes:
        mb_per_s: the maximum in MB/s.
        part: the part, such as ``the network cards``.
        source: the key of the config, the file or the kernel from which the limit was read.
    """

    mb_per_s: float
    part: str
    source: str


@dataclass(frozen=True, slots=True)
class _RateFromStorage:
    """A rate that came from storage, and the limit of that storage.

    Attributes:
        location: the label of the disk target or of the store.
        description: the measurement in words.
        rate: the rate in MB/s.
        limit: the lowest known limit of the location; None if none is known.
    """

    location: str
    description: str
    rate: Estimate
    limit: BandwidthLimit | None


def target_limit(label: str, result: Result) -> BandwidthLimit | None:
    """Return the lowest limit between this machine and a disk target; None if none is known.

    Args:
        label: the label of the target.
        result: the run.
    """
    target = _section(result.environment, "targets", label)
    storage_kind = str(target.get("kind", ""))
    limits = list(_configured_limits(label, result))
    if storage_kind and reach(storage_kind) == "memory":
        return _lowest(limits)
    device = _section(target, "device")
    if is_number(device.get("link_mb_per_s")):
        part = _LINKS.get(str(device.get("transport")), "its link")
        limits.append(BandwidthLimit(device["link_mb_per_s"], part, "the kernel (sysfs)"))
    references = _section(result.references, "limits")
    ebs_gbit_per_s = _section(references, "instance").get("ebs_gbit_per_s")
    if storage_kind == "ebs" and is_number(ebs_gbit_per_s):
        part = f"EBS of {references.get('instance_type')}"
        mb_per_s = ebs_gbit_per_s * _MB_PER_GBIT
        limits.append(BandwidthLimit(mb_per_s, part, _file_words(references)))
    elif storage_kind and reach(storage_kind) == "network" and storage_kind not in _VOLUMES:
        limits += _network_limits(result)
    return _lowest(limits)


def _configured_limits(label: str, result: Result) -> Iterator[BandwidthLimit]:
    """Yield the limits of a disk target that its settings under ``limits.targets`` give.

    They are its rate, and the rate of its type of volume in the file of limits.
    """
    settings = _section(result.config, "limits", "targets", label)
    if is_number(settings.get("mb_per_s")):
        yield BandwidthLimit(settings["mb_per_s"], "the device", f"limits.targets.{label}")
    references = _section(result.references, "limits")
    volume_mib_per_s = _section(references, "volumes").get(str(settings.get("volume")))
    if is_number(volume_mib_per_s):
        part = f"a volume of type {settings['volume']}"
        mb_per_s = volume_mib_per_s * _MB_PER_MIB
        yield BandwidthLimit(mb_per_s, part, _file_words(references))


def store_limit(label: str, result: Result) -> BandwidthLimit | None:
    """Return the lowest limit between this machine and an object store; None if none is known.

    The limits of the network do not apply to a server that iobench itself started here.

    Args:
        label: the label of the store.
        result: the run.
    """
    limits = []
    mb_per_s = _section(result.config, "limits", "stores").get(label)
    if is_number(mb_per_s):
        limits.append(BandwidthLimit(mb_per_s, "the store", f"limits.stores.{label}"))
    if _section(result.environment, "stores", label).get("kind") != "own-server":
        limits += _network_limits(result)
    return _lowest(limits)


def network_limit(result: Result) -> BandwidthLimit | None:
    """Return the lowest limit of this machine's network; None if none is known."""
    return _lowest(_network_limits(result))


def beyond_limit_findings(result: Result) -> Iterator[Finding]:
    """Yield a finding for each location with a rate above the limit of its link.

    The finding has the fastest of these rates.
    """
    fastest: dict[str, _RateFromStorage] = {}
    for measured in _rates_from_storage(result):
        if measured.limit is None or measured.rate.median <= measured.limit.mb_per_s:
            continue
        other = fastest.get(measured.location)
        if other is None or measured.rate.median > other.rate.median:
            fastest[measured.location] = measured
    for location, measured in fastest.items():
        limit = measured.limit
        if limit is None:
            continue
        evidence = (
            f"{location} gave {measured.rate.median:,.0f} MB/s ({measured.description}); "
            f"{limit.part} carries {limit.mb_per_s:,.0f} at most ({limit.source})"
        )
        yield make_finding("beyond-limit", evidence, remark_on("beyond-limit"))


def _network_limits(result: Result) -> list[BandwidthLimit]:
    """Return the known limits of this machine's network.

    They come from the config, from the network cards, and from the machine's type in the cloud.
    """
    limits = []
    gbit_per_s = _section(result.config, "limits").get("network_gbit_per_s")
    if is_number(gbit_per_s):
        source = "limits.network_gbit_per_s"
        limits.append(BandwidthLimit(gbit_per_s * _MB_PER_GBIT, "the network", source))
    cards = result.environment.get("networks") or ()
    # The limit is the sum over all cards, so all speeds must be known.
    if cards and all(is_number(card.get("mbit_per_s")) for card in cards):
        mbit_per_s = sum(card["mbit_per_s"] * int(card.get("count", 1)) for card in cards)
        limits.append(BandwidthLimit(mbit_per_s / 8, "the network cards", "the kernel"))
    references = _section(result.references, "limits")
    instance_gbit_per_s = _section(references, "instance").get("network_gbit_per_s")
    if is_number(instance_gbit_per_s):
        part = f"the network of {references.get('instance_type')}"
        mb_per_s = instance_gbit_per_s * _MB_PER_GBIT
        limits.append(BandwidthLimit(mb_per_s, part, _file_words(references)))
    return limits


def _rates_from_storage(result: Result) -> Iterator[_RateFromStorage]:
    """Yield the rates that came from a store, or were proved to come from a disk."""
    targets = result.environment.get("targets") or {}
    for kind in ("disk", "object", "loader", "train"):
        for params, repeats in by_settings(result.trials, kind):
            rate, label = estimate_of(repeats, "mb_per_s"), cold_label(repeats)
            if rate is None:
                continue
            if kind == "object" or is_on_store(params):
                store = str(params.get("store", "data"))
                description = f"{kind} {params.get('operation', '')}".rstrip()
                yield _RateFromStorage(store, description, rate, store_limit(store, result))
            elif label in ("cold", "direct"):
                data = str(params.get("data") or "")
                target = str(params.get("target") or folder_key(data, targets))
                limit = target_limit(target, result)
                yield _RateFromStorage(target, f"{kind}, {label}", rate, limit)


def _lowest(limits: Sequence[BandwidthLimit]) -> BandwidthLimit | None:
    """Return the limit with the lowest rate; None without limits."""
    return min(limits, key=lambda limit: limit.mb_per_s, default=None)


def _section(content: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    """Return a part of a result; empty if the result of an earlier version lacks it."""
    for key in keys:
        section = content.get(key)
        if not isinstance(section, Mapping):
            return {}
        content = section
    return content


def _file_words(references: Mapping[str, Any]) -> str:
    """Return the name and the date of the file of limits."""
    file = references.get("file", "a file of limits")
    return f"{file}, as of {references.get('as_of', 'unknown')}"
