"""The rules of the Trace Event Format, field by field, as far as iobench writes it.

The source is "Trace Event Format" of the Chromium project: the JSON object format, and events of
the phases ``X`` (complete), ``C`` (counter) and ``M`` (metadata).
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

Event = Mapping[str, Any]

_Fields = dict[str, type | tuple[type, ...]]

_NUMBER = (int, float)
_REQUIRED: dict[str, _Fields] = {
    "X": {"name": str, "cat": str, "ts": _NUMBER, "dur": _NUMBER, "pid": int, "tid": int},
    "C": {"name": str, "ts": _NUMBER, "pid": int, "args": dict},
    "M": {"name": str, "pid": int, "args": dict},
}
_OPTIONAL: dict[str, _Fields] = {
    "X": {"args": dict},
    "C": {"cat": str, "tid": int},
    "M": {"tid": int},
}
_OF_METADATA = {
    "process_name": ("name", str),
    "process_labels": ("labels", str),
    "process_sort_index": ("sort_index", int),
    "thread_name": ("name", str),
    "thread_sort_index": ("sort_index", int),
}
_MOST_PROCESSES_OF_LINUX = 4_194_304


def read(file: Path) -> dict[str, Any]:
    """Read the JSON object of a trace, which may be compressed."""
    data = file.read_bytes()
    if file.suffix == ".gz":
        data = gzip.decompress(data)
    content: dict[str, Any] = json.loads(data)
    return content


def problems(content: Mapping[str, Any]) -> list[str]:
    """Return every violation of the format, as a sentence each."""
    violations = list(_of_the_object(content))
    events = content.get("traceEvents", [])
    for number, event in enumerate(events):
        violations += [f"event {number}: {problem}" for problem in _of_an_event(event)]
    if not violations:  # The other checks need the fields.
        violations += _of_the_order(events)
        violations += _of_names(events)
        violations += _of_nesting(events)
    return violations


def _of_the_object(content: Mapping[str, Any]) -> Iterator[str]:
    """Check the fields of the whole trace."""
    if not isinstance(content.get("traceEvents"), list):
        yield "traceEvents is no list"
    if content.get("displayTimeUnit") not in ("ms", "ns"):
        yield "displayTimeUnit is neither ms nor ns"
    if not isinstance(content.get("otherData", {}), dict):
        yield "otherData is no object"


def _of_an_event(event: Event) -> Iterator[str]:
    """Check the fields of one event."""
    phase = event.get("ph")
    if phase not in _REQUIRED:
        yield f"phase {phase!r}"
        return
    fields = {**_REQUIRED[phase], **_OPTIONAL[phase]}
    for key in _REQUIRED[phase].keys() - event.keys():
        yield f"no {key}"
    for key in event.keys() - fields.keys() - {"ph"}:
        yield f"{key} is no field of phase {phase}"
    for key in fields.keys() & event.keys():
        value = event[key]
        if not isinstance(value, fields[key]) or isinstance(value, bool):
            yield f"{key} is {value!r}"
        elif isinstance(value, float) and not math.isfinite(value):
            yield f"{key} is not finite"
        elif isinstance(value, (int, float)) and value < 0:
            yield f"{key} is negative"
    if phase == "C" and not all(_is_number(value) for value in event.get("args", {}).values()):
        yield "a counter has a value that is no number"
    if phase == "C" and len(event.get("args", {})) != 1:
        yield "a counter has not exactly one series: several would be stacked"
    if phase == "M":
        key, kind = _OF_METADATA.get(event.get("name", ""), ("", object))
        if set(event.get("args", {})) != {key} or not isinstance(event["args"][key], kind):
            yield f"metadata {event.get('name')!r} with {event.get('args')!r}"


def _is_number(value: object) -> bool:
    """Return whether a value is a finite number, and no truth value."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _of_the_order(events: Sequence[Event]) -> Iterator[str]:
    """Check that events are sorted by time, and that a counter has one value at a time."""
    times = [event["ts"] for event in events if event["ph"] != "M"]
    if times != sorted(times):
        yield "events are not sorted by ts"
    counters: dict[tuple[int, str], float] = {}
    for event in events:
        if event["ph"] == "C":
            key = event["pid"], event["name"]
            if event["ts"] <= counters.get(key, -1.0):
                yield f"counter {key} has two values at {event['ts']}"
            counters[key] = event["ts"]


def _of_names(events: Sequence[Event]) -> Iterator[str]:
    """Check that every process and thread has one name and a number of its own."""
    processes = [event["pid"] for event in events if event["name"] == "process_name"]
    threads = [(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"]
    if len(set(processes)) < len(processes) or len(set(threads)) < len(threads):
        yield "a process or a thread has two names"
    if len({thread for _, thread in threads}) < len(threads):
        yield "two threads have one number"
    if {event["pid"] for event in events} != set(processes):
        yield "a process has no name"
    if {(e["pid"], e["tid"]) for e in events if e["ph"] == "X"} != set(threads):
        yield "a thread has no name, or a name has no thread"
    if processes and min(processes) <= _MOST_PROCESSES_OF_LINUX:
        yield "the number of a process may be that of a real one"


def _of_nesting(events: Sequence[Event]) -> Iterator[str]:
    """Check that two slices of a thread nest or do not overlap, in whole nanoseconds."""
    open_ends: dict[int, list[Fraction]] = {}
    for event in events:
        if event["ph"] != "X":
            continue
        begin, length = Fraction(event["ts"]), Fraction(event["dur"])
        if (begin * 1000).denominator != 1 or (length * 1000).denominator != 1:
            yield f"{event['name']} at {event['ts']} is not at whole nanoseconds"
        stack = open_ends.setdefault(event["tid"], [])
        while stack and stack[-1] <= begin:
            stack.pop()
        if stack and begin + length > stack[-1]:
            yield f"{event['name']} at {event['ts']} overlaps in part with another slice"
        stack.append(begin + length)
