"""PURE. What the ladder found of the delays that were injected.

Rungs hold real work as well, if little: what is held against a delay is the part of its rung less
that of the ladder without any delay, which is climbed in the same rounds. Everything that a delay
leaves on other rungs is held against the delay, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from iobench.selftest.cases import RUNGS, WITHIN, Case, Stage

Parts = Mapping[str, float]
"""Seconds a sample that each rung costs, by its name."""


@dataclass(frozen=True, slots=True)
class Recovered:
    """One delay, and what the ladder made of it.

    Attributes:
        case: what was injected, all in all.
        stage: whose delay this row is about.
        rung: where it belongs.
        injected_s, recovered_s: seconds a sample.
        elsewhere: the rung without a delay that moved most, and by how many seconds.
        findings: codes of what the diagnosis found, the primary one first.
        code: the finding that names this stage.
        primary: the finding that must be the primary one: that of the case's largest delay.
    """

    case: str
    stage: Stage
    rung: str
    injected_s: float
    recovered_s: float
    elsewhere: tuple[str, float]
    findings: tuple[str, ...]
    code: str
    primary: str

    @property
    def named(self) -> bool:
        """Whether the diagnosis names this stage, and begins with the largest delay of the case."""
        return self.code in self.findings and self.findings[0] == self.primary

    @property
    def error(self) -> float:
        """Share of the delay by which what was recovered is too long."""
        return self.recovered_s / self.injected_s - 1

    @property
    def stray(self) -> float:
        """Share of the delay that appeared on a rung where it does not belong."""
        return self.elsewhere[1] / self.injected_s

    @property
    def ok(self) -> bool:
        """On its rung within a tenth, less than a tenth on any other, and named."""
        return abs(self.error) <= WITHIN and abs(self.stray) <= WITHIN and self.named

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        rung, seconds = self.elsewhere
        return {
            **asdict(self),
            "elsewhere": {"rung": rung, "seconds": seconds},
            "error": self.error,
            "stray": self.stray,
            "named": self.named,
            "ok": self.ok,
        }


def recovered(
    case: Case, parts: Parts, without: Parts, findings: Sequence[str], codes: Mapping[Stage, str]
) -> Iterator[Recovered]:
    """A row for each delay of a case; none where none is injected.

    Args:
        case: what was injected.
        parts: of its ladder.
        without: of the ladder without delays.
        findings: codes of what the diagnosis found, the primary one first.
        codes: by which code each stage is named.
    """
    if case.largest is None:
        return
    moved = {rung: parts[rung] - without[rung] for rung in parts if rung in without}
    injected = {RUNGS[stage] for stage in case.stages}
    others = [(rung, change) for rung, change in moved.items() if rung not in injected]
    for stage in case.stages:
        yield Recovered(
            case=case.name,
            stage=stage,
            rung=RUNGS[stage],
            injected_s=case.delays[stage],
            recovered_s=moved[RUNGS[stage]],
            elsewhere=max(others, key=lambda item: abs(item[1])),
            findings=tuple(findings),
            code=codes[stage],
            primary=codes[case.largest],
        )
