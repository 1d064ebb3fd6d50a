"""PURE. Write numbers with their nouns, and lists of names, in messages."""

from __future__ import annotations

from collections.abc import Sequence

_MAX_LISTED = 10
_PLURALS = {
    "box": "boxes",
    "class": "classes",
    "entry": "entries",
    "entry was": "entries were",
    "image is": "images are",
    "prefix": "prefixes",
    "whole batch": "whole batches",
}
"""The plurals that are not formed by adding an s. Some entries include a verb or an adjective."""


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, such as ``1 shard`` or ``1,200 shards``."""
    if number == 1:
        return f"{number:,} {noun}"
    plural = _PLURALS.get(noun, f"{noun}s")
    return f"{number:,} {plural}"


def listed(names: Sequence[str], max_names: int = _MAX_LISTED) -> str:
    """Return names in quotes, separated by commas.

    If there are more than ``max_names`` names, ``...`` stands for the remaining names.
    """
    text = ", ".join(repr(name) for name in names[:max_names])
    if len(names) > max_names:
        text += ", ..."
    return text
