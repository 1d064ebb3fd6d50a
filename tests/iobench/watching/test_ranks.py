"""Which process of several this is."""

from __future__ import annotations

import pytest

from iobench.watching.ranks import Rank, rank_of


@pytest.mark.parametrize(
    ("environment", "rank"),
    [
        ({}, Rank(0, 1, 0)),
        ({"RANK": "0", "WORLD_SIZE": "1"}, Rank(0, 1, 0)),
        ({"RANK": "9", "WORLD_SIZE": "16", "LOCAL_RANK": "1"}, Rank(9, 16, 1)),
        ({"RANK": "3", "WORLD_SIZE": "4"}, Rank(3, 4, 3)),
        ({"RANK": "three", "WORLD_SIZE": "4"}, Rank(0, 1, 0)),
        ({"RANK": "\u00b2", "WORLD_SIZE": "4"}, Rank(0, 1, 0)),
        ({"RANK": "1", "WORLD_SIZE": "4" * 5000}, Rank(0, 1, 0)),
        ({"RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "\u0661"}, Rank(1, 4, 1)),
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}, Rank(1, 2, 1)),
        ({"SLURM_PROCID": "5", "SLURM_NTASKS": "8", "SLURM_LOCALID": "1"}, Rank(5, 8, 1)),
        (
            {"RANK": "1", "WORLD_SIZE": "2", "SLURM_PROCID": "0", "SLURM_NTASKS": "8"},
            Rank(1, 2, 1),
        ),
    ],
)
def test_launchers_say_it_in_the_environment(environment: dict[str, str], rank: Rank) -> None:
    """torchrun before MPI before Slurm; a process alone has no rank."""
    assert rank_of(environment) == rank
