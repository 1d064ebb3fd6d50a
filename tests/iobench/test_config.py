"""A config: from YAML and overrides, checked before anything is measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dataprep.errors import ConfigError
from iobench.config import BenchConfig, dump, load
from tests.iobench.test_words import EVERYTHING

SHIPPED = sorted((Path(__file__).parents[2] / "configs" / "bench").glob("*.yaml"))


def refused(**values: Any) -> str:
    """What ``load`` says to these keys."""
    with pytest.raises(ConfigError) as caught:
        load(None, values)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_configs_load(path: Path) -> None:
    """Each names itself, and is read back from what is dumped of it."""
    config = load(path, {})
    assert config.name == path.stem


@pytest.mark.parametrize("values", [{}, EVERYTHING])
def test_what_is_dumped_is_loaded(values: dict[str, Any], tmp_path: Path) -> None:
    """``config.yaml`` of a run runs it again."""
    config = load(None, values)
    path = tmp_path / "config.yaml"
    path.write_text(dump(config))
    assert load(path, {}) == config


def test_overrides_win(tmp_path: Path) -> None:
    """A dotted key replaces what the file says, and leaves its neighbours."""
    path = tmp_path / "c.yaml"
    path.write_text("data: {images: 50, classes: 3}\nrepeats: 2")
    config = load(path, {"data.images": 60, "name": "mine"})
    assert (config.data.images, config.data.classes) == (60, 3)
    assert (config.repeats, config.name) == (2, "mine")


@pytest.mark.parametrize(
    ("values", "key", "near"),
    [
        ({"repaets": 3}, "repaets", "repeats"),
        ({"data": {"imagse": 3}}, "data.imagse", "images"),
        ({"data": {"bucket": {"url": "local"}}}, "data.bucket.url", "uri"),
        ({"disk": {"block_byte": 4096}}, "disk.block_byte", "block_bytes"),
        (
            {"disk": {"targets": [{"label": "a", "path": "."}, {"label": "b", "paht": "."}]}},
            "disk.targets.1.paht",
            "path",
        ),
        ({"object_store": {"conections": 1}}, "object_store.conections", "connections"),
        ({"loaders": [{"loader": "raw", "wrokers": 2}]}, "loaders.0.wrokers", "workers"),
        ({"training": [{"modle": "lenet"}]}, "training.0.modle", "model"),
    ],
)
def test_an_unknown_key_comes_with_the_nearest_known(
    values: dict[str, Any], key: str, near: str
) -> None:
    """At every depth, in lists as well."""
    said = refused(**values)
    assert f"unknown key {key!r}" in said
    assert f"did you mean {near!r}?" in said


def test_a_key_like_no_other_comes_with_all_that_are_known() -> None:
    """Within the part of the config where it stands."""
    said = refused(loaders=[{"loader": "raw", "xyzzy": 2}])
    assert "known: augment, batch_size, cache" in said


def test_a_missing_key_is_asked_for_where_it_belongs() -> None:
    """There is no option for a key inside a list."""
    said = refused(loaders=[{"workers": 1}])
    assert "'loaders.0.loader' is missing" in said
    assert "--loaders" not in said


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
        {"disk": {"targets": [{"label": "a b", "path": "."}]}},
    ],
)
def test_wrong_values_are_refused(values: dict[str, Any]) -> None:
    """With the key that holds them."""
    assert f" {next(iter(values))}" in refused(**values)


def test_two_groups_of_one_name_are_refused() -> None:
    """Their figures would be taken for repeats of each other."""
    assert "two of them are called 'same'" in refused(training=[{"group": "same"}] * 2)


def test_nothing_is_measured_unless_told() -> None:
    """An empty config asks for nothing, and has six repeats of it."""
    config = BenchConfig()
    assert (config.disk, config.object_store, config.loaders, config.training) == (
        None,
        None,
        (),
        (),
    )
    assert config.repeats == 6
