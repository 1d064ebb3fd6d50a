"""Divide the shards of a split among hosts.

Each shard belongs to one share. The shards are assigned by size, the largest first. Each shard goes
to the host with the fewest bytes so far, so that the shares have similar sizes (Graham, "Bounds on
multiprocessing timing anomalies", SIAM Journal on Applied Mathematics 17, 1969). Every host
computes the same assignment without asking the others.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from dataprep.errors import ConfigError
from dataprep.job.parts import Part
from dataprep.message_text import counted
from dataprep.output.manifest import Manifest, Share

_MAX_LEFT_OUT = 0.02
"""If all hosts read equally many samples, some samples are left out. The user gets advice if they
are more than this fraction of all samples."""

_SHARDS_PER_HOST = 50
"""The advised number of shards for each host. A shard more or less is then 2 % of a host's data."""


def assigned_shards(sizes: Sequence[int], hosts: int) -> list[list[int]]:
    """Divide shards among hosts by their sizes in bytes.

    Returns:
        For each host, the numbers of its shards, ascending.
    """
    shares: list[list[int]] = [[] for _ in range(hosts)]
    heap = [(0, host) for host in range(hosts)]
    # sorted keeps the order of shards with equal sizes, so that every host gets the same result.
    largest_first = sorted(range(len(sizes)), key=lambda number: -sizes[number])
    for number in largest_first:
        host_bytes, host = heap[0]
        shares[host].append(number)
        heapq.heapreplace(heap, (host_bytes + sizes[number], host))
    return [sorted(share) for share in shares]


def share_of_host(manifest: Manifest, sizes: Sequence[int], host: Part) -> Share:
    """Return the share of a host, which lists the shards of all hosts.

    Args:
        manifest: the manifest of the split.
        sizes: the bytes of each shard, in all formats that are copied.
        host: the number of the host and the number of hosts.

    Raises:
        ConfigError: there are fewer shards than hosts.
    """
    if host.count > len(sizes):
        raise ConfigError(
            f"{manifest.split} has {counted(len(sizes), 'shard')}, too few for {host.count} hosts: "
            "copy the whole split (without --host), or make smaller shards"
        )
    shares = assigned_shards(sizes, host.count)
    return Share(
        number=host.number,
        count=host.count,
        samples=_samples_by_share(manifest, shares),
        shards=tuple(tuple(shard_numbers) for shard_numbers in shares),
        table=manifest.table,
    )


def _samples_by_share(manifest: Manifest, shares: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Return the number of samples in each share."""
    # In all formats, a shard has the same samples.
    first_format = next(iter(manifest.formats.values()))
    records = [shard.records for shard in first_format.shards]
    return tuple(sum(records[number] for number in share) for share in shares)


def advice_on_shares(share: Share, total_bytes: int, formats: int) -> str:
    """Return a warning with advice if the shares differ much in size; empty if they do not.

    Args:
        share: the share of one host, with the number of samples in each share.
        total_bytes: the bytes of all shards, in all formats together.
        formats: the number of formats.
    """
    if share.left_out <= _MAX_LEFT_OUT:
        return ""
    shard_bytes = total_bytes / formats / (share.count * _SHARDS_PER_HOST)
    # Rounded down to 0.1 MB. A smaller --shard-size than 1.2 MB is not advised.
    megabytes = max(1.2, shard_bytes // 1e5 / 10)
    return (
        f"warning: shares differ by more than {_MAX_LEFT_OUT:.0%}, since each has few shards: "
        f"shard with --shard-size {megabytes:g}MB for {share.count} hosts"
    )
