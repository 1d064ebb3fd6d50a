"""The plan of a run: every point of the config with all repeats, in interleaved rounds."""

from __future__ import annotations

import builtins
import os
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from dataprep.errors import ConfigError
from iobench.config.benchmark import BenchConfig, dump, load
from iobench.config.plan import (
    formats_read,
    in_config_order,
    ladder_config,
    location_names,
    on_all_hosts,
    on_hosts,
    trials,
)
from iobench.results.trial import TrialSpec
from iobench.trials.ladder import PIPELINE_RUNGS, RUNGS
from tests.iobench.config.test_benchmark import SHIPPED
from tests.iobench.results.test_wording import EVERYTHING
from tests.iobench.small_runs import ThirdParty


def planned(**values: Any) -> list[TrialSpec]:
    """Return the trials of a config with these keys."""
    return trials(BenchConfig.model_validate(values))


def point(spec: TrialSpec) -> tuple[str, str]:
    """Return the kind and the params of a trial, which are equal for all its repeats."""
    return spec.kind, repr(spec.params)


loader_names = st.sampled_from(["raw", "null", "torch-map"])
caches = st.sampled_from(["cold", "warm"])
grid = st.fixed_dictionaries(
    {
        "loader": st.lists(loader_names, min_size=1, max_size=3),
        "workers": st.lists(st.integers(0, 3), min_size=1, max_size=4),
        "cache": st.lists(caches, min_size=1, max_size=2),
    }
)
grids = st.lists(grid, min_size=1, max_size=3)


@given(grids, st.integers(1, 7))
def test_every_point_is_repeated(loaders: list[dict[str, Any]], repeats: int) -> None:
    """Each point has all repeats, numbered from 0, with ids of their own; overlaps count once."""
    specs = planned(loaders=loaders, repeats=repeats)
    assert set(Counter(map(point, specs)).values()) == {repeats}
    assert len({spec.id for spec in specs}) == len(specs)
    assert all(0 <= spec.repeat < repeats for spec in specs)


@given(grids, st.integers(2, 7))
def test_conditions_are_interleaved(loaders: list[dict[str, Any]], repeats: int) -> None:
    """A round holds every point once, before any point comes again."""
    specs = planned(loaders=loaders, repeats=repeats)
    points = len(specs) // repeats
    rounds = [specs[start : start + points] for start in range(0, len(specs), points)]
    for number, members in enumerate(rounds):
        assert {spec.repeat for spec in members} == {number}
        assert len(set(map(point, members))) == points


def orders(count: int, repeats: int, **values: Any) -> list[list[int]]:
    """Return the numbers of workers of one sweep in the order of each round."""
    sweep = {"loader": "raw", "workers": list(range(1, count + 1))}
    specs = planned(loaders=[sweep], repeats=repeats, **values)
    workers = [spec.params["workers"] for spec in specs]
    return [workers[start : start + count] for start in range(0, len(workers), count)]


@pytest.mark.parametrize("seed", range(5))
def test_no_point_follows_the_same_other_in_most_rounds(seed: int) -> None:
    """In 60 rounds of 5 points, no pair of neighbours occurs in more than 40 % of the rounds."""
    rounds = orders(5, 60, order_seed=seed)
    neighbours = Counter(pair for order in rounds for pair in pairwise(order))
    assert max(neighbours.values()) <= 24


@pytest.mark.parametrize("seed", range(5))
def test_every_point_has_every_turn(seed: int) -> None:
    """In 60 rounds of 5 points, each point is first, second, ... last in at least 3 rounds."""
    rounds = orders(5, 60, order_seed=seed)
    turns = Counter((turn, workers) for order in rounds for turn, workers in enumerate(order))
    assert len(turns) == 25
    assert min(turns.values()) >= 3


def test_the_order_depends_on_the_seed_alone() -> None:
    """Two plans with one seed have one order; another seed gives another order."""
    assert orders(6, 4, order_seed=7) == orders(6, 4, order_seed=7)
    assert orders(6, 4, order_seed=7) != orders(6, 4, order_seed=8)
    assert orders(6, 4) == orders(6, 4, order_seed=0)


@pytest.mark.process
def test_another_process_plans_the_same_order() -> None:
    """The order does not depend on the hash seed of the process, so that a resumed run keeps it."""
    config = {"loaders": [{"loader": "raw", "workers": [1, 2, 3, 4]}], "repeats": 6}
    code = (
        "import sys; from iobench.config.benchmark import BenchConfig\n"
        "from iobench.config.plan import trials\n"
        f"print([spec.id for spec in trials(BenchConfig.model_validate({config!r}))])"
    )
    expected = str([spec.id for spec in planned(**config)])
    for hash_seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == expected


def test_a_longer_sweep_keeps_the_order_of_its_points() -> None:
    """A point that is added does not change which of two others comes first."""
    for short, long in zip(orders(3, 4), orders(6, 4), strict=True):
        assert [workers for workers in long if workers <= 3] == short


@given(grids, st.integers(0, 9))
def test_more_workers_come_later_in_the_first_round(
    loaders: list[dict[str, Any]], seed: int
) -> None:
    """``more_workers_gain`` can compare with fewer workers, since these are measured first."""
    worker_counts: dict[str, list[int]] = {}
    for spec in planned(loaders=loaders, repeats=2, order_seed=seed):
        if spec.repeat == 0 and "workers" in spec.params:
            sweep = repr({**spec.params, "workers": None})
            worker_counts.setdefault(sweep, []).append(spec.params["workers"])
    assert all(workers == sorted(workers) for workers in worker_counts.values())


def test_all_rounds_are_random_where_all_workers_are_tried() -> None:
    """Every round has a random order if ``more_workers_gain`` is not set."""
    first_points = set()
    for seed in range(20):
        (order,) = orders(6, 1, order_seed=seed, more_workers_gain=None)
        first_points.add(order[0])
    assert len(first_points) > 1


@given(grids, st.integers(1, 3), st.randoms())
def test_readers_get_the_order_of_the_config(
    loaders: list[dict[str, Any]], repeats: int, random: Random
) -> None:
    """Points are listed as in the config with their repeats in turn, whatever ran first."""
    config = BenchConfig.model_validate({"loaders": loaders, "repeats": repeats})
    specs = in_config_order(config, trials(config))
    points = list(dict.fromkeys(map(point, specs)))
    expected = [config_point for config_point in points for _ in range(repeats)]
    assert [point(spec) for spec in specs] == expected
    assert [spec.repeat for spec in specs] == list(range(repeats)) * len(points)
    assert specs[0].params["loader"] == loaders[0]["loader"][0]
    shuffled = list(specs)
    random.shuffle(shuffled)
    assert in_config_order(config, shuffled) == specs


def test_the_seed_is_stored_with_the_config() -> None:
    """The stored config has the seed, so that the order of a run can be planned again."""
    config = BenchConfig.model_validate({"order_seed": 5})
    assert yaml.safe_load(dump(config))["order_seed"] == 5
    with pytest.raises(ValidationError, match="order_seed"):
        BenchConfig.model_validate({"order_seed": -1})


def test_parts_are_not_mixed() -> None:
    """All repeats of a part come before the next part."""
    specs = planned(**EVERYTHING)
    kinds = list(dict.fromkeys(spec.kind for spec in specs))
    assert kinds == ["disk", "layout", "object", "loader", "train"]
    order = [spec.kind for spec in specs]
    assert order == sorted(order, key=kinds.index)


def test_overlapping_grids_are_run_once() -> None:
    """A point of two grids is measured once."""
    grid = {"loader": "raw", "workers": [1, 2]}
    overlapping = {"loader": "raw", "workers": [2, 3]}
    specs = planned(loaders=[grid, overlapping], repeats=1)
    assert [spec.params["workers"] for spec in specs] == [1, 2, 3]


def test_nothing_is_planned_for_nothing() -> None:
    """An empty config, or a disk without a target, has no trial."""
    assert planned() == []
    assert planned(disk={}) == []


def test_a_plan_is_the_same_every_time() -> None:
    """Two plans of one config have the same ids."""
    first, second = planned(**EVERYTHING), planned(**EVERYTHING)
    assert [spec.id for spec in first] == [spec.id for spec in second]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_configs_have_trials_with_ids_of_their_own(path: Path) -> None:
    """Ids are unique in each example config and contain no path."""
    specs = trials(load(path, {}))
    assert specs
    assert len({spec.id for spec in specs}) == len(specs)
    assert not [spec for spec in specs if "/tmp" in spec.id]


def test_planning_touches_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan opens, lists and creates no file."""
    config = BenchConfig.model_validate(EVERYTHING)
    expected = trials(config)

    def touched(*arguments: object, **options: object) -> None:
        raise AssertionError(f"planning used the file system: {arguments}")

    with monkeypatch.context() as patched:
        patched.setattr(builtins, "open", touched)
        for name in ("open", "stat", "scandir", "mkdir"):
            patched.setattr(os, name, touched)
        specs = trials(config)
    assert specs == expected


@pytest.mark.parametrize(
    ("kind", "params", "names"),
    [
        ("disk", {"target": "nvme"}, ["disk/nvme"]),
        ("layout", {"data": "files@disk"}, ["files@disk"]),
        ("object", {"store": "s3"}, ["store/s3"]),
        ("loader", {"data": ""}, []),
        ("train", {"data": "shards@s3", "over": "shards@disk"}, ["shards@disk", "shards@s3"]),
        ("train", {"data": "shards@disk", "over": "shards@disk"}, ["shards@disk"]),
        ("train", {"data": "", "over": "shards@disk"}, ["shards@disk"]),
    ],
)
def test_location_names_of_a_trial(kind: str, params: dict[str, str], names: list[str]) -> None:
    """The names are the locations that a trial needs, each once."""
    assert location_names(TrialSpec(kind, params)) == names


@pytest.mark.parametrize(
    ("loaders", "formats"),
    [
        ({"loader": ["torch-map", "dali"]}, frozenset({"", "tfrecord"})),
        ({"loader": "mxnet-record"}, frozenset({"recordio"})),
        ({"loader": ["mxnet-record", "tf-data"]}, frozenset({"recordio", ""})),
        ({"loader": "raw"}, frozenset({""})),
        ({"loader": "webdataset"}, frozenset({"webdataset"})),
        ({"loader": "torch-map", "data": "shards-4MB@disk"}, None),
        ({"loader": "odd-steady"}, None),
    ],
)
def test_formats_that_trials_read(
    third_party: ThirdParty, loaders: dict[str, Any], formats: frozenset[str] | None
) -> None:
    """The formats are those of data with this name; None stands for all formats."""
    specs = planned(loaders=[loaders])
    assert formats_read(specs, "shards@disk") == formats


def test_layouts_read_the_default_format() -> None:
    """Layouts name no format, so the default one is read."""
    specs = planned(disk={"layout_data": "shards@disk", "layouts": "records"})
    assert formats_read(specs, "shards@disk") == frozenset({""})


def test_only_cold_trials_name_drop_caches() -> None:
    """Only cold trials name ``drop_caches``, and only if it is not the default."""
    values: dict[str, Any] = {
        "repeats": 1,
        "loaders": [{"loader": "raw", "cache": ["warm", "cold"]}],
        "training": [{"consumer": "null", "inputs": ["synthetic", "warm", "cold"]}],
    }
    assert all("drop_caches" not in spec.params for spec in planned(**values))
    dropping = {}
    for spec in planned(**values, drop_caches="always"):
        cache = spec.params.get("cache") or spec.params["input"]
        dropping[cache] = spec.params.get("drop_caches")
    assert dropping == {"warm": None, "cold": "always", "synthetic": None}


LOCAL = RUNGS[:-1]


def ladder_of(*loops: dict[str, Any], **values: Any) -> BenchConfig:
    """Return the config of the ladder over these loops."""
    return ladder_config(BenchConfig.model_validate({"training": loops, **values}))


def inputs(loop: dict[str, Any], **values: Any) -> tuple[str, ...]:
    """Return the inputs of a loop in the config of its ladder."""
    return ladder_of(loop, **values).training[0].inputs


def test_the_loops_are_all_that_is_run() -> None:
    """Loops keep all settings but their inputs; repeats, data and limits stay."""
    loop = {"loader": "torch-map", "workers": 3, "steps": 7, "group": "mine"}
    kept: dict[str, Any] = {"repeats": 2, "data": {"images": 50}, "trial_timeout_s": 9}
    disk = {"targets": [{"label": "here", "path": "."}]}
    left_out: dict[str, Any] = {"loaders": [{"loader": "raw"}], "disk": disk}
    config = ladder_of(loop, name="x", **kept, **left_out)
    specs = trials(config)
    assert {spec.kind for spec in specs} == {"train"}
    assert len(specs) == 2 * len(LOCAL)
    (loop_settings,) = config.training
    assert (loop_settings.workers, loop_settings.steps) == (3, 7)
    assert loop_settings.label == "mine"
    assert (config.name, config.repeats, config.data.images) == ("x-ladder", 2, 50)
    assert config.trial_timeout_s == 9


@pytest.mark.parametrize("loader", ["torch-map", "torch-iterable", "torch-folder"])
def test_torch_loops_have_every_local_rung(loader: str) -> None:
    """The rungs are the same for an emulated device."""
    assert inputs({"loader": loader}) == LOCAL
    paced = {"loader": loader, "consumer": "paced", "images_per_s": 9}
    assert inputs(paced) == LOCAL


def test_the_store_is_a_rung_where_it_was_asked_for() -> None:
    """An input or a bucket adds the store; data on a store alone is not copied to a disk."""
    assert inputs({"inputs": ["warm", "store"]}) == RUNGS
    assert inputs({}, data={"bucket": {"uri": "local"}}) == RUNGS
    assert inputs({"inputs": "store"}) == (*RUNGS[:5], "store")


def test_others_have_three() -> None:
    """Pipelines of other frameworks and loops on several devices have three rungs."""
    assert inputs({"loader": "tf-data", "consumer": "tensorflow"}) == PIPELINE_RUNGS[:3]
    without_disk = inputs({"loader": "mxnet-record", "inputs": ["synthetic", "store"]})
    assert without_disk == ("synthetic", "store")
    assert inputs({"devices": 2}) == PIPELINE_RUNGS[:3]
    assert inputs({"loader": "null", "inputs": ["synthetic", "warm"]}) == ("synthetic", "warm")


def test_stored_pixels_are_not_decoded() -> None:
    """The ladder over stored pixels has no rung for decoding."""
    assert "decode" not in inputs({"data": "pixels"})


def test_a_config_without_loops_is_refused() -> None:
    """The message names the key to add."""
    with pytest.raises(ConfigError, match="but this config has none: add the key training"):
        ladder_of(loaders=[{"loader": "null"}])


def test_climbing_twice_is_climbing_once() -> None:
    """The ladder of a ladder's config is that config, with the same name."""
    once = ladder_of({"loader": "torch-map"}, name="x")
    assert ladder_config(once) == once


def test_trials_of_several_numbers_of_hosts_follow_each_other() -> None:
    """Each point is measured on each number of hosts under its own id, and listed in order."""
    values = {"loaders": [{"loader": ["raw", "null"], "workers": 0}], "repeats": 2}
    specs = planned(**values)
    spread = on_hosts(specs, [1, 2])
    ids_of_all_hosts = [on_all_hosts(spec).id for spec in spread]
    assert ids_of_all_hosts == [spec.id for spec in specs for _ in range(3)]
    assert len({spec.id for spec in spread}) == 3 * len(specs)
    counts = [spec.params.get("hosts", 4) for spec in spread]
    assert counts == [1, 2, 4] * 2 + [4, 2, 1] * 2
    ordered = in_config_order(BenchConfig.model_validate(values), spread)
    assert [spec.params["loader"] for spec in ordered] == ["raw"] * 6 + ["null"] * 6
    assert on_hosts(specs, []) == specs
