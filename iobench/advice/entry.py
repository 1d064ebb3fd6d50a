"""PURE. One piece of advice, with what it rests on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from iobench.stats import Estimate

State = Literal["change", "keep", "unknown"]
Basis = Literal["measured", "model", ""]

WORTH = 1.02
"""Times the rate from which on a change is worth making."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What to set, what is set now, and the evidence.

    Attributes:
        setting: what it is about, such as ``workers``.
        state: ``change``; ``keep``, where no other value that was measured is better; ``unknown``,
            where the run lacks the evidence, which ``evidence`` then names.
        of: the loop or the loader that ``now`` and ``gain`` are of.
        value, now: JSON values; None where there is none.
        gain: times the rate of now.
        basis: ``measured`` where ``gain`` and ``value`` rest on trials of just these settings;
            ``model`` where they are what the capacities predict.
        config: dotted keys and their values, of the config that ``command`` takes.
        command: ``iobench run``, or ``dataprep shard``.
    """

    setting: str
    state: State
    of: str
    evidence: str
    value: Any = None
    now: Any = None
    gain: Estimate | None = None
    basis: Basis = ""
    config: Mapping[str, Any] = field(default_factory=dict)
    command: str = ""

    def as_dict(self) -> dict[str, Any]:
        """As ``result.json`` keeps it."""
        return {**asdict(self), "config": dict(self.config)}


def unknown(setting: str, of: str, why: str) -> Advice:
    """No advice, and what would bring it."""
    return Advice(setting, "unknown", of, why)


def times(gain: Estimate) -> str:
    """``1.42 times (1.38 to 1.47)``."""
    if gain.low < gain.high:
        return f"{gain.median:.2f} times ({gain.low:.2f} to {gain.high:.2f})"
    return f"{gain.median:.2f} times"
