"""JPEGs of several scans, with some of them missing or many times there."""

from __future__ import annotations

import re

_SCAN = re.compile(rb"(?:\xff\xc4..[^\xff]*)*\xff\xda(?:[^\xff]|\xff[\x00\xd0-\xd7])*", re.DOTALL)


def split(data: bytes) -> tuple[bytes, list[bytes], bytes]:
    """What stands before the first scan's marker, each scan with its tables, and the end."""
    first = data.index(b"\xff\xda")
    tables = data.index(b"\xff\xc4")
    found = [match[0] for match in _SCAN.finditer(data, min(first, tables))]
    return data[: min(first, tables)], found, data[-2:]


def without(data: bytes, *numbers: int) -> bytes:
    """The JPEG without some of its scans, counted from 0; their tables stay."""
    head, scans, end = split(data)
    kept = [
        scan[: scan.index(b"\xff\xda")] if i in numbers else scan for i, scan in enumerate(scans)
    ]
    return b"".join([head, *kept, end])


def repeated(data: bytes, times: int) -> bytes:
    """The JPEG with its last scan so many times more."""
    head, scans, end = split(data)
    return b"".join([head, *scans, *([scans[-1]] * times), end])
