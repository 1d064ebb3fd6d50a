"""Trials with known times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from iobench.result import Result
from iobench.trial import Cold, Trial, TrialSpec

COLD, WARM = Cold("cold", "cold", 0.0, 1.0, False), Cold("warm", "warm", 1.0, 0.0, False)
UNPROVED = Cold("cold", "warm", 0.5, 0.5, False, "half was resident")
REMOTE = Cold("store", "server cache unknown")
LABELS = {"warm": WARM, "cold": COLD, "store": REMOTE}


def loop(
    source: str,
    seconds: Sequence[float | None],
    group: str = "g",
    cold: Cold | None = None,
    **metrics: Any,
) -> list[Trial]:
    """A training loop over 100 samples: its seconds in each repeat, None where it has failed."""
    params = {
        "group": group,
        "input": source,
        "consumer": "torch",
        "model": "lenet",
        "batch_size": 10,
        "loader": "raw",
        "workers": 2,
        "data": "" if source == "synthetic" else "shards@disk",
    }
    found = {"device": "CPU", "precision": "float32", "emulated": False, "au_mlperf": 0.5}
    trials = []
    for repeat, took_s in enumerate(seconds):
        status: Any = "failed" if took_s is None else "done"
        rate = {"samples_per_s": 100 / took_s} if took_s else {}
        trials.append(
            Trial(
                id=TrialSpec("train", params, repeat).id,
                kind="train",
                params=params,
                repeat=repeat,
                status=status,
                metrics={**found, **rate, **metrics} if took_s else {},
                cold=cold or LABELS.get(source),
                reason="" if took_s else "it fell over",
            )
        )
    return trials


def loops(
    resident: Sequence[float | None] = (),
    warm: Sequence[float | None] = (),
    cold: Sequence[float | None] = (),
    **options: Any,
) -> list[Trial]:
    """A group: T1, T3 and T2 of each repeat."""
    return [
        *loop("synthetic", resident, **options),
        *loop("warm", warm, **options),
        *loop("cold", cold, **options),
    ]


def one(kind: str, params: dict[str, Any], *, repeat: int = 0, **metrics: Any) -> Trial:
    """A trial that is done."""
    spec = TrialSpec(kind, params, repeat)
    return Trial(spec.id, kind, params, repeat, "done", metrics, metrics.pop("cold", None))


def result(trials: Sequence[Trial], **config: Any) -> Result:
    """A run of them."""
    return Result("made", "2026-11-21T12:00:00+00:00", {}, config, tuple(trials))
