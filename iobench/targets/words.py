"""PURE. What a path lies on, in a few lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_INDENT = "    "


def target_lines(path: str, target: Mapping[str, Any], *, is_there: bool = True) -> list[str]:
    """The path with its kind, then the way down to the device, settings, and the evidence.

    Args:
        path: as it is to be shown.
        target: what ``describe_target`` says of it.
        is_there: False for a path to come, or one that is misspelt.
    """
    said = [] if is_there else ["no such file or directory: what it would lie on"]
    return [f"{path}: {target['name']}", *(_INDENT + line for line in (*said, *_details(target)))]


def _details(target: Mapping[str, Any]) -> Iterator[str]:
    stack = list(target.get("stack") or [target["file_system"]])
    yield " → ".join(stack) + _room(target)
    settings = list(_settings(target))
    if settings:
        yield "; ".join(settings)
    if target.get("mount_options"):
        yield f"mounted {str(target['mount_options']).replace(',', ', ')}"
    yield f"because {target['why']}" if target["kind"] != "unknown" else str(target["why"])


def _room(target: Mapping[str, Any]) -> str:
    total, free = target.get("total_bytes"), target.get("free_bytes")
    if not total:
        return ""
    return f", {total / 1e9:,.1f} GB, {(free or 0) / 1e9:,.1f} GB free"


def _settings(target: Mapping[str, Any]) -> Iterator[str]:
    if target.get("read_ahead_kb") is not None:
        yield f"reads {target['read_ahead_kb']} KiB ahead"
    device = target.get("device") or {}
    if scheduler := device.get("queue", {}).get("scheduler"):
        yield f"scheduler {scheduler}"
    if link := device.get("link_mb_per_s"):
        yield f"a link of {link:,.0f} MB/s"
    if device.get("rotational"):
        yield "rotational"
