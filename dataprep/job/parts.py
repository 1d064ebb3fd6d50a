"""Parts of a job or of a data set, as ``--part I/N`` and ``--host I/N`` name them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import NamedTuple

from dataprep.errors import ConfigError

_PART_PATTERN = re.compile(r"([0-9]{1,6})/([0-9]{1,6})")
_MAX_PARTS = 999_999  # six digits, as in the pattern
# Pairs of environment variables: the number of this process or host, and the number of processes
# or hosts. ``auto`` reads the first pair whose variables are both set. torchrun comes before
# Kubernetes, because it may start several processes in a pod.
_BATCH_ARRAY = ("AWS_BATCH_JOB_ARRAY_INDEX", "AWS_BATCH_JOB_ARRAY_SIZE")
_KUBERNETES_JOB = ("JOB_COMPLETION_INDEX", "JOB_COMPLETIONS")
_LAUNCHER_VARIABLES = {
    "--part": (
        _BATCH_ARRAY,
        ("RANK", "WORLD_SIZE"),
        ("SLURM_PROCID", "SLURM_NTASKS"),
        _KUBERNETES_JOB,
    ),
    "--host": (
        _BATCH_ARRAY,
        ("GROUP_RANK", "GROUP_WORLD_SIZE"),
        ("SLURM_NODEID", "SLURM_NNODES"),
        # MPI has no variables for hosts. With one rank on each host, ranks are hosts.
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        ("PMI_RANK", "PMI_SIZE"),
        _KUBERNETES_JOB,
    ),
}


class Part(NamedTuple):
    """One host's share of a job, as ``--part I/N`` gives it.

    Part I of N has the shards I, I + N, I + 2N and so on. Two parts therefore have equally many
    shards, or differ by one shard.

    Attributes:
        number: the number of the part, from 0.
        count: the number of parts.
    """

    number: int
    count: int  # type: ignore[assignment]  # hides tuple.count

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    @classmethod
    def parse(cls, text: str, option: str = "--part") -> Part:
        """Read ``I/N``, such as ``0/4`` to ``3/4``, or ``auto``.

        ``auto`` takes both numbers from the environment variables of the launcher, such as an AWS
        Batch array, torchrun, Slurm or an Indexed Job of Kubernetes.

        Args:
            text: the value of the option.
            option: the name of the option: ``--part`` or ``--host``. For ``auto``, each of the two
                reads variables of its own.

        Raises:
            ConfigError: the text is neither ``I/N`` nor ``auto``, or no launcher has set the
                variables for ``auto``.
        """
        problem = (
            f"{option} {text!r}: write I/N with I from 0 to N-1 and N at most {_MAX_PARTS:,}, as "
            f"in {option} 0/4 for the first of four"
        )
        if text == "auto":
            index, count = _launcher_variables(option)
            text = f"{os.environ[index]}/{os.environ[count]}"
            problem = (
                f"{option} auto: {index} is {os.environ[index]!r} and {count} is "
                f"{os.environ[count]!r}: the first must be a number from 0 on, below the second, "
                f"and the second at most {_MAX_PARTS:,}: correct them, or give {option} I/N"
            )
        match = _PART_PATTERN.fullmatch(text.strip())
        if not match or not int(match[1]) < int(match[2]):
            raise ConfigError(problem)
        return cls(int(match[1]), int(match[2]))

    def of(self, shards: Iterable[int]) -> list[int]:
        """Return the numbers in ``shards`` that belong to this part, in the same order."""
        return [shard for shard in shards if shard % self.count == self.number]


def _launcher_variables(option: str) -> tuple[str, str]:
    """Return the names of the two environment variables that ``auto`` reads for an option.

    Raises:
        ConfigError: of each pair, at least one variable is not set.
    """
    for index, count in _LAUNCHER_VARIABLES[option]:
        if {index, count} <= os.environ.keys():
            return index, count
    index, count = _KUBERNETES_JOB
    if index in os.environ:
        raise ConfigError(
            f"{option} auto: Kubernetes sets {index}, but not the number of indexes: set {count} "
            f"to spec.completions in the env of the container (docs/kubernetes.md), or give "
            f"{option} I/N"
        )
    if count in os.environ:
        raise ConfigError(
            f"{option} auto: {count} is set, but not {index}, which Kubernetes sets in the pods of "
            f"an Indexed Job: set spec.completionMode to Indexed (docs/kubernetes.md), or give "
            f"{option} I/N"
        )
    raise ConfigError(
        f"{option} auto: this process was started by none of Slurm (srun), torchrun, an AWS Batch "
        f"array and an Indexed Job of Kubernetes: give {option} I/N"
    )
