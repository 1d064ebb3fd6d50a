"""PURE. What was measured: each target and store with its kind, its device and the evidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from iobench.report.model.numbers import is_number, number, size
from iobench.report.model.shapes import Block, Entry, Table, Words
from iobench.result import Result


def target_names(environment: Mapping[str, Any]) -> dict[str, str]:
    """Label -> ``NVMe, xfs``; of an older version's results the file system alone."""
    return {label: _short(target) for label, target in _described(environment, "targets").items()}


def target_words(result: Result, figures: Sequence[Block]) -> tuple[Words, ...]:
    """What each probed target is, above its figures; empty where there are none."""
    probed = {str(trial.params.get("target")) for trial in result.trials if trial.kind == "disk"}
    return _words(target_names(result.environment), probed) if figures else ()


def store_words(result: Result, figures: Sequence[Block]) -> tuple[Words, ...]:
    """What each probed store is, above its figures; empty where there are none."""
    probed = {str(trial.params.get("store")) for trial in result.trials if trial.kind == "object"}
    stores = _described(result.environment, "stores")
    names = {label: _store_name(store) for label, store in stores.items()}
    return _words(names, probed) if figures else ()


def target_table(environment: Mapping[str, Any]) -> tuple[Table, ...]:
    """A row a target; empty where there is none."""
    rows = tuple(
        _target_row(label, target) for label, target in _described(environment, "targets").items()
    )
    columns = ("target", "is", "room", "from the file system down, and what shows it", "set")
    return (Table("What was measured", columns, rows),) if rows else ()


def store_table(environment: Mapping[str, Any]) -> tuple[Table, ...]:
    """A row a store; empty where there is none."""
    rows = tuple(
        (
            Entry(label),
            Entry(_store_name(store), note=_way(store.get("encrypted"))),
            Entry(str(store.get("why", ""))),
        )
        for label, store in _described(environment, "stores").items()
    )
    return (Table("Object stores", ("store", "is", "what shows it"), rows),) if rows else ()


def _way(encrypted: Any) -> str:
    return ("by TLS" if encrypted else "by plain HTTP") if isinstance(encrypted, bool) else ""


def _words(names: Mapping[str, str], probed: Iterable[str]) -> tuple[Words, ...]:
    lines = tuple(f"{label}: {names[label]}." for label in sorted(probed) if names.get(label))
    return (Words(lines, listed=len(lines) > 1),) if lines else ()


def _short(target: Mapping[str, Any]) -> str:
    """Kind, model and file system, each where it adds something."""
    name, file_system = str(target.get("name", "")), str(target.get("file_system", ""))
    if not name:
        return file_system
    if name == "unknown":
        return f"{file_system}, and what lies below it unknown"
    device = target.get("device")
    model = str(device.get("model", "")) if isinstance(device, Mapping) else ""
    parts = [name]
    if model and model.lower() not in name.lower():
        parts.append(model)
    if file_system and not name.startswith(file_system):
        parts.append(file_system)
    return ", ".join(parts)


def _store_name(store: Mapping[str, Any]) -> str:
    return ", ".join(filter(None, (str(store.get("name", "")), str(store.get("region") or ""))))


def _target_row(label: str, target: Mapping[str, Any]) -> tuple[Entry, ...]:
    stack = target.get("stack")
    below = " → ".join(map(str, stack)) if isinstance(stack, (list, tuple)) else ""
    return (
        Entry(label),
        Entry(str(target.get("name") or "unknown"), note=str(target.get("file_system", ""))),
        _room(target),
        Entry(below, note=str(target.get("why", ""))),
        Entry(_queue(target), note=str(target.get("mount_options", "")).replace(",", ", ")),
    )


def _room(target: Mapping[str, Any]) -> Entry:
    total, free = target.get("total_bytes"), target.get("free_bytes")
    if not is_number(total):
        return Entry("")
    left = f"{size(free)} free" if is_number(free) else ""
    return Entry(size(total), str(total), True, left)


def _queue(target: Mapping[str, Any]) -> str:
    """``read-ahead 128 KiB, scheduler none, rotational``."""
    device = target.get("device")
    device = device if isinstance(device, Mapping) else {}
    queue = device.get("queue")
    queue = queue if isinstance(queue, Mapping) else {}
    said = []
    if is_number(target.get("read_ahead_kb")):
        said.append(f"read-ahead {size(int(target['read_ahead_kb']) * 1024)}")
    if queue.get("scheduler"):
        said.append(f"scheduler {queue['scheduler']}")
    if is_number(device.get("link_mb_per_s")):
        said.append(f"link {number(device['link_mb_per_s'])} MB/s")
    if device.get("rotational"):
        said.append("rotational")
    return ", ".join(said)


def _described(environment: Mapping[str, Any], key: str) -> dict[str, Mapping[str, Any]]:
    found = environment.get(key)
    if not isinstance(found, Mapping):
        return {}
    return {str(label): one for label, one in found.items() if isinstance(one, Mapping)}
