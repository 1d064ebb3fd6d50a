"""PURE. Numbers with their nouns."""

from __future__ import annotations

_PLURALS = {
    "class": "classes",
    "entry": "entries",
    "image is": "images are",
    "whole batch": "whole batches",
}


def counted(number: int, noun: str) -> str:
    """``1 shard``, ``1,200 shards``."""
    plural = _PLURALS.get(noun, f"{noun}s")
    return f"{number:,} {noun if number == 1 else plural}"
