"""The order of an epoch: which samples each rank reads, and in which order.

An epoch has one sequence of samples for all ranks. In a data set, it depends only on the seed and
the number of the epoch. The ranks take this sequence in global batches, one after the other, and
each rank takes its slice of each global batch. After some steps, the samples that were read are
therefore the beginning of the sequence. This is true for any number of ranks, so that another
number of ranks can read the remaining samples.

If each host has a share of the shards, each share has a sequence of its own. The ranks of a host
take their slices of a global batch from the sequence of their share.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from dataprep.errors import ConfigError

Item = TypeVar("Item")
Integers: TypeAlias = NDArray[np.int64]
Even: TypeAlias = Literal["keep", "drop", "pad"]

RUN_SAMPLES = 16
"""Neighbouring samples of a shard that stay close together when an epoch is shuffled. A rank can
then read them by one request."""

# The last number in the key of a random generator. Generators for different purposes differ in it.
_BUFFER_KEY = 1
_FRAMEWORK_KEY = 2


@dataclass(frozen=True, slots=True)
class Order:
    """How epochs are shuffled and divided among ranks.

    Attributes:
        shuffle: whether each epoch has a random order. Otherwise samples keep the order of the data
            set.
        seed: the seed of the order, of shuffle buffers and of framework seeds.
        rank: the number of this process among the processes that train together.
        world_size: the number of processes that train together.
        even: whether all ranks make the same number of full steps. ``keep``: each sample is read
            once, and ranks may make different numbers of steps. ``drop``: the samples that do not
            fill a step are left out. ``pad``: the last step is filled with samples from the
            beginning of the epoch, which are read twice. Without shares, less than one global batch
            is left out or repeated.
        global_batch: the samples that all ranks take in a step. If it is None, the ranks take turns
            sample by sample, which fits any batch size that is equal on all ranks.
        start: the number of samples of epoch ``epoch`` that all ranks together have read before.
        epoch: the epoch of ``start``. Other epochs are read from their beginning.
        steps: the number of steps in an epoch, if it depends on the shares of other hosts; None if
            the samples of this order determine it.

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
        # If nothing is shuffled, programs may give None or a tuple as the seed.
        if isinstance(self.seed, Real) and self.seed < 0:
            raise ConfigError(f"seed {self.seed}: it is at least 0")
        if self.global_batch is not None and self.global_batch < self.world_size:
            raise ConfigError(
                f"a global batch of {self.global_batch} for {self.world_size} ranks: each rank "
                "needs at least one sample"
            )

    @property
    def step_samples(self) -> int:
        """The samples of a step of all ranks: the global batch, or one sample for each rank."""
        return self.global_batch or self.world_size

    @property
    def rank_batch(self) -> int | None:
        """The samples that this rank takes in a step; None without a global batch."""
        if self.global_batch is None:
            return None
        return per_rank_batch(self.global_batch, self.rank, self.world_size)


def per_rank_batch(global_batch: int, rank: int, world_size: int) -> int:
    """Return the samples that a rank takes from a global batch.

    The batches of two ranks differ by at most one sample. Use it as ``batch_size`` if the global
    batch cannot be divided equally.

    Args:
        global_batch: the samples that all ranks take in a step.
        rank: the number of the rank, from 0.
        world_size: the number of ranks.

    Example:
        >>> [dataprep.per_rank_batch(10, rank, 4) for rank in range(4)]
        [3, 3, 2, 2]
    """
    return len(_slice_of_rank(global_batch, rank, world_size))


def sequence_by_record(order: Order, samples: int, epoch: int) -> Integers:
    """Return an epoch's sequence of the samples 0 to ``samples - 1``.

    If the order is shuffled, each permutation is equally likely. Otherwise the numbers ascend.
    """
    return _permutation(order, samples, epoch)


def sequence_by_shard(
    order: Order, first_samples: Sequence[int], epoch: int, run_samples: int = RUN_SAMPLES
) -> Integers:
    """Return an epoch's sequence of samples, one shard after the other.

    If ``order.shuffle`` is True, three things are shuffled: the shards, the runs of neighbouring
    samples in each shard, and the samples of each run.

    Args:
        order: the seed, and whether to shuffle.
        first_samples: the number of the first sample of each shard, then the number of all samples.
        epoch: the number of the epoch.
        run_samples: samples in a run. The last run of a shard may have fewer.
    """
    sequence = np.empty(first_samples[-1], np.int64)
    filled = 0
    for shard in _permutation(order, len(first_samples) - 1, epoch).tolist():
        samples = range(first_samples[shard], first_samples[shard + 1])
        shuffled = _shuffled_shard(order, samples, epoch, shard, run_samples)
        sequence[filled : filled + len(samples)] = shuffled
        filled += len(samples)
    return sequence


def samples_of_rank(order: Order, sequence: Integers, epoch: int) -> Integers:
    """Return the samples of an epoch's ``sequence`` that this rank reads, in their order.

    Args:
        order: the rank, how the samples are divided among ranks, and the start.
        sequence: the numbers of all samples, in the order of the epoch: int64 of shape (samples,).
        epoch: the number of the epoch. If it is the epoch of the start, the samples before the
            start are left out.
    """
    if epoch != order.epoch:
        order = replace(order, start=0)
    remaining = _remaining(order, sequence)
    step_samples = order.step_samples
    full_steps = len(remaining) // step_samples
    steps = remaining[: full_steps * step_samples].reshape(full_steps, step_samples)
    last_step = remaining[full_steps * step_samples :]
    own_slice = _slice_of_rank(step_samples, order.rank, order.world_size)
    own_last_slice = _slice_of_rank(len(last_step), order.rank, order.world_size)
    own_samples = steps[:, own_slice.start : own_slice.stop].ravel()
    own_last_samples = last_step[own_last_slice.start : own_last_slice.stop]
    return np.concatenate([own_samples, own_last_samples])


def order_in_share(order: Order, share: int, samples: Sequence[int]) -> Order:
    """Return the order within a host's share, which only the ranks of that host read.

    Ranks are numbered host by host. With ``drop`` and ``pad``, all hosts make the same number of
    steps: with ``drop``, as many as every share can fill; with ``pad``, as many as the share that
    needs most. With ``keep``, each host reads its share to the end.

    Args:
        order: the order of all ranks. A single rank reads the whole share.
        share: the number of the share.
        samples: the number of samples in each share.

    Raises:
        ConfigError: the ranks cannot be divided among the shares.
    """
    if order.world_size == 1:
        return order
    ranks_per_host, excess_ranks = divmod(order.world_size, len(samples))
    if excess_ranks or order.rank // ranks_per_host != share:
        raise ConfigError(
            f"rank {order.rank} of {order.world_size} cannot read share {share} of {len(samples)}: "
            "each host needs the same number of ranks, and the ranks of host 0 come first"
        )
    # For each host, the position of its first sample in a step of all ranks. The next host's
    # position follows the host's samples, so that the differences are the samples of each host.
    host_starts = []
    for first_rank in range(0, order.world_size, ranks_per_host):
        slice_of_first_rank = _slice_of_rank(order.step_samples, first_rank, order.world_size)
        host_starts.append(slice_of_first_rank.start)
    host_batches = np.diff([*host_starts, order.step_samples])
    steps = None
    if order.even == "drop":
        steps = int(np.min(np.array(samples) // host_batches))
    elif order.even == "pad":
        steps = int(np.max(-(-np.array(samples) // host_batches)))
    host_batch = int(host_batches[share])
    return replace(
        order,
        rank=order.rank % ranks_per_host,
        world_size=ranks_per_host,
        global_batch=host_batch if order.global_batch else None,
        start=order.start // order.step_samples * host_batch,
        steps=steps,
    )


def order_from_start(order: Order, shares: Sequence[int]) -> Order:
    """Return the order with a start at which ranks can continue.

    If nothing remains of the epoch after the start, the start becomes the beginning of the next
    epoch. Otherwise the order itself is returned.

    Args:
        order: the order of all ranks.
        shares: the number of samples in each share; the whole data set counts as one share.

    Raises:
        ConfigError: the start is beyond the end of the epoch; or ``even="drop"`` leaves no step in
            any epoch, because a share has fewer samples than its ranks take in a step.
    """
    host_orders = _host_orders(order, shares)
    full_steps = []
    samples_remain = False
    for samples, host_order in zip(shares, host_orders, strict=True):
        full_steps.append(samples // host_order.step_samples)
        samples_remain = samples_remain or len(_remaining(host_order, np.arange(samples))) > 0
    if order.even == "drop" and not min(full_steps):
        raise ConfigError(
            f"even='drop' leaves no step in an epoch: all ranks take {order.step_samples:,} "
            f"samples in a step, of {' + '.join(f'{samples:,}' for samples in shares)}; use "
            "smaller batches, or even='pad'"
        )
    if order.start > _max_steps(order, shares) * order.step_samples:
        raise ConfigError(
            f"start {order.start:,} is beyond the end of an epoch of {sum(shares):,} samples"
        )
    if order.start and not samples_remain:
        return replace(order, epoch=order.epoch + 1, start=0)
    return order


def end_of_epoch(order: Order, shares: Sequence[int]) -> int:
    """Return the ``start`` after which no sample of an epoch remains.

    With one share, it is the number of samples. With several shares, it is the number of samples in
    the steps of the host that makes most steps. The arguments are the same as for
    ``order_from_start``.
    """
    if len(shares) == 1:
        return shares[0]
    return _max_steps(order, shares) * order.step_samples


def _max_steps(order: Order, shares: Sequence[int]) -> int:
    """Return how many steps it takes to read the share that needs most. The last may be smaller."""
    steps = []
    for samples, host_order in zip(shares, _host_orders(order, shares), strict=True):
        steps.append(-(-samples // host_order.step_samples))
    return max(steps)


def _host_orders(order: Order, shares: Sequence[int]) -> list[Order]:
    """Return the order within the share of each host, for the first rank of that host."""
    if len(shares) == 1:
        return [order]
    ranks_per_host = order.world_size // len(shares)
    orders = []
    for share in range(len(shares)):
        first_rank = replace(order, rank=share * ranks_per_host)
        orders.append(order_in_share(first_rank, share, shares))
    return orders


def samples_of_worker(numbers: Integers, batch: int, worker: int, workers: int) -> Integers:
    """Return the samples that a worker process reads: every ``workers``-th batch of its rank.

    Args:
        numbers: the numbers of the rank's samples, in their order.
        batch: the number of samples in a batch of the rank.
        worker: the number of the worker, from 0.
        workers: the number of workers.
    """
    if workers == 1:
        return numbers
    batch_numbers = np.arange(len(numbers)) // batch
    samples: Integers = numbers[batch_numbers % workers == worker]
    return samples


def mixed_by_buffer(
    order: Order, items: Iterable[Item], size: int, epoch: int, worker: int = 0
) -> Iterator[Item]:
    """Shuffle a stream of items through a buffer.

    Each item that leaves the buffer is drawn at random from the whole buffer, and the next item of
    the stream takes its slot. An item can therefore leave any number of positions later than it
    came, but at most ``size`` positions earlier.

    Args:
        order: the seed of the draws.
        items: the stream.
        size: items in the buffer, at least 1.
        epoch: the number of the epoch. Each epoch has other draws.
        worker: the number of the worker process that reads the stream. Each worker has other draws.
    """
    rng = np.random.default_rng((order.seed, epoch, worker, _BUFFER_KEY))
    buffer: list[Item] = []
    for item in items:
        if len(buffer) < size:
            buffer.append(item)
            continue
        slot = int(rng.integers(size))
        leaving = buffer[slot]
        buffer[slot] = item
        yield leaving
    for slot in rng.permutation(len(buffer)).tolist():
        yield buffer[slot]


def framework_seed(order: Order, epoch: int, part: int = 0) -> int:
    """Return a seed for the random numbers of a framework, from 1 to 2^31 - 2.

    Args:
        order: the seed from which the new one is computed.
        epoch: the number of the epoch, on which the seed depends.
        part: the number of a part of the epoch that needs a seed of its own, such as a file.
    """
    rng = np.random.default_rng((order.seed, epoch, part, _FRAMEWORK_KEY))
    return int(rng.integers(1, 2**31 - 1))


def _permutation(order: Order, count: int, *key: int) -> Integers:
    """Return the numbers from 0 to ``count - 1``, in random order if the order is shuffled.

    ``key`` follows the seed in the key of the random generator.
    """
    if not order.shuffle:
        return np.arange(count)
    return np.random.default_rng((order.seed, *key)).permutation(count)


def _shuffled_shard(
    order: Order, samples: range, epoch: int, shard: int, run_samples: int
) -> Integers:
    """Return the numbers of a shard's samples in the order in which an epoch reads them."""
    if not order.shuffle:
        return np.arange(samples.start, samples.stop)
    rng = np.random.default_rng((order.seed, epoch, shard))
    runs = -(-len(samples) // run_samples)
    positions = np.arange(runs * run_samples).reshape(runs, run_samples)
    shuffled = rng.permuted(positions[rng.permutation(runs)], axis=1).ravel()
    # All runs have ``run_samples`` positions here. Remove those beyond the end of the shard.
    return samples.start + shuffled[shuffled < len(samples)]


def _slice_of_rank(samples: int, rank: int, world_size: int) -> range:
    """Return the positions of a rank's samples in a step of ``samples`` samples of all ranks."""
    per_rank, excess = divmod(samples, world_size)
    # The first ranks have one sample more than the others.
    start = rank * per_rank + min(rank, excess)
    return range(start, start + per_rank + (rank < excess))


def _remaining(order: Order, sequence: Integers) -> Integers:
    """Return the samples of an epoch's ``sequence`` that remain for all ranks after the start.

    If all ranks make equal steps, the samples are cut to full global batches (``drop``), or filled
    up to them with samples from the beginning of the epoch (``pad``).
    """
    remaining = sequence[order.start :]
    if order.even == "keep":
        return remaining
    steps = len(remaining) // order.step_samples
    if order.steps is not None:
        steps = max(0, order.steps - order.start // order.step_samples)
    elif order.even == "pad":
        steps = -(-len(remaining) // order.step_samples)
    missing = steps * order.step_samples - len(remaining)
    if missing <= 0:
        return remaining[: steps * order.step_samples]
    return np.concatenate([remaining, np.resize(sequence, missing)])
