"""The page cache from epoch to epoch of a trial: prepared or left as it is, then judged."""

from __future__ import annotations

from iobench.loops.caching import LoopCache, prepared
from iobench.loops.physical_bytes import physical_bytes
from iobench.machine import page_cache
from iobench.machine.coldness import LEFT, whole
from iobench.machine.page_cache import WHEN_NEEDED
from iobench.stored import Stored
from iobench.trial import Cold, Params, Place

EVERY_EPOCH = "every-epoch"


class EpochCache:
    """Of one trial: ``before`` each epoch, ``after`` it, and ``whole`` at the end.

    ``asked`` is ``cold``, ``warm`` or ``store``. Each epoch is prepared where ``every`` is true,
    else the first alone, and the rest find what the one before has left.
    """

    def __init__(
        self, params: Params, asked: str, place: Place, data: Stored, *, every: bool
    ) -> None:
        self._params, self._asked, self._place, self._data = params, asked, place, data
        self._every = every
        self._now: LoopCache | None = None
        self._judged: list[Cold] = []
        self._samples: list[int] = []

    @property
    def restarts(self) -> bool:
        """Whether workers end between epochs: what they have mapped cannot be evicted."""
        return self._every and not self._place.is_remote

    def before(self) -> None:
        """Prepare the next epoch, or look at what it will find. Workers of the last are gone."""
        if self._judged and not self._every and not self._place.is_remote:
            asked = LEFT if self._asked == "cold" else self._asked
            found = page_cache.observed(asked, self._data.files)
            self._now = LoopCache(asked, self._data, found, physical_bytes())
            return
        self._now = prepared(
            self._asked,
            self._place,
            self._data,
            copied=self._params.get("access") == "file",
            drop_caches=self._params.get("drop_caches", WHEN_NEEDED),
        )

    def after(self, samples: int) -> Cold:
        """What the cache did for the ``samples`` that were taken since ``before``."""
        assert self._now is not None  # noqa: S101  before comes first
        cold = self._now.judged(self._params["loader"], samples)
        self._judged.append(cold)
        self._samples.append(samples)
        return cold

    def ended(self, samples: int) -> Cold:
        """Of a trial of so many ``samples``, of which those since ``before`` are judged first."""
        if (rest := samples - sum(self._samples)) > 0 or not self._judged:
            self.after(rest)
        return self.whole()

    def whole(self) -> Cold:
        """Of all epochs so far."""
        return whole(self._judged, self._samples)


def epoch_cache_for(
    params: Params, asked: str, place: Place | None, data: Stored | None, *, every: bool
) -> EpochCache | None:
    """The same for a trial; None where it reads no data."""
    if place is None or data is None:
        return None
    return EpochCache(params, asked, place, data, every=every)
