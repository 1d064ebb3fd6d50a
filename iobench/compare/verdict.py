"""PURE. What a ratio with its interval says about a figure.

A regression is a ratio whose interval leaves 1 out on the worse side and whose size passes the
threshold. An improvement is the same on the better side. Where the interval holds 1 and reaches
no further than the threshold on either side, or where it leaves 1 out by less than the threshold,
there is no evidence of a change that matters. Where repeats are too few for 95 %, or the interval
holds both 1 and the threshold, the runs cannot tell: underpowered, with how many more repeats each
of them needs (``two_samples.more_to_tell``).

Size is the plain change, ``abs(ratio - 1)``, as it is shown: a rate that falls from 100 to 95 has
changed by 5 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from iobench.two_samples import More, Ratio, more_to_cover, more_to_tell

Verdict = Literal["regression", "improvement", "no evidence", "underpowered"]
VERDICTS: tuple[Verdict, ...] = ("regression", "improvement", "underpowered", "no evidence")
"""In the order in which they are shown."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """``more``: of an underpowered one, the repeats that each run lacks. ``why`` is one phrase."""

    verdict: Verdict
    why: str = ""
    more: More | None = None

    @property
    def words(self) -> str:
        """``underpowered, 14 more repeats``."""
        return ", ".join(filter(None, (self.verdict, more_words(self.more))))


def judge(
    ratio: Ratio,
    base: Sequence[float],
    new: Sequence[float],
    *,
    threshold: float,
    higher_is_better: bool,
) -> Judgement:
    """The verdict on a figure whose repeats are ``base`` and ``new``."""
    reaches = ratio.low <= 1 - threshold or ratio.high >= 1 + threshold
    blurred = reaches and not ratio.leaves_1_out
    if not ratio.told:
        covered = f"{len(base)} against {len(new)} repeats cover {ratio.coverage:.0%}"
        fewest = More(more_to_cover(len(base), len(new)))
        one_each = len(base) == len(new) == 1  # nothing is known of how they scatter
        more = more_to_tell(base, new, threshold) if blurred or one_each else fewest
        return Judgement("underpowered", covered.replace("%", " %"), more)
    if blurred:
        why = "the interval holds both 1 and the threshold"
        return Judgement("underpowered", why, more_to_tell(base, new, threshold))
    if not ratio.leaves_1_out:
        return Judgement("no evidence", "within the threshold")
    if abs(ratio.ratio - 1) < threshold:
        return Judgement("no evidence", "a change, but smaller than the threshold")
    better = (ratio.ratio > 1) == higher_is_better
    return Judgement("improvement" if better else "regression")


def more_words(more: More | None) -> str:
    """``14 more repeats``, ``at least 3 more repeats``."""
    if more is None:
        return ""
    count = f"{more.repeats:,} more repeat{'s' * (more.repeats != 1)}"
    return f"at least {count}" if more.at_least else count
