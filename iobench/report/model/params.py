"""PURE. Params in words, short enough to name a bar or a curve."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from iobench.report.model.numbers import number, size

# Values that say for themselves what they are.
_PLAIN = {
    *("loader", "data", "client", "operation", "pattern", "cache", "target", "store", "access"),
    *("model", "consumer", "device", "precision", "group", "input", "reader", "at", "engine"),
}
# How long and over how much was measured: not what was measured.
_EFFORT = {"seconds", "steps", "max_requests", "pool_bytes", "file_bytes", "over", "epochs"}
_WORDED = {
    "workers": "{} workers",
    "batch_size": "batch {}",
    "devices": "{} devices",
    "processes": "{} processes",
    "prefetch": "prefetch {}",
    "parallelism": "{} in parallel",
    "connections": "{} connections",
    "image_size": "{} pixels",
}
NAMES = {
    "workers": "workers",
    "batch_size": "batch size (samples)",
    "prefetch": "prefetch (batches)",
    "parallelism": "reads or writes in parallel",
    "connections": "connections",
    "block_bytes": "block size",
    "object_bytes": "object size",
    "shard_bytes": "shard size",
}


def worded(key: str, value: Any) -> str:
    """``2 workers``, ``1 MiB blocks``, ``without decode``, ``tf-data``."""
    if key in _PLAIN:
        return str(value)
    if isinstance(value, bool):
        return f"{'with' if value else 'without'} {key.replace('_', ' ')}"
    if key in _WORDED:
        text = _WORDED[key].format(value)
        return text[:-1] if value == 1 and text.endswith("s") else text
    if key.endswith("_bytes") and isinstance(value, (int, float)):
        return f"{size(value)} {key.removesuffix('_bytes').replace('_', ' ')}s"
    if isinstance(value, float):
        value = number(value)
    return f"{key.replace('_', ' ')} {value}"


def joined(params: Mapping[str, Any], keys: Iterable[str]) -> str:
    """Those params in words, set apart by dots."""
    return " · ".join(worded(key, params[key]) for key in keys if key in params)


def varying(sets: Iterable[Mapping[str, Any]]) -> tuple[list[str], list[str]]:
    """Keys whose values differ between the sets, and those worth naming that all hold alike."""
    given = list(sets)
    keys = list(dict.fromkeys(key for params in given for key in params))
    differ = [key for key in keys if len({repr(params.get(key, "\0")) for params in given}) > 1]
    return differ, [key for key in keys if key not in differ and key not in _EFFORT]
