"""Epochs of a loader one after the other, and when each of them ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any

from iobench.clock import Clock
from iobench.errors import TrialFailed
from iobench.loaders.protocol import Batch, Loader
from iobench.loops.in_a_row import Epoch, record
from iobench.loops.opening import batches_of
from iobench.trial import Cold

_MOST = 100
"""Epochs of which a result has a record."""


class Epochs:
    """Batches of ``limit`` epochs, numbered from 0; without one, of epoch after epoch.

    An epoch has ended when the batch after its last is asked for. ``between`` is told then how
    many samples it had and whether another one follows, and says what the page cache did for it:
    the workers go on meanwhile.
    """

    def __init__(
        self,
        loader: Loader,
        clock: Clock,
        limit: int | None = None,
        between: Callable[[int, bool], Cold | None] = lambda samples, more: None,
    ) -> None:
        self._loader, self._clock, self._limit = loader, clock, limit
        self._between = between
        self._ended: list[tuple[float, int]] = []
        self._records: list[dict[str, Any]] = []

    def __iter__(self) -> Iterator[Batch]:
        """Begin anew.

        Raises:
            TrialFailed: an epoch has no batch.
        """
        self._ended, self._records = [], []
        for number in count() if self._limit is None else range(self._limit):
            asked_s = self._clock.now_s()
            first_s = asked_s
            samples = 0
            for batch in batches_of(self._loader, number):
                if not samples:
                    first_s = self._clock.now_s()
                samples += batch.samples
                yield batch
            if not samples:
                raise TrialFailed("the loader gave no batch")
            ended_s = self._clock.now_s()
            self._ended.append((ended_s, samples))
            if number < _MOST:
                cold = self._between(samples, number + 1 != self._limit)
                epoch = Epoch(samples, ended_s - asked_s, first_s - asked_s, cold)
                self._records.append(record(number, epoch))

    def metrics(self, asked_s: float) -> dict[str, Any]:
        """Of the epochs that went to their end, the first having been asked for at ``asked_s``.

        ``first_epoch_s`` has the first batch in it. ``steady_samples_per_s`` is the rate of all
        later ones, their starts included; it is absent where there is none.
        """
        if not self._ended:
            return {}
        first_s, last_s = self._ended[0][0], self._ended[-1][0]
        found: dict[str, Any] = {
            "whole_epochs": len(self._ended),
            "first_epoch_s": first_s - asked_s,
        }
        later = sum(samples for _, samples in self._ended[1:])
        if last_s > first_s:
            found["steady_samples_per_s"] = later / (last_s - first_s)
        return found

    def records(self) -> dict[str, Any]:
        """``epochs``: those that went to their end, the first hundred; empty without any."""
        return {"epochs": list(self._records)} if self._records else {}


def epoch_limit(params: Mapping[str, Any]) -> int | None:
    """Of a loader's trial: what was told; one where a second would no longer be cold."""
    told: int | None = params.get("epochs")
    return told or (1 if params["cache"] == "cold" else None)
