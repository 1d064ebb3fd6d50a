"""PURE. The rate at which each part of a host supplies samples: its CPUs, disk, store and network.

The store is the object store from which the host reads. The rates are in samples/s. They come from
measurements of this host, and from known limits of its links.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dataprep.message_text import counted
from iobench.analysis.bandwidth_limits import network_limit, target_limit
from iobench.analysis.capacity import Capacities, LoaderRate, StorageRead
from iobench.analysis.loader_setting import setting_of
from iobench.analysis.loops import Loop, Source
from iobench.analysis.repeats import data_name
from iobench.results.result import Result
from iobench.results.wording import params_words

_NOT_MEASURED = {
    "CPUs": "not measured (dataprep init, then iobench run configs/bench/loaders.yaml)",
    "disk": "not measured (dataprep init, then iobench run configs/bench/disk.yaml)",
    "store": "not measured (dataprep init, then iobench run configs/bench/s3.yaml)",
    "network": "unknown: give limits.network_gbit_per_s",
}
"""The reason why the rate of a part is unknown."""


@dataclass(frozen=True, slots=True)
class Supply:
    """The rate that one part of a host can supply.

    Attributes:
        part: ``CPUs``, ``disk``, ``store`` or ``network``.
        samples_per_s: its rate; None if it is unknown.
        basis: where the rate comes from, or why it is unknown.
        object_bytes: the bytes of each object that was read; 0 if unknown, and for all parts but
            the store.
    """

    part: str
    samples_per_s: float | None
    basis: str
    object_bytes: float = 0.0


def host_supplies(result: Result, capacities: Capacities, loop: Loop | None) -> list[Supply]:
    """Return the rates of the CPUs, disk, store and network of this host.

    If the stored bytes of a sample are unknown, only the CPUs are returned, because the rates of
    all other parts are in bytes.

    Args:
        result: the run.
        capacities: the measured rates.
        loop: the loop whose samples are supplied; None if only loaders were measured.
    """
    cpus = _cpu_supply(capacities, loop)
    sample_bytes = supplied_sample_bytes(capacities, loop)
    if sample_bytes is None:
        return [cpus]
    probed_disk = capacities.disks.get(supplied_data(capacities, loop))
    return [
        cpus,
        _disk_supply(result, capacities, probed_disk, sample_bytes),
        _storage_supply(capacities, "store", capacities.store, sample_bytes),
        _network_supply(result, sample_bytes),
    ]


def supplied_sample_bytes(capacities: Capacities, loop: Loop | None) -> float | None:
    """Return the mean stored bytes of a sample of the data that are supplied; None if unknown.

    Args:
        capacities: the measured rates.
        loop: the loop whose samples are supplied; None if only loaders were measured.
    """
    return capacities.sample_bytes.get(supplied_data(capacities, loop))


def supplied_data(capacities: Capacities, loop: Loop | None) -> str:
    """Return the name of the data with which the CPUs' rate was measured; empty if unknown.

    Args:
        capacities: the measured rates.
        loop: the loop whose samples are supplied; None if only loaders were measured.
    """
    loader = _fastest_loader(capacities, loop)
    if loader is not None:
        return loader.setting.data
    if loop is not None and loop.farthest and (loop.rate("warm") or loop.rate()):
        return data_name(loop.params)
    return ""


def parts_used(loop: Loop | None) -> tuple[str, ...]:
    """Return the parts of a host that the loop's samples pass through.

    Without a loop, samples are assumed to come from the disk.
    """
    if loop is not None and loop.farthest == "store":
        return ("CPUs", "store", "network")
    return ("CPUs", "disk")


def _fastest_loader(capacities: Capacities, loop: Loop | None) -> LoaderRate | None:
    """Return the fastest loader that reads from memory and does the loop's work on each image.

    Without a loop, it may do any work. None if no such loader was measured.
    """
    work = setting_of(loop.params, "warm").work if loop is not None else None
    return capacities.fastest_loader(work)


def _cpu_supply(capacities: Capacities, loop: Loop | None) -> Supply:
    """Return the rate of the CPUs.

    It is the rate of the fastest loader that reads from memory and does the loop's work. Without
    such a loader, it is the rate of the loop itself, from memory if possible, as a lower bound.
    """
    loader = _fastest_loader(capacities, loop)
    if loader is not None:
        basis = params_words("loader", loader.params).removeprefix("loader ")
        return Supply("CPUs", loader.samples_per_s, basis)
    if loop is not None and loop.farthest:
        rate = loop.rate("warm") or loop.rate()
        if rate is not None:
            return Supply("CPUs", rate.median, f"the rate of {loop.group}: a lower bound")
    return Supply("CPUs", None, _NOT_MEASURED["CPUs"])


def _storage_supply(
    capacities: Capacities,
    part: Literal["disk", "store"],
    probed: StorageRead | None,
    sample_bytes: float,
) -> Supply:
    """Return the rate of a disk or store: by the loader ``raw`` or a probe, whichever is faster.

    Args:
        capacities: the measured rates.
        part: the part.
        probed: the fastest read of the part's probe; None if it was not probed.
        sample_bytes: mean stored bytes of a sample.
    """
    source: Source = "cold" if part == "disk" else "store"
    supply = Supply(part, None, _NOT_MEASURED[part])
    raw = capacities.fastest_raw_rate(source)
    if raw is not None:
        setting, samples_per_s = raw
        basis = f"loader raw over {setting.data}, {counted(setting.all_workers, 'worker')}"
        supply = Supply(part, samples_per_s, basis)
    if probed is not None:
        samples_per_s = probed.mb_per_s * 1e6 / sample_bytes
        if samples_per_s > (supply.samples_per_s or 0):
            supply = Supply(part, samples_per_s, probed.description, probed.object_bytes)
    return supply


def _disk_supply(
    result: Result, capacities: Capacities, probed: StorageRead | None, sample_bytes: float
) -> Supply:
    """Return the rate of the disk. A rate of the probe is at most the limit of the disk's link.

    Args:
        result: the run.
        capacities: the measured rates.
        probed: the fastest read of the disk probe; None if the disk of the data was not probed.
        sample_bytes: mean stored bytes of a sample.
    """
    supply = _storage_supply(capacities, "disk", probed, sample_bytes)
    is_probed = probed is not None and supply.basis == probed.description
    if probed is None or not is_probed or not supply.samples_per_s:
        return supply
    # The rate is that of the probe, whose disk may have a known limit.
    limit = target_limit(probed.target, result)
    if limit is None:
        return supply
    samples_per_s = limit.mb_per_s * 1e6 / sample_bytes
    if samples_per_s < supply.samples_per_s:
        return Supply("disk", samples_per_s, f"{limit.part}: {limit.mb_per_s:,.0f} MB/s")
    return supply


def _network_supply(result: Result, sample_bytes: float) -> Supply:
    """Return the lowest known limit of the network as a rate."""
    limit = network_limit(result)
    if limit is None:
        return Supply("network", None, _NOT_MEASURED["network"])
    basis = f"{limit.part}: {limit.mb_per_s:,.0f} MB/s ({limit.source})"
    return Supply("network", limit.mb_per_s * 1e6 / sample_bytes, basis)
