"""PURE. How many emulated accelerators a host feeds, measured side by side.

Each count of ``training.accelerators`` is a loop of its own, whose ranks keep the pace of an
accelerator and end each step together. A count is fed if its slowest rank has an accelerator
utilisation (AU, ``au_mlperf``) of at least 90 %.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dataprep.counted import counted
from iobench.analysis.loops import Loop, by_rank
from iobench.analysis.rules import RULES
from iobench.analysis.sizing import FeedsRow
from iobench.numbers import percent
from iobench.result import Finding

FED = 0.90
"""Least accelerator utilisation of the slowest rank: the pass mark of MLPerf Storage."""

_OF_COUNT = ("group", "accelerators")
"""Parameters in which the counts of one loop differ."""


@dataclass(frozen=True, slots=True)
class Count:
    """One number of accelerators that ran side by side.

    Attributes:
        group: its loop.
        accelerators: their number.
        name: the accelerator, such as ``A100`` or ``200 img/s``.
        loader: the loader that each of them has.
        source: the input of the loop.
        samples_per_s: of all of them together.
        au_mean: the mean of their utilisations, as MLPerf Storage's DLIO computes it.
        au_slowest: the lowest utilisation.
        rank_au: the utilisation of each.
        rank_samples_per_s: the rate of each.
        limit: what costs its input most, as a sentence; empty if that is not known.
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
        """Whether all of them are busy for at least 90 % of the time."""
        return self.au_slowest >= FED

    def as_dict(self) -> dict[str, Any]:
        """As ``result.json`` stores it."""
        return {**asdict(self), "is_fed": self.is_fed}


def counts(loops: Sequence[Loop], causes: Sequence[Finding]) -> list[list[Count]]:
    """The counts of each loop that emulates accelerators side by side, the smallest first.

    Args:
        loops: the loops of a run.
        causes: findings about them, of which the largest cause names what limits a count.
    """
    alike: dict[str, list[Count]] = {}
    for loop in loops:
        count = _count(loop, causes)
        if count is not None:
            same = {key: value for key, value in loop.params.items() if key not in _OF_COUNT}
            alike.setdefault(json.dumps(same, sort_keys=True, default=str), []).append(count)
    return [sorted(every, key=lambda count: count.accelerators) for every in alike.values()]


def measured_rows(families: Sequence[Sequence[Count]]) -> list[FeedsRow]:
    """The largest number of accelerators that each loop keeps busy, as rows of the table.

    A loop of which no number was kept busy has a row only if one accelerator alone was measured.
    """
    rows = []
    for family in families:
        fed = [count for count in family if count.is_fed]
        largest = fed[-1] if fed else None
        if largest is None and family[0].accelerators > 1:
            continue
        shown = largest or family[0]
        of = "this host, side by side"
        of += f", {shown.loader} from {shown.source}" if len(families) > 1 else ""
        rows.append(
            FeedsRow(
                of=of,
                samples_per_s=shown.samples_per_s,
                at_least=largest is family[-1],
                feeds={shown.name: largest.accelerators if largest is not None else 0},
                how="measured",
                basis=" ".join(_sentences(family, largest)),
            )
        )
    return rows


def _sentences(family: Sequence[Count], largest: Count | None) -> Iterator[str]:
    """How busy the largest number that is fed was, and what limits the next one."""
    before = largest.accelerators if largest is not None else 0
    if largest is not None:
        busy = percent(largest.au_slowest)
        named = f"{counted(before, 'accelerator')} ({largest.name})"
        yield f"With {named}, the slowest computes {busy} of the time (AU)."
    following = next((count for count in family if count.accelerators > before), None)
    if following is None:
        yield "No larger number was measured."
        return
    named = str(following.accelerators)
    if largest is None:
        named = f"{counted(following.accelerators, 'accelerator')} ({following.name})"
    yield (
        f"With {named}, the slowest computes {percent(following.au_slowest)} of the time: "
        f"{following.limit or 'the reason was not measured'}."
    )


def _count(loop: Loop, causes: Sequence[Finding]) -> Count | None:
    """The figures of one number of accelerators; None for any other loop."""
    number, rate = loop.params.get("accelerators"), loop.rate()
    slowest, mean = loop.metric("au_mlperf_slowest"), loop.metric("au_mlperf")
    if number is None or not loop.farthest or rate is None or slowest is None or mean is None:
        return None
    return Count(
        group=loop.group,
        accelerators=int(number),
        name=_name(loop.params),
        loader=str(loop.params.get("loader", "")),
        source=loop.farthest,
        samples_per_s=rate.median,
        au_mean=mean,
        au_slowest=slowest,
        rank_au=by_rank(loop.trials, "rank_au_mlperf"),
        rank_samples_per_s=by_rank(loop.trials, "rank_samples_per_s"),
        limit=_limit(loop, causes),
    )


def _name(params: Mapping[str, Any]) -> str:
    if params.get("preset"):
        return str(params["preset"])
    return f"{float(params.get('images_per_s') or 0):g} img/s"


def _limit(loop: Loop, causes: Sequence[Finding]) -> str:
    """The cause with the largest share: ``decoding is the bottleneck``.

    The starts of epochs are none: the utilisation leaves the first step of each epoch out.
    """
    own = [
        finding
        for finding in causes
        if finding.of == loop.group
        and RULES[finding.code].kind == "cause"
        and finding.code != "epoch-starts"
    ]
    if not own:
        return ""
    title = max(own, key=lambda finding: finding.share or 0.0).title
    return title[0].lower() + title[1:]
