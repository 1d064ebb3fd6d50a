"""Loops of which it is known what their time goes to, as results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from iobench.diagnosis import diagnose
from iobench.result import Finding, Result
from iobench.summary import summarise
from iobench.trial import Cold, Trial, TrialSpec
from tests.iobench.summary.made import COLD, REMOTE, WARM, result

LABELS: Mapping[str, Cold | None] = {
    "synthetic": None,
    "warm": WARM,
    "cold": COLD,
    "store": REMOTE,
}
PARAMS: dict[str, Any] = {
    "group": "g",
    "consumer": "torch",
    "model": "resnet50",
    "batch_size": 64,
    "loader": "torch-iterable",
    "workers": 2,
    "pin_memory": False,
    "image_size": 224,
    "device": "auto",
}
METRICS: dict[str, Any] = {
    "device": "AMD EPYC, 2 threads",
    "precision": "float32",
    "emulated": False,
    "au_mlperf": 0.5,
}
GPU: dict[str, Any] = {"device": "NVIDIA H200", "precision": "float16"}


def trials(
    source: str,
    seconds: float,
    *,
    repeats: int = 3,
    params: Mapping[str, Any] | None = None,
    **metrics: Any,
) -> list[Trial]:
    """A loop over 100 samples that takes so long, in each repeat alike."""
    told = {**PARAMS, "data": "" if source == "synthetic" else "shards@disk", **(params or {})}
    told["input"] = source
    found = {**METRICS, "samples_per_s": 100 / seconds, **metrics}
    return [
        Trial(
            TrialSpec("train", told, repeat).id,
            *("train", told, repeat, "done", found, LABELS[source]),
        )
        for repeat in range(repeats)
    ]


def stalled(
    *,
    preparation: float = 0.0,
    fetch: float = 0.0,
    source: str = "cold",
    params: Mapping[str, Any] | None = None,
    **metrics: Any,
) -> list[Trial]:
    """A loop of a second, of which preparing and reading take these shares."""
    device_s = 1.0 - preparation - fetch
    return [
        *trials("synthetic", device_s, params=params, **metrics),
        *trials("warm", device_s + preparation, params=params, **metrics),
        *trials(source, 1.0, params=params, **metrics),
    ]


def run(
    *given: Sequence[Trial],
    ladder: Mapping[str, float] | None = None,
    tells: bool = True,
    environment: Mapping[str, Any] | None = None,
) -> Result:
    """A run of them with its summary; ``ladder`` has the share of each rung of loop ``g``."""
    made = result([trial for part in given for trial in part], repeats=6)
    made = replace(made, environment=environment or {"processors": 4, "processor_quota": None})
    summary = summarise(made)
    if ladder is not None:
        rungs: list[dict[str, Any]] = [
            {"rung": "synthetic", "seconds_per_sample": {}, "part": None, "share": None}
        ]
        rungs += [
            {
                "rung": rung,
                "share": {"median": share, "low": share * 0.9, "high": share * 1.1, "repeats": 6},
                "tells": tells,
            }
            for rung, share in ladder.items()
        ]
        summary = {**summary, "ladder": [{"group": "g", "rungs": rungs}]}
    return replace(made, summary=summary)


def diagnosed(*given: Sequence[Trial], **how: Any) -> tuple[Finding, ...]:
    """All that is found of them."""
    return diagnose(run(*given, **how))


def by_code(*given: Sequence[Trial], **how: Any) -> dict[str, Finding]:
    """The same by their codes."""
    return {finding.code: finding for finding in diagnosed(*given, **how)}


def primary(*given: Sequence[Trial], **how: Any) -> str | None:
    """The code of the one to begin with."""
    found = [finding.code for finding in diagnosed(*given, **how) if finding.primary]
    assert len(found) <= 1
    return found[0] if found else None
