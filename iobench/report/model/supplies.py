"""PURE. What loaders, readers and layouts can give, and what devices take; in samples/s."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from string import ascii_uppercase
from typing import Any

from iobench.epoch_coldness import FIRST_EPOCH_COLD
from iobench.loaders.own import SYNTHETIC
from iobench.report.model.cells import PROVED, Cell, cells
from iobench.report.model.numbers import as_estimate
from iobench.report.model.params import joined, worded
from iobench.report.model.verdict import device, title, training_groups
from iobench.result import Result
from iobench.stats import Estimate

# Kinds of supply in the order of their bars, each with its colour.
STAGES = ("loader, warm", "loader, cold or remote", "raw (read only)", "disk layout (no loader)")
_SETTINGS = ("workers", "batch_size", "prefetch", "decode", "augment", "parallelism")


@dataclass(frozen=True, slots=True)
class Supply:
    """The best of several settings of one stage.

    ``work``: what was done to each image, as values of ``_WORK``; None where bytes were read.
    """

    stage: int
    label: str
    at: str
    found: Estimate
    cache: str
    work: tuple[Any, ...] | None


@dataclass(frozen=True, slots=True)
class Demand:
    """What one device consumes, of images on which ``work`` was done.

    Of several devices that train together each has a loader of its own, as supplies are one's.
    """

    letter: str
    name: str
    found: Estimate
    emulated: bool
    work: tuple[Any, ...]

    def compares(self, supply: Supply) -> bool:
        """A supply of other images, smaller ones say, says nothing about this device."""
        return supply.work is None or supply.work == self.work


# What is done to an image, as usual; the rest of the grid is how.
_WORK: Mapping[str, Any] = {
    "augment": True,
    "normalise": True,
    "image_size": 224,
    "colour_jitter": False,
    "pca_noise": False,
}


def supplies_of(result: Result) -> list[Supply]:
    """By stage, the fastest first. ``null`` and ``mock`` supply nothing real."""
    found = [
        *_best(
            (
                cell
                for cell in cells(result.trials, "loader")
                if cell.params.get("loader") not in SYNTHETIC
            ),
            # Several processes are the supply of a machine, one is that of a device.
            ("loader", "data", "access", "processes"),
        ),
        *_best(cells(result.trials, "layout"), ("access", "data")),
    ]
    return sorted(found, key=lambda supply: (supply.stage, -supply.found.median))


def _best(measured: Iterable[Cell], identity: Sequence[str]) -> list[Supply]:
    """The fastest of those that do the same work on the same thing, however they do it."""
    groups: dict[tuple[str, ...], list[tuple[Estimate, Cell]]] = {}
    for cell in measured:
        figure = cell.figure("samples_per_s")
        if figure is not None:
            same = [cell.params.get(name) for name in identity]
            key = (*map(str, same), str(_work(cell)), cell.cache)
            groups.setdefault(key, []).append((figure, cell))
    best = []
    for group in groups.values():
        figure, cell = max(group, key=lambda pair: pair[0].median)
        reads = "loader" not in cell.params
        cache = "cold" if cell.cache == PROVED else cell.cache
        names = [worded(name, cell.params[name]) for name in identity if name in cell.params]
        names += [
            worded(name, cell.params[name])
            for name, usual in (("decode", True), *_WORK.items())
            if cell.params.get(name, usual) != usual
        ]
        label = ", ".join(filter(None, (*names, cache)))
        at = joined(cell.params, [key for key in _SETTINGS if key in cell.params])
        best.append(
            Supply(
                _stage(cell),
                f"read {label}" if reads else label,
                at,
                figure,
                cell.shown,
                _work(cell),
            )
        )
    return best


def _work(cell: Cell) -> tuple[Any, ...] | None:
    params = cell.params
    if "loader" not in params or params["loader"] == "raw" or not params.get("decode", True):
        return None
    return _done_to_images(params)


def _done_to_images(params: Mapping[str, Any]) -> tuple[Any, ...]:
    """Colours change only where images are augmented at all."""
    told = {name: params.get(name) for name in _WORK}
    work = {name: usual if told[name] is None else told[name] for name, usual in _WORK.items()}
    if not work["augment"]:
        work |= {"colour_jitter": False, "pca_noise": False}
    return tuple(work.values())


def _stage(cell: Cell) -> int:
    if "loader" not in cell.params:
        return 3
    if cell.params.get("loader") == "raw":
        return 2
    return 1 if cell.cache.startswith((PROVED, FIRST_EPOCH_COLD, "server")) else 0


def demands_of(result: Result) -> list[Demand]:
    """Distinct consumptions; loops that share model, device and work share a line."""
    found: dict[str, Demand] = {}
    for group in training_groups(result):
        consumes = as_estimate(group.get("consumes"))
        work = _done_to_images(group)
        name = device(group) or title(group)
        if group.get("image_size") not in (None, _WORK["image_size"]):
            name = f"{name}, {worded('image_size', group['image_size'])}"
        if consumes is None or consumes.median <= 0:
            continue
        if (devices := group.get("devices")) and isinstance(devices, int):
            name, consumes = f"{name}, each of {devices}", _each(consumes, devices)
        same = found.get(name)
        alike = same is not None and same.work == work
        if same and not (alike and _overlap(consumes, same.found)):
            name, same = f"{name}, {title(group)}", None
        if same is None:
            letter = ascii_uppercase[len(found) % 26]
            found[name] = Demand(letter, name, consumes, bool(group.get("emulated")), work)
    return list(found.values())


def _each(consumes: Estimate, devices: int) -> Estimate:
    return replace(
        consumes,
        median=consumes.median / devices,
        low=consumes.low / devices,
        high=consumes.high / devices,
    )


def _overlap(a: Estimate, b: Estimate) -> bool:
    return a.low <= b.high and b.low <= a.high
