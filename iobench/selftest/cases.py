"""PURE. Which delays are injected where, and what has to be found of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from itertools import combinations
from typing import Literal

Stage = Literal["copy", "augment", "decode", "fetch"]

STAGES: tuple[Stage, ...] = ("copy", "augment", "decode", "fetch")
"""Where delays are injected, in the order of the ladder."""

RUNGS: Mapping[Stage, str] = {
    "copy": "copy",
    "augment": "augment",
    "decode": "decode",
    "fetch": "store",
}
"""The rung of the ladder on which the delay of each stage belongs."""

INPUTS = ("synthetic", "copy", "collate", "augment", "decode", "warm", "store")
"""The rungs that are climbed. Not ``cold``: of a disk nothing is known beforehand."""

WITHIN = 0.10
"""Of a delay that was injected: how far from it what is found may lie."""


@dataclass(frozen=True, slots=True)
class Delays:
    """Seconds a sample that each stage takes longer; those of the copy come once a batch."""

    copy_s: float = 0.0
    augment_s: float = 0.0
    decode_s: float = 0.0
    fetch_s: float = 0.0

    def __getitem__(self, stage: Stage) -> float:
        found: float = getattr(self, f"{stage}_s")
        return found

    def only(self, *stages: Stage) -> Delays:
        """The same of ``stages``, and none of the others."""
        others = {each.name for each in fields(self)} - {f"{stage}_s" for stage in stages}
        return replace(self, **dict.fromkeys(others, 0.0))

    def times(self, factor: float) -> Delays:
        """All of them so many times as long."""
        return Delays(*(factor * self[stage] for stage in STAGES))

    @property
    def prepare_s(self) -> float:
        """What a worker of a loader is longer at a sample."""
        return self.fetch_s + self.decode_s + self.augment_s


@dataclass(frozen=True, slots=True)
class Case:
    """Delays that are injected together; none, for what the ladder is without them."""

    delays: Delays

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Where there is one."""
        return tuple(stage for stage in STAGES if self.delays[stage])

    @property
    def name(self) -> str:
        """``decode and fetch``; ``nothing`` where none is injected."""
        return " and ".join(self.stages) or "nothing"

    @property
    def largest(self) -> Stage | None:
        """The stage with the largest delay; None where none is injected."""
        return max(self.stages, key=lambda stage: self.delays[stage], default=None)


def cases(delays: Delays) -> Iterator[Case]:
    """Nothing; each stage alone; every pair."""
    for count in (0, 1, 2):
        for stages in combinations(STAGES, count):
            yield Case(delays.only(*stages))


@dataclass(frozen=True, slots=True)
class Plan:
    """What is run, and with which delays.

    Real work is small beside them: tiny images, and a store in this process. It is also in what
    they are compared with, so that only its noise is left; and noise is what long delays, few
    samples and medians over rounds are for.

    Attributes:
        delays: of each stage, wherever a case injects it. No two are alike, so that one of a pair
            is the larger.
        batch_size, device_s: samples in a step, and how long the device computes for them.
        steps: of a loop without prefetch; the first does not count.
        rounds: how often every case is run; nothing is run twice in a row.
        between: how many cases with delays are run between two without.
        workers, prefetch: of the loops with prefetch.
        prefetch_steps: of those; about as many do not count as batches are made ahead.
        prefetch_factor: how many times as long delays are there: each of those loops has fewer
            figures to be told by than a ladder.
        slow_device_s: as ``device_s``, where it is the device that is slow.
        images: that are drawn, ``side`` pixels a side; a loop reads each at most once.
    """

    delays: Delays = Delays(copy_s=0.050, augment_s=0.064, decode_s=0.080, fetch_s=0.150)
    batch_size: int = 2
    device_s: float = 0.020
    steps: int = 4
    rounds: int = 3
    between: int = 4
    workers: int = 2
    prefetch: int = 2
    prefetch_steps: int = 16
    prefetch_factor: float = 1.5
    slow_device_s: float = 0.150
    images: int = 60
    side: int = 64
