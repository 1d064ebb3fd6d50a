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


def size_words(count: int) -> str:
    """``5 kB``, ``64 KiB``, ``1 MiB``, ``128 MB``: the largest unit in which it is whole."""
    factors = {"GiB": 2**30, "GB": 10**9, "MiB": 2**20, "MB": 10**6, "KiB": 2**10, "kB": 10**3}
    whole = (unit for unit, factor in factors.items() if count and count % factor == 0)
    unit = next(whole, "B")
    return f"{count // factors.get(unit, 1):,} {unit}"
