"""PURE. What to change, each with the evidence that it rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from iobench.advice.entry import Advice
from iobench.advice.forms import forms
from iobench.advice.loading import loading
from iobench.advice.shards import shard_size
from iobench.advice.situation import Situation, situation
from iobench.advice.storing import access, client
from iobench.advice.together import together
from iobench.result import Result

__all__ = ["Advice", "advise"]


def advise(result: Result, model: Mapping[str, Any], group: str | None = None) -> list[Advice]:
    """One entry a setting, known or not, then all changes at once; empty where nothing is used.

    ``model`` is what ``whatif`` says of the run: where it does not hold, nothing is derived from
    it. ``group`` is the training loop that is meant; unless told, the leading one.
    """
    found = situation(result, model, group)
    if found is None:
        return []
    entries = [*forms(found)]
    packs = any(entry.state == "change" for entry in entries)
    settings = list(loading(found))
    readers = max([found.readers, *_readers(found, settings)])
    entries += [shard_size(found, packs=packs, readers=readers), *settings]
    entries += [access(found), client(found)]
    whole = together(found, entries)
    return entries if whole is None else [*entries, whole]


def _readers(found: Situation, settings: Sequence[Advice]) -> list[int]:
    """Processes that will share the shards, where other workers are advised."""
    return [e.value * found.now.devices for e in settings if e.setting == "workers" and e.value]
