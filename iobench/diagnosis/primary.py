"""PURE. Which of a result's findings to begin with.

1. Of the causes that explain a part of a loop's time, problems before warnings, the one that
   explains the most. Shares within one hundredth of each other are a tie, which the order of the
   catalogue decides: there stands first what says more.
2. Where no cause was found: that input takes much of the time, although it is not known of what.
3. Where nothing takes much: that the device is what limits.
4. Without a loop: what a probe saw of a cause, or a first batch that comes late.

What is said about the measurement itself is never the one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from iobench.diagnosis.catalogue import KINDS, PRECEDENCE
from iobench.diagnosis.rule import Kind
from iobench.result import Finding

TIE = 0.01
"""Of a loop's time: shares that differ by no more are alike."""

_GRAVEST_FIRST = ("problem", "warning", "info")


def with_primary(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The same, of which one is ``primary``; none where none is fit to begin with."""
    chosen = next(_candidates(findings), None)
    return tuple(replace(finding, primary=finding is chosen) for finding in findings)


def _candidates(findings: Sequence[Finding]) -> Iterator[Finding]:
    causes = _of_kind(findings, "cause")
    grades = _of_kind(findings, "grade")
    for severity in _GRAVEST_FIRST[:2]:
        explaining = [one for one in causes if one.severity == severity and one.share is not None]
        if explaining:
            most = max(one.share or 0.0 for one in explaining)
            yield from _in_order([one for one in explaining if (one.share or 0.0) >= most - TIE])
    for severity in _GRAVEST_FIRST:
        graded = [one for one in grades if one.severity == severity]
        yield from sorted(graded, key=lambda one: -(one.share or 0.0))
    yield from _in_order([*causes, *_of_kind(findings, "start")])


def _of_kind(findings: Sequence[Finding], kind: Kind) -> list[Finding]:
    return [finding for finding in findings if KINDS.get(finding.code) == kind]


def _in_order(findings: Sequence[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: PRECEDENCE[finding.code])
