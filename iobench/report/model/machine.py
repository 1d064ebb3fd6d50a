"""PURE. The machine that measured, in the order in which a reader asks, and its libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from iobench.report.model.numbers import is_number, number, size
from iobench.report.model.shapes import Entry, Table

_ELSEWHERE = {"targets", "stores", "libraries"}
_IN_ANOTHER_ROW = {
    *("processors_present", "processor_cores", "processor_quota", "machine_memory_bytes"),
}


def machine_table(environment: Mapping[str, Any]) -> tuple[Table, ...]:
    """A row a thing; what a later version adds is shown as it is stored."""
    known = [key for key in _ROWS if environment.get(key) not in _NOTHING]
    rest = {
        key: value
        for key, value in environment.items()
        if key not in _ROWS and key not in _ELSEWHERE and key not in _IN_ANOTHER_ROW
    }
    said = [pair for key in known for pair in _ROWS[key](environment)]
    rows = tuple((Entry(name), Entry(text)) for name, text in (*said, *_flat(rest)) if text)
    return (Table("This machine", ("what", "is"), rows),) if rows else ()


def library_table(environment: Mapping[str, Any]) -> tuple[Table, ...]:
    """Versions, folded away: they matter when two runs are compared."""
    libraries = environment.get("libraries")
    if not isinstance(libraries, Mapping) or not libraries:
        return ()
    rows = tuple((Entry(str(name)), Entry(str(told))) for name, told in libraries.items())
    return (Table(f"Libraries ({len(rows)})", ("library", "version"), rows, folded=True),)


Rows = Iterator[tuple[str, str]]
_NOTHING: tuple[Any, ...] = (None, "", [], {})


def _machine(environment: Mapping[str, Any]) -> Rows:
    found = environment["machine"]
    if not isinstance(found, Mapping):
        return
    named = [found.get("instance_type"), found.get("cloud")]
    if not any(named):
        named = [found.get("vendor"), found.get("product")]
    yield "machine", ", ".join(str(part) for part in named if part)
    yield "virtual machine", str(found.get("virtual", ""))
    yield "container", str(found.get("container", ""))


def _processors(environment: Mapping[str, Any]) -> Rows:
    usable, present = environment["processors"], environment.get("processors_present")
    text = str(usable)
    if present not in (None, usable):
        text += f" of {present}, the others are not for this process"
    if environment.get("processor_cores") not in (None, present, usable):
        text += f"; {environment['processor_cores']} cores"
    if is_number(environment.get("processor_quota")):
        text += f"; the control group gives {number(environment['processor_quota'])} of time"
    yield "processors", text


def _memory(environment: Mapping[str, Any]) -> Rows:
    usable, whole = environment["memory_bytes"], environment.get("machine_memory_bytes")
    if not is_number(usable):
        return
    text = size(usable)
    if is_number(whole) and whole > usable:
        text += f" of {size(whole)}, limited by the control group"
    yield "memory", text


def _nodes(environment: Mapping[str, Any]) -> Rows:
    for i, node in enumerate(_listed(environment["numa_nodes"])):
        memory = node.get("memory_bytes")
        shown = f", {size(memory)}" if is_number(memory) else ""
        yield f"NUMA node {i}", f"processors {node.get('processors', '')}{shown}"


def _gpus(environment: Mapping[str, Any]) -> Rows:
    for i, gpu in enumerate(_listed(environment["gpus"]), start=1):
        yield f"GPU {i}", ", ".join(_gpu(gpu))


def _gpu(gpu: Mapping[str, Any]) -> Iterator[str]:
    yield str(gpu.get("name", ""))
    if gpu.get("memory.total"):
        yield str(gpu["memory.total"])
    if gpu.get("driver_version"):
        yield f"driver {gpu['driver_version']}"
    if gpu.get("pcie.link.gen.max"):
        yield f"PCI Express {gpu['pcie.link.gen.max']}.0 × {gpu.get('pcie.link.width.max', '?')}"
    if gpu.get("pcie.link.width.current") != gpu.get("pcie.link.width.max"):
        yield f"linked with {gpu.get('pcie.link.width.current')} lanes only"
    if gpu.get("power.limit"):
        yield f"limited to {gpu['power.limit']}"
    if gpu.get("mig.mode.current") == "Enabled":
        yield "MIG"
    if gpu.get("numa_node"):
        yield f"NUMA node {gpu['numa_node']}"


def _networks(environment: Mapping[str, Any]) -> Rows:
    for i, card in enumerate(_listed(environment["networks"]), start=1):
        speed, count = card.get("mbit_per_s"), card.get("count", 1)
        parts = [str(card.get("driver", "")), "speed not told"]
        if is_number(speed):
            parts[1] = f"{number(speed / 1000)} Gbit/s"
        yield f"network {i}", (f"{count} × " if count != 1 else "") + ", ".join(filter(None, parts))


def _disks(environment: Mapping[str, Any]) -> Rows:
    for i, disk in enumerate(_listed(environment["disks"]), start=1):
        model = str(disk.get("model", ""))
        name, count = str(disk.get("name", "")), disk.get("count", 1)
        parts = [name, model if model != name else ""]
        if is_number(disk.get("total_bytes")):
            parts.append(size(disk["total_bytes"]))
        if disk.get("rotational"):
            parts.append("rotational")
        yield f"disk {i}", (f"{count} × " if count != 1 else "") + ", ".join(filter(None, parts))


def _listed(value: Any) -> list[Mapping[str, Any]]:
    listed = value if isinstance(value, (list, tuple)) else ()
    return [one for one in listed if isinstance(one, Mapping)]


def _plain(key: str, name: str) -> Callable[[Mapping[str, Any]], Rows]:
    def row(environment: Mapping[str, Any]) -> Rows:
        yield name, str(environment[key])

    return row


_ROWS: Mapping[str, Callable[[Mapping[str, Any]], Rows]] = {
    "machine": _machine,
    "processor": _plain("processor", "processor"),
    "processors": _processors,
    "governor": _plain("governor", "frequency governor"),
    "memory_bytes": _memory,
    "numa_nodes": _nodes,
    "gpus": _gpus,
    "networks": _networks,
    "disks": _disks,
    "transparent_huge_pages": _plain("transparent_huge_pages", "transparent huge pages"),
    "kernel": _plain("kernel", "kernel"),
    "python": _plain("python", "Python"),
    "iobench": _plain("iobench", "iobench"),
}


def _flat(value: Mapping[str, Any], above: str = "") -> Rows:
    """What is stored, level by level, each with its way there."""
    for key, below in value.items():
        name = f"{above} / {key}" if above else str(key).replace("_", " ")
        if isinstance(below, Mapping):
            yield from _flat(below, name)
        elif isinstance(below, (list, tuple)):
            yield from _flat({str(i): item for i, item in enumerate(below, start=1)}, name)
        elif str(key).endswith("_bytes") and isinstance(below, int) and below > 0:
            yield name.removesuffix(" bytes").removesuffix("_bytes"), size(below)
        elif below not in (None, ""):
            yield name, str(below)
