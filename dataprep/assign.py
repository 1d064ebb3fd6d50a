"""The order of an epoch: which records a rank reads, and in which sequence.

All results depend on seed, epoch and rank only, never on time, threads or workers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dataprep.errors import ConfigError

Item = TypeVar("Item")

# The last number of a key, so that streams of random numbers for different purposes differ.
_BUFFER, _FRAMEWORK = 1, 2


@dataclass(frozen=True, slots=True)
class Order:
    """How epochs are shuffled and divided among ranks.

    Attributes:
        shuffle: whether the order changes with the epoch; otherwise it is that of the data set.
        seed: the seed of the order.
        rank: the number of this process among ``world_size`` processes that train together.
        world_size: how many processes each read their own part of an epoch.

    Raises:
        ConfigError: the rank is not from 0 to ``world_size - 1``.
    """

    shuffle: bool = True
    seed: int = 0
    rank: int = 0
    world_size: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.rank < self.world_size:
            raise ConfigError(
                f"rank {self.rank} of {self.world_size}: ranks count from 0 to world_size - 1"
            )


def epoch_order(order: Order, count: int, epoch: int) -> list[int]:
    """The samples, or the shards, of this rank in the order of an epoch.

    ``count`` is how many there are for all ranks. The parts of two ranks differ by one at most.
    """
    own: list[int] = _permutation(order, count, epoch)[order.rank :: order.world_size].tolist()
    return own


def order_within(order: Order, samples: range, epoch: int, shard: int) -> list[int]:
    """The samples of a shard in the order in which an epoch reads them."""
    numbers: list[int] = (samples.start + _permutation(order, len(samples), epoch, shard)).tolist()
    return numbers


def mixed(
    order: Order, items: Iterable[Item], size: int, epoch: int, worker: int = 0
) -> Iterator[Item]:
    """Shuffle a stream through a buffer of ``size`` items.

    Each item that leaves is drawn from the whole buffer and replaced by the next that arrives. So
    an item may come later by any number of places, and earlier by ``size`` at most.
    """
    rng = np.random.default_rng((order.seed, epoch, worker, _BUFFER))
    buffer: list[Item] = []
    for item in items:
        if len(buffer) < size:
            buffer.append(item)
            continue
        chosen = int(rng.integers(size))
        leaving, buffer[chosen] = buffer[chosen], item
        yield leaving
    for place in rng.permutation(len(buffer)).tolist():
        yield buffer[place]


def framework_seed(order: Order, epoch: int, part: int = 0) -> int:
    """A seed for the shuffling that a framework does itself, from 1 to 2^31 - 2."""
    rng = np.random.default_rng((order.seed, epoch, part, _FRAMEWORK))
    return int(rng.integers(1, 2**31 - 1))


def _permutation(order: Order, count: int, *key: int) -> NDArray[np.int64]:
    if not order.shuffle:
        return np.arange(count)
    return np.random.default_rng((order.seed, *key)).permutation(count)
