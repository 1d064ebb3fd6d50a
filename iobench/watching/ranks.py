"""Which process of a job of several this is, as its launcher says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

# torchrun, then Open MPI (Horovod), then Slurm's srun.
_NAMES = (
    ("RANK", "WORLD_SIZE", "LOCAL_RANK"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"),
)


class Rank(NamedTuple):
    """``local`` counts the processes of one machine."""

    rank: int = 0
    world_size: int = 1
    local: int = 0


def rank_of(environment: Mapping[str, str]) -> Rank:
    """PURE. The first launcher's word that is whole; a process alone without one."""
    for names in _NAMES:
        rank, world, local = (environment.get(name, "") for name in names)
        if _is_number(rank) and _is_number(world) and int(world) > 1:
            return Rank(int(rank), int(world), int(local) if _is_number(local) else int(rank))
    return Rank()


def _is_number(text: str) -> bool:
    """Whether these are digits as launchers write them; Python takes many others for such."""
    return text.isascii() and text.isdigit() and len(text) < 10
