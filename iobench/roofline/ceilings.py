"""PURE. What the way to a target or a store can carry at most, and who says so.

Gbit are 10^9 bits, MB 10^6 bytes, MiB 2^20. A line rate is taken as it is: frames and headers take
a few percent of it, so that a rate above it is beyond doubt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from iobench.result import Result
from iobench.targets.kinds import reach

_GBIT_MB = 1000 / 8
_MIB_MB = 2**20 / 1e6
_OWN_SERVER = "own-server"
# Block devices over a network that is not the one of the machine's own cards.
_VOLUMES = {"ebs", "google-persistent-disk", "azure-managed-disk"}


@dataclass(frozen=True, slots=True)
class Ceiling:
    """``mb_per_s`` of ``what``, as ``source`` says.

    ``guaranteed``: it is the least that is promised, which more may pass for a while.
    """

    mb_per_s: float
    what: str
    source: str
    guaranteed: bool = False


def binding(ceilings: Sequence[Ceiling]) -> Ceiling | None:
    """The lowest of those that nothing passes; without one, the lowest that is promised."""
    hard = [one for one in ceilings if not one.guaranteed]
    return min(hard or ceilings, key=lambda one: one.mb_per_s, default=None)


def of_target(label: str, result: Result) -> tuple[list[Ceiling], str]:
    """Ceilings of what lies at a target, and why there is none where there is none."""
    target = _section(result.environment, "targets").get(label)
    described: Mapping[str, Any] = target if isinstance(target, Mapping) else {}
    kind = str(described.get("kind", ""))
    found = list(_told(label, result))
    if kind and reach(kind) == "memory":
        return found, "" if found else "memory: no link is on the way"
    found += _link(described)
    if kind == "ebs":
        found += _ebs(result)
    elif kind and reach(kind) == "network" and kind not in _VOLUMES:
        found += network(result)
    if found:
        return found, ""
    name = str(described.get("name") or "what lies there")
    lacks = _unlisted(result) if kind == "ebs" else ""
    return [], f"{name} tells none{lacks}: give limits.targets.{label}.mb_per_s"


def of_store(label: str, result: Result) -> tuple[list[Ceiling], str]:
    """Ceilings on the way to an object store, and why there is none where there is none."""
    told = _section(_settings(result), "stores").get(label)
    found = [Ceiling(float(told), "the store", f"limits.stores.{label}")] if _is(told) else []
    store = _section(result.environment, "stores").get(label)
    kind = store.get("kind") if isinstance(store, Mapping) else None
    if kind == _OWN_SERVER:
        return found, "" if found else "a server on this machine: no network is on the way"
    found += network(result)
    if found:
        return found, ""
    said = f"nothing tells what this machine's network carries{_unlisted(result)}"
    return [], f"{said}: give limits.network_gbit_per_s"


def network(result: Result) -> list[Ceiling]:
    """What this machine's network can carry, by whoever says so."""
    found = []
    told = _settings(result).get("network_gbit_per_s")
    if _is(told):
        found.append(Ceiling(told * _GBIT_MB, "the network", "limits.network_gbit_per_s"))
    cards = result.environment.get("networks") or ()
    speeds = [_card(card) for card in cards]
    # One card that does not tell its speed may be the fast one.
    if speeds and all(speeds):
        count = sum(int(card.get("count", 1)) for card in cards)
        what = "the network card" if count == 1 else f"{count} network cards"
        found.append(Ceiling(sum(speeds) / 8, what, "the kernel (speed of the interface)"))
    kind, instance, source = _instance(result)
    if _is(most := instance.get("network_gbit_per_s")):
        found.append(Ceiling(most * _GBIT_MB, f"the network of {kind}", source))
    if _is(least := instance.get("network_baseline_gbit_per_s")):
        what = f"the guaranteed network of {kind}"
        found.append(Ceiling(least * _GBIT_MB, what, source, guaranteed=True))
    return found


def _told(label: str, result: Result) -> Iterator[Ceiling]:
    settings = _section(_settings(result), "targets").get(label)
    told: Mapping[str, Any] = settings if isinstance(settings, Mapping) else {}
    own = told.get("mb_per_s")
    if _is(own):
        yield Ceiling(float(own), "the volume or device", f"limits.targets.{label}")
        return
    limits = _limits(result)
    rate = _section(limits, "volumes").get(str(told.get("volume")))
    if _is(rate):
        yield Ceiling(rate * _MIB_MB, f"a volume of type {told['volume']}", _source(limits))


def _link(target: Mapping[str, Any]) -> list[Ceiling]:
    device = target.get("device")
    rate = device.get("link_mb_per_s") if isinstance(device, Mapping) else None
    if not _is(rate):
        return []
    transport = device.get("transport") if isinstance(device, Mapping) else None
    named = {"pcie": "its PCI Express lanes", "sata": "its SATA port"}.get(str(transport))
    return [Ceiling(float(rate), named or "its link", "the kernel (sysfs)")]


def _ebs(result: Result) -> list[Ceiling]:
    kind, instance, source = _instance(result)
    rate = instance.get("ebs_gbit_per_s")
    return [Ceiling(rate * _GBIT_MB, f"EBS of {kind}", source)] if _is(rate) else []


def _instance(result: Result) -> tuple[str, Mapping[str, Any], str]:
    limits = _limits(result)
    return str(limits.get("instance_type", "")), _section(limits, "instance"), _source(limits)


def _unlisted(result: Result) -> str:
    """That the file does not know this machine's type, where one was told."""
    kind, instance, _ = _instance(result)
    file = _limits(result).get("file", "the file of limits")
    return f" ({file} knows no {kind})" if kind and not instance else ""


def _source(limits: Mapping[str, Any]) -> str:
    return f"{limits.get('file', 'a file of limits')}, as of {limits.get('as_of', 'unknown')}"


def _limits(result: Result) -> Mapping[str, Any]:
    return _section(result.references, "limits")


def _settings(result: Result) -> Mapping[str, Any]:
    return _section(result.config, "limits")


def _section(content: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """A part of a result; empty where an older version wrote none."""
    found = content.get(key)
    return found if isinstance(found, Mapping) else {}


def _card(card: Mapping[str, Any]) -> float:
    speed = card.get("mbit_per_s")
    return float(speed) * int(card.get("count", 1)) if _is(speed) else 0.0


def _is(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0
