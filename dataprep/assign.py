"""The order of an epoch: which samples a rank reads, and in which sequence.

There is one sequence of an epoch for all ranks, which depends on seed and epoch alone. The ranks
take it in global batches, one after the other, each rank its part of each batch. What was read
after some steps is therefore the beginning of the sequence, whatever the number of ranks, and the
rest can be dealt out to any other number of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from dataprep.errors import ConfigError

Item = TypeVar("Item")
Integers: TypeAlias = NDArray[np.int64]
Even: TypeAlias = Literal["keep", "drop", "pad"]

RUN = 16
"""By shard, so many neighbouring samples stay together, so that ranks read few, larger ranges."""

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
        even: ``keep`` gives every sample once, so that ranks may get different numbers of them.
            ``drop`` and ``pad`` give all ranks as many: they leave out, or repeat, less than one
            global batch.
        global_batch: the samples of all ranks in a step. Without it the ranks take turns sample by
            sample, which fits any batch that is equal on all ranks.
        start: how many samples of ``epoch`` all ranks together have read before.
        epoch: the epoch of ``start``; others are read from their beginning.
        steps: how many steps an epoch has, where the samples of this order alone do not say it.

    Raises:
        ConfigError: a value is out of range.
    """

    shuffle: bool = True
    seed: int = 0
    rank: int = 0
    world_size: int = 1
    even: Even = "keep"
    global_batch: int | None = None
    start: int = 0
    epoch: int = 0
    steps: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.rank < self.world_size:
            raise ConfigError(
                f"rank {self.rank} of {self.world_size}: ranks count from 0 to world_size - 1"
            )
        if self.even not in ("keep", "drop", "pad"):
            raise ConfigError(f"even {self.even!r}: it is keep, drop or pad")
        if self.start < 0:
            raise ConfigError(f"start {self.start}: it is at least 0")
        if self.global_batch is not None and self.global_batch < self.world_size:
            raise ConfigError(
                f"a global batch of {self.global_batch} for {self.world_size} ranks: each needs at "
                "least one sample"
            )

    @property
    def whole(self) -> int:
        """The samples that all ranks take before it is the first rank's turn again."""
        return self.global_batch or self.world_size

    @property
    def batch(self) -> int | None:
        """This rank's samples in a step, if the global batch is known."""
        if self.global_batch is None:
            return None
        return per_rank_batch(self.global_batch, self.rank, self.world_size)


def per_rank_batch(global_batch: int, rank: int, world_size: int) -> int:
    """The samples of a rank in a global batch; those of two ranks differ by one at most."""
    return len(_part(global_batch, rank, world_size))


def by_record(order: Order, count: int, epoch: int) -> Integers:
    """The epoch's sequence of ``count`` samples in a fully random order."""
    return _permutation(order, count, epoch)


def by_shard(order: Order, bounds: Sequence[int], epoch: int, run: int = RUN) -> Integers:
    """The epoch's sequence of samples, one shard after the other.

    Shards are shuffled, the runs of ``run`` neighbouring samples in each, and the samples of each
    run. ``bounds`` are the first number of each shard, and the number of all samples.
    """
    sequence = np.empty(bounds[-1], np.int64)
    filled = 0
    for shard in _permutation(order, len(bounds) - 1, epoch).tolist():
        samples = range(bounds[shard], bounds[shard + 1])
        sequence[filled : filled + len(samples)] = _within(order, samples, epoch, shard, run)
        filled += len(samples)
    return sequence


def own(order: Order, sequence: Integers, epoch: int) -> Integers:
    """What this rank reads of an epoch's ``sequence``, in its order."""
    if epoch != order.epoch:
        order = replace(order, start=0)
    left, whole = _left(order, sequence), order.whole
    full = len(left) - len(left) % whole
    part = _part(whole, order.rank, order.world_size)
    batches = left[:full].reshape(-1, whole)[:, part.start : part.stop]
    rest = _part(len(left) - full, order.rank, order.world_size)
    return np.concatenate([batches.ravel(), left[full:][rest.start : rest.stop]])


def of_share(order: Order, number: int, samples: Sequence[int]) -> Order:
    """The order within a host's share, of which its ranks alone read.

    Ranks are numbered host by host. All hosts make as many steps as the counts of all shares
    allow (``drop``) or ask for (``pad``).

    Args:
        order: of all ranks; of one rank alone for the whole share.
        number: which share it is.
        samples: how many samples each share has.

    Raises:
        ConfigError: the ranks do not fit the shares.
    """
    if order.world_size == 1:
        return order
    local, left = divmod(order.world_size, len(samples))
    if left or order.rank // local != number:
        raise ConfigError(
            f"rank {order.rank} of {order.world_size} cannot read share {number} of {len(samples)}:"
            " each host has as many ranks, and those of host 0 come first"
        )
    firsts = [
        _part(order.whole, rank, order.world_size).start
        for rank in range(0, order.world_size, local)
    ]
    batches = np.diff([*firsts, order.whole])
    steps = None
    if order.even == "drop":
        steps = int(np.min(np.array(samples) // batches))
    elif order.even == "pad":
        steps = int(np.max(-(-np.array(samples) // batches)))
    batch = int(batches[number])
    return replace(
        order,
        rank=order.rank % local,
        world_size=local,
        global_batch=batch if order.global_batch else None,
        start=order.start // order.whole * batch,
        steps=steps,
    )


def resumed(order: Order, shares: Sequence[int]) -> Order:
    """The order with a start from which ranks can go on.

    A start at the end of an epoch becomes the beginning of the next epoch.

    Args:
        order: of all ranks.
        shares: how many samples each share has, or the whole data set as the only share.

    Raises:
        ConfigError: the start is beyond the end, or ``even="drop"`` leaves no step in any epoch.
    """
    hosts = _hosts(order, shares)
    whole_steps = min(count // host.whole for count, host in zip(shares, hosts, strict=True))
    if order.even == "drop" and not whole_steps:
        raise ConfigError(
            f"even='drop' leaves no step in an epoch: all ranks take {order.whole:,} samples in a "
            f"step, of {' + '.join(f'{count:,}' for count in shares)}; use smaller batches, or "
            "even='pad'"
        )
    if order.start > _most_steps(order, shares) * order.whole:
        raise ConfigError(
            f"start {order.start:,} is beyond the end of an epoch of {sum(shares):,} samples"
        )
    is_over = not any(
        len(_left(host, np.arange(count))) for count, host in zip(shares, hosts, strict=True)
    )
    if order.start and is_over:
        return replace(order, epoch=order.epoch + 1, start=0)
    return order


def end_of_epoch(order: Order, shares: Sequence[int]) -> int:
    """The ``start`` from which nothing of an epoch is left, for the arguments of ``resumed``."""
    if len(shares) == 1:
        return shares[0]
    return _most_steps(order, shares) * order.whole


def _most_steps(order: Order, shares: Sequence[int]) -> int:
    """The steps of an epoch on the host with the most steps; the last one may be smaller."""
    hosts = _hosts(order, shares)
    return max(-(-count // host.whole) for count, host in zip(shares, hosts, strict=True))


def _hosts(order: Order, shares: Sequence[int]) -> list[Order]:
    """The order within the share of each host, for the first rank of the host."""
    if len(shares) == 1:
        return [order]
    ranks = order.world_size // len(shares)
    return [
        of_share(replace(order, rank=host * ranks), host, shares) for host in range(len(shares))
    ]


def of_worker(numbers: Integers, batch: int, worker: int, workers: int) -> Integers:
    """The batches that one of several worker processes makes: every ``workers``-th."""
    if workers == 1:
        return numbers
    chosen: Integers = numbers[np.arange(len(numbers)) // batch % workers == worker]
    return chosen


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
    """A seed for the random numbers of a framework, from 1 to 2^31 - 2."""
    rng = np.random.default_rng((order.seed, epoch, part, _FRAMEWORK))
    return int(rng.integers(1, 2**31 - 1))


def _permutation(order: Order, count: int, *key: int) -> Integers:
    if not order.shuffle:
        return np.arange(count)
    return np.random.default_rng((order.seed, *key)).permutation(count)


def _within(order: Order, samples: range, epoch: int, shard: int, run: int) -> Integers:
    """The samples of a shard in the order in which an epoch reads them."""
    if not order.shuffle:
        return np.arange(samples.start, samples.stop)
    rng = np.random.default_rng((order.seed, epoch, shard))
    rows = -(-len(samples) // run)
    numbers = np.arange(rows * run).reshape(rows, run)
    mixed_runs = rng.permuted(numbers[rng.permutation(rows)], axis=1).ravel()
    return samples.start + mixed_runs[mixed_runs < len(samples)]


def _part(size: int, rank: int, world_size: int) -> range:
    """The places of a rank in ``size`` samples that are divided into neighbouring parts."""
    each, more = divmod(size, world_size)
    start = rank * each + min(rank, more)
    return range(start, start + each + (rank < more))


def _left(order: Order, sequence: Integers) -> Integers:
    """What all ranks have left of an epoch's ``sequence`` after ``order.start``.

    For ranks with equal steps it is cut to whole global batches, or filled up to these with
    samples from the beginning of the epoch.
    """
    left = sequence[order.start :]
    if order.even == "keep":
        return left
    steps = len(left) // order.whole
    if order.steps is not None:
        steps = max(0, order.steps - order.start // order.whole)
    elif order.even == "pad":
        steps = -(-len(left) // order.whole)
    missing = steps * order.whole - len(left)
    if missing <= 0:
        return left[: steps * order.whole]
    return np.concatenate([left, np.resize(sequence, missing)])
