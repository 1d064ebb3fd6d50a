"""PURE. Judge whether a figure of two runs changed.

A change is the ratio of the figure in the new run to the figure in the base run. It is significant
if the interval of the ratio does not contain 1. The threshold is the smallest change that matters.

- A *regression* is a significant change for the worse that is at least as large as the threshold.
- An *improvement* is a significant change for the better that is at least as large.
- A figure is *underpowered* if its change is not significant although the interval reaches the
  threshold, or if there are too few repeats for any change to be significant.
- Otherwise there is *no evidence* of a change that matters.

Among many figures, some seem to change by chance. Suppose that two runs of the same program are
compared by twenty figures, each with six repeats. Then about one in three of these comparisons
shows a "regression", because half of the false changes are for the worse. Therefore the p-values
of the figures that decide the exit code are corrected by Holm's method
(``iobench.results.statistics.holm``). All other figures are judged by their own intervals, and are
only listed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dataprep.message_text import counted
from iobench.results.numbers import duration, precise_number, size
from iobench.results.statistics import (
    SIGNIFICANCE,
    Estimate,
    MoreRepeats,
    Ratio,
    estimate,
    holm,
    more_repeats_to_be_significant,
    more_repeats_to_detect,
    p_value,
    smallest_p_value,
    unpaired_ratio,
)

Verdict = Literal["regression", "improvement", "underpowered", "no evidence"]
VERDICTS: tuple[Verdict, ...] = ("regression", "improvement", "underpowered", "no evidence")
"""All verdicts in the order in which they are shown."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A metric of trials whose values in two runs are compared.

    Attributes:
        metric: the name of the metric in a trial.
        name: its name in words.
        higher_is_better: whether a larger value is an improvement.
        unit: its unit; empty if the name has it.
    """

    metric: str
    name: str
    higher_is_better: bool
    unit: Literal["", "s", "bytes"] = ""

    def value_words(self, value: float) -> str:
        """Return a value with its unit: ``24,757``, ``12.3 ms``, ``412 MB``."""
        if self.unit == "bytes":
            return size(value)
        if self.unit == "s":
            return duration(value)
        return precise_number(value)


@dataclass(frozen=True, slots=True)
class FigureValues:
    """One figure of one setting, with its values in both runs.

    Attributes:
        kind: the kind of the trials.
        name: the setting in words, escaped.
        figure: the figure.
        base: its values in the repeats of the base run; empty if any repeat lacks the figure.
        new: its values in the repeats of the new run; empty if any repeat lacks the figure.
        is_main: whether this is the main figure of the setting: its rate, or the first other figure
            if it has no rate. Only main figures may decide the exit code.
        group: the group of a training loop; empty for other kinds.
    """

    kind: str
    name: str
    figure: Figure
    base: Sequence[float]
    new: Sequence[float]
    is_main: bool
    group: str = ""

    @property
    def is_complete(self) -> bool:
        """Whether every repeat of both runs has the figure."""
        return bool(self.base and self.new)


@dataclass(frozen=True, slots=True)
class Correction:
    """Holm's correction of one p-value.

    Attributes:
        figures: the number of figures that decide.
        adjusted_p_value: the p-value, corrected for this number.
    """

    figures: int
    adjusted_p_value: float


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on a figure.

    Attributes:
        verdict: the verdict.
        why: the reason for the verdict; empty for a regression and an improvement.
        more: how many more repeats each run needs; None if the verdict is not ``underpowered``.
    """

    verdict: Verdict
    why: str = ""
    more: MoreRepeats | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """The change of one figure.

    Attributes:
        values: the values of both runs.
        base: the median of the base run with its interval.
        new: the median of the new run with its interval.
        ratio: new / base, with its interval.
        p_value: the p-value of the Mann-Whitney test, not corrected.
        correction: the correction of the p-value; None if the figure does not decide the exit code.
        judgement: the verdict, with its reason.
    """

    values: FigureValues
    base: Estimate
    new: Estimate
    ratio: Ratio
    p_value: float
    correction: Correction | None
    judgement: Judgement

    @property
    def verdict(self) -> Verdict:
        """The verdict on the change."""
        return self.judgement.verdict

    @property
    def why(self) -> str:
        """The reason for the verdict; empty for a regression and an improvement."""
        return self.judgement.why

    @property
    def more(self) -> MoreRepeats | None:
        """How many more repeats each run needs; None if the verdict is not ``underpowered``."""
        return self.judgement.more

    @property
    def kind(self) -> str:
        """The kind of the trials."""
        return self.values.kind

    @property
    def name(self) -> str:
        """The setting in words."""
        return self.values.name

    @property
    def figure(self) -> Figure:
        """The figure that changed."""
        return self.values.figure

    @property
    def decides(self) -> bool:
        """Whether the figure is one of those that decide the exit code."""
        return self.correction is not None

    @property
    def log_worse(self) -> float:
        """The logarithm of how many times worse the figure is; negative if it is better."""
        log_ratio = math.log(self.ratio.ratio)
        return -log_ratio if self.figure.higher_is_better else log_ratio

    @property
    def ratio_words(self) -> str:
        """``+56.0 %, 1.560 (1.510 to 1.610)``; with the adjusted p-value if the figure decides."""
        ratio = self.ratio
        text = f"{(ratio.ratio - 1) * 100:+.1f} %, {ratio.ratio:.3f}"
        if ratio.coverage == 0:
            return f"{text} (no interval)"
        coverage = "" if ratio.has_full_coverage else f", {ratio.coverage * 100:.0f} %"
        text += f" ({ratio.low:.3f} to {ratio.high:.3f}{coverage})"
        if self.correction is None:
            return text
        return f"{text}, adjusted p {self.correction.adjusted_p_value:.2g}"

    @property
    def verdict_words(self) -> str:
        """The verdict and the repeats that are missing: ``underpowered, 14 more repeats``."""
        if self.more is None:
            return self.verdict
        at_least = "at least " if self.more.at_least else ""
        return f"{self.verdict}, {at_least}{counted(self.more.repeats, 'more repeat')}"


def judge_all(
    figures: Sequence[FigureValues], decides: Sequence[bool], threshold: float
) -> list[Change]:
    """Judge all figures of two runs, in the order of ``figures``.

    Args:
        figures: the values of each figure, none of which may lack a repeat.
        decides: for each figure, whether it decides the exit code.
        threshold: the smallest change that matters, as a share of the base value.
    """
    p_values = [p_value(values.base, values.new) for values in figures]
    deciding = [index for index, is_deciding in enumerate(decides) if is_deciding]
    adjusted = holm([p_values[index] for index in deciding])
    corrections: dict[int, Correction] = {}
    for index, adjusted_p_value in zip(deciding, adjusted, strict=True):
        corrections[index] = Correction(len(deciding), adjusted_p_value)
    changes = []
    for index, values in enumerate(figures):
        ratio = unpaired_ratio(values.base, values.new)
        correction = corrections.get(index)
        changes.append(
            Change(
                values=values,
                base=estimate(values.base),
                new=estimate(values.new),
                ratio=ratio,
                p_value=p_values[index],
                correction=correction,
                judgement=judge(values, ratio, threshold, correction),
            )
        )
    return changes


def judge(
    values: FigureValues, ratio: Ratio, threshold: float, correction: Correction | None = None
) -> Judgement:
    """Judge one figure.

    Args:
        values: the values of both runs.
        ratio: the ratio of the new run to the base run.
        threshold: the smallest change that matters, as a share of the base value.
        correction: the correction of a figure that decides the exit code; None for other figures.
            With a correction, the adjusted p-value must be significant, too.
    """
    is_significant = ratio.excludes_1
    figures = 1
    if correction is not None:
        figures = correction.figures
        is_significant = is_significant and correction.adjusted_p_value <= SIGNIFICANCE
    if is_significant and abs(ratio.ratio - 1) < threshold:
        return Judgement("no evidence", "smaller than the threshold")
    if is_significant:
        is_better = (ratio.ratio > 1) == values.figure.higher_is_better
        return Judgement("improvement" if is_better else "regression")
    return _judge_insignificant(values, ratio, threshold, figures)


def _judge_insignificant(
    values: FigureValues, ratio: Ratio, threshold: float, figures: int
) -> Judgement:
    """Judge a figure without a significant change: underpowered, or no evidence of a change.

    Args:
        values: the values of both runs.
        ratio: the ratio of the new run to the base run.
        threshold: the smallest change that matters, as a share of the base value.
        figures: the number of figures among which a change has to be significant; 1 for a figure
            that does not decide.
    """
    base, new = values.base, values.new
    reaches_threshold = ratio.low <= 1 - threshold or ratio.high >= 1 + threshold
    # Holm's method compares the smallest of n p-values with the significance / n.
    significance = SIGNIFICANCE / figures
    if smallest_p_value(len(base), len(new)) > significance:
        repeats = f"{len(base)} against {len(new)} repeats"
        why = f"{repeats} cover {ratio.coverage * 100:.0f} %"
        if figures > 1:
            why = f"{repeats} are too few for {figures} figures that decide"
        has_no_spread = len(base) == len(new) == 1
        if has_no_spread or (reaches_threshold and not ratio.excludes_1):
            more = more_repeats_to_detect(base, new, threshold, significance)
        else:
            more = MoreRepeats(more_repeats_to_be_significant(len(base), len(new), significance))
        return Judgement("underpowered", why, more)
    if not reaches_threshold:
        return Judgement("no evidence", "smaller than the threshold")
    why = "the interval holds both 1 and the threshold"
    if ratio.excludes_1:
        why = f"not significant among {figures} figures that decide"
    return Judgement(
        "underpowered", why, more_repeats_to_detect(base, new, threshold, significance)
    )


def repeats_until_significant(deciding: Sequence[Change]) -> int:
    """Return how many more repeats each run needs so that every figure can change significantly.

    0 if there is a figure whose change can be significant already.

    Args:
        deciding: the changes of the figures that decide the exit code.
    """
    more = 0
    for change in deciding:
        significance = SIGNIFICANCE / len(deciding)
        ratio = change.ratio
        needed = more_repeats_to_be_significant(ratio.base_repeats, ratio.new_repeats, significance)
        if needed == 0:
            return 0
        more = max(more, needed)
    return more
