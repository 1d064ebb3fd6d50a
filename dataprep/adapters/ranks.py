"""Which rank reads: as the caller says, as torch.distributed says, or a warning that none is known.

A training program that several processes run, and that does not say its rank, reads everything in
each of them.
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
    """The rank that the caller gave; without one, that of torch.distributed, or of a lone process.

    Args:
        rank, world_size: the caller's arguments.
        reader: the call, for messages, such as ``to_tf``.
        from_torch: whether to take the rank from torch.distributed; otherwise a warning says that
            this process reads everything.

    Raises:
        ConfigError: there is a rank without the number of ranks, or the other way round.
    """
    if rank is not None and world_size is not None:
        return Rank(rank, world_size)
    if rank is not None or world_size not in (None, 1):
        raise ConfigError(
            f"{reader}: rank {rank} and world_size {world_size}: give both, or neither of them"
        )
    if world_size == 1:
        return Rank()
    distributed = _of_torch_distributed()
    if distributed is not None and from_torch:
        _log.info(
            "%s reads as rank %d of %d, from torch.distributed; give rank=0, world_size=1 to read "
            "everything",
            reader,
            *distributed,
        )
        return distributed
    processes = distributed.world_size if distributed else _world_size_of_environment()
    if processes > 1:
        cause = "torch.distributed has" if distributed else "the variable WORLD_SIZE says"
        warnings.warn(
            f"{reader} reads all samples in this process, but {cause} {processes:,} processes: "
            + _cure(reader, from_torch=from_torch),
            stacklevel=3,
        )
    return Rank()


def _cure(reader: str, *, from_torch: bool) -> str:
    cure = "give rank=… and world_size=…"
    if from_torch:
        cure += ", or call torch.distributed.init_process_group before"
    elif reader == "to_torch":
        cure += ", or read through a DistributedSampler"
    return f"{cure}; rank=0, world_size=1 reads everything without this warning"


def _of_torch_distributed() -> Rank | None:
    """The rank in the default group of torch.distributed, if torch was imported and has one."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available():
        return None
    if not distributed.is_initialized():
        return None
    return Rank(distributed.get_rank(), distributed.get_world_size())


def _world_size_of_environment() -> int:
    """The number of processes that torchrun and others set for each process that they start."""
    try:
        return int(os.environ.get("WORLD_SIZE", "1"))
    except ValueError:
        return 1
