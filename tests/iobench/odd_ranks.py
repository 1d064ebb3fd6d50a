"""Loaders of a third party that share their samples among ranks; most of them lose a rank."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from iobench.clock import Clock
from iobench.loaders.protocol import Batch
from iobench.loaders.settings import LoaderSettings
from iobench.results.trial import Location
from tests.iobench.odd_loaders import FAR_TOO_LONG_S, Steady


class Ranked(Steady):
    """Yields noise for torch, another one on each rank, and leaves its process id as a mark."""

    framework = "torch"
    by_rank = True

    def __init__(self, location: Location | None, settings: LoaderSettings, clock: Clock) -> None:
        super().__init__(location, settings, clock)
        self.settings = settings

    def epoch(self, number: int) -> Iterator[Batch]:
        """Yield a thousand batches; rank 1 may misbehave at the fourth."""
        Path(os.environ["ODD_FOLDER"], f"rank-{self.settings.rank}").write_text(str(os.getpid()))
        for step in range(1000):
            if self.settings.rank == 1 and step == 3:
                self.begin()
            yield self._batch(step)

    def _batch(self, step: int) -> Batch:
        import torch

        size, samples = self.settings.image_size, self.settings.batch_size
        drawn = torch.Generator().manual_seed(1000 * self.settings.rank + step)
        images: Any = torch.randn((samples, 3, size, size), generator=drawn)
        labels = torch.randint(5, (samples,), generator=drawn)
        return Batch(images, labels, samples)


class FailingRank(Ranked):
    """Raises on rank 1, in the middle of the loop."""

    def begin(self) -> None:
        raise ValueError("shard 7 is broken")


class KilledRank(Ranked):
    """Is killed on rank 1, as by the kernel's out-of-memory killer."""

    def begin(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class ExitingRank(Ranked):
    """Ends the process of rank 1 with a line on its stderr."""

    def begin(self) -> None:
        os.write(2, b"license expired\n")
        raise SystemExit(3)


class LeavingRank(Ranked):
    """Closes the connections of rank 1, whose process ends a while later, as C's ``exit`` does."""

    def begin(self) -> None:
        for link in Path("/proc/self/fd").iterdir():
            with (
                contextlib.suppress(OSError),
                socket.socket(fileno=os.dup(int(link.name))) as connection,
            ):
                connection.getpeername()  # Listening sockets have no peer and are left alone.
                connection.shutdown(socket.SHUT_RDWR)
        time.sleep(0.7)
        os.write(2, b"license expired\n")
        os._exit(3)


class HangingRank(Ranked):
    """Yields no further batch on rank 1, so that rank 0 waits for its gradients."""

    def begin(self) -> None:
        time.sleep(FAR_TOO_LONG_S)


class ShortRank(Ranked):
    """Ends the epoch of rank 1 early."""

    def epoch(self, number: int) -> Iterator[Batch]:
        batches = super().epoch(number)
        for _ in range(6 if self.settings.rank == 1 else 1000):
            yield next(batches)


class Unshared(Ranked):
    """Does not share its samples among ranks."""

    by_rank = False


ODD_RANKS = (
    *(Ranked, FailingRank, KilledRank, ExitingRank, LeavingRank, HangingRank, ShortRank),
    Unshared,
)
ENTRY_POINTS = "".join(
    f"odd-{kind.__name__.lower()} = tests.iobench.odd_ranks:{kind.__name__}\n" for kind in ODD_RANKS
)
