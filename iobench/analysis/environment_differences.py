"""PURE. Differences between two runs: their machines, their software and their configs.

Each difference has one of four sorts:

- ``machine``: processors, memory, limits, GPUs, the type of the machine, and the disks, file
  systems and stores of the targets. Runs on different machines are compared only with ``--force``,
  because their ratios would show the difference of the machines. A key that is not listed here
  counts as machine: users notice a wrong refusal, but not a wrong comparison.
- ``software``: iobench, Python, the kernel, drivers, libraries, and settings such as mount options,
  read-ahead, governors and power limits. Runs are often compared to see the effect of these.
  Therefore the differences are only listed.
- ``config``: keys of the config, and targets and stores that only one of the runs has, because the
  config decides which they are. These differences are only listed, too.
- ``untold``: the value is known for only one of the runs, for example because an earlier version
  wrote the other run.

Free space, current links of GPUs, disks that were not measured, and descriptions are not compared.
Sizes count as equal if they differ by at most 2 %, because kernels reserve different shares of the
same memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeGuard

from dataprep.name_encoding import escape
from iobench.results.numbers import size

Sort = Literal["machine", "software", "config", "untold"]
_Path = tuple[str, ...]
"""The keys that lead to a value: ``("targets", "disk", "kind")``."""

_SORT_ORDER: tuple[Sort, ...] = ("machine", "untold", "software", "config")
_SOFTWARE = {"iobench", "python", "kernel", "libraries", "governor", "transparent_huge_pages"}
"""First keys of settings of the software."""
_SOFTWARE_KEYS = {
    "driver_version",
    "power.limit",
    "persistence_mode",
    "container",
    "mount_options",
    "read_ahead_kb",
    "queue",
}
"""Keys of settings of the software that are below another key."""
_LOCATIONS = {"targets", "stores"}
"""First keys of descriptions of storage."""
_SAME_SIZE = 0.02
"""Maximum difference of two sizes that count as equal, as a share of the larger one."""
_UNKNOWN = ("", None, "unknown")
"""Values that stand for an unknown value. None also stands for a missing key."""
_MAX_LENGTH = 60
"""Maximum length of a value as text."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A key with different values in two runs.

    Attributes:
        path: the dotted key, escaped.
        base: the value of the base run, escaped; empty if the run lacks the key.
        new: the value of the new run.
        sort: the sort of the difference.
    """

    path: str
    base: str
    new: str
    sort: Sort

    def __str__(self) -> str:
        return f"{self.path}: {self.base or 'none'} -> {self.new or 'none'}"


def environment_differences(
    base: Mapping[str, Any], new: Mapping[str, Any]
) -> tuple[Difference, ...]:
    """Return the differences of two environments; differences of the machines come first."""
    base_values, new_values = dict(_flattened(base)), dict(_flattened(new))
    differences = []
    for path in dict.fromkeys([*base_values, *new_values]):
        base_value, new_value = base_values.get(path), new_values.get(path)
        if not _is_left_out(path) and not _is_same(path, base_value, new_value):
            sort = _sort_of(path, base_values, new_values)
            differences.append(_difference(path, base_value, new_value, sort))
    differences.sort(key=lambda difference: _SORT_ORDER.index(difference.sort))
    return tuple(differences)


def config_differences(base: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[Difference, ...]:
    """Return the differences of two configs, without the names of the runs."""
    base_values, new_values = dict(_flattened(base)), dict(_flattened(new))
    differences = []
    for path in dict.fromkeys([*base_values, *new_values]):
        base_value, new_value = base_values.get(path), new_values.get(path)
        if path != ("name",) and base_value != new_value:
            differences.append(_difference(path, base_value, new_value, "config"))
    return tuple(differences)


def _flattened(value: Any, path: _Path = ()) -> Iterator[tuple[_Path, Any]]:
    """Yield the paths and values of nested mappings and lists.

    A list of plain values is one value. For a list of mappings or lists, its length is yielded
    under the key ``count``, and then the values of its members. For an empty list, only the length
    is yielded.
    """
    if isinstance(value, Mapping):
        for key, member in value.items():
            yield from _flattened(member, (*path, str(key)))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        is_nested = any(isinstance(member, (Mapping, list)) for member in value)
        if is_nested or not value:
            yield (*path, "count"), len(value)
            for index, member in enumerate(value):
                yield from _flattened(member, (*path, str(index)))
        else:
            yield path, list(value)
    else:
        yield path, value


def _is_left_out(path: _Path) -> bool:
    """Return whether a key is not compared: it changes all the time, or is only a description."""
    if path[0] == "disks" or path[-1] == "free_bytes":
        return True
    if path[0] == "gpus":
        return path[-1].endswith(".current")
    return path[0] in _LOCATIONS and path[-1] in ("name", "why")


def _sort_of(path: _Path, base: Mapping[_Path, Any], new: Mapping[_Path, Any]) -> Sort:
    """Return the sort of a difference of two environments.

    Args:
        path: the key.
        base: all values of the base run by their keys.
        new: all values of the new run.
    """
    if path[0] in _SOFTWARE or _SOFTWARE_KEYS & set(path[1:]):
        return "software"
    if path[0] in _LOCATIONS and len(path) > 2:
        location = path[:2]
        is_in_base = any(other[:2] == location for other in base)
        is_in_new = any(other[:2] == location for other in new)
        if not is_in_base or not is_in_new:
            return "config"  # The config decides which targets and stores a run has.
    if base.get(path) in _UNKNOWN or new.get(path) in _UNKNOWN:
        return "untold"
    return "machine"


def _is_same(path: _Path, base: Any, new: Any) -> bool:
    """Return whether two values are equal, or sizes that are nearly equal, or both unknown."""
    if path[-1].endswith("_bytes") and _is_size(base) and _is_size(new):
        return abs(base - new) <= _SAME_SIZE * max(base, new)
    return bool(base == new) or (base in _UNKNOWN and new in _UNKNOWN)


def _is_size(value: Any) -> TypeGuard[float]:
    """Return whether a value is a number above 0 and not a bool."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0


def _difference(path: _Path, base: Any, new: Any, sort: Sort) -> Difference:
    """Return a difference with its key and its values as text."""
    key = path[-1]
    return Difference(escape(".".join(path)), _value_words(key, base), _value_words(key, new), sort)


def _value_words(key: str, value: Any) -> str:
    """Return a value as text of at most 60 characters; empty if there is none.

    Args:
        key: the last key that leads to the value.
        value: the value.
    """
    if value is None:
        return ""
    if key.endswith("_bytes") and isinstance(value, int) and value >= 10**9:
        return size(value)
    text = escape(value if isinstance(value, str) else json.dumps(value, default=str))
    return text if len(text) <= _MAX_LENGTH else f"{text[: _MAX_LENGTH - 1]}…"
