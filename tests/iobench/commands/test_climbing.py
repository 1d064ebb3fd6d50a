"""A config narrowed to its training loops on every rung."""

from __future__ import annotations

from typing import Any

import pytest

from dataprep.errors import ConfigError
from iobench.commands.climbing import climbing
from iobench.config import BenchConfig
from iobench.ladder import RUNGS, THREE
from iobench.plan import trials

LOCAL = RUNGS[:-1]


def climbed(*loops: dict[str, Any], **given: Any) -> BenchConfig:
    """What is run of a config with these loops."""
    return climbing(BenchConfig.model_validate({"training": loops, **given}))


def inputs(loop: dict[str, Any], **given: Any) -> tuple[str, ...]:
    """Of one loop."""
    return climbed(loop, **given).training[0].inputs


def test_the_loops_are_all_that_is_run() -> None:
    """As they were but for their inputs; repeats, data and bounds stay."""
    loop = {"loader": "torch-map", "workers": 3, "steps": 7, "group": "mine"}
    given: dict[str, Any] = {"repeats": 2, "data": {"images": 50}, "trial_timeout_s": 9}
    more = {"loaders": [{"loader": "raw"}], "disk": {"targets": [{"label": "here", "path": "."}]}}
    found = climbed(loop, name="x", **given, **more)
    assert {spec.kind for spec in trials(found)} == {"train"}
    assert len(trials(found)) == 2 * len(LOCAL)
    (kept,) = found.training
    assert (kept.workers, kept.steps, kept.label) == (3, 7, "mine")
    assert (found.name, found.repeats, found.data.images) == ("x-ladder", 2, 50)
    assert found.trial_timeout_s == 9


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
    assert inputs({"loader": "tf-data", "consumer": "tensorflow"}) == THREE[:3]
    assert inputs({"loader": "mxnet-record", "inputs": ["synthetic", "store"]}) == (
        "synthetic",
        "store",
    )
    assert inputs({"devices": 2}) == THREE[:3]
    assert inputs({"loader": "null", "inputs": ["synthetic", "warm"]}) == ("synthetic", "warm")


def test_stored_pixels_are_not_decoded() -> None:
    """That rung is left out."""
    assert "decode" not in inputs({"data": "pixels"})


def test_a_config_without_loops_is_refused() -> None:
    """In words."""
    with pytest.raises(ConfigError, match="this config has none: give training"):
        climbed(loaders=[{"loader": "null"}])


def test_climbing_twice_is_climbing_once() -> None:
    """The name, too."""
    once = climbed({"loader": "torch-map"}, name="x")
    assert climbing(once) == once
