"""Trials whose delays are known, run in this process by the code that runs every other trial."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ByteSize

from dataprep.keys import MIN_SHARD_BYTES
from dataprep.stores import StoreOptions
from iobench.clock import Clock
from iobench.consumers.protocol import Consumer
from iobench.data.making import Maker
from iobench.data.settings import DataSettings
from iobench.faults import Delay, FaultProxy, Match, Rule
from iobench.faults.bucket import Bucket
from iobench.faults.slowed import SlowedCopy, ThreadPauses, slowed
from iobench.loaders.protocol import Loader
from iobench.loaders.torch_loader import TorchLoader
from iobench.loops import training
from iobench.loops.training_plan import Training, plan
from iobench.s3_server import MotoServer
from iobench.selftest.cases import INPUTS, Case, Delays, Plan
from iobench.trial import Around, Context, Place, Trial, TrialSpec

_BUCKET = "selftest"
_DATA = "shards"
LOADER = "torch-map"
"""Requests the samples of a batch side by side, and nothing ahead of it."""


@dataclass(frozen=True, slots=True)
class Bench:
    """A data set on a disk, the same behind a proxy, and a clock."""

    plan: Plan
    clock: Clock
    places: Mapping[str, Place]
    proxy: FaultProxy

    def run(self, case: Case, source: str, repeat: int, **changed: Any) -> Trial:
        """One trial with the delays of a case; ``changed`` are keys of a training loop."""
        params = self._params(case, source, changed)
        self.proxy.replace_rules(_rules(case.delays, self.plan.batch_size))
        spec = TrialSpec("train", params, repeat)
        outcome = training.run(spec, self._context(case.delays))
        return Trial(
            id=spec.id,
            kind=spec.kind,
            params=params,
            repeat=repeat,
            status="done",
            metrics=outcome.metrics,
            cold=outcome.cold,
        )

    def _params(self, case: Case, source: str, changed: Mapping[str, Any]) -> Mapping[str, Any]:
        told: dict[str, Any] = {
            "group": case.name,
            "consumer": "paced",
            "images_per_s": self.plan.batch_size / self.plan.device_s,
            "batch_size": self.plan.batch_size,
            "device": "cpu",
            "loader": LOADER,
            "data": _DATA,
            "inputs": [source] if "loader" in changed else INPUTS,
            "workers": 0,
            "prefetch": self.plan.prefetch,
            "image_size": self.plan.side // 2,
            "steps": self.plan.steps,
        }
        points = plan(Training.model_validate({**told, **changed}))
        return next(point for point in points if point["input"] == source)

    def _context(self, delays: Delays) -> Context:
        def slow_loader(loader: Loader) -> Loader:
            if isinstance(loader, TorchLoader):
                loader.put_around(
                    lambda plain: slowed(
                        plain, self.clock, decode_s=delays.decode_s, augment_s=delays.augment_s
                    )
                )
            return loader

        def slow_consumer(consumer: Consumer) -> Consumer:
            return SlowedCopy(consumer, self.clock, delays.copy_s * self.plan.batch_size)

        around = Around(slow_loader, slow_consumer)
        return Context(self.places, self.clock, lambda done, unit: None, around=around)


@contextlib.contextmanager
def bench(plan: Plan, clock: Clock, folder: Path) -> Iterator[Bench]:
    """Draw images, shard them below ``folder``, and serve them as well."""
    settings = DataSettings(
        images=plan.images,
        classes=2,
        size=plan.side,
        folder=str(folder),
        shard_size=ByteSize(MIN_SHARD_BYTES),
    )
    disk = Maker(settings, _no_bucket, lambda note: None).place(f"{_DATA}@disk")
    bucket = Bucket()
    bucket.fill(_BUCKET, Path(disk.uri))
    waits = ThreadPauses(clock)
    with _own_environment(), FaultProxy(lambda: bucket, sleep=waits.take) as proxy:
        store = Place(f"s3://{_BUCKET}", "shards", StoreOptions(endpoint_url=proxy.url))
        yield Bench(plan, clock, {f"{_DATA}@disk": disk, f"{_DATA}@s3": store}, proxy)


def _rules(delays: Delays, batch_size: int) -> list[Rule]:
    """The requests of a batch wait at the same time; those of tables and manifests do not."""
    if not delays.fetch_s:
        return []
    return [Rule(Match("GET", r"/tfrecord/"), Delay(delays.fetch_s * batch_size))]


def _no_bucket() -> Place:
    raise AssertionError("nothing is copied to a store")


@contextlib.contextmanager
def _own_environment() -> Iterator[None]:
    """Credentials for the store; and what trials set for their own process ends with them."""
    before = dict(os.environ)
    for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE"):
        os.environ.pop(name, None)
    os.environ.update(MotoServer.ENVIRONMENT)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
