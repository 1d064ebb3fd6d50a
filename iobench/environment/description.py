"""Everything that a figure depends on, as the result keeps it."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dataprep._version import __version__
from iobench.environment.cloud import instance_type
from iobench.environment.limits import processor_quota
from iobench.environment.machine import machine
from iobench.environment.networks import networks
from iobench.environment.nvidia import gpus
from iobench.environment.packages import libraries
from iobench.environment.processors import numa_nodes, processors, transparent_huge_pages
from iobench.memory import machine_bytes, memory_bytes
from iobench.targets import describe_target
from iobench.targets.describe import device_words
from iobench.targets.devices import of_device
from iobench.targets.kinds import kind_name
from iobench.targets.sysfs import disks


def describe(
    targets: Mapping[str, Path], stores: Mapping[str, Mapping[str, Any]] | None = None
) -> dict[str, Any]:
    """Versions, processors, memory, GPUs, networks, disks, and what ``targets`` lie on, by label.

    ``stores``: what is known of object stores, by label. What cannot be had is left out; nothing
    here takes longer than a second but ``nvidia-smi``, which is given twenty.
    """
    found = {
        "iobench": __version__,
        "python": platform.python_version(),
        "kernel": f"{platform.system()} {platform.release()}",
        **processors(),
        "processor_quota": processor_quota(),
        "numa_nodes": numa_nodes(),
        "memory_bytes": memory_bytes(),
        "machine_memory_bytes": machine_bytes(),
        "transparent_huge_pages": transparent_huge_pages(),
        "machine": _machine(),
        "gpus": gpus(),
        "networks": networks(),
        "disks": _disks(),
        "libraries": libraries(),
        "targets": {label: describe_target(path) for label, path in targets.items()},
        "stores": dict(stores or {}),
    }
    always = ("gpus", "libraries", "targets")
    return {key: value for key, value in found.items() if key in always or value not in _NOTHING}


_NOTHING: tuple[Any, ...] = (None, "", {}, [])


def _machine() -> dict[str, Any]:
    found = machine()
    kind = instance_type(found)
    return {**found, "instance_type": kind} if kind else found


def _disks() -> list[dict[str, Any]]:
    """Disks of the machine; alike ones once, with their number."""
    counted: list[dict[str, Any]] = []
    for disk in disks():
        kind = of_device(disk).kind
        entry = {"kind": kind, "name": kind_name(kind), **device_words(disk, kind)}
        alike = [other for other in counted if {**other, "count": 1} == {**entry, "count": 1}]
        if alike:
            alike[0]["count"] += 1
        else:
            counted.append({**entry, "count": 1})
    return counted
