"""Predictions beside what was measured, and whether the model holds."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from iobench.trial import Trial
from iobench.whatif import whatif
from tests.iobench.whatif.made import WARM, fetched, loader, loop, together

LOADERS = together(loader(300.0, 1), loader(590.0, 2), loader(1150.0, 4))
RAW = loader(2000.0, 2, loader="raw", cache="cold")


def found(*parts: list[Trial], processors: int = 8) -> dict[str, Any]:
    """The model of a run."""
    return whatif(together(*parts), {"processors": processors})


def scope(model: dict[str, Any], name: str) -> dict[str, Any]:
    """What it says of one loop or loader."""
    return next(scope for scope in model["scopes"] if scope["scope"] == name)


def test_a_loop_as_fast_as_its_slowest_part_confirms_the_model() -> None:
    """Within 10 %, of inputs that nothing was fitted to."""
    loops = (loop("synthetic", 1000.0), loop("warm", 580.0), loop("cold", 570.0))
    model = found(LOADERS, RAW, *loops)
    assert model["holds"]
    told = [p for p in model["predictions"] if p["scope"] == "g"]
    assert [p["configuration"]["input"] for p in told] == ["warm", "cold"]
    assert [p["error"] for p in told] == [
        pytest.approx(590 / 580 - 1),
        pytest.approx(590 / 570 - 1),
    ]
    assert all(p["held_out"] and p["limited_by"] == "decode" for p in told)
    assert scope(model, "g")["checks"] == 2
    assert model["largest_error"] == pytest.approx(
        max(abs(s["largest_error"]) for s in model["scopes"])
    )
    json.dumps(model, allow_nan=False)


def test_samples_in_memory_are_not_called_warm() -> None:
    """A ladder has a rung of either, which the model takes for the same, and a reader does not."""
    model = found(LOADERS, RAW, *(loop(rung, 580.0) for rung in ("decode", "warm")))
    told = [p["configuration"] for p in model["predictions"] if p["scope"] == "g"]
    assert [one.pop("input") for one in told] == ["decode", "warm"]
    assert told[0] == told[1]


def test_an_error_above_ten_per_cent_denies_it_and_says_where() -> None:
    """A loop of half the rate that its parts have."""
    model = found(LOADERS, loop("synthetic", 1000.0), loop("warm", 300.0))
    assert not model["holds"]
    assert model["why"].startswith("g: 590 samples/s predicted, 300 measured (+97%)")
    assert scope(model, "torch-iterable over shards")["holds"]


@pytest.mark.parametrize(("rate", "holds"), [(537.0, True), (535.0, False), (660.0, False)])
def test_the_border_is_ten_per_cent_on_both_sides(rate: float, holds: bool) -> None:
    """590 predicted."""
    assert found(LOADERS, loop("synthetic", 1000.0), loop("warm", rate))["holds"] == holds


def test_training_on_the_processors_of_its_workers_is_named() -> None:
    """There the parts do not have together what they have alone."""
    name = "Some CPU, 2 threads"
    loops = loop("synthetic", 800.0, device=name), loop("warm", 320.0, device=name)
    why = found(LOADERS, *loops)["why"]
    assert "training and its workers share the processors" in why


def test_repeats_that_differ_too_much_are_named() -> None:
    """Nobody knows then whether it is the model that is off."""
    loops = [
        replace(trial, metrics={**trial.metrics, "samples_per_s": rate})
        for trial, rate in zip(loop("warm", 1.0), (300.0, 400.0, 450.0), strict=True)
    ]
    why = found(LOADERS, loop("synthetic", 1000.0), loops)["why"]
    assert why.endswith(
        "repeats differ by 38%, so that other work on this machine may be the reason"
    )


def test_more_workers_than_processors_are_named() -> None:
    """The model was told of two alone."""
    points = together(loader(300.0, 1), loader(590.0, 2), loader(600.0, 4), loader(320.0, 8))
    model = found(points, processors=2)
    assert not model["holds"]
    assert "8 workers share 2 processors" in model["why"]


def test_parts_that_do_not_overlap_are_named() -> None:
    """A loader that reads and decodes by turns is as slow as both together."""
    slow = loader(600.0, 2, loader="raw", cache="cold")
    cold = loader(1 / (1 / 590 + 1 / 600), 2, cache="cold")
    model = found(LOADERS, slow, cold)
    assert "do not run side by side" in scope(model, "torch-iterable over shards")["why"]


def test_a_prediction_that_lacks_a_part_tests_nothing() -> None:
    """It is a bound: shown, and not counted."""
    model = found(LOADERS, loop("synthetic", 1000.0), loop("cold", 200.0))
    told = next(p for p in model["predictions"] if p["scope"] == "g")
    assert (told["held_out"], told["missing"]) == (False, ["disk"])
    assert told["predicted"]["median"] == pytest.approx(590)
    assert scope(model, "g") == {
        "scope": "g",
        "checks": 0,
        "holds": False,
        "largest_error": None,
        "why": "not measured: disk",
    }


def test_what_was_asked_cold_and_not_shown_so_is_no_test() -> None:
    """Nobody knows what it read from."""
    loops = [replace(trial, cold=WARM) for trial in loop("cold", 200.0)]
    model = found(LOADERS, RAW, loop("synthetic", 1000.0), loops)
    assert "g" not in {p["scope"] for p in model["predictions"]}


def test_without_anything_held_out_it_does_not_hold() -> None:
    """Two points are their own law."""
    model = found(loader(300.0, 1), loader(590.0, 2))
    assert (model["holds"], model["largest_error"]) == (False, None)
    assert "nothing tests the model" in model["why"]


def test_a_rung_of_the_ladder_that_decodes_is_a_warm_loop() -> None:
    """Encoded images in memory: no storage has a part in it."""
    model = found(LOADERS, loop("synthetic", 1000.0), loop("decode", 600.0))
    (told,) = [p for p in model["predictions"] if p["scope"] == "g"]
    assert told["error"] == pytest.approx(590 / 600 - 1)


def test_reading_a_store_by_a_loader_tests_the_law_of_its_objects() -> None:
    """Which was fitted to another program's requests."""
    points = [fetched(size, 2, 2 * size / (0.05 + size / 80e6)) for size in (10**6, 4 * 10**6)]
    raw = loader(2 * 4e6 / 0.1 / 40_000, 2, loader="raw", data="shards@s3")
    model = found(*points, raw)
    (told,) = [p for p in model["predictions"] if p["kind"] == "store"]
    assert told["error"] == pytest.approx(0, abs=1e-6)
    assert model["holds"]


def test_nothing_was_measured() -> None:
    """Nor is anything said."""
    assert whatif([], {}) == {}
    assert found(loader(100.0, 1, loader="null", data="")) == {}
