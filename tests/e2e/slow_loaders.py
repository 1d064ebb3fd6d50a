"""Loaders whose preparing takes ``item_s`` a sample: of a processor, or of time alone.

Both read as ``raw`` does. What they add is much longer than anything else in a loop, so that what
a diagnosis says of it is certain on a busy machine too.
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
    """As decoding would: nothing but a processor makes it faster."""

    def epoch(self, number: int) -> Iterator[Batch]:
        for batch in super().epoch(number):
            until_s = time.process_time() + self._settings.item_s * batch.samples
            while time.process_time() < until_s:
                pass
            yield batch


class Waiting(RawLoader):
    """As something would that is not this machine's: more of them wait side by side."""

    def epoch(self, number: int) -> Iterator[Batch]:
        for batch in super().epoch(number):
            time.sleep(self._settings.item_s * batch.samples)
            yield batch
