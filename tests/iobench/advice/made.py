"""Runs of which it is known what should be changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from iobench.advice import Advice, advise
from iobench.result import Result
from iobench.trial import Trial
from iobench.whatif import whatif
from tests.iobench.whatif.made import loader, loop, together

DATA = {"source": "/photos", "size": 256, "quality": 95, "shard_size": 16_000_000, "seed": 3}
MACHINE = {"processors": 8}


def run(
    *parts: Sequence[Trial],
    environment: Mapping[str, Any] = MACHINE,
    data: Mapping[str, Any] = DATA,
) -> Result:
    """One of these trials."""
    config = {"data": {"split": "train", **data}}
    return Result("made", "2026-11-21T12:00:00+00:00", environment, config, together(*parts))


def advice(result: Result) -> dict[str, Advice]:
    """What it says, by setting."""
    found = advise(result, whatif(result.trials, result.environment))
    return {entry.setting: entry for entry in found}


def forms(workers: int = 2) -> list[Trial]:
    """Photographs at 150 samples/s a worker, resized ones at 300, shards of either no faster."""
    return together(
        loader(150.0 * workers, workers, loader="torch-folder", data="photos@disk"),
        loader(300.0 * workers, workers, loader="torch-folder", data="files@disk"),
        loader(151.0 * workers, workers, data="originals@disk"),
        loader(303.0 * workers, workers, data="shards@disk"),
    )


def over_photos(rate: float = 295.0, **told: Any) -> list[Trial]:
    """A loop over photographs, on a device that takes 500 samples/s."""
    there = {"loader": "torch-folder", "form": "photos", **told}
    return together(loop("synthetic", 500.0, **there), loop("warm", rate, **there))
