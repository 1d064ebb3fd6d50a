"""PURE. Loops on several devices whose ranks do not wait alike for their data.

What uneven ranks lose is what the slowest rank of each step waits beyond the average: the others
wait for it, since gradients are exchanged in every step. From 5 % of the time on it is said, as
for any share of a step that is spent on input.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from iobench.diagnosis.rule import FINE, Rule
from iobench.diagnosis.sources import OURS
from iobench.result import Finding
from iobench.stats import median
from iobench.trial import Trial

UNEVEN = Rule(
    "uneven-ranks",
    "Ranks wait for one whose batch comes later",
    "cause",
    "warning",
    f"more than {FINE:.0%} of the time ranks wait for one whose batch comes later than theirs",
    "rank_uneven_share: what the slowest rank of each step waits beyond the average; rank_wait_s",
    "look at what that rank has beyond the others: a processor, a disk or a network card that is "
    "farther away or shared",
    OURS,
)
DIFFER = Rule(
    "ranks-differ",
    "Ranks trained networks of their own",
    "measurement",
    "problem",
    "parameters differ between ranks when the loop has ended",
    "ranks_agree",
    "their gradients were not exchanged: these are figures of loops side by side, not of one loop",
    OURS,
)
RULES = (UNEVEN, DIFFER)


def findings(trials: Iterable[Trial]) -> Iterator[Finding]:
    """Of each loop and input."""
    inputs: dict[tuple[str, str], list[Trial]] = {}
    for trial in trials:
        if trial.kind == "train" and trial.status == "done" and "rank_wait_s" in trial.metrics:
            key = str(trial.params.get("group", "")), str(trial.params.get("input", ""))
            inputs.setdefault(key, []).append(trial)
    for (group, source), repeats in inputs.items():
        yield from _differing(f"{group}, {source}", repeats)
        yield from _uneven(f"{group}, {source}", repeats)


def by_rank(trials: Iterable[Trial], metric: str) -> list[float]:
    """The median over repeats of a metric that has a value for each rank."""
    every = [trial.metrics[metric] for trial in trials if trial.metrics.get(metric)]
    return [median(values) for values in zip(*every, strict=False)]


def _uneven(named: str, repeats: Sequence[Trial]) -> Iterator[Finding]:
    share = median([float(trial.metrics.get("rank_uneven_share") or 0.0) for trial in repeats])
    if share <= FINE:
        return
    waits_s, steps_s = by_rank(repeats, "rank_wait_s"), by_rank(repeats, "rank_step_s")
    longest, shortest = max(waits_s), min(waits_s)
    said = (
        f"{named}: {share:.0%} of the time ranks wait for one whose batch comes later than theirs; "
        f"rank {waits_s.index(longest)} waits {_ms(longest)} of a step of "
        f"{_ms(sum(steps_s) / len(steps_s))}, rank {waits_s.index(shortest)} {_ms(shortest)}"
    )
    # What remains when each rank's waits are averaged over the steps is the rank's own.
    own = (longest - sum(waits_s) / len(waits_s)) * len(steps_s) / sum(steps_s)
    advice = (
        ""
        if own >= share / 2
        else "it is another rank from step to step: more workers and more batches ahead (workers, "
        "prefetch) even that out"
    )
    yield UNEVEN.found(said, advice, share=share)


def _differing(named: str, repeats: Sequence[Trial]) -> Iterator[Finding]:
    apart = [trial for trial in repeats if trial.metrics.get("ranks_agree") is False]
    if apart:
        yield DIFFER.found(
            f"{named}: in {len(apart)} of {len(repeats)} trials the ranks' parameters differ"
        )


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:,.3g} ms"
