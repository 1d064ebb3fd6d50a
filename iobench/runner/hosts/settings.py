"""The settings of one host: its number, the number of hosts, and the address of the rendezvous."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dataprep.config.files import parse_settings
from dataprep.config.shard_config import store_options
from dataprep.errors import ConfigError
from dataprep.job.parts import Part
from dataprep.stores import StoreOptions


@dataclass(frozen=True, slots=True)
class HostSettings:
    """The settings of one host in a run of several hosts.

    Attributes:
        host: the number of this host, from 0.
        hosts: the number of hosts.
        rendezvous: the folder or bucket through which they communicate.
        store: the options of the store of the rendezvous.
        wait_s: how long a host waits until the others have joined, and how long host 0 waits until
            a host is prepared for a trial, in seconds.
        counts: smaller numbers of hosts on which each trial is measured as well, ascending.
    """

    host: int
    hosts: int
    rendezvous: str
    store: StoreOptions
    wait_s: float
    counts: tuple[int, ...] = ()


def host_settings(
    host: int | None,
    hosts: int | None,
    rendezvous: str | None,
    store_settings: Sequence[str],
    wait_s: float,
    counts: str | None = None,
) -> HostSettings | None:
    """The settings from the command line and the environment; None for a single host.

    Args:
        host: the number of this host, from 0. If ``host`` and ``hosts`` are both None, the
            environment variables of Slurm, torchrun, MPI, an AWS Batch array or an Indexed Job of
            Kubernetes decide.
        hosts: the number of hosts.
        rendezvous: a folder or an ``s3://`` prefix; None for a single host.
        store_settings: ``KEY=VALUE`` for options of the store of the rendezvous.
        wait_s: as in ``HostSettings``.
        counts: smaller numbers of hosts, separated by commas.

    Raises:
        ConfigError: an option has no valid value, the options contradict each other, or the number
            of the host or of the hosts is unknown.
    """
    if rendezvous is None:
        if store_settings or counts:
            raise ConfigError(
                "--rendezvous-set and --host-counts need --rendezvous: name where the hosts meet"
            )
        if (hosts or 1) > 1 or host:
            raise ConfigError(
                "several hosts need --rendezvous: a folder that all hosts share, or an s3:// prefix"
            )
        return None
    part = _this_host(host, hosts)
    if part.count == 1:
        return None
    store_keys = {f"store.{key}": value for key, value in parse_settings(store_settings).items()}
    return HostSettings(
        host=part.number,
        hosts=part.count,
        rendezvous=rendezvous,
        store=store_options(store_keys),
        wait_s=wait_s,
        counts=_smaller_counts(counts or "", part.count),
    )


def _smaller_counts(text: str, hosts: int) -> tuple[int, ...]:
    """The numbers of hosts in ``--host-counts``, ascending, without the number of all hosts.

    The number of all hosts is left out, since each trial is measured on all hosts in any case.

    Raises:
        ConfigError: the text has another word than a number from 1 to ``hosts``.
    """
    counts = set()
    for word in text.split(","):
        if not word:
            continue
        if not word.strip().isdecimal() or not 1 <= int(word) <= hosts:
            raise ConfigError(
                f"--host-counts {text}: give numbers from 1 to {hosts}, separated by commas"
            )
        counts.add(int(word))
    return tuple(sorted(counts - {hosts}))


def _this_host(host: int | None, hosts: int | None) -> Part:
    """The number of this host and the number of hosts, from the options or the environment.

    Raises:
        ConfigError: one of the options is missing, the number of the host is out of range, or the
            environment has neither number.
    """
    if host is not None and hosts is not None:
        if not 0 <= host < hosts:
            raise ConfigError(
                f"--host {host} of --hosts {hosts}: hosts are counted from 0 to {hosts - 1}"
            )
        return Part(host, hosts)
    if host is not None or hosts is not None:
        missing = "--hosts" if hosts is None else "--host"
        raise ConfigError(f"{missing} is missing: give --hosts N and --host I, or neither of them")
    try:
        return Part.parse("auto", "--host")
    except ConfigError:
        raise ConfigError(
            "--rendezvous: this process was started by none of Slurm (srun), torchrun, MPI, an AWS "
            "Batch array and an Indexed Job of Kubernetes: give --hosts N and --host I, with I "
            "from 0"
        ) from None
