"""Loaders that need ``item_s`` for each sample: computing, or only waiting.

Both read as ``raw`` does. The added time is much longer than the rest of a loop, so that the
diagnosis is certain on a busy machine too.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from iobench.loaders import Batch
from iobench.loaders.raw import RawLoader

ENTRY_POINTS = """[iobench.loaders]
computing = tests.e2e.slow_loaders:Computing
waiting = tests.e2e.slow_loaders:Waiting
"""


class Computing(RawLoader):
    """Computes for each sample, as decoding does: only more processors make it faster."""

    def epoch(self, number: int) -> Iterator[Batch]:
        for batch in super().epoch(number):
            until_s = time.process_time() + self._settings.item_s * batch.samples
            while time.process_time() < until_s:
                pass
            yield batch


class Waiting(RawLoader):
    """Waits for each sample, as on a remote service: more workers wait at the same time."""

    def epoch(self, number: int) -> Iterator[Batch]:
        for batch in super().epoch(number):
            time.sleep(self._settings.item_s * batch.samples)
            yield batch
