"""PURE. The setting of a loader: everything that decides how fast it reads and prepares samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from iobench.analysis.loops import Source
from iobench.analysis.repeats import data_name
from iobench.loaders.settings import ImageSettings
from iobench.results.trial import Params

_WORK_DEFAULTS: Mapping[str, Any] = {"decode": True, **ImageSettings().model_dump(), "item_s": 0.0}
"""The parameters that describe the work of a loader for each image, with their defaults. ``item_s``
is the time that the loader ``mock`` takes for an image."""

Work: TypeAlias = tuple[tuple[str, Any], ...]
"""The work of a loader for each image, as pairs of a parameter's name and its value."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of a loader, as it was measured or could be chosen.

    It is not ``LoaderSettings``, which are the keys of a loader in a config. A setting also has the
    source of the samples, but not the seed and the order.

    Attributes:
        loader: the name of the loader.
        data: the name of the data without its location, such as ``shards-16MB``.
        source: where the samples come from.
        work: the work for each image.
        workers: loader workers of each device.
        batch_size: samples in a batch.
        prefetch: batches that each worker prepares ahead.
        pin_memory: whether batches are copied to pinned memory.
        devices: number of devices.
    """

    loader: str
    data: str
    source: Source
    work: Work
    workers: int
    batch_size: int
    prefetch: int
    pin_memory: bool = False
    devices: int = 1

    @property
    def images(self) -> str:
        """The name of the data without the size of the shards, which does not change the images.

        ``shards-16MB`` gives ``shards``. ``shards-320px`` stays as it is, because it has smaller
        images than ``shards``.
        """
        return self.data if self.data.endswith("px") else self.packing

    # The functions of ``iobench.data.settings`` that split a name of data need a name with a
    # location, which ``data`` does not have.
    @property
    def packing(self) -> str:
        """How the images are stored: ``shards`` for ``shards-16MB`` and ``shards-320px``."""
        return self.data.partition("-")[0]

    @property
    def side_px(self) -> int | None:
        """The short side of the images if the name has it: 320 for ``shards-320px``."""
        size = self.data.partition("-")[2]
        return int(size.removesuffix("px")) if size.endswith("px") else None

    @property
    def all_workers(self) -> int:
        """Workers of all devices together."""
        return self.workers * self.devices

    @property
    def image_size(self) -> int:
        """The side of the model's square input in pixels."""
        return int(dict(self.work).get("image_size", 224))

    def as_dict(self) -> dict[str, Any]:
        """Return the setting as ``result.json`` stores it."""
        return {
            "loader": self.loader,
            "data": self.data,
            "input": self.source,  # Training loops call their source ``input``, too.
            "workers": self.workers,
            "batch_size": self.batch_size,
            "prefetch": self.prefetch,
            "pin_memory": self.pin_memory,
            "devices": self.devices,
        }


def setting_of(params: Params, source: Source, devices: int = 1) -> Setting:
    """Return the setting of a trial.

    Args:
        params: the parameters of the trial, which measured a loader or a training loop.
        source: where its samples come from.
        devices: number of devices.
    """
    work = {name: params.get(name, default) for name, default in _WORK_DEFAULTS.items()}
    if not work["augment"]:
        # Both are parts of the augmentation, and do nothing without it.
        work |= {"colour_jitter": False, "pca_noise": False}
    return Setting(
        loader=str(params.get("loader", "")),
        data=data_name(params),
        source=source,
        work=tuple(work.items()),
        workers=int(params.get("workers", 0)),
        batch_size=int(params.get("batch_size", 64)),
        prefetch=int(params.get("prefetch", 2)),
        pin_memory=bool(params.get("pin_memory", False)),
        devices=devices,
    )
