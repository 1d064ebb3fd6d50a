"""PURE. The trials of a config in the order in which they run, and what they use."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from dataprep.errors import ConfigError
from dataprep.registry import Registry
from iobench.config import BenchConfig
from iobench.consumers import CONSUMERS
from iobench.data.copying import DEFAULT_FORMAT
from iobench.ladder import HOST_RUNGS, RUNGS
from iobench.loaders import LOADERS
from iobench.loaders.own import FROM_MEMORY, READ_RECORDIO, SYNTHETIC
from iobench.loops import loader_grid, training_plan
from iobench.loops.training_plan import Training
from iobench.machine.page_cache import WHEN_NEEDED
from iobench.probes.object_store.clients import CLIENTS
from iobench.probes.settings import plan_disks, plan_layouts, plan_objects
from iobench.trial import TrialSpec

Point = tuple[str, dict[str, Any]]


def trials(config: BenchConfig) -> list[TrialSpec]:
    """Every point ``repeats`` times, interleaved: all of a part once, then all again.

    Each round begins one point later than the one before, so that no point always follows the
    same other. Equal points of overlapping sweeps are run once.
    """
    return [
        TrialSpec(kind, _dropping(config, params), repeat)
        for part in _parts(config)
        for repeat, points in enumerate(_rounds(_distinct(part), config.repeats))
        for kind, params in points
    ]


def places_of(spec: TrialSpec) -> list[str]:
    """The places that a trial names: data, disk target, store."""
    params = spec.params
    named = [params.get("data"), params.get("over")]
    if spec.kind == "disk":
        named.append(f"disk/{params['target']}")
    if spec.kind == "object":
        named.append(f"store/{params['store']}")
    return sorted({name for name in named if name})


def formats_read(specs: Sequence[TrialSpec], name: str) -> frozenset[str] | None:
    """The record formats that trials read of the data called ``name``.

    None if they may read all, as loaders of other packages do, or if no trial names such data.
    ``DEFAULT_FORMAT`` stands for the format in which data are opened if none is named.
    """
    readers = [spec for spec in specs if name in places_of(spec)]
    if not readers:
        return None
    formats: set[str] = set()
    for spec in readers:
        loader = spec.params.get("loader")
        if loader is not None and LOADERS.origin(loader):
            return None
        if loader in READ_RECORDIO:
            formats.add("recordio")
        elif loader is None or loader == "raw":
            formats.add(DEFAULT_FORMAT)
        elif loader not in SYNTHETIC:
            formats.add("tfrecord")
    return frozenset(formats)


def others(specs: Sequence[TrialSpec]) -> dict[str, str]:
    """What other packages bring: ``loader mine`` to ``package 1.0``."""
    return {
        f"{registry.noun} {name}": origin
        for registry, name in _registered(specs)
        if registry.has(name) and (origin := registry.origin(name))
    }


def clashes(specs: Sequence[TrialSpec]) -> list[str]:
    """A line for each name that another package has as well."""
    return [
        f"{registry.noun} {name!r} of {package} is ignored: this package has the same name"
        for registry, name in _registered(specs)
        for package in registry.passed_over(name)
    ]


def ladder_config(config: BenchConfig) -> BenchConfig:
    """The training loops of a config on every rung that each can have, and nothing else.

    A loop that reads the store alone has no local rungs; one over a local copy has the store only
    where the config names a bucket (``data.bucket``) or asks for input ``store``.

    Raises:
        ConfigError: there is no training loop.
    """
    if not config.training:
        raise ConfigError("a ladder is of training loops, and this config has none: give training")
    bucket = "bucket" in config.data.model_fields_set
    loops = [
        {**loop.model_dump(mode="json"), "inputs": _rungs(loop, bucket=bucket)}
        for loop in config.training
    ]
    kept = {"disk": None, "object_store": None, "loaders": ()}
    return BenchConfig.model_validate(
        {
            **config.model_dump(mode="json", exclude_unset=True),
            **kept,
            "name": config.name if config.name.endswith("ladder") else f"{config.name}-ladder",
            "training": loops,
        }
    )


def _registered(specs: Sequence[TrialSpec]) -> list[tuple[Registry[Any], str]]:
    """Each loader, consumer and client that trials name, once."""
    registries: dict[str, Registry[Any]] = {
        "loader": LOADERS,
        "consumer": CONSUMERS,
        "client": CLIENTS,
    }
    found: dict[tuple[str, str], tuple[Registry[Any], str]] = {}
    for spec in specs:
        for key, registry in registries.items():
            if key in spec.params:
                name = str(spec.params[key])
                found[key, name] = registry, name
    return list(found.values())


def _parts(config: BenchConfig) -> Iterator[Sequence[Point]]:
    """Points that belong together and are interleaved with each other."""
    if config.disk is not None:
        yield [("disk", dict(params)) for params in plan_disks(config.disk)]
        yield [("layout", dict(params)) for params in plan_layouts(config.disk)]
    if config.object_store is not None:
        yield [("object", dict(params)) for params in plan_objects(config.object_store)]
    yield [("loader", params) for grid in config.loaders for params in loader_grid.plan(grid)]
    for group in config.training:
        yield [("train", params) for params in training_plan.plan(group)]


def _dropping(config: BenchConfig, params: dict[str, Any]) -> dict[str, Any]:
    """Add ``drop_caches`` to the params of a cold trial, unless it is the default."""
    cold = "cold" in (params.get("cache"), params.get("input"))
    if not cold or config.drop_caches == WHEN_NEEDED:
        return params
    return {**params, "drop_caches": config.drop_caches}


def _distinct(points: Sequence[Point]) -> list[Point]:
    return list({json.dumps(point, sort_keys=True): point for point in points}.values())


def _rounds(points: list[Point], repeats: int) -> Iterator[list[Point]]:
    for repeat in range(repeats):
        start = repeat % len(points) if points else 0
        yield points[start:] + points[:start]


def _rungs(loop: Training, *, bucket: bool) -> list[str]:
    """The rungs that a loop can have, in order. ``bucket``: the config names a bucket."""
    if loop.loader in SYNTHETIC:
        return [rung for rung in RUNGS if rung in loop.inputs]
    asked = set(loop.inputs)
    remote = "store" in asked
    wanted = {"synthetic", *(() if remote and not asked & {"warm", "cold"} else ("warm", "cold"))}
    if remote or bucket:
        wanted.add("store")
    torch = loop.consumer not in ("tensorflow", "mxnet")
    if loop.loader in FROM_MEMORY and torch and loop.devices == 1:
        wanted |= set(HOST_RUNGS) - ({"decode"} if loop.data == "pixels" else set())
    return [rung for rung in RUNGS if rung in wanted]
