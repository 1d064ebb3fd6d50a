"""PURE. The trials of a config, the order in which they run, and the data that they use."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from dataprep.errors import ConfigError
from dataprep.registry import Registry
from iobench.config.benchmark import BenchConfig
from iobench.consumers import CONSUMERS
from iobench.loaders import LOADERS
from iobench.loaders.capabilities import capabilities_of
from iobench.machine.page_cache import WHEN_NEEDED
from iobench.probes.object_store.clients import CLIENTS
from iobench.probes.settings import plan_disks, plan_layouts, plan_objects
from iobench.results.trial import Params, Trial, TrialSpec
from iobench.trials import loader_grid, training_settings
from iobench.trials.ladder import HOST_RUNGS, RUNGS
from iobench.trials.training_settings import Training

AnyTrial = TypeVar("AnyTrial", TrialSpec, Trial)


class Point(NamedTuple):
    """A trial without the number of its repeat."""

    kind: str
    params: Params


def trials(config: BenchConfig) -> list[TrialSpec]:
    """List the trials of a config in the order in which they run.

    A ``Point`` is a trial without the number of its repeat. Related points form a group
    (``_groups``), and one group runs after another.

    - A group runs in ``repeats`` rounds. In each round, each of its points is measured once.
    - Each round has its own random order, so that no point always follows the same other point.
      ``order_seed`` determines all orders.
    - In the first round, a loader with fewer workers comes before the same loader with more
      workers, because ``more_workers_gain`` decides whether more workers are measured.
    - Points that occur in several sweeps are measured once.
    """
    specs = []
    for group in _groups(config):
        points = _distinct(group)
        for repeat in range(config.repeats):
            order = _shuffled(points, config.order_seed, repeat)
            if repeat == 0 and config.more_workers_gain is not None:
                order = _fewer_workers_first(order)
            for kind, params in order:
                specs.append(TrialSpec(kind, _with_drop_caches(config, params), repeat))
    return specs


def in_config_order(config: BenchConfig, planned: Iterable[AnyTrial]) -> list[AnyTrial]:
    """Sort trials by the order of their points in the config, and then by their repeats.

    Reports show trials in this order. Trials run in the order of the function ``trials``.
    """
    positions: dict[str, int] = {}
    for group in _groups(config):
        for kind, params in _distinct(group):
            spec = TrialSpec(kind, _with_drop_caches(config, params))
            positions[_point_id(spec)] = len(positions)

    def position(trial: AnyTrial) -> tuple[int, int]:
        point_id = _point_id(on_all_hosts(trial))
        return positions.get(point_id, len(positions)), trial.repeat

    return sorted(planned, key=position)


def on_hosts(specs: Sequence[TrialSpec], counts: Sequence[int]) -> list[TrialSpec]:
    """List each trial on fewer hosts and on all hosts, one after the other.

    Args:
        specs: the trials.
        counts: the smaller numbers of hosts.

    Returns:
        The trials. A trial on fewer hosts has the number of hosts as its parameter ``hosts``. A
        trial without this parameter runs on all hosts. In every second round, the order of the
        numbers of hosts is reversed.
    """
    specs_on_hosts: list[TrialSpec] = []
    for spec in specs:
        on_fewer = [replace(spec, params={**spec.params, "hosts": count}) for count in counts]
        versions = [*on_fewer, spec]
        if spec.repeat % 2:
            versions.reverse()
        specs_on_hosts += versions
    return specs_on_hosts


def on_all_hosts(trial: AnyTrial) -> AnyTrial:
    """Return the same trial on all hosts, without the parameter ``hosts``."""
    params = {key: value for key, value in trial.params.items() if key != "hosts"}
    return replace(trial, params=params)


def location_names(spec: TrialSpec) -> list[str]:
    """Return the names of the data, the disk target and the store that a trial uses, sorted."""
    params = spec.params
    names = {params.get("data"), params.get("over")}
    if spec.kind == "disk":
        names.add(f"disk/{params['target']}")
    if spec.kind == "object":
        names.add(f"store/{params['store']}")
    return sorted(name for name in names if name)


def formats_read(specs: Sequence[TrialSpec], name: str) -> frozenset[str] | None:
    """Return the record formats in which trials read the data called ``name``.

    Returns:
        The formats. ``ANY_FORMAT`` is among them if a loader or a layout trial reads the default
        format. The result is None if no trial reads the data, or if a loader of another package
        reads them, because such a loader may read all formats.
    """
    readers = [spec for spec in specs if name in location_names(spec)]
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


def from_other_packages(specs: Sequence[TrialSpec]) -> dict[str, str]:
    """Return the loaders, consumers and clients of trials that come from other packages.

    Returns:
        The name and version of the package, by the kind and the name: ``package 1.0`` for the key
        ``loader mine``.
    """
    origins = {}
    for registry, name in _registered(specs):
        origin = registry.origin(name) if registry.has(name) else ""
        if origin:
            origins[f"{registry.noun} {name}"] = origin
    return origins


def name_clashes(specs: Sequence[TrialSpec]) -> list[str]:
    """Return the warnings about names that trials use and that another package registers, too."""
    warnings = []
    for registry, name in _registered(specs):
        for package in registry.shadowed_packages(name):
            ignored = f"{registry.noun} {name!r} of {package}"
            warnings.append(f"{ignored} is ignored: this package has the same name")
    return warnings


def ladder_config(config: BenchConfig) -> BenchConfig:
    """Reduce a config to its training loops, each with every rung of the ladder that it can have.

    A loop that reads only from the store has no local rungs. A loop over local data has the rung
    ``store`` only if the config names a bucket (``data.bucket``) or the input ``store``.

    Raises:
        ConfigError: the config has no training loop.
    """
    if not config.training:
        raise ConfigError(
            "a ladder is of training loops, but this config has none: add the key training"
        )
    bucket = "bucket" in config.data.model_fields_set
    loops = [
        {**loop.model_dump(mode="json"), "inputs": _rungs(loop, bucket=bucket)}
        for loop in config.training
    ]
    no_other_trials = {"disk": None, "object_store": None, "loaders": ()}
    name = config.name
    if not name.endswith("ladder"):
        name = f"{name}-ladder"
    own_settings = config.model_dump(mode="json", exclude_unset=True)
    content = {**own_settings, **no_other_trials, "name": name, "training": loops}
    return BenchConfig.model_validate(content)


def _registered(specs: Sequence[TrialSpec]) -> list[tuple[Registry[Any], str]]:
    """Return the loaders, consumers and clients of trials, each once, by registry and name."""
    registries: dict[str, Registry[Any]] = {
        "loader": LOADERS,
        "consumer": CONSUMERS,
        "client": CLIENTS,
    }
    registered: dict[tuple[str, str], tuple[Registry[Any], str]] = {}
    for spec in specs:
        for key, registry in registries.items():
            if key in spec.params:
                name = str(spec.params[key])
                registered[key, name] = registry, name
    return list(registered.values())


def _groups(config: BenchConfig) -> Iterator[Sequence[Point]]:
    """Yield the groups of related points, whose trials run in common rounds.

    The groups are disks, layouts, object stores, all loaders, and each entry of ``training``.
    """
    if config.disk is not None:
        yield [Point("disk", params) for params in plan_disks(config.disk)]
        yield [Point("layout", params) for params in plan_layouts(config.disk)]
    if config.object_store is not None:
        yield [Point("object", params) for params in plan_objects(config.object_store)]
    loaders: list[Point] = []
    for grid in config.loaders:
        loaders += [Point("loader", params) for params in loader_grid.loader_points(grid)]
    yield loaders
    for loop in config.training:
        yield [Point("train", params) for params in training_settings.training_points(loop)]


def _with_drop_caches(config: BenchConfig, params: Params) -> Params:
    """Add ``drop_caches`` to the parameters of a cold trial, unless it has its default."""
    is_cold = "cold" in (params.get("cache"), params.get("input"))
    if not is_cold or config.drop_caches == WHEN_NEEDED:
        return params
    return {**params, "drop_caches": config.drop_caches}


def _distinct(points: Sequence[Point]) -> list[Point]:
    """Return the points without duplicates, in their order."""
    points_by_text = {json.dumps(point, sort_keys=True): point for point in points}
    return list(points_by_text.values())


def _shuffled(points: Sequence[Point], seed: int, repeat: int) -> list[Point]:
    """Return the points in the random order of a round, which is the same in every process.

    The points are sorted by a hash of the seed, the round and the point. The order of two points
    does not change if other points are added or left out.
    """

    def digest(point: Point) -> bytes:
        text = json.dumps([seed, repeat, point], sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=16).digest()

    return sorted(points, key=digest)


def _point_id(trial: TrialSpec | Trial) -> str:
    """Return the id of a trial without its repeat."""
    return TrialSpec(trial.kind, trial.params).id.rpartition("/")[0]


def _fewer_workers_first(points: Sequence[Point]) -> list[Point]:
    """Reorder loaders that differ only in workers, so that fewer workers come first.

    These loaders exchange their positions with each other. All other points keep their positions.
    """
    positions_by_sweep: dict[str, list[int]] = {}
    for position, (kind, params) in enumerate(points):
        if kind == "loader" and "workers" in params:
            sweep = json.dumps({**params, "workers": None}, sort_keys=True)
            positions_by_sweep.setdefault(sweep, []).append(position)
    ordered = list(points)
    for positions in positions_by_sweep.values():
        sweep_points = [points[position] for position in positions]
        sweep_points.sort(key=lambda point: point.params["workers"])
        for position, point in zip(positions, sweep_points, strict=True):
            ordered[position] = point
    return ordered


def _rungs(loop: Training, *, bucket: bool) -> list[str]:
    """Return the rungs of the ladder that a loop can have, in their order.

    Args:
        loop: the training loop.
        bucket: whether the config names a bucket.
    """
    if not capabilities_of(loop.loader).reads_data:
        return [rung for rung in RUNGS if rung in loop.inputs]
    inputs = set(loop.inputs)
    has_store = "store" in inputs
    has_local_inputs = bool(inputs & {"warm", "cold"})
    rungs = {"synthetic"}
    if has_local_inputs or not has_store:
        rungs |= {"warm", "cold"}
    if has_store or bucket:
        rungs.add("store")
    takes_torch_batches = loop.consumer not in ("tensorflow", "mxnet")
    if capabilities_of(loop.loader).holds_samples and takes_torch_batches and loop.devices == 1:
        rungs |= set(HOST_RUNGS)
        if loop.data == "pixels":
            rungs.discard("decode")
    return [rung for rung in RUNGS if rung in rungs]
