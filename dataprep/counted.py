"""PURE. Numbers with their nouns and units."""

from __future__ import annotations

_PLURALS = {
    "box": "boxes",
    "class": "classes",
    "entry": "entries",
    "entry was": "entries were",
    "image is": "images are",
    "prefix": "prefixes",
    "whole batch": "whole batches",
}


def counted(number: int, noun: str) -> str:
    """``1 shard``, ``1,200 shards``."""
    plural = _PLURALS.get(noun, f"{noun}s")
    return f"{number:,} {noun if number == 1 else plural}"
