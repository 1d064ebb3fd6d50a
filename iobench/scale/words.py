"""PURE. A cluster on paper, in lines for a terminal; the report takes its sentences from here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dataprep.counted import counted
from iobench.words import size_words

_WAYS = {
    "disk": "data on a disk of each host",
    "store": "data on a store",
    "any": "wherever the data lie",
}


def lines(found: Mapping[str, Any]) -> Iterator[str]:
    """What is needed, part by part, what rests on what."""
    if "parts" not in found:
        yield f"{counted(found['devices'], 'device')}: not to be told."
        yield from _listed("unknown", found)
        return
    yield demand(found)
    for way in found["ways"]:
        yield verdict(found, way)
    if (said := streams(found)) is not None:
        yield said
    yield "a host like this one gives:"
    for part in found["parts"]:
        yield (
            f"  {part['part']}: {part['samples_per_s']:,.0f} samples/s, enough for "
            f"{part['devices_fed']:,.3g} devices; {counted(part['hosts'], 'host')} for all "
            f"({part['basis']})"
        )
    yield from _listed("assumptions", found)
    yield from _listed("unknown", found)


def demand(found: Mapping[str, Any]) -> str:
    """What all devices consume, in images and bytes."""
    return (
        f"{counted(found['devices'], 'device')} consume {found['images_per_s']:,.0f} images/s "
        f"({found['images_per_s_per_device']:,.0f} each): {found['gb_per_s']:,.3g} GB/s as stored, "
        f"{found['sample_bytes'] / 1e3:,.1f} kB a sample."
    )


def verdict(found: Mapping[str, Any], way: Mapping[str, Any]) -> str:
    """Hosts for data on one way, and where it breaks first."""
    where = _WAYS.get(str(way["way"]), str(way["way"]))
    hosts, devices = found["hosts_for_devices"], found["devices_per_host"]
    said = f"{where[0].upper()}{where[1:]}: {counted(way['hosts'], 'host')}"
    if not way["short"]:
        return (
            f"{said}, with {counted(devices, 'device')} each. Of more devices a host the "
            f"{way['breaks_first']} would be short first, from "
            f"{way['devices_fed_per_host']:,.3g} on."
        )
    return (
        f"{said}. The {hosts:,} that hold {counted(devices, 'device')} each are not enough: what "
        f"breaks first, the {way['breaks_first']} of a host, gives {way['fed_share']:.1%} of what "
        "they consume."
    )


def streams(found: Mapping[str, Any]) -> str | None:
    """Requests at a time, and a second; None where no store was measured."""
    if "streams" not in found:
        return None
    said = (
        f"At the store: {found['streams']:,} requests at a time of "
        f"{found['mb_per_s_per_stream']:,.3g} MB/s each, {found['gets_per_s']:,.0f} GETs/s of "
        f"{size_words(found['object_bytes'])}"
    )
    if "prefixes" not in found:
        return f"{said}."
    return (
        f"{said}; at {found['gets_per_s_per_prefix']:,.0f} GETs/s a prefix (Amazon S3) that takes "
        f"{counted(found['prefixes'], 'prefix')}, and {found['prefixes_by_sample']:,} where each "
        "sample is a request."
    )


def _listed(key: str, found: Mapping[str, Any]) -> Iterator[str]:
    if found.get(key):
        yield f"{key}:"
        yield from (f"  - {line}" for line in found[key])
