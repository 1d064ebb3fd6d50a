"""PURE. What a watched process tells its companion: lines of JSON, some with doubles behind them.

``{"open": N, ...}`` names loader N; ``{"steps": N, "first": F, "bytes": B}`` is followed by B bytes
of records (``epoch.STEP_FIELDS``) from its record F on, ``{"idle": N, "bytes": B}`` by pairs of
when a batch was asked for and how long the device then had nothing to do; ``{"end": true}`` is the
last. Records and pairs may come twice.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple


class Message(NamedTuple):
    """``doubles`` is empty where none follow."""

    head: Mapping[str, Any]
    doubles: array[float]


def message(head: Mapping[str, Any], doubles: bytes = b"") -> bytes:
    """As it is sent."""
    whole = {**head, "bytes": len(doubles)} if doubles else head
    return json.dumps(whole).encode() + b"\n" + doubles


class Inbox:
    """Bytes as they come, into messages; what is not whole yet waits."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def taken(self, data: bytes) -> Iterator[Message]:
        """Every message that is whole with ``data``."""
        self._bytes += data
        while (end := self._bytes.find(b"\n")) >= 0:
            head = json.loads(self._bytes[:end])
            size = int(head.get("bytes", 0))
            if len(self._bytes) < end + 1 + size:
                return
            doubles = array("d", bytes(self._bytes[end + 1 : end + 1 + size]))
            del self._bytes[: end + 1 + size]
            yield Message(head, doubles)
