"""Trials and runs whose rates are known, for tests of the analysis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from iobench.analysis.analyse import Analysis, analyse
from iobench.results.result import STEADY_STATE, Finding, Result
from iobench.results.trial import Cold, Trial, TrialSpec

COLD, WARM = Cold("cold", "cold", 0.0, 1.0, False), Cold("warm", "warm", 1.0, 0.0, False)
UNPROVED = Cold("cold", "warm", 0.5, 0.5, False, "half was resident")
REMOTE = Cold("store", "server cache unknown")
LABELS = {"cold": COLD, "warm": WARM, "store": REMOTE}
SAMPLE_BYTES = 40_000
DATA = {"source": "/photos", "size": 256, "quality": 95, "shard_size": 16_000_000, "seed": 3}
PROBED: dict[str, Any] = {"object_store": {"targets": [{"label": "s3", "uri": "local"}]}}
"""The config of a run whose probe and whose data are on the same store."""
GPU = {"device": "NVIDIA H100"}


def done(
    kind: str, params: dict[str, Any], cold: Cold | None, repeats: int = 6, **metrics: Any
) -> list[Trial]:
    """Return completed repeats of a trial whose rates spread by 1 % around those in ``metrics``."""
    results = []
    for repeat in range(repeats):
        factor = 1 + 0.01 * (repeat - (repeats - 1) / 2) / max(repeats - 1, 1)
        rates = {k: v * factor for k, v in metrics.items() if k in ("samples_per_s", "mb_per_s")}
        spec = TrialSpec(kind, params, repeat)
        results.append(
            Trial(spec.id, kind, params, repeat, "done", {**metrics, **rates}, cold, seconds=1.0)
        )
    return results


def loader(
    rate: float,
    workers: int,
    *,
    loader: str = "torch-iterable",
    data: str = "shards@disk",
    cache: str = "warm",
    repeats: int = 6,
    **params: Any,
) -> list[Trial]:
    """Return repeats of a loader alone that reads ``rate`` samples/s with so many workers."""
    settings = {"loader": loader, "data": data, "cache": cache, "workers": workers}
    settings |= {"prefetch": 2, "batch_size": 64, **params, "seconds": 1.0}
    cold = REMOTE if data.endswith("@s3") else LABELS[cache]
    return done(
        *("loader", settings, cold, repeats),
        samples_per_s=rate,
        mb_per_s=rate * SAMPLE_BYTES / 1e6,
        objects=100,
        mean_object_bytes=4e6,
    )


def loop(
    source: str,
    rate: float,
    *,
    group: str = "g",
    loader: str = "torch-iterable",
    form: str = "shards",
    metrics: Mapping[str, Any] | None = None,
    repeats: int = 6,
    cold: Cold | None = None,
    **params: Any,
) -> list[Trial]:
    """Return repeats of a training loop with one input that reaches ``rate`` samples/s.

    The device is an emulated one unless ``metrics`` name another.
    """
    reads = source in ("warm", "cold", "store")
    location = "s3" if source == "store" else "disk"
    settings: dict[str, Any] = {"group": group, "input": source, "consumer": "paced"}
    settings |= {"loader": loader, "data": f"{form}@{location}" if reads else ""}
    settings |= {
        "model": "resnet50",
        "batch_size": 64,
        "image_size": 224,
        "workers": 1,
        "prefetch": 2,
    }
    settings |= {"augment": True, "normalise": True, "colour_jitter": False, "pca_noise": False}
    settings |= {"pin_memory": False, **params}
    actual = {"device": "emulated device", "emulated": True, "au_mlperf": 0.5, **(metrics or {})}
    if actual["device"] != "emulated device":
        actual["emulated"] = False
    read = {"mb_per_s": rate * SAMPLE_BYTES / 1e6, "objects": 100, "mean_object_bytes": 4e6}
    return done(
        *("train", settings, cold or LABELS.get(source), repeats),
        **{"samples_per_s": rate, **(read if reads else {}), **actual},
    )


def probe(rates: Mapping[tuple[int, int], float], client: str = "boto3") -> list[Trial]:
    """Return trials of the object-store probe; ``PROBED`` is the config of such a run.

    ``rates`` holds MB/s by object size in bytes and number of connections.
    """
    trials = []
    for (object_bytes, connections), rate in rates.items():
        params: dict[str, Any] = {"store": "s3", "client": client, "operation": "get"}
        params |= {"object_bytes": object_bytes, "connections": connections}
        trials += done("object", params, None, mb_per_s=rate)
    return trials


def together(*parts: Sequence[Trial]) -> list[Trial]:
    """Return all trials of these lists in one list."""
    return [trial for part in parts for trial in part]


def run(*parts: Sequence[Trial], processors: int | None = 2, **config: Any) -> Result:
    """Return a run that consists of these trials; ``config`` holds further keys of its config."""
    data = {"split": "train", **DATA, **config.pop("data", {})}
    environment = {"processors": processors} if processors else {}
    environment |= config.pop("environment", {})
    trials = together(*parts)
    results = {"repeats": 6, "data": data, **config}
    started = "2026-11-21T12:00:00+00:00"
    return Result("made", started, environment, results, trials, rates=STEADY_STATE)


def analysed(*parts: Sequence[Trial], **how: Any) -> Analysis:
    """Analyse a run that consists of these trials."""
    return analyse(run(*parts, **how))


def by_code(*parts: Sequence[Trial], **how: Any) -> dict[str, Finding]:
    """Return the findings about a run of these trials by their codes."""
    return {finding.code: finding for finding in analysed(*parts, **how).findings}


def primary(*parts: Sequence[Trial], **how: Any) -> str:
    """Return the code of the primary finding about a run of these trials."""
    (actual,) = [f.code for f in analysed(*parts, **how).findings if f.primary]
    return actual
