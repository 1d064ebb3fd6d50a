"""PURE. A rule of the diagnosis: when it fires, who says so, and what to do then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from dataprep.counted import counted
from iobench.result import Finding

Kind = Literal["cause", "grade", "start", "setting", "measurement"]
Severity = Literal["info", "warning", "problem"]

FINE, HIGH = 0.05, 0.20
"""Shares of a step that are spent on input: below the first fine, above the second high."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. All findings are made by ``found``, so that no code is without its rule.

    Attributes:
        code: what results call it; it stays.
        title: what it says, in a few words.
        kind: ``cause`` (something that takes a part of a loop's time), ``grade`` (how much of it
            input takes), ``start`` (before the first batch), ``setting`` (of loader or loop) or
            ``measurement`` (how the figures came about).
        severity: what it usually is.
        fires: when, with its thresholds in figures.
        evidence: which figures stand behind it.
        advice: what to do, in keys of configs or commands.
        source: who says so.
    """

    code: str
    title: str
    kind: Kind
    severity: Severity
    fires: str
    evidence: str
    advice: str
    source: str

    def found(
        self,
        evidence: str,
        advice: str = "",
        *,
        share: float | None = None,
        share_low: float | None = None,
        severity: Severity | None = None,
    ) -> Finding:
        """What it says of one case.

        ``share`` is the part of a loop's time that it explains, ``share_low`` where its interval
        begins.
        """
        return Finding(
            self.code,
            severity or self.severity,
            evidence,
            advice or self.advice,
            title=self.title,
            threshold=self.fires,
            share=share,
            share_low=share_low,
        )

    def costing(self, evidence: str, share: Share, advice: str = "") -> Finding:
        """Of a cause: a problem where it takes more than ``HIGH`` of the time, else a warning."""
        graded: Severity = "problem" if share.median > HIGH else "warning"
        low = share.low if share.repeats > 1 else None
        return self.found(evidence, advice, share=share.median, share_low=low, severity=graded)


class Share(NamedTuple):
    """A part of a loop's time: the median over ``repeats``, and what it may lie between."""

    median: float
    low: float
    high: float
    repeats: int

    @classmethod
    def of(cls, stored: Any) -> Share | None:
        """Of an estimate as summaries keep it; None where there is none."""
        if not isinstance(stored, Mapping) or stored.get("median") is None:
            return None
        middle = float(stored["median"])
        low, high = stored.get("low", middle), stored.get("high", middle)
        return cls(middle, float(low), float(high), int(stored.get("repeats", 1)))

    @property
    def counts(self) -> bool:
        """Whether it is worth a word, and can be told from nothing."""
        return self.median >= FINE and self.low > 0

    def __str__(self) -> str:
        said = percent(self.median)
        times = counted(self.repeats, "repeat")
        if self.repeats < 2:
            return f"{said} ({times})"
        return f"{said} ({percent(self.low)} to {percent(self.high)}, {times})"


def percent(share: float) -> str:
    """``32%``; below ten percent with a digit more."""
    return f"{share:.0%}" if abs(share) >= 0.095 else f"{share:.1%}"
