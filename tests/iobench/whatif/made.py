"""Loaders, loops and stores whose parts have known capacities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from iobench.trial import Cold, Trial, TrialSpec

COLD, WARM = Cold("cold", "cold", 0.0, 1.0, False), Cold("warm", "warm", 1.0, 0.0, False)
REMOTE = Cold("store", "server cache unknown")
SAMPLE_BYTES = 40_000


def done(kind: str, params: dict[str, Any], cold: Cold | None, **metrics: Any) -> list[Trial]:
    """Three repeats, each 1 % above the one before, the middle one as it is told."""
    scale = (0.99, 1.0, 1.01)
    return [
        Trial(
            TrialSpec(kind, params, repeat).id,
            kind,
            params,
            repeat,
            "done",
            {
                key: value * factor if key in ("samples_per_s", "mb_per_s") else value
                for key, value in metrics.items()
            },
            cold,
        )
        for repeat, factor in enumerate(scale)
    ]


def loader(
    rate: float,
    workers: int,
    *,
    loader: str = "torch-iterable",
    data: str = "shards@disk",
    cache: str = "warm",
    sample_bytes: float = SAMPLE_BYTES,
    objects: int = 100,
    object_bytes: float = 4e6,
    **params: Any,
) -> list[Trial]:
    """A loader alone."""
    told = {"loader": loader, "data": data, "cache": cache, "workers": workers}
    told |= {"prefetch": 2, "batch_size": 64, **params, "seconds": 1.0}
    cold = REMOTE if data.endswith("@s3") else COLD if cache == "cold" else WARM
    metrics = {
        "samples_per_s": rate,
        "mb_per_s": rate * sample_bytes / 1e6,
        "objects": objects,
        "mean_object_bytes": object_bytes,
    }
    return done("loader", told, cold, **metrics)


def loop(
    source: str,
    rate: float,
    *,
    group: str = "g",
    workers: int = 2,
    loader: str = "torch-iterable",
    form: str = "shards",
    device: str = "NVIDIA H100",
    emulated: bool = False,
    **params: Any,
) -> list[Trial]:
    """A training loop with one input."""
    place = "s3" if source == "store" else "disk"
    told: dict[str, Any] = {"group": group, "input": source, "consumer": "torch"}
    told |= {"loader": loader, "data": "" if source in ("synthetic", "copy") else f"{form}@{place}"}
    told |= {"steps": 10, "model": "resnet50", "batch_size": 64, "device": "auto"}
    told |= {"precision": "auto", "image_size": 224, "workers": workers, "prefetch": 2}
    told |= {"augment": True, "normalise": True, "colour_jitter": False, "pca_noise": False}
    told |= {"pin_memory": False, **params}
    cold = {"cold": COLD, "warm": WARM, "store": REMOTE}.get(source)
    metrics = {"samples_per_s": rate, "device": device, "emulated": emulated}
    return done("train", told, cold, **metrics)


def fetched(
    object_bytes: int, connections: int, bytes_per_s: float, client: str = "boto3"
) -> list[Trial]:
    """Whole reads from an object store."""
    params: dict[str, Any] = {"store": "moto", "client": client, "operation": "get"}
    params |= {"object_bytes": object_bytes, "connections": connections}
    return done("object", params, REMOTE, mb_per_s=bytes_per_s / 1e6)


def together(*parts: Sequence[Trial]) -> list[Trial]:
    """One list of them all."""
    return [trial for part in parts for trial in part]
