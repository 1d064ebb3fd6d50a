"""PURE. Advice for a terminal, and as one JSON object."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from dataprep.counted import counted
from iobench.advice.entry import Advice, times
from iobench.errors import NoAdvice

_WIDTH = 100
_COVERAGE = 0.95
_HEADS = {"change": "Change", "keep": "Leave as it is", "unknown": "Not known"}
NAMES = {
    "sharding": "pack into shards",
    "resize": "resize beforehand",
    "shard_size": "shard size",
    "access": "access mode",
    "client": "client",
    "workers": "workers",
    "prefetch": "prefetch",
    "batch_size": "batch size",
    "pin_memory": "pinned memory",
    "together": "all of it",
}
"""Settings as people call them."""


def text(entries: Sequence[Advice], model: Mapping[str, Any]) -> str:
    """Everything: what to change first, then what not, what is not known, and the model.

    Raises:
        NoAdvice: nothing in the run says what is used now.
    """
    if not entries:
        raise NoAdvice(
            "this run has no training loop over data and no loader that decodes: iobench run "
            "configs/bench/advise.yaml measures both"
        )
    lines = [f"Of {entries[0].of}:"]
    for state, head in _HEADS.items():
        told = [entry for entry in entries if entry.state == state]
        if told:
            lines += ["", head]
            for entry in told:
                lines += _entry(entry)
    lines += ["", *_wrapped(model_words(model), "")]
    if few := few_repeats_words([entry.as_dict() for entry in entries]):
        lines += ["", *_wrapped(few, "")]
    return "\n".join(lines)


def few_repeats_words(entries: Sequence[Mapping[str, Any]]) -> str:
    """How much less than 95 % the intervals cover; empty where they do cover it.

    ``entries`` as ``result.json`` keeps them. What is predicted has no coverage of its own.
    """
    gains = [e["gain"] for e in entries if isinstance(e.get("gain"), Mapping)]
    told = [(gain.get("coverage"), gain.get("repeats")) for gain in gains]
    few = [(c, n) for c, n in told if isinstance(c, float) and 0 < c < _COVERAGE]
    if not few:
        return ""
    coverage, repeats = min(few)
    return (
        f"Intervals of {repeats} repeats cover {coverage:.0%}: set repeats: 6 before you rely on a "
        "small difference."
    )


def model_words(model: Mapping[str, Any]) -> str:
    """Whether the model of least capacities holds, in one sentence."""
    if not model:
        return "The model: no capacity was measured."
    if model["holds"]:
        return f"The model of least capacities holds here: {model['why']}."
    if not any(scope.get("checks") for scope in model.get("scopes", ())):
        return (
            f"The model of least capacities is not tested here: {model['why']}. No advice is "
            "derived from it."
        )
    return (
        f"The model of least capacities does not hold everywhere here: {model['why']}. No advice "
        "is derived from it where it does not."
    )


def value_words(setting: str, value: Any) -> str:
    """A value as people say it."""
    if value is None:
        return "as it is"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        data = f" over {value['data']}" if value.get("data") else ""
        return f"{value['loader']}{data}, {counted(value['workers'], 'worker')}"
    if setting == "shard_size":
        return f"{value / 1e6:.3g} MB"
    return f"{value} pixels" if setting == "resize" else str(value)


def as_object(entries: Sequence[Advice], model: Mapping[str, Any]) -> dict[str, Any]:
    """``advice`` and ``whatif``, as a result's summary has them."""
    return {"advice": [entry.as_dict() for entry in entries], "whatif": dict(model)}


def _entry(entry: Advice) -> list[str]:
    name = NAMES.get(entry.setting, entry.setting)
    head = f"  {name}"
    if entry.state != "unknown":
        head += f": {value_words(entry.setting, entry.value)}"
    if entry.state == "change":
        head += f" (now {value_words(entry.setting, entry.now)})"
        if entry.gain is not None:
            head += f", {times(entry.gain)} the rate, {_basis(entry)}"
    lines = [*_wrapped(head, "  "), *_wrapped(entry.evidence, "      ")]
    if entry.state == "change" and entry.config:
        told = " ".join(f"{key}={value}" for key, value in entry.config.items())
        lines += _wrapped(f"{entry.command}: {told}", "      ")
    return lines


def _basis(entry: Advice) -> str:
    return "measured" if entry.basis == "measured" else "predicted by the model"


def _wrapped(said: str, indent: str) -> list[str]:
    plain = "".join(c if c.isprintable() else " " for c in said)
    return textwrap.wrap(
        *(plain.strip(), _WIDTH),
        initial_indent=indent,
        subsequent_indent=f"{indent}  " if indent else "",
        break_long_words=False,
        break_on_hyphens=False,
    )
