"""What both of torch's styles share: items, their order, and the epoch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from dataprep.augment import ArrayTransform, Transform, sample_rng
from dataprep.errors import ImageError
from dataprep.formats import Buffer


class Epoch:
    """The number of the epoch, in memory that worker processes share."""

    def __init__(self, number: int) -> None:
        self._shared = torch.tensor(number)
        self._shared.share_memory_()  # type: ignore[no-untyped-call]

    @property
    def number(self) -> int:
        """As it was set last, in whichever process."""
        return int(self._shared)

    def set(self, number: int) -> None:
        """For this process and every worker that is alive."""
        self._shared.fill_(number)


@dataclass(frozen=True, slots=True)
class Order:
    """Which numbers a rank gets, and in which order: of seed and epoch alone."""

    shuffle: bool
    seed: int
    epoch: Epoch
    rank: int = 0
    world_size: int = 1

    def of(self, count: int, *draw: int) -> NDArray[np.int64]:
        """0 to ``count``; ``draw``, such as the epoch's number, tells permutations apart."""
        if not self.shuffle:
            return np.arange(count)
        return np.random.default_rng((self.seed, *draw)).permutation(count)

    def share(self, count: int, epoch: int) -> NDArray[np.int64]:
        """Those of this rank."""
        return self.of(count, epoch)[self.rank :: self.world_size]


class Located(NamedTuple):
    """A sample whose encoded image ``read(number)`` gives, on any thread."""

    read: Callable[[int], Buffer]
    number: int


class Items:
    """Encoded images to what torch is given, by number.

    ``labels`` has one for each, ``name`` says which it is where it cannot be decoded.
    """

    def __init__(
        self,
        labels: NDArray[np.int64],
        name: Callable[[int], str],
        transform: Transform | None,
        seed: int,
    ) -> None:
        self.labels = labels
        self.transform = transform
        self._name = name
        self._seed = seed

    def item(self, image: Buffer, index: int, epoch: int) -> tuple[Any, int]:
        """(image, label) of sample ``index``.

        Raises:
            ImageError: what the transform raised, with the name of the sample.
        """
        label = int(self.labels[index])
        if self.transform is None:
            return bytes(image), label
        with self._named(index):
            made = self.transform(image, sample_rng(self._seed, epoch, index))
        return torch.from_numpy(made) if isinstance(made, np.ndarray) else made, label

    def write(
        self, transform: ArrayTransform, sample: Located, epoch: int, out: NDArray[Any]
    ) -> None:
        """The image of a sample into ``out``; raises as ``item``."""
        read, number = sample
        with self._named(number):
            transform.write(read(number), sample_rng(self._seed, epoch, number), out)

    @contextlib.contextmanager
    def _named(self, index: int) -> Iterator[None]:
        try:
            yield
        except ImageError as error:
            raise type(error)(f"{self._name(index)}: {error}") from error
