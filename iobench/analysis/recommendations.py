"""PURE. The catalogue of recommendations: the sentence, the setting and the keys of each action.

Change the wording of a recommendation here. There is a function for each action, which returns the
recommendation without a gain. Its argument ``key`` is the dotted key of the loader or loop in the
config, such as ``training.0``.

``iobench.analysis.recommendation_choice`` adds the gain if it was measured or can be predicted.
``iobench.analysis.remedies`` has the actions that help against each cause. Remarks beside findings,
such as ``set repeats: 6``, are in ``iobench.analysis.finding_remarks``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from shlex import quote
from typing import Any, Literal

from dataprep.formats import DEFAULT_FORMAT
from dataprep.message_text import counted
from iobench.analysis.worker_scaling import FEWEST_COUNTS
from iobench.results.statistics import Estimate

Basis = Literal["measured", "predicted", "not predicted"]


@dataclass(frozen=True, slots=True)
class Recommendation:
    """One change to a run's config, to its data or to the machine.

    Attributes:
        setting: the setting that changes, such as ``workers``.
        action: what to do, as a sentence without a full stop.
        gain: the rate after the change / the rate after all recommendations before it; None if it
            was not predicted.
        basis: how the gain is known.
        rate: samples/s after the change; None if it was not predicted.
        limit: the part that limits the rate after the change.
        config: dotted keys of the run's config, with their new values.
        command: the command to run; empty if changing ``config`` is enough.
        code: the same change in a training script.
        value: the value of the setting after the change.
        now: its value before the change.
        why: the evidence for the gain, or the reason why none is predicted.
    """

    setting: str
    action: str
    gain: Estimate | None = None
    basis: Basis = "not predicted"
    rate: float | None = None
    limit: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)
    command: str = ""
    code: str = ""
    value: Any = None
    now: Any = None
    why: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the recommendation as ``result.json`` stores it."""
        return {**asdict(self), "config": dict(self.config)}


# The loader.


def use_workers(key: str, loader: str, workers: int, workers_now: int) -> Recommendation:
    """Change the number of loader workers.

    Args:
        key: the dotted key of the loader or loop in the config, such as ``training.0``.
        loader: the name of the loader.
        workers: the new number of workers of each device.
        workers_now: the number of workers in this run.
    """
    return Recommendation(
        "workers",
        f"Use {counted(workers, 'loader worker')} instead of {workers_now}",
        config={f"{key}.workers": workers},
        code=_data_loader(loader, f"num_workers={workers}"),
        value=workers,
        now=workers_now,
    )


def use_fewer_workers(key: str, workers: int, workers_now: int | None) -> Recommendation:
    """Use one loader worker for each CPU, where there are far more workers than CPUs."""
    return Recommendation(
        "workers",
        f"Use {counted(workers, 'loader worker')}, one for each CPU",
        config={f"{key}.workers": workers},
        value=workers,
        now=workers_now,
    )


def prefetch_batches(key: str, loader: str, batches: int, batches_now: int) -> Recommendation:
    """Change the number of batches that each worker prepares ahead."""
    return Recommendation(
        "prefetch",
        f"Prefetch {batches} batches for each worker instead of {batches_now}",
        config={f"{key}.prefetch": batches},
        code=_data_loader(loader, f"prefetch_factor={batches}"),
        value=batches,
        now=batches_now,
    )


def pin_memory(key: str, loader: str) -> Recommendation:
    """Copy batches to the GPU from pinned memory."""
    return Recommendation(
        "pin_memory",
        "Copy batches from pinned memory",
        config={f"{key}.pin_memory": True},
        code=_data_loader(loader, "pin_memory=True"),
        value=True,
        now=False,
    )


def normalise_on_device(key: str) -> Recommendation:
    """Hand over images as uint8 and normalise them on the device."""
    return Recommendation(
        "normalise",
        "Hand over images as uint8 and normalise them on the device: a quarter of the bytes",
        config={f"{key}.normalise_on": "device"},
        code="dataprep.normalise(images)",
        value="device",
        now="host",
    )


def leave_out_augmentation(key: str, name: str) -> Recommendation:
    """Leave out an augmentation: ``colour_jitter`` or ``pca_noise``."""
    augmentation = name.replace("_", " ")
    return Recommendation(
        name,
        f"Leave out {augmentation}",
        config={f"{key}.{name}": False},
        value=False,
        now=True,
    )


def read_in_sequence(key: str, loader_now: str) -> Recommendation:
    """Read shards in sequence (``torch-iterable``) instead of single records (``torch-map``)."""
    return Recommendation(
        "loader",
        "Read shards in sequence instead of single records",
        config={f"{key}.loader": "torch-iterable"},
        code="dataprep.to_torch(dataset, iterable=True, batch_size=...)",
        value="torch-iterable",
        now=loader_now,
    )


# The data.


def store_smaller_images(
    side_px: int,
    command: str,
    *,
    side_px_now: int | None = None,
    also_pack: bool = False,
    config: Mapping[str, Any] | None = None,
) -> Recommendation:
    """Store images with a shorter side.

    Args:
        side_px: the new short side in pixels.
        command: the command that writes the images.
        side_px_now: the short side of the stored images; None if they have their own sizes.
        also_pack: whether the command also packs the images into shards for the first time.
        config: keys of the run that read the new images.
    """
    action = f"Store images at {side_px} pixels"
    if side_px_now:
        action += f" instead of {side_px_now}"
    if also_pack:
        action += ", packed into shards"
    return Recommendation(
        "resize",
        action,
        config=config or {},
        command=command,
        value=side_px,
        now=side_px_now,
    )


def pack_into_shards(command: str, config: Mapping[str, Any] | None = None) -> Recommendation:
    """Pack images that are single files into shards."""
    return Recommendation(
        "sharding",
        "Pack the images into shards",
        config=config or {},
        command=command,
        value=True,
        now=False,
    )


def write_shards_of(
    size: str, size_now: str, command: str, config: Mapping[str, Any]
) -> Recommendation:
    """Write shards of another size, such as ``64MB``."""
    return Recommendation(
        "shard_size",
        f"Write shards of {size}",
        config=config,
        command=command,
        value=size,
        now=size_now,
    )


def copy_to_local_disk(
    data: Mapping[str, Any], config: Mapping[str, Any] | None = None
) -> Recommendation:
    """Copy shards from the object store to a local disk before training.

    Args:
        data: the section ``data`` of the run's config.
        config: keys of the run that read the copy.
    """
    return Recommendation(
        "stage",
        "Copy the shards to a local disk before training",
        config=config or {},
        command=f"dataprep stage {data.get('shards') or 'OUTPUT'} DEST",
        value="local disk",
        now="store",
    )


def shard_command(
    data: Mapping[str, Any],
    *,
    record_format: str = DEFAULT_FORMAT,
    side_px: int | None = None,
    shard_size: str = "",
) -> str:
    """Return the command that makes shards of the run's images.

    Args:
        data: the section ``data`` of the run's config.
        record_format: the format of the records.
        side_px: the short side of the images in pixels; None keeps their sizes.
        shard_size: the size of a shard, such as ``64MB``; empty for the default.
    """
    command = f"dataprep shard --source {data.get('source') or 'SOURCE'} --output OUTPUT"
    if record_format != DEFAULT_FORMAT:
        command += f" --format {record_format}"
    if side_px:
        command += f" --size {side_px}"
    if shard_size:
        command += f" --shard-size {shard_size}"
    return command


# The machine and how the job is run.


def use_more_cpus(cpus: int, cpus_now: float, *, is_enough: bool) -> Recommendation:
    """Use a machine with more CPUs.

    Args:
        cpus: the predicted number of CPUs.
        cpus_now: the number of CPUs of this machine.
        is_enough: whether ``cpus`` are enough to feed the device. If not, the device needs more
            CPUs than can be predicted.
    """
    number = f"about {cpus} for this device" if is_enough else f"{cpus} or more"
    return Recommendation(
        "processors",
        f"Use a machine with more CPUs: {number} instead of {cpus_now:g}",
        value=cpus,
        now=cpus_now,
    )


def use_unknown_number_of_more_cpus() -> Recommendation:
    """Use a machine with more CPUs, if the number of CPUs cannot be predicted."""
    return Recommendation(
        "processors",
        "Use a machine with more CPUs",
        why=f"a prediction needs {FEWEST_COUNTS} measured numbers of workers up to the number of "
        "CPUs",
    )


def use_faster_disk() -> Recommendation:
    """Use faster disks."""
    return Recommendation("faster_disk", "Read from a faster disk, or from several disks at once")


def move_store_nearer() -> Recommendation:
    """Move the data nearer to the machine, or use a faster link to the store."""
    return Recommendation(
        "nearer_store",
        "Keep a copy of the data nearer to the machine, or use a faster link to the store",
    )


def send_fewer_requests() -> Recommendation:
    """Reduce the number of requests that a store gets."""
    return Recommendation(
        "fewer_requests",
        "Use fewer workers and larger reads, so that the store gets fewer requests",
    )


def stop_other_programs() -> Recommendation:
    """Stop programs that use the CPUs which the loop needs."""
    return Recommendation(
        "other_programs", "Stop the other programs on this machine, and measure again"
    )


def even_out_ranks() -> Recommendation:
    """Give the slowest rank the same resources as the other ranks."""
    return Recommendation(
        "even_ranks",
        "Give the slowest rank the CPUs, disk and network that the other ranks have; then try "
        "prefetch: 4",
    )


def lengthen_epochs() -> Recommendation:
    """Start epochs less often."""
    return Recommendation(
        "longer_epochs",
        "Make epochs longer: use more images, or pass over the data several times in one epoch",
    )


def read_less_ahead() -> Recommendation:
    """Do less before the first batch of an epoch."""
    return Recommendation(
        "smaller_windows",
        "Read less before the first batch: use smaller windows and shuffle buffers",
    )


# Measurements that are missing.


def measure_with_more_images() -> Recommendation:
    """Measure for longer, so that the first start of the workers weighs less."""
    return Recommendation(
        "more_images",
        "Measure with more images, so that the first start is a smaller part of the time",
        why="a job has its first start only once",
    )


def measure_parts(key: str) -> Recommendation:
    """Measure the parts of the input separately."""
    return Recommendation(
        "measure_parts",
        "Measure which part of the input is slow",
        config={f"{key}.inputs": "[synthetic, warm, cold]"},
    )


def measure_worker_counts(counts: Sequence[int], loaders: str) -> Recommendation:
    """Measure a loader with several numbers of workers.

    Args:
        counts: at least two numbers of workers, in ascending order.
        loaders: the config of the loader, as ``--set`` takes it.
    """
    all_but_last = ", ".join(map(str, counts[:-1]))
    return Recommendation(
        "measure_workers",
        f"Measure the loader with {all_but_last} and {counts[-1]} workers",
        command=f"iobench run CONFIG --set {quote(loaders)} --set more_workers_gain=null",
        value=list(counts),
        why=f"a prediction needs {FEWEST_COUNTS} measured numbers of workers",
    )


def probe_store(uri: str, endpoint_url: str | None, client: str) -> Recommendation:
    """Measure whether latency or bandwidth limits a store.

    Args:
        uri: the address of the data.
        endpoint_url: the endpoint of the store; None for the default of its region.
        client: the client that the probe uses.
    """
    target = f"label: data, uri: {uri.rstrip('/')}"
    if endpoint_url:
        target += f", store: {{endpoint_url: {endpoint_url}}}"
    probe = (
        f"object_store={{targets: [{{{target}}}], clients: [{client}], operations: [get], "
        "object_bytes: [1MB, 8MB], connections: [1, 4, 16, 64]}"
    )
    return Recommendation(
        "probe_store",
        "Measure whether latency or bandwidth limits the store",
        command=f"iobench run CONFIG --set {quote(probe)}",
        why="the probe varies object_store.object_bytes and object_store.connections",
    )


def config_value(value: Any) -> str:
    """Return a value of the config in YAML, as ``--set`` takes it: ``true`` for True."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _data_loader(loader: str, argument: str) -> str:
    """Return the call of PyTorch's ``DataLoader``; empty for loaders of other frameworks."""
    return f"DataLoader({argument})" if loader.startswith("torch") else ""
