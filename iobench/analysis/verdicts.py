"""PURE. Verdicts on figures that two runs have in common.

A regression is a significant change to the worse side that reaches the threshold; an improvement is
the same on the better side. Where the interval holds both 1 and the threshold, or where repeats are
too few for any change to be significant, the figure is underpowered.

With many figures some seem to change by chance: of twenty figures of two runs of the same program
one in three comparisons has a "regression" at 95 %. The figures that decide the exit code therefore
have their p-values corrected by Holm's method (``stats.holm``). All other figures are judged by
their own interval, and only listed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dataprep.counted import counted
from iobench.numbers import duration, percent, percent_change, precise_number, size
from iobench.stats import (
    SIGNIFICANCE,
    Estimate,
    More,
    Ratio,
    estimate,
    holm,
    more_to_cover,
    more_to_tell,
    p_value,
    ratio_apart,
    smallest_p_value,
)

Verdict = Literal["regression", "improvement", "underpowered", "no evidence"]
VERDICTS: tuple[Verdict, ...] = ("regression", "improvement", "underpowered", "no evidence")
"""In the order in which they are shown."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A metric that is compared, with its name and unit."""

    metric: str
    name: str
    higher_is_better: bool
    unit: Literal["", "s", "bytes"] = ""

    def say(self, value: float) -> str:
        """``24,757``, ``12.3 ms``, ``412 MB``."""
        if self.unit == "bytes":
            return size(value)
        if self.unit == "s":
            return duration(value)
        return precise_number(value)


@dataclass(frozen=True, slots=True)
class Sides:
    """The values of one figure in all repeats of one point of both runs.

    ``name`` is the point's, ``group`` the loop's if it is a training loop. ``is_main`` marks the
    figure by which the point is judged: its rate, or the first other figure if it has no rate.
    """

    kind: str
    name: str
    figure: Figure
    base: Sequence[float]
    new: Sequence[float]
    is_main: bool
    group: str = ""


@dataclass(frozen=True, slots=True)
class Correction:
    """Holm's correction of one p-value among those of ``figures`` figures that decide."""

    figures: int
    adjusted_p_value: float


@dataclass(frozen=True, slots=True)
class Change:
    """The change of one figure. ``why`` and ``more`` explain the verdict.

    ``correction`` is None for a figure that does not decide the exit code.
    """

    sides: Sides
    base: Estimate
    new: Estimate
    ratio: Ratio
    p_value: float
    correction: Correction | None
    verdict: Verdict
    why: str = ""
    more: More | None = None

    @property
    def kind(self) -> str:
        """The kind of the point's trials."""
        return self.sides.kind

    @property
    def name(self) -> str:
        """The name of the point."""
        return self.sides.name

    @property
    def figure(self) -> Figure:
        """The figure that changed."""
        return self.sides.figure

    @property
    def decides(self) -> bool:
        """Whether the figure is one of those that decide the exit code."""
        return self.correction is not None

    @property
    def worse(self) -> float:
        """Logarithm of how many times worse the figure is: 0 for no change."""
        away = math.log(self.ratio.ratio)
        return -away if self.figure.higher_is_better else away

    @property
    def words(self) -> str:
        """``+56.0 %, 1.560 (1.510 to 1.610)``; with its adjusted p-value if it decides."""
        ratio = self.ratio
        text = f"{percent_change(ratio.ratio - 1)}, {ratio.ratio:.3f}"
        if ratio.coverage == 0:
            return f"{text} (no interval)"
        coverage = "" if ratio.told else f", {percent(ratio.coverage, 0)}"
        text += f" ({ratio.low:.3f} to {ratio.high:.3f}{coverage})"
        if self.correction is None:
            return text
        return f"{text}, adjusted p {self.correction.adjusted_p_value:.2g}"

    @property
    def verdict_words(self) -> str:
        """``underpowered, 14 more repeats``."""
        if self.more is None:
            return self.verdict
        least = "at least " if self.more.at_least else ""
        return f"{self.verdict}, {least}{counted(self.more.repeats, 'more repeat')}"


def judged(every: Sequence[Sides], decides: Sequence[bool], threshold: float) -> list[Change]:
    """Judge all figures; ``decides`` marks those that decide the exit code."""
    p_values = [p_value(sides.base, sides.new) for sides in every]
    deciding = [index for index, is_deciding in enumerate(decides) if is_deciding]
    corrections: list[Correction | None] = [None] * len(every)
    adjusted = holm([p_values[index] for index in deciding])
    for index, adjusted_p_value in zip(deciding, adjusted, strict=True):
        corrections[index] = Correction(len(deciding), adjusted_p_value)
    changes = []
    for sides, p, correction in zip(every, p_values, corrections, strict=True):
        ratio = ratio_apart(sides.base, sides.new)
        higher = sides.figure.higher_is_better
        verdict, why, more = judge(
            ratio, sides.base, sides.new, threshold, higher=higher, correction=correction
        )
        base, new = estimate(sides.base), estimate(sides.new)
        changes.append(Change(sides, base, new, ratio, p, correction, verdict, why, more))
    return changes


def judge(
    ratio: Ratio,
    base: Sequence[float],
    new: Sequence[float],
    threshold: float,
    *,
    higher: bool,
    correction: Correction | None = None,
) -> tuple[Verdict, str, More | None]:
    """The verdict on a figure, the reason, and how many more repeats would tell."""
    figures = 1 if correction is None else correction.figures
    significant = ratio.leaves_1_out
    if correction is not None:
        significant = significant and correction.adjusted_p_value <= SIGNIFICANCE
    reaches = ratio.low <= 1 - threshold or ratio.high >= 1 + threshold
    if significant:
        if abs(ratio.ratio - 1) < threshold:
            return "no evidence", "smaller than the threshold", None
        return ("improvement" if (ratio.ratio > 1) == higher else "regression"), "", None
    # For a corrected figure the smallest p-value has to be significant among all of them.
    level = SIGNIFICANCE / figures
    if smallest_p_value(len(base), len(new)) > level:
        repeats = f"{len(base)} against {len(new)} repeats"
        why = f"{repeats} cover {percent(ratio.coverage, 0)}"
        if figures > 1:
            why = f"{repeats} are too few for {figures} figures that decide"
        has_no_spread = len(base) == len(new) == 1
        if has_no_spread or (reaches and not ratio.leaves_1_out):
            return "underpowered", why, more_to_tell(base, new, threshold, level)
        return "underpowered", why, More(more_to_cover(len(base), len(new), level))
    if reaches:
        why = "the interval holds both 1 and the threshold"
        if ratio.leaves_1_out:
            why = f"not significant among {figures} figures that decide"
        return "underpowered", why, more_to_tell(base, new, threshold, level)
    return "no evidence", "smaller than the threshold", None


def more_repeats(deciding: Sequence[Change]) -> int:
    """How many more repeats each run needs so that a change of each figure can be significant.

    0 where a change of any figure can be significant already.
    """
    more = 0
    for change in deciding:
        level = SIGNIFICANCE / len(deciding)
        needed = more_to_cover(change.ratio.base_repeats, change.ratio.new_repeats, level)
        if needed == 0:
            return 0
        more = max(more, needed)
    return more
