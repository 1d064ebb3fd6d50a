"""PURE. Differences between two runs' machines, software and configs.

Machine: processors, memory, limits, GPUs, instance type, and the disks, file systems and stores of
the targets. Runs on different machines are compared only with ``--force``, since their ratios would
be those of the machines. An unknown key counts as machine: users notice a wrong refusal, but not a
wrong comparison.

Software: iobench, Python, kernel, drivers, libraries, and settings such as mount options,
read-ahead, governors and power limits. People compare runs to see their effect, so these
differences are only listed. So are those of the config.

``untold``: only one run has the key, since an older version wrote the other. Left out are free
space, current links of GPUs, disks that were not measured, and descriptions. Sizes are equal within
2 %, since kernels reserve different shares of the same memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeGuard

from dataprep.names import escape
from iobench.numbers import size

Sort = Literal["machine", "software", "config", "untold"]
_SOFTWARE = {"iobench", "python", "kernel", "libraries", "governor", "transparent_huge_pages"}
_SET = {
    *("driver_version", "power.limit", "persistence_mode", "container"),
    *("mount_options", "read_ahead_kb", "queue"),
}
_PLACES = {"targets", "stores"}
_SAME_SIZE = 0.02
_UNKNOWN = ("", None, "unknown")
_LONGEST = 60


@dataclass(frozen=True, slots=True)
class Difference:
    """``path`` is dotted; all are escaped. An empty value is one that is not there."""

    path: str
    base: str
    new: str
    sort: Sort

    def __str__(self) -> str:
        return f"{self.path}: {self.base or 'none'} -> {self.new or 'none'}"


def environment(base: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[Difference, ...]:
    """Differences of the environment, the machine first."""
    before, after = dict(_flat(base)), dict(_flat(new))
    found = [
        _difference(path, before.get(path), after.get(path), _sort(path, before, after))
        for path in dict.fromkeys([*before, *after])
        if not _passes(path) and not _alike(path, before.get(path), after.get(path))
    ]
    order = ("machine", "untold", "software", "config")
    return tuple(sorted(found, key=lambda difference: order.index(difference.sort)))


def config(base: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[Difference, ...]:
    """Differences of the config, without the run's name."""
    before, after = dict(_flat(base)), dict(_flat(new))
    return tuple(
        _difference(path, before.get(path), after.get(path), "config")
        for path in dict.fromkeys([*before, *after])
        if path != ("name",) and before.get(path) != after.get(path)
    )


def _flat(value: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield from _flat(below, (*above, str(key)))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        if any(isinstance(below, (Mapping, list)) for below in value) or not value:
            yield (*above, "count"), len(value)
            for index, below in enumerate(value):
                yield from _flat(below, (*above, str(index)))
        else:
            yield above, list(value)
    else:
        yield above, value


def _passes(path: tuple[str, ...]) -> bool:
    """Whether the key is left out: it changes all the time, or is only a description."""
    if path[0] == "disks" or path[-1] == "free_bytes":
        return True
    if path[0] == "gpus":
        return path[-1].endswith(".current")
    return path[0] in _PLACES and path[-1] in ("name", "why")


def _sort(path: tuple[str, ...], before: Mapping[Any, Any], after: Mapping[Any, Any]) -> Sort:
    if path[0] in _SOFTWARE or _SET & {*path[1:]}:
        return "software"
    if path[0] in _PLACES and len(path) > 2:
        # A place that only one run has is a matter of what was asked.
        sides = [{known[:2] for known in side} for side in (before, after)]
        if not all(path[:2] in side for side in sides):
            return "config"
    untold = any(side.get(path) in _UNKNOWN for side in (before, after))
    return "untold" if untold else "machine"


def _alike(path: tuple[str, ...], base: Any, new: Any) -> bool:
    if path[-1].endswith("_bytes") and _is_size(base) and _is_size(new):
        return abs(base - new) <= _SAME_SIZE * max(base, new)
    return bool(base == new) or (base in _UNKNOWN and new in _UNKNOWN)


def _is_size(value: Any) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0


def _difference(path: tuple[str, ...], base: Any, new: Any, sort: Sort) -> Difference:
    key = path[-1]
    return Difference(escape(".".join(path)), _said(key, base), _said(key, new), sort)


def _said(key: str, value: Any) -> str:
    if value is None:
        return ""
    if key.endswith("_bytes") and isinstance(value, int) and value >= 10**9:
        return size(value)
    text = escape(value if isinstance(value, str) else json.dumps(value, default=str))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
