"""PURE. How many emulated accelerators a host feeds, measured side by side.

Each number in ``training.accelerators`` is a loop of its own. Each of its ranks emulates an
accelerator: it sleeps for the time of a step. All ranks end a step together. The host feeds a
number of accelerators if the slowest rank has an accelerator utilisation (AU, ``au_mlperf``) of at
least 90 %.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dataprep.message_text import counted
from iobench.analysis.feeds_table import FeedsRow
from iobench.analysis.finding_rules import RULES
from iobench.analysis.loops import Loop, median_by_rank
from iobench.results.numbers import percent
from iobench.results.result import Finding
from iobench.results.trial import Params

MIN_UTILISATION = 0.90
"""Minimum utilisation of the slowest rank: the pass mark of MLPerf Storage."""

_COUNT_PARAMS = ("group", "accelerators")
"""Parameters in which the numbers of accelerators of one family differ."""


@dataclass(frozen=True, slots=True)
class AcceleratorCount:
    """One number of accelerators that ran side by side.

    Attributes:
        group: the loop.
        accelerators: the number of accelerators.
        name: the accelerator, such as ``A100`` or ``200 img/s``.
        loader: the loader of each accelerator.
        source: the input of the loop.
        samples_per_s: the rate of all accelerators together.
        au_mean: the mean of the utilisations, as MLPerf Storage's DLIO computes it.
        au_slowest: the lowest utilisation.
        rank_au: the utilisation of each accelerator.
        rank_samples_per_s: the rate of each accelerator.
        limit: the largest cost of their input, as a sentence; empty if it is unknown.
    """

    group: str
    accelerators: int
    name: str
    loader: str
    source: str
    samples_per_s: float
    au_mean: float
    au_slowest: float
    rank_au: Sequence[float]
    rank_samples_per_s: Sequence[float]
    limit: str = ""

    @property
    def is_fed(self) -> bool:
        """Whether every accelerator computes for at least 90 % of the time."""
        return self.au_slowest >= MIN_UTILISATION

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as ``result.json`` stores them."""
        return {**asdict(self), "is_fed": self.is_fed}


def accelerator_counts(
    loops: Sequence[Loop], causes: Sequence[Finding]
) -> list[list[AcceleratorCount]]:
    """Return the measured numbers of accelerators, grouped in families, the smallest number first.

    A family has all numbers of accelerators that one entry of ``training`` lists.

    Args:
        loops: the loops of a run.
        causes: findings about them. The cause with the largest share is the limit of a number.
    """
    families: dict[str, list[AcceleratorCount]] = {}
    for loop in loops:
        count = _accelerator_count(loop, causes)
        if count is not None:
            family_params = {
                name: value for name, value in loop.params.items() if name not in _COUNT_PARAMS
            }
            key = json.dumps(family_params, sort_keys=True, default=str)
            families.setdefault(key, []).append(count)
    return [sorted(family, key=lambda count: count.accelerators) for family in families.values()]


def measured_rows(families: Sequence[Sequence[AcceleratorCount]]) -> list[FeedsRow]:
    """Return the largest number of accelerators that each family keeps busy, as table rows.

    If no number of a family was kept busy, the family has a row only if a single accelerator was
    measured: the row then shows 0.
    """
    rows = []
    for family in families:
        fed = [count for count in family if count.is_fed]
        if fed:
            rows.append(_measured_row(family, fed[-1], has_others=len(families) > 1))
        elif family[0].accelerators == 1:
            rows.append(_measured_row(family, None, has_others=len(families) > 1))
    return rows


def _measured_row(
    family: Sequence[AcceleratorCount], largest: AcceleratorCount | None, *, has_others: bool
) -> FeedsRow:
    """Return the table row of a family.

    Args:
        family: its numbers of accelerators, the smallest first.
        largest: the largest number that was fed; None if not even one accelerator was.
        has_others: whether the run has other families, so that the row has to name its loader.
    """
    count = largest or family[0]
    supply = "this host, side by side"
    if has_others:
        supply += f", {count.loader} from {count.source}"
    return FeedsRow(
        of=supply,
        samples_per_s=count.samples_per_s,
        at_least=largest is family[-1],
        feeds={count.name: largest.accelerators if largest is not None else 0},
        how="measured",
        basis=_basis(family, largest),
    )


def _basis(family: Sequence[AcceleratorCount], largest: AcceleratorCount | None) -> str:
    """Return how busy the largest number that is fed was, and what limits the next number."""
    sentences = []
    more = list(family)
    if largest is not None:
        fed = f"{counted(largest.accelerators, 'accelerator')} ({largest.name})"
        busy = percent(largest.au_slowest)
        sentences.append(f"With {fed}, the slowest computes {busy} of the time (AU).")
        more = [count for count in family if count.accelerators > largest.accelerators]
    if not more:
        sentences.append("No larger number was measured.")
        return " ".join(sentences)
    following = more[0]
    not_fed = str(following.accelerators)
    if largest is None:
        not_fed = f"{counted(following.accelerators, 'accelerator')} ({following.name})"
    busy = percent(following.au_slowest)
    limit = following.limit or "the reason was not measured"
    sentences.append(f"With {not_fed}, the slowest computes {busy} of the time: {limit}.")
    return " ".join(sentences)


def _accelerator_count(loop: Loop, causes: Sequence[Finding]) -> AcceleratorCount | None:
    """Return the figures of one number of accelerators.

    None for a loop without the parameter ``accelerators``, and if a rate or a utilisation is
    unknown.
    """
    accelerators, rate = loop.params.get("accelerators"), loop.rate()
    if accelerators is None or not loop.farthest or rate is None:
        return None
    au_slowest, au_mean = loop.metric("au_mlperf_slowest"), loop.metric("au_mlperf")
    if au_slowest is None or au_mean is None:
        return None
    return AcceleratorCount(
        group=loop.group,
        accelerators=int(accelerators),
        name=_accelerator_name(loop.params),
        loader=str(loop.params.get("loader", "")),
        source=loop.farthest,
        samples_per_s=rate.median,
        au_mean=au_mean,
        au_slowest=au_slowest,
        rank_au=median_by_rank(loop.trials, "rank_au_mlperf"),
        rank_samples_per_s=median_by_rank(loop.trials, "rank_samples_per_s"),
        limit=_limit(loop, causes),
    )


def _accelerator_name(params: Params) -> str:
    """Return the name of a published rate, or the rate that the config gives."""
    if params.get("preset"):
        return str(params["preset"])
    return f"{float(params.get('images_per_s') or 0):g} img/s"


def _limit(loop: Loop, causes: Sequence[Finding]) -> str:
    """Return the cause with the largest share: ``decoding is the bottleneck``.

    The starts of epochs do not count: the utilisation leaves the first step of each epoch out.
    """
    largest: Finding | None = None
    for finding in causes:
        is_cause = RULES[finding.code].kind == "cause" and finding.code != "epoch-starts"
        if finding.of != loop.group or not is_cause:
            continue
        if largest is None or (finding.share or 0.0) > (largest.share or 0.0):
            largest = finding
    if largest is None:
        return ""
    return largest.title[0].lower() + largest.title[1:]
