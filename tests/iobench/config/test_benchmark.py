"""The config of a benchmark: it is read from YAML and overrides, and checked before a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dataprep.errors import ConfigError
from iobench.config.benchmark import BenchConfig, dump, load
from iobench.config.plan import trials
from tests.iobench.results.test_wording import EVERYTHING

SHIPPED = sorted((Path(__file__).parents[3] / "configs" / "bench").glob("*.yaml"))


def refused(**values: Any) -> str:
    """Return the one-line message with which ``load`` refuses these keys."""
    with pytest.raises(ConfigError) as caught:
        load(None, values)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_configs_load(path: Path) -> None:
    """Each example config has its file's name and plans no trial twice."""
    config = load(path, {})
    assert config.name == path.stem
    specs = [spec.id for spec in trials(config)]
    assert len(specs) == len(set(specs)) > 0


@pytest.mark.parametrize("values", [{}, EVERYTHING])
def test_a_dumped_config_loads_as_it_was(values: dict[str, Any], tmp_path: Path) -> None:
    """The ``config.yaml`` of a run gives the same config again."""
    config = load(None, values)
    path = tmp_path / "config.yaml"
    path.write_text(dump(config))
    assert load(path, {}) == config


def test_overrides_win(tmp_path: Path) -> None:
    """A dotted key replaces the value of the file and leaves its neighbours."""
    path = tmp_path / "c.yaml"
    path.write_text("data: {images: 50, classes: 3}\nrepeats: 2")
    config = load(path, {"data.images": 60, "name": "mine"})
    assert (config.data.images, config.data.classes) == (60, 3)
    assert (config.repeats, config.name) == (2, "mine")


@pytest.mark.parametrize(
    ("values", "key", "near"),
    [
        ({"repaets": 3}, "repaets", "repeats"),
        ({"data": {"imagse": 3}}, "data.imagse", "data.images"),
        ({"data": {"bucket": {"url": "local"}}}, "data.bucket.url", "data.bucket.uri"),
        ({"disk": {"block_byte": 4096}}, "disk.block_byte", "disk.block_bytes"),
        (
            {"disk": {"targets": [{"label": "a", "path": "."}, {"label": "b", "paht": "."}]}},
            "disk.targets.1.paht",
            "disk.targets.path",
        ),
        (
            {"object_store": {"conections": 1}},
            "object_store.conections",
            "object_store.connections",
        ),
        ({"loaders": [{"loader": "raw", "wrokers": 2}]}, "loaders.0.wrokers", "loaders.workers"),
        ({"training": [{"modle": "lenet"}]}, "training.0.modle", "training.model"),
    ],
)
def test_an_unknown_key_comes_with_the_nearest_known(
    values: dict[str, Any], key: str, near: str
) -> None:
    """The nearest known key is named at every depth, also in lists."""
    message = refused(**values)
    assert f"unknown key {key}: did you mean {near}?" in message


def test_a_key_like_no_other_comes_with_all_that_are_known() -> None:
    """The message lists the keys of the part in which the key is."""
    message = refused(loaders=[{"loader": "raw", "xyzzy": 2}])
    assert "known keys of loaders: loader, data, access, " in message


def test_a_missing_key_is_asked_for_where_it_belongs() -> None:
    """The message gives the path of the key, and no option, since keys in lists have none."""
    message = refused(loaders=[{"workers": 1}])
    assert "loaders.0.loader is missing" in message
    assert "--loaders" not in message


@pytest.mark.parametrize(
    "values",
    [
        {"repeats": 0},
        {"repeats": "many"},
        {"trial_timeout_s": 0},
        {"trial_timeout_s": -1},
        {"name": ""},
        {"name": "n" * 201},
        {"data": {"shard_size": "300MB"}},
        {"data": {"images": 3}},
        {"loaders": {"loader": "raw"}},
        {"loaders": [{"loader": "nobody"}]},
        {"training": [{"group": "same"}, {"group": "same"}]},
        {"training": [{"consumer": "paced"}]},
        {"training": [{"preset": "H100"}]},
        {"training": [{"consumer": "torch", "images_per_s": 100}]},
        {"training": [{"consumer": "paced", "images_per_s": float("inf")}]},
        {"training": [{"batch_size": 10**20}]},
        {"training": [{"steps": 10**20}]},
        {"loaders": [{"loader": "raw", "seconds": float("inf")}]},
        {"data": {"split": "my-train"}},
        {"data": {"size": 1_000_000}},
        {"data": {"seed": 2**70}},
        {"data": {"folder": "a\0b"}},
        {"disk": {"targets": [{"label": "a", "path": "a\0b"}]}},
        {"disk": {"targets": [{"label": "a b", "path": "."}]}},
    ],
)
def test_wrong_values_are_refused(values: dict[str, Any]) -> None:
    """The error names the key that holds the value."""
    assert refused(**values).startswith(next(iter(values)))


def test_true_is_taken_where_it_is_meant() -> None:
    """A grid takes true alone or with false."""
    config = load(None, {"loaders": [{"loader": "raw", "augment": [True, False], "decode": True}]})
    assert config.loaders[0].augment == (True, False)


def test_a_name_that_is_too_long_is_refused() -> None:
    """The message says how long a name may be."""
    assert "give at most 200 characters" in refused(name="n" * 201)


def test_two_groups_of_one_name_are_refused() -> None:
    """Groups need different names, or their figures would be taken for repeats of each other."""
    assert "two training loops are called 'same'" in refused(training=[{"group": "same"}] * 2)


def test_null_needs_no_quotes() -> None:
    """A bare null in YAML is the loader or the consumer of that name."""
    config = load(None, {"loaders": [{"loader": [None, "mock"]}], "training": [{"consumer": None}]})
    assert config.loaders[0].loader == ("null", "mock")
    assert config.training[0].consumer == "null"
    assert load(None, {"loaders": [{"loader": None}]}).loaders[0].loader == ("null",)


def test_a_place_in_a_list_can_be_overridden(tmp_path: Path) -> None:
    """An entry is named by its number from 0, and the file's other values stay."""
    path = tmp_path / "c.yaml"
    path.write_text("training: [{group: a, steps: 10}, {group: b}]")
    config = load(path, {"training.0.steps": 5, "training.1.model": "lenet"})
    assert [(group.group, group.steps) for group in config.training] == [("a", 5), ("b", 100)]
    assert config.training[1].model == "lenet"
    for key in ("training.2.steps", "training.x.steps", "training.-1.steps"):
        with pytest.raises(ConfigError, match="the list has 2 entries, counted from 0"):
            load(path, {key: 5})


def test_an_item_that_is_refused_is_one_error() -> None:
    """A list with a wrong item is not called empty as well."""
    assert "at least 1" not in refused(loaders=[{"loader": "nobody"}])
    assert "at least 1" not in refused(loaders=[{"loader": "raw", "workers": ["x"]}])
    assert "at least 1" in refused(loaders=[{"loader": "raw", "workers": []}])


def test_an_empty_config_measures_nothing() -> None:
    """An empty config has no trials, and six repeats."""
    config = BenchConfig()
    assert (config.disk, config.object_store) == (None, None)
    assert (config.loaders, config.training) == ((), ())
    assert config.repeats == 6


@pytest.mark.parametrize(
    ("training", "entry", "measured"),
    [
        ([], {}, (True,)),
        ([{"inputs": "warm"}], {}, (False,)),
        ([{"inputs": "warm", "normalise_on": "host"}], {}, (True, False)),
        ([{"inputs": "warm", "normalise_on": "host"}], {"normalise": True}, (True,)),
        ([{"inputs": "warm", "loader": "torch-map"}], {}, (True,)),
        ([{"inputs": "warm", "loader": "torch-map"}], {"loader": ["torch-map", "raw"]}, (False,)),
        ([{"inputs": "warm", "consumer": "tensorflow", "loader": "tf-data"}], {}, (True,)),
    ],
    ids=str,
)
def test_loaders_are_measured_with_the_images_that_loops_take(
    training: list[dict[str, Any]], entry: dict[str, Any], measured: tuple[bool, ...]
) -> None:
    """Float32 is measured beside uint8 if a loop takes float32 and could take uint8."""
    loaders = [{"loader": "torch-iterable", **entry}]
    config = BenchConfig.model_validate({"loaders": loaders, "training": training})
    assert config.loaders[0].normalise == measured
