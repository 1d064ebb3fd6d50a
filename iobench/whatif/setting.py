"""PURE. A configuration as the model sees it: which loader, over what, into which device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from iobench.trial import Params

Source = Literal["warm", "cold", "store"]

_WORK: Mapping[str, Any] = {
    "decode": True,
    "augment": True,
    "normalise": True,
    "image_size": 224,
    "colour_jitter": False,
    "pca_noise": False,
    "item_s": 0.0,
}
_COLOURS = {"colour_jitter": False, "pca_noise": False}


@dataclass(frozen=True, slots=True)
class Setting:
    """One configuration; ``loop`` is the group whose device takes the batches, empty for none.

    ``form`` is data by name without its place, ``source`` where its samples come from, ``work``
    what is done to each image. ``devices`` have ``workers`` each.
    """

    loader: str
    form: str
    source: Source
    work: tuple[tuple[str, Any], ...]
    workers: int
    batch_size: int
    prefetch: int
    pin_memory: bool = False
    loop: str = ""
    devices: int = 1

    def changed(self, **changes: Any) -> Setting:
        """The same but for some parts."""
        return replace(self, **changes)

    @property
    def kind(self) -> str:
        """The same images: ``shards`` of ``shards-16MB``, and all of ``shards-320px``."""
        return kind_of(self.form)

    @property
    def packing(self) -> str:
        """``shards`` of ``shards-16MB`` and of ``shards-320px``."""
        return self.form.partition("-")[0]

    @property
    def side(self) -> int | None:
        """320 of ``shards-320px``."""
        told = self.form.partition("-")[2]
        return int(told.removesuffix("px")) if told.endswith("px") else None

    @property
    def all_workers(self) -> int:
        """Of all devices."""
        return self.workers * self.devices

    def as_dict(self) -> dict[str, Any]:
        """As ``result.json`` keeps it."""
        told = {"loop": self.loop} if self.loop else {}
        return {
            **told,
            "loader": self.loader,
            "data": self.form,
            "input": self.source,
            "workers": self.workers,
            "batch_size": self.batch_size,
            "prefetch": self.prefetch,
            **({"pin_memory": True} if self.pin_memory else {}),
            **({"devices": self.devices} if self.devices > 1 else {}),
        }


def kind_of(form: str) -> str:
    """``shards`` of ``shards`` and of ``shards-16MB``; ``shards-320px`` itself."""
    return form if form.endswith("px") else form.partition("-")[0]


def of_loader(params: Params, source: Source) -> Setting:
    """That of a trial of a loader alone."""
    return _setting(params, source, {})


def of_loop(params: Params, source: Source, devices: int = 1) -> Setting:
    """That of a training loop with a real input."""
    return _setting(params, source, {"loop": str(params["group"]), "devices": devices})


def _setting(params: Params, source: Source, more: Mapping[str, Any]) -> Setting:
    return Setting(
        loader=str(params["loader"]),
        form=str(params.get("data", "")).partition("@")[0],
        source=source,
        work=work_of(params),
        workers=int(params.get("workers", 0)),
        batch_size=int(params.get("batch_size", 64)),
        prefetch=int(params.get("prefetch", 2)),
        pin_memory=bool(params.get("pin_memory", False)),
        **more,
    )


def work_of(params: Params) -> tuple[tuple[str, Any], ...]:
    """What is done to each image, what is usual told as well; colours change in augmenting only."""
    told = {name: params.get(name, usual) for name, usual in _WORK.items()}
    if not told["augment"]:
        told |= _COLOURS
    return tuple(told.items())
