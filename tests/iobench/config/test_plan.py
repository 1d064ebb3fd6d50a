"""A config into trials: every point, every repeat, interleaved."""

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
    """The trials of a config."""
    return trials(BenchConfig.model_validate(values))


def point(spec: TrialSpec) -> tuple[str, str]:
    """What is measured, without the repeat."""
    return spec.kind, repr(spec.params)


grids = st.lists(
    st.fixed_dictionaries(
        {
            "loader": st.lists(
                st.sampled_from(["raw", "null", "torch-map"]), min_size=1, max_size=3
            ),
            "workers": st.lists(st.integers(0, 3), min_size=1, max_size=4),
            "cache": st.lists(st.sampled_from(["cold", "warm"]), min_size=1, max_size=2),
        }
    ),
    min_size=1,
    max_size=3,
)


@given(grids, st.integers(1, 7))
def test_every_point_is_repeated(loaders: list[dict[str, Any]], repeats: int) -> None:
    """Each as often as asked, numbered from 0, under an id of its own; overlaps count once."""
    specs = planned(loaders=loaders, repeats=repeats)
    assert set(Counter(map(point, specs)).values()) == {repeats}
    assert len({spec.id for spec in specs}) == len(specs)
    for _, numbers in sorted((point(spec), spec.repeat) for spec in specs):
        assert 0 <= numbers < repeats


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
    """The numbers of workers of one sweep in the order of each round."""
    sweep = {"loader": "raw", "workers": list(range(1, count + 1))}
    specs = planned(loaders=[sweep], repeats=repeats, **values)
    workers = [spec.params["workers"] for spec in specs]
    return [workers[start : start + count] for start in range(0, len(workers), count)]


@pytest.mark.parametrize("seed", range(5))
def test_no_point_follows_the_same_other_in_most_rounds(seed: int) -> None:
    """In 60 rounds of 5 points, no pair of neighbours comes in more than 40 % of the rounds."""
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
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for hash_seed in ("1", "2")
    }
    assert printed == {str([spec.id for spec in planned(**config)])}


def test_a_longer_sweep_keeps_the_order_of_its_points() -> None:
    """A point that is added does not change which of two others comes first."""
    short = orders(3, 4)
    kept = [[workers for workers in order if workers <= 3] for order in orders(6, 4)]
    assert kept == short


@given(grids, st.integers(0, 9))
def test_more_workers_come_later_in_the_first_round(
    loaders: list[dict[str, Any]], seed: int
) -> None:
    """So ``more_workers_gain`` decides with the rates of fewer workers whether more are tried."""
    tried: dict[str, list[int]] = {}
    for spec in planned(loaders=loaders, repeats=2, order_seed=seed):
        if spec.repeat == 0 and "workers" in spec.params:
            sweep = repr({**spec.params, "workers": None})
            tried.setdefault(sweep, []).append(spec.params["workers"])
    assert all(workers == sorted(workers) for workers in tried.values())


def test_all_rounds_are_random_where_all_workers_are_tried() -> None:
    """Without ``more_workers_gain`` no round has an order of its own."""
    starts = {orders(6, 1, order_seed=seed, more_workers_gain=None)[0][0] for seed in range(20)}
    assert len(starts) > 1


@given(grids, st.integers(1, 3), st.randoms())
def test_readers_get_the_order_of_the_config(
    loaders: list[dict[str, Any]], repeats: int, random: Random
) -> None:
    """Whatever trials ran first: points as the config names them, the repeats of each in turn."""
    config = BenchConfig.model_validate({"loaders": loaders, "repeats": repeats})
    specs = in_config_order(config, trials(config))
    points = list(dict.fromkeys(map(point, specs)))
    assert [point(spec) for spec in specs] == [each for each in points for _ in range(repeats)]
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
    """All of a part, all its repeats, then the next; each training group by itself."""
    specs = planned(**EVERYTHING)
    kinds = list(dict.fromkeys(spec.kind for spec in specs))
    assert kinds == ["disk", "layout", "object", "loader", "train"]
    order = [spec.kind for spec in specs]
    assert order == sorted(order, key=kinds.index)


def test_overlapping_grids_are_run_once() -> None:
    """The same point in two grids is one point."""
    one = {"loader": "raw", "workers": [1, 2]}
    specs = planned(loaders=[one, {"loader": "raw", "workers": [2, 3]}], repeats=1)
    assert [spec.params["workers"] for spec in specs] == [1, 2, 3]


def test_nothing_is_planned_for_nothing() -> None:
    """An empty config, or a disk without a target, has no trial."""
    assert planned() == []
    assert planned(disk={}) == []


def test_a_plan_is_the_same_every_time() -> None:
    """Ids name trials across runs of a config."""
    assert [spec.id for spec in planned(**EVERYTHING)] == [
        spec.id for spec in planned(**EVERYTHING)
    ]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_configs_have_trials_with_ids_of_their_own(path: Path) -> None:
    """Each trial of each config that comes with the package."""
    specs = trials(load(path, {}))
    assert specs
    assert len({spec.id for spec in specs}) == len(specs)
    assert not [spec for spec in specs if "/tmp" in spec.id]


def test_planning_touches_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """PURE: neither what is read nor what is written is looked at."""
    config = BenchConfig.model_validate(EVERYTHING)
    expected = trials(config)

    def touched(*given: object, **options: object) -> None:
        raise AssertionError(f"a file was touched: {given}")

    with monkeypatch.context() as patched:
        for owner, names in ((builtins, ["open"]), (os, ["open", "stat", "scandir", "mkdir"])):
            for name in names:
                patched.setattr(owner, name, touched)
        planned = trials(config)
    assert planned == expected


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
    """What must be there before it can run, each once."""
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
    """Of data by their name; all where none is read, or a loader of another package reads."""
    specs = planned(loaders=[loaders])
    assert formats_read(specs, "shards@disk") == formats


def test_layouts_read_the_default_format() -> None:
    """They name none."""
    specs = planned(disk={"layout_data": "shards@disk", "layouts": "records"})
    assert formats_read(specs, "shards@disk") == frozenset({""})


def test_what_is_done_to_the_machines_caches_is_of_cold_trials() -> None:
    """And no word where it is as usual."""
    reported: dict[str, Any] = {
        "repeats": 1,
        "loaders": [{"loader": "raw", "cache": ["warm", "cold"]}],
        "training": [{"consumer": "null", "inputs": ["synthetic", "warm", "cold"]}],
    }
    usual = trials(BenchConfig.model_validate(reported))
    assert all("drop_caches" not in spec.params for spec in usual)
    planned = trials(BenchConfig.model_validate({**reported, "drop_caches": "always"}))
    dropping = {
        spec.params.get("cache") or spec.params["input"]: spec.params.get("drop_caches")
        for spec in planned
    }
    assert dropping == {"warm": None, "cold": "always", "synthetic": None}


LOCAL = RUNGS[:-1]


def climbed(*loops: dict[str, Any], **given: Any) -> BenchConfig:
    """What is run of a config with these loops."""
    return ladder_config(BenchConfig.model_validate({"training": loops, **given}))


def inputs(loop: dict[str, Any], **given: Any) -> tuple[str, ...]:
    """Of one loop."""
    return climbed(loop, **given).training[0].inputs


def test_the_loops_are_all_that_is_run() -> None:
    """As they were but for their inputs; repeats, data and bounds stay."""
    loop = {"loader": "torch-map", "workers": 3, "steps": 7, "group": "mine"}
    given: dict[str, Any] = {"repeats": 2, "data": {"images": 50}, "trial_timeout_s": 9}
    more = {"loaders": [{"loader": "raw"}], "disk": {"targets": [{"label": "here", "path": "."}]}}
    planned = climbed(loop, name="x", **given, **more)
    assert {spec.kind for spec in trials(planned)} == {"train"}
    assert len(trials(planned)) == 2 * len(LOCAL)
    (kept,) = planned.training
    assert (kept.workers, kept.steps, kept.label) == (3, 7, "mine")
    assert (planned.name, planned.repeats, planned.data.images) == (
        "x-ladder",
        2,
        50,
    )
    assert planned.trial_timeout_s == 9


@pytest.mark.parametrize("loader", ["torch-map", "torch-iterable", "torch-folder"])
def test_torch_loops_have_every_local_rung(loader: str) -> None:
    """Also under a device that is emulated."""
    assert inputs({"loader": loader}) == LOCAL
    paced = {"loader": loader, "consumer": "paced", "images_per_s": 9}
    assert inputs(paced) == LOCAL


def test_the_store_is_a_rung_where_it_was_asked_for() -> None:
    """By an input, or by a bucket; a loop over the store alone is not copied to a disk."""
    assert inputs({"inputs": ["warm", "store"]}) == RUNGS
    assert inputs({}, data={"bucket": {"uri": "local"}}) == RUNGS
    assert inputs({"inputs": "store"}) == (*RUNGS[:5], "store")


def test_others_have_three() -> None:
    """Pipelines of other frameworks, and loops on several devices."""
    assert inputs({"loader": "tf-data", "consumer": "tensorflow"}) == PIPELINE_RUNGS[:3]
    assert inputs({"loader": "mxnet-record", "inputs": ["synthetic", "store"]}) == (
        "synthetic",
        "store",
    )
    assert inputs({"devices": 2}) == PIPELINE_RUNGS[:3]
    assert inputs({"loader": "null", "inputs": ["synthetic", "warm"]}) == ("synthetic", "warm")


def test_stored_pixels_are_not_decoded() -> None:
    """That rung is left out."""
    assert "decode" not in inputs({"data": "pixels"})


def test_a_config_without_loops_is_refused() -> None:
    """In words."""
    with pytest.raises(ConfigError, match="but this config has none: add the key training"):
        climbed(loaders=[{"loader": "null"}])


def test_climbing_twice_is_climbing_once() -> None:
    """The name, too."""
    once = climbed({"loader": "torch-map"}, name="x")
    assert ladder_config(once) == once


def test_trials_of_several_numbers_of_hosts_follow_each_other() -> None:
    """Each point on each number, all under ids of their own; readers see them side by side."""
    values = {"loaders": [{"loader": ["raw", "null"], "workers": 0}], "repeats": 2}
    specs = planned(**values)
    spread = on_hosts(specs, [1, 2])
    assert [on_all_hosts(spec).id for spec in spread] == [spec.id for spec in specs for _ in "123"]
    assert len({spec.id for spec in spread}) == 3 * len(specs)
    counts = [spec.params.get("hosts", 4) for spec in spread]
    assert counts == [1, 2, 4] * 2 + [4, 2, 1] * 2
    ordered = in_config_order(BenchConfig.model_validate(values), spread)
    assert [spec.params["loader"] for spec in ordered] == ["raw"] * 6 + ["null"] * 6
    assert on_hosts(specs, []) == specs
