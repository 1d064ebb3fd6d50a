"""PURE. A cluster on paper: hosts, streams and GB/s for so many devices, and where it breaks first.

Hosts are taken to be like this one, and to give as much side by side as one gives alone. Data lie
on a store that all hosts read, or on a disk of each.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from iobench.result import Result
from iobench.scale.supply import Best, Part, Way, best_loader, from_there, parts
from iobench.summary.training import leading, training

_WAYS: tuple[Way, ...] = ("disk", "store")
_S3 = "aws-s3"
_AS_FAST = 0.9  # of what the parts give, from which on a loader is as fast as they are


def scale(result: Result, asked: Mapping[str, Any]) -> dict[str, Any]:
    """What ``asked`` (the keys of ``ScaleSettings``) needs, as JSON values.

    ``parts``: samples/s of one host, how many devices that feeds, and hosts for all of them.
    ``ways``: for data on ``disk`` or ``store``, hosts and the part that is short first. Where
    something is missing, ``unknown`` says what, and the rest is left out.
    """
    devices = int(asked["devices"])
    found: dict[str, Any] = {"devices": devices}
    each, basis = _consumption(result, asked)
    best = best_loader(result)
    if each is None or best is None:
        lacking = [] if each else ["what a device consumes: give images_per_s, or measure training"]
        if best is None:
            lacking.append("what a loader gives: measure one that decodes under loaders")
        return {**found, "unknown": lacking}
    per_host, of_hosts = _per_host(result, asked)
    per_host = min(per_host, devices)
    demand = each * devices
    known = parts(result, best)
    gb_per_s = demand * best.sample_bytes / 1e9
    return {
        **found,
        "devices_per_host": per_host,
        "images_per_s_per_device": each,
        "images_per_s": demand,
        "sample_bytes": best.sample_bytes,
        "gb_per_s": gb_per_s,
        "hosts_for_devices": math.ceil(devices / per_host),
        "parts": [_part(part, each, demand) for part in known],
        "ways": [
            _way(way, known, each, devices, per_host)
            for way in _WAYS
            if any(part.way == way for part in known)
        ]
        or [_way("any", known, each, devices, per_host)],
        **_requests(result, known, demand, best.sample_bytes),
        "assumptions": [
            *(basis, of_hosts, *_assumptions(best, known)),
            *_own_server(result, known),
            *_slower(result, known),
        ],
        "unknown": _unmeasured(known),
    }


def _part(part: Part, each: float, demand: float) -> dict[str, Any]:
    return {
        "part": part.name,
        "way": part.way,
        "samples_per_s": part.samples_per_s,
        "devices_fed": part.samples_per_s / each,
        "hosts": math.ceil(demand / part.samples_per_s),
        "basis": part.basis,
    }


def _way(
    way: str, known: Sequence[Part], each: float, devices: int, per_host: int
) -> dict[str, Any]:
    """Hosts for data on that way, and which part of a host is the scarcest."""
    needed = [part for part in known if part.way in ("any", way)]
    scarce = min(needed, key=lambda part: part.samples_per_s)
    short = scarce.samples_per_s < each * per_host
    hosts = max(math.ceil(devices / per_host), math.ceil(each * devices / scarce.samples_per_s))
    return {
        "way": way,
        "hosts": hosts,
        "breaks_first": scarce.name,
        "short": short,
        "devices_fed_per_host": scarce.samples_per_s / each,
        # Of what the devices of a full host consume.
        "fed_share": min(1.0, scarce.samples_per_s / (each * per_host)),
    }


def _requests(
    result: Result, known: Sequence[Part], demand: float, sample_bytes: float
) -> dict[str, Any]:
    """Streams and GETs/s at the store, with the settings at which it gave most."""
    store = next((part for part in known if part.name == "store"), None)
    if store is None:
        return {}
    a_stream = store.samples_per_s / store.streams
    gets = demand * sample_bytes / store.object_bytes
    found = {
        "streams": math.ceil(demand / a_stream),
        "mb_per_s_per_stream": a_stream * sample_bytes / 1e6,
        "gets_per_s": gets,
        "object_bytes": store.object_bytes,
    }
    limits = result.references.get("limits")
    stores = limits.get("stores") if isinstance(limits, Mapping) else None
    known_of = stores.get(_S3) if isinstance(stores, Mapping) else None
    limit = known_of.get("gets_per_s_per_prefix") if isinstance(known_of, Mapping) else None
    if limit:
        found["gets_per_s_per_prefix"] = limit
        found["prefixes"] = math.ceil(gets / limit)
        found["prefixes_by_sample"] = math.ceil(demand / limit)
    return found


def _consumption(result: Result, asked: Mapping[str, Any]) -> tuple[float | None, str]:
    """Images/s of a device, and who says so."""
    devices = int(asked["devices"])
    if rate := asked.get("images_per_s"):
        return float(rate) / devices, f"{devices:,} devices consume {rate:,.0f} images/s: as given"
    if rate := asked.get("images_per_s_per_device"):
        return float(rate), f"a device consumes {rate:,.0f} images/s: as given"
    group = leading(training(result.trials))
    consumes = group.get("consumes")
    if not consumes:
        return None, ""
    each = consumes["median"] / int(group.get("devices") or 1)
    emulated = ", emulated" if group.get("emulated") else ""
    return each, f"a device consumes {each:,.0f} images/s: {group['group']}{emulated}, measured"


def _per_host(result: Result, asked: Mapping[str, Any]) -> tuple[int, str]:
    if told := asked.get("devices_per_host"):
        return int(told), f"{told} devices a host: as given"
    gpus = len(result.environment.get("gpus") or ())
    if gpus:
        return gpus, f"{gpus} devices a host: as many GPUs as here"
    return 1, "1 device a host: there is no GPU here, and none is given (devices_per_host)"


def _assumptions(best: Best, known: Sequence[Part]) -> list[str]:
    found = [
        "every host has this machine's processors, disk and network",
        f"a sample has {best.sample_bytes / 1e3:,.1f} kB as stored, as what {best.words} read",
        "processors give the loaders what they gave here, though training takes its part of them",
    ]
    if best.processes == 1:
        found.append(
            "one loader process was measured: what several on a host share is not in it "
            "(loaders.processes)"
        )
    names = {part.name for part in known}
    if "store" in names:
        found.append(
            "the store gives every host what it gives this one, all at the same time; its own "
            "limits are not known"
        )
    if "disk" in names:
        found.append("data on disk lie on every host: what it takes to copy them is not in it")
    found.append("what is read again comes from where it lies, not from the page cache")
    return found


def _slower(result: Result, known: Sequence[Part]) -> Iterator[str]:
    """Where a loader was seen to get less from there than its parts would give side by side."""
    for way in _WAYS:
        reading = [part.samples_per_s for part in known if part.way == way]
        pairs = from_there(result, way)
        if not reading or not pairs:
            continue
        seen, warm = max(pairs, key=lambda pair: pair[0].samples_per_s)
        most = min(warm.samples_per_s, *reading)
        if seen.samples_per_s < _AS_FAST * most:
            yield (
                f"loaders keep enough requests at a time for a {way} to give all of that: "
                f"{seen.words} got {seen.samples_per_s:,.0f} samples/s, where its decoding and "
                f"the {way} each give {most:,.0f}"
            )


def _own_server(result: Result, known: Sequence[Part]) -> list[str]:
    """A word where the only stores that were measured are servers of a run's own."""
    stores = result.environment.get("stores") or {}
    kinds = {store.get("kind") for store in stores.values() if isinstance(store, Mapping)}
    if kinds != {"own-server"} or all(part.name != "store" for part in known):
        return []
    return ["the store is a server on this machine, which no cluster reads: measure the real one"]


def _unmeasured(known: Sequence[Part]) -> list[str]:
    names = {part.name for part in known}
    found = []
    if "disk" not in names:
        found.append("disk: no read was shown to come from a device (disk)")
    if "store" not in names:
        found.append("store: no GET was measured (object_store)")
    if "network" not in names:
        found.append("network: nothing tells what it carries (limits.network_gbit_per_s)")
    return found
