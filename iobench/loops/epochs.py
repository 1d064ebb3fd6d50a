"""Epochs of a loader one after the other, and when each of them ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from iobench.clock import Clock
from iobench.errors import TrialFailed
from iobench.loaders.protocol import Batch, Loader
from iobench.loops.opening import batches_of


class Epochs:
    """Batches of ``limit`` epochs, numbered from 0; without one, of epoch after epoch.

    An epoch has ended when the batch after its last is asked for.
    """

    def __init__(self, loader: Loader, clock: Clock, limit: int | None = None) -> None:
        self._loader, self._clock, self._limit = loader, clock, limit
        self._ended: list[tuple[float, int]] = []

    def __iter__(self) -> Iterator[Batch]:
        """Begin anew.

        Raises:
            TrialFailed: an epoch has no batch.
        """
        self._ended = []
        for number in count() if self._limit is None else range(self._limit):
            samples = 0
            for batch in batches_of(self._loader, number):
                samples += batch.samples
                yield batch
            if not samples:
                raise TrialFailed("the loader gave no batch")
            self._ended.append((self._clock.now_s(), samples))

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


def epoch_limit(params: Mapping[str, Any]) -> int | None:
    """Of a loader's trial: what was told; one where a second would no longer be cold."""
    told: int | None = params.get("epochs")
    return told or (1 if params["cache"] == "cold" else None)
