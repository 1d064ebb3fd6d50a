"""PURE. The trials of a config in the order in which they run, and what they use."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from dataprep.errors import ConfigError
from dataprep.registry import Registry
from iobench.config import BenchConfig
from iobench.consumers import CONSUMERS
from iobench.ladder import HOST_RUNGS, RUNGS
from iobench.loaders import LOADERS
from iobench.loaders.capabilities import capabilities_of
from iobench.loops import loader_grid, training_settings
from iobench.loops.training_settings import Training
from iobench.machine.page_cache import WHEN_NEEDED
from iobench.probes.object_store.clients import CLIENTS
from iobench.probes.settings import plan_disks, plan_layouts, plan_objects
from iobench.trial import Trial, TrialSpec

Point = tuple[str, dict[str, Any]]
Trialled = TypeVar("Trialled", TrialSpec, Trial)


def trials(config: BenchConfig) -> list[TrialSpec]:
    """Every point ``repeats`` times, in rounds: all points of a part once, then all again.

    Each round has its own random order, so that no point always follows the same other point.
    ``order_seed`` determines all orders. In the first round loaders with fewer workers come before
    the same loaders with more workers, since ``more_workers_gain`` decides whether more are tried.
    Equal points of overlapping sweeps are run once.
    """
    specs = []
    for part in _parts(config):
        points = _distinct(part)
        for repeat in range(config.repeats):
            order = _shuffled(points, config.order_seed, repeat)
            if repeat == 0 and config.more_workers_gain is not None:
                order = _fewer_workers_first(order)
            specs += [TrialSpec(kind, _dropping(config, params), repeat) for kind, params in order]
    return specs


def in_config_order(config: BenchConfig, planned: Iterable[Trialled]) -> list[Trialled]:
    """Trials in the order in which the config names their points, with the repeats of each in turn.

    That is the order for readers; trials run in the order of ``trials``.
    """
    points = [
        _point(TrialSpec(kind, _dropping(config, params)))
        for part in _parts(config)
        for kind, params in _distinct(part)
    ]
    numbers = {point: number for number, point in enumerate(points)}
    return sorted(
        planned,
        key=lambda trial: (numbers.get(_point(on_all_hosts(trial)), len(numbers)), trial.repeat),
    )


def on_hosts(specs: Sequence[TrialSpec], counts: Sequence[int]) -> list[TrialSpec]:
    """Each trial on all hosts, and next to it the same trial on fewer hosts.

    The parameter ``hosts`` is the number of hosts of a trial; without it all hosts take part. The
    order of the numbers is reversed in every second round.
    """
    spread: list[TrialSpec] = []
    for spec in specs:
        fewer = [replace(spec, params={**spec.params, "hosts": count}) for count in counts]
        turns = [*fewer, spec]
        spread += reversed(turns) if spec.repeat % 2 else turns
    return spread


def on_all_hosts(trial: Trialled) -> Trialled:
    """The trial without its number of hosts."""
    params = {key: value for key, value in trial.params.items() if key != "hosts"}
    return replace(trial, params=params)


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
    ``ANY_FORMAT`` stands for the format in which data are opened if none is named.
    """
    readers = [spec for spec in specs if name in places_of(spec)]
    if not readers:
        return None
    formats: set[str] = set()
    for spec in readers:
        loader = spec.params.get("loader")
        if loader is not None and LOADERS.origin(loader):
            return None
        capabilities = capabilities_of(loader or "")
        if capabilities.reads_data:
            formats.add(capabilities.record_format)
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
        for package in registry.shadowed_packages(name)
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
    yield [
        ("loader", params) for grid in config.loaders for params in loader_grid.loader_points(grid)
    ]
    for group in config.training:
        yield [("train", params) for params in training_settings.training_points(group)]


def _dropping(config: BenchConfig, params: dict[str, Any]) -> dict[str, Any]:
    """Add ``drop_caches`` to the params of a cold trial, unless it is the default."""
    cold = "cold" in (params.get("cache"), params.get("input"))
    if not cold or config.drop_caches == WHEN_NEEDED:
        return params
    return {**params, "drop_caches": config.drop_caches}


def _distinct(points: Sequence[Point]) -> list[Point]:
    return list({json.dumps(point, sort_keys=True): point for point in points}.values())


def _shuffled(points: Sequence[Point], seed: int, repeat: int) -> list[Point]:
    """The points in the random order of one round, the same in every process.

    Points are sorted by a hash of the seed, the round and the point. So the order of two points
    does not change when other points are added or left out.
    """

    def key(point: Point) -> bytes:
        text = json.dumps([seed, repeat, point], sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=16).digest()

    return sorted(points, key=key)


def _point(trial: TrialSpec | Trial) -> str:
    """The id of a trial without its repeat."""
    return TrialSpec(trial.kind, trial.params).id.rpartition("/")[0]


def _fewer_workers_first(points: Sequence[Point]) -> list[Point]:
    """The order in which loaders that differ in workers alone exchange their turns."""
    turns: dict[str, list[int]] = {}
    for turn, (kind, params) in enumerate(points):
        if kind == "loader" and "workers" in params:
            sweep = json.dumps({**params, "workers": None}, sort_keys=True)
            turns.setdefault(sweep, []).append(turn)
    order = list(points)
    for of_sweep in turns.values():
        ascending = sorted((points[turn] for turn in of_sweep), key=lambda one: one[1]["workers"])
        for turn, point in zip(of_sweep, ascending, strict=True):
            order[turn] = point
    return order


def _rungs(loop: Training, *, bucket: bool) -> list[str]:
    """The rungs that a loop can have, in order. ``bucket``: the config names a bucket."""
    capabilities = capabilities_of(loop.loader)
    if not capabilities.reads_data:
        return [rung for rung in RUNGS if rung in loop.inputs]
    asked = set(loop.inputs)
    remote = "store" in asked
    wanted = {"synthetic", *(() if remote and not asked & {"warm", "cold"} else ("warm", "cold"))}
    if remote or bucket:
        wanted.add("store")
    torch = loop.consumer not in ("tensorflow", "mxnet")
    if capabilities.holds_samples and torch and loop.devices == 1:
        wanted |= set(HOST_RUNGS) - ({"decode"} if loop.data == "pixels" else set())
    return [rung for rung in RUNGS if rung in wanted]
