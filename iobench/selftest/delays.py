"""The delays of the self-test, and the comparison of measured delays with injected delays.

Delays are injected into the stages fetch, decode, augment and copy. A *case* is a set of slowed
stages: no stage, each stage alone, and every pair of stages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal

from iobench.selftest.known_rates import NotRun

Stage = Literal["copy", "augment", "decode", "fetch"]
Delays = Mapping[Stage, float]
"""Seconds per sample by which each stage is slowed down."""

RUNGS: Mapping[Stage, str] = {
    "copy": "copy",
    "augment": "augment",
    "decode": "decode",
    "fetch": "store",
}
"""The rung of the ladder on which the delay of each stage must appear."""

CODES: Mapping[Stage, str] = {
    "copy": "slow-copy",
    "augment": "slow-augmentation",
    "decode": "slow-decode",
    "fetch": "slow-store",  # Without a probe, latency and bandwidth cannot be distinguished.
}
"""The code of the finding about each stage."""

INPUTS = ("synthetic", "copy", "collate", "augment", "decode", "warm", "store")
"""The measured rungs. ``cold`` is missing, since the speed of the disk is unknown."""

MAX_ERROR_SHARE = 0.10
"""The largest accepted error of a measured delay, as a share of the injected delay."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The loops that are run, and their delays.

    The real work of the loops takes little time compared with the delays, since images are tiny and
    the store is in this process. The ladder without delays has the same real work. The difference
    of a ladder with delays and this ladder therefore has only the delays and noise, and the medians
    over rounds reduce the noise.

    Attributes:
        delays: seconds per sample for each stage. They are all different, so that each pair has a
            larger delay.
        batch_size, device_s: the samples in a step, and the time that the device computes for them.
        steps: the minimum number of steps that count. The rules of a rate need 20 rounds: 20 steps
            without workers, 40 steps with two workers.
        rounds: how often each case is run.
        more_rounds: the largest number of additional rounds of a case whose rounds differ.
        workers: the number of workers of the loops with prefetch.
        prefetch_factor: the delays of the loops with prefetch, divided by ``delays``.
        slow_device_s: ``device_s`` of the loop with a slow device.
        images: the number of images. All steps of a loop fit into one epoch, so that no loop has
            the starts of further epochs.
    """

    delays: Delays = field(
        default_factory=lambda: {"copy": 0.024, "augment": 0.030, "decode": 0.040, "fetch": 0.068}
    )
    batch_size: int = 1
    device_s: float = 0.005
    steps: int = 20
    rounds: int = 3
    more_rounds: int = 2
    workers: int = 2
    prefetch_factor: float = 2.0
    slow_device_s: float = 0.060
    images: int = 64


def cases(delays: Delays) -> list[Delays]:
    """Return the cases: no delay, a delay of each stage alone, and of every pair of stages."""
    slowed_stages: list[tuple[Stage, ...]] = []
    for count in (0, 1, 2):
        slowed_stages += combinations(delays, count)
    return [{stage: delays[stage] for stage in stages} for stages in slowed_stages]


def name_of(case: Delays) -> str:
    """Return the name of a case: ``decode and fetch``, or ``nothing``."""
    return " and ".join(case) or "nothing"


@dataclass(frozen=True, slots=True)
class RungChange:
    """The rung that has no delay but changed most, and its change in seconds per sample."""

    rung: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Recovered:
    """One injected delay, and what the ladder and the diagnosis have found about it.

    Attributes:
        case: all slowed stages.
        stage: the stage with this delay.
        rung: the rung on which the delay must appear.
        injected_s: the injected delay, in seconds per sample.
        recovered_s: the measured delay, in seconds per sample.
        error: the measured delay minus the injected delay, as a share of the injected delay.
        elsewhere: the largest change of a rung without a delay.
        stray: this change as a share of the injected delay.
        findings: the codes of the findings, beginning with the primary finding.
        code: the code of the finding about this stage.
        primary: the expected code of the primary finding, which is about the stage with the largest
            delay of the case.
        named: whether ``code`` is among the findings, and ``primary`` is the first of them.
        ok: whether error and stray are at most a tenth, and ``named`` is true.
    """

    case: str
    stage: Stage
    rung: str
    injected_s: float
    recovered_s: float
    error: float
    elsewhere: RungChange
    stray: float
    findings: Sequence[str]
    code: str
    primary: str
    named: bool
    ok: bool


def compare_delays(
    case: Delays,
    costs: Mapping[str, float],
    costs_without_delays: Mapping[str, float],
    findings: Sequence[str],
) -> Iterator[Recovered]:
    """Compare each injected delay of a case with the measured delay.

    Args:
        case: the injected delays.
        costs: the seconds per sample that each rung adds.
        costs_without_delays: the seconds per sample that each rung adds in the ladder without
            delays. This is the time of the real work.
        findings: the codes of the findings, beginning with the primary finding.
    """
    changes = {rung: costs[rung] - cost_s for rung, cost_s in costs_without_delays.items()}
    slowed_rungs = {RUNGS[stage] for stage in case}
    other_changes = [
        RungChange(rung, change) for rung, change in changes.items() if rung not in slowed_rungs
    ]
    elsewhere = max(other_changes, key=lambda other: abs(other.seconds))
    slowest_first = sorted(case, key=lambda stage: -case[stage])
    for stage, injected_s in case.items():
        rung, code = RUNGS[stage], CODES[stage]
        primary = CODES[slowest_first[0]]
        named = code in findings and findings[0] == primary
        error = changes[rung] / injected_s - 1
        stray = elsewhere.seconds / injected_s
        is_small = max(abs(error), abs(stray)) <= MAX_ERROR_SHARE
        yield Recovered(
            case=name_of(case),
            stage=stage,
            rung=rung,
            injected_s=injected_s,
            recovered_s=changes[rung],
            error=error,
            elsewhere=elsewhere,
            stray=stray,
            findings=findings,
            code=code,
            primary=primary,
            named=named,
            ok=named and is_small,
        )


@dataclass(frozen=True, slots=True)
class Prefetched:
    """A loop with prefetch. Its step takes as long as the slower of two sides.

    One side is the workers, which fetch, decode and augment. The other side is the training
    process, which copies batches to the device and waits for the device.

    Attributes:
        case: the slowed stages, or ``device``.
        workers: the number of workers.
        slowest: the slower side: ``workers``, or ``copy and device``.
        expected_s: expected seconds per step.
        found_s: measured seconds per step.
        error: the measured time minus the expected time, as a share of the expected time.
        ok: whether the error is at most a tenth.
    """

    case: str
    workers: int
    slowest: str
    expected_s: float
    found_s: float
    error: float
    ok: bool


@dataclass(frozen=True, slots=True)
class Injected:
    """The results for all delays.

    Attributes:
        rungs_s: seconds per sample of each rung without delays.
        ladder: a row for each delay, without prefetch.
        prefetch: a row for each loop with prefetch.
        others_busy_share: share of the processors' time that other programs used meanwhile.
        not_run: measurements that were not possible, with the reasons.
    """

    rungs_s: Mapping[str, float] = field(default_factory=dict)
    ladder: Sequence[Recovered] = ()
    prefetch: Sequence[Prefetched] = ()
    others_busy_share: float | None = None
    not_run: Sequence[NotRun] = ()

    @property
    def ok(self) -> bool:
        """Whether all delays were found, and all steps took the expected time."""
        return all(row.ok for row in self.ladder) and all(row.ok for row in self.prefetch)


def expected_step(
    plan: Plan, case: Delays, device_s: float, without_s: Mapping[str, float]
) -> tuple[str, float]:
    """Return the slower side of a loop with prefetch, and its seconds per step.

    The seconds include the real work, which is taken from the ladder without delays.
    """
    copy_delay_s = case.get("copy", 0.0)
    worker_delay_s = sum(case.values()) - copy_delay_s
    worker_s = without_s["store"] - without_s["copy"] + worker_delay_s
    copy_s = without_s["copy"] - without_s["synthetic"] + copy_delay_s
    sides = {
        "workers": plan.batch_size * worker_s / plan.workers,
        "copy and device": plan.batch_size * copy_s + device_s,
    }
    slowest = max(sides, key=lambda side: sides[side])
    return slowest, sides[slowest]
