"""Find the rank of this process: from the caller, or from torch.distributed.

If several processes run a training program that does not set the rank, each of them reads all
samples, and gets a warning.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from typing import NamedTuple

from dataprep.errors import ConfigError

_log = logging.getLogger(__name__)


class Rank(NamedTuple):
    """The number of a process among ``world_size`` processes that train together."""

    rank: int = 0
    world_size: int = 1


def rank_of(
    rank: int | None, world_size: int | None, reader: str, *, from_torch: bool = False
) -> Rank:
    """Return the caller's rank, the rank from torch.distributed, or the rank of a single process.

    Args:
        rank: the caller's argument ``rank``.
        world_size: the caller's argument ``world_size``.
        reader: the name of the calling function for messages, such as ``to_tf``.
        from_torch: whether to take the rank from torch.distributed. Otherwise a warning says that
            this process reads all samples, if there are several processes.

    Raises:
        ConfigError: ``rank`` is given without ``world_size``, or a ``world_size`` other than 1 is
            given without ``rank``.
    """
    if rank is not None and world_size is not None:
        return Rank(rank, world_size)
    if rank is not None or world_size not in (None, 1):
        raise ConfigError(
            f"{reader}: rank {rank} and world_size {world_size}: give both, or neither of them"
        )
    if world_size == 1:
        return Rank()
    distributed = _rank_in_torch_distributed()
    if distributed is not None and from_torch:
        _log.info(
            "%s reads as rank %d of %d, from torch.distributed; give rank=0, world_size=1 to read "
            "everything",
            reader,
            *distributed,
        )
        return distributed
    processes = distributed.world_size if distributed else _world_size_in_environment()
    if processes > 1:
        cause = "torch.distributed has" if distributed else "the variable WORLD_SIZE says"
        warnings.warn(
            f"{reader} reads all samples in this process, but {cause} {processes:,} processes: "
            + _advice(reader, from_torch=from_torch),
            stacklevel=3,  # the caller of the reader
        )
    return Rank()


def _advice(reader: str, *, from_torch: bool) -> str:
    """Say how the processes can share the samples."""
    advice = "give rank=… and world_size=…"
    if from_torch:
        advice += ", or call torch.distributed.init_process_group before"
    elif reader == "to_torch":
        advice += ", or read through a DistributedSampler"
    return f"{advice}; rank=0, world_size=1 reads everything without this warning"


def _rank_in_torch_distributed() -> Rank | None:
    """Return the rank in the default group of torch.distributed; None if there is no group."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available():
        return None
    if not distributed.is_initialized():
        return None
    return Rank(distributed.get_rank(), distributed.get_world_size())


def _world_size_in_environment() -> int:
    """Return the number of processes that a launcher such as torchrun has set.

    Return 1 if no launcher has set it, or if the variable is not a number.
    """
    try:
        return int(os.environ.get("WORLD_SIZE", "1"))
    except ValueError:
        return 1
