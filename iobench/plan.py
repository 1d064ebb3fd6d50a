"""PURE. A config into trials, in the order in which they are run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from iobench.config import BenchConfig
from iobench.loops import loader_grid, training_plan
from iobench.machine.page_cache import WHEN_NEEDED
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
    """With what is done to the machine's caches where it is to be cold; the usual is no word."""
    cold = "cold" in (params.get("cache"), params.get("input"))
    if not cold or config.drop_caches == WHEN_NEEDED:
        return params
    return {**params, "drop_caches": config.drop_caches}


def _distinct(points: Sequence[Point]) -> list[Point]:
    kept: dict[str, Point] = {}
    for point in points:
        kept.setdefault(json.dumps(point, sort_keys=True), point)
    return list(kept.values())


def _rounds(points: list[Point], repeats: int) -> Iterator[list[Point]]:
    for repeat in range(repeats):
        start = repeat % len(points) if points else 0
        yield points[start:] + points[:start]
