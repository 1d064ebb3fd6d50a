"""When to kill: after a share of the time that an undisturbed run takes, or when a key appears."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

from tests.commandline import PATIENCE_S, Running
from tests.reliability.places import GROWING, Place

_LOOKS_EVERY_S = 0.02
_KEYS = (
    "labels.json",
    "train.plan.parquet",
    "train.job.json",
    "train.samples.parquet",
    "train.manifest.json",
)


@dataclass(frozen=True)
class Moment:
    """``share`` of a run's time, or ``after_s`` since ``count`` keys begin with ``prefix``."""

    share: float = 0.0
    prefix: str = ""
    count: int = 0
    after_s: float = 0.0

    def __str__(self) -> str:
        if not self.prefix:
            return f"{self.share:.0%} of the time"
        return f"{self.after_s * 1000:.0f} ms after {self.count} of {self.prefix}"

    def wait(self, running: Running, place: Place, usual_s: float) -> bool:
        """Until it has come; False where the command ended before."""
        if not self.prefix:
            return _until(lambda: running.ended, self.share * usual_s) is False
        seen = _until(lambda: running.ended or self._has_come(place), PATIENCE_S)
        if running.ended or not seen:
            return False
        time.sleep(self.after_s)
        return not running.ended

    def _has_come(self, place: Place) -> bool:
        return sum(key.startswith(self.prefix) for key in place.visible()) >= self.count


def _until(condition: Callable[[], object], patience_s: float) -> bool:
    deadline_s = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > deadline_s:
            return False
        time.sleep(_LOOKS_EVERY_S)
    return True


def drawn(rng: random.Random, shards: int, there: Collection[str]) -> Moment:
    """Half of them at any time, from the start on; the others spread over what a job stores.

    ``there`` are the keys that lie there beforehand.
    """
    after_s = rng.choice([0.0, rng.uniform(0.0, 0.1)])
    moment = rng.choice(
        [
            Moment(prefix=rng.choice(_KEYS), count=1, after_s=after_s),
            Moment(prefix=GROWING, count=1, after_s=after_s),
            Moment(prefix="recordio/", count=rng.randint(1, shards), after_s=after_s),
            Moment(prefix="receipts/", count=rng.randint(1, shards), after_s=after_s),
        ]
    )
    known = any(key.startswith(moment.prefix) for key in there)
    return any_time(rng) if known or rng.random() < 0.5 else moment


def any_time(rng: random.Random) -> Moment:
    """From the start to the end of a run."""
    return Moment(share=rng.uniform(0.0, 0.95))
