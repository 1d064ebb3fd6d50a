"""Workers, prefetch, batch size, pinned memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.iobench.advice.made import advice, forms, over_photos, run
from tests.iobench.whatif.made import loader, loop, together


def told(key: str, value: int) -> dict[str, Any]:
    """As an argument."""
    return {key: value}


CURVE = together(loader(300.0, 1), loader(590.0, 2), loader(600.0, 4), loader(601.0, 8))


def test_the_smallest_number_within_two_per_cent_is_advised() -> None:
    """590 is; 300 is not. The first point of the config is what is used now."""
    found = advice(run(CURVE))["workers"]
    assert (found.state, found.value, found.now, found.basis) == ("change", 2, 1, "measured")
    assert found.gain is not None
    assert found.gain.median == pytest.approx(590 / 300)
    assert dict(found.config) == {"loaders.0.workers": 2}
    assert "1: 300, 2: 590, 4: 600, 8: 601" in found.evidence


@pytest.mark.parametrize(("processors", "said"), [(2, "has 2 processors"), (8, "try more")])
def test_two_workers_are_advised_where_two_were_tried(processors: int, said: str) -> None:
    """Also on a machine of two processors, where the curve has no third point."""
    points = together(loader(300.0, 1), loader(560.0, 2))
    found = advice(run(points, environment={"processors": processors}))["workers"]
    assert (found.state, found.value) == ("change", 2)
    assert said in found.evidence


def test_a_device_needs_no_more_workers_than_it_takes_samples() -> None:
    """The loader goes on to rise; the loop does not, as its capacities say and as it was held."""
    points = together(*(loader(100.0 * w, w) for w in (1, 2, 4, 8)))
    loops = loop("synthetic", 380.0, workers=8), loop("warm", 375.0, workers=8)
    found = advice(run(points, *loops))["workers"]
    assert (found.state, found.value, found.now, found.basis) == ("change", 4, 8, "model")
    assert "limited by device" in found.evidence
    assert found.gain is not None
    assert found.gain.median == pytest.approx(1.0)


def test_loops_that_were_run_with_several_workers_speak_for_themselves() -> None:
    """Whatever the loader does alone."""
    loops = [loop("warm", 100.0 * w, workers=w, group=f"{w}") for w in (1, 2)]
    found = advice(run(CURVE, loop("synthetic", 900.0, workers=1, group="1"), *loops))["workers"]
    assert (found.value, found.basis) == (2, "measured")
    assert "the loop" in found.evidence
    assert dict(found.config) == {"training.0.workers": 2}


def test_a_loop_on_the_processors_of_its_workers_is_advised_nothing_from_the_loader() -> None:
    """Alone it is best with two; beside training nobody knows."""
    loops = (
        loop("synthetic", 800.0, workers=1, device="Some CPU, 2 threads"),
        loop("warm", 150.0, workers=1, device="Some CPU, 2 threads"),
    )
    found = advice(run(CURVE, *loops))["workers"]
    assert (found.state, found.value, found.gain) == ("unknown", None, None)
    assert "training computes on the processors that workers need" in found.evidence


@pytest.mark.parametrize("key", ["prefetch", "batch_size"])
def test_what_is_as_good_as_any_stays(key: str) -> None:
    """A smaller one would do as well, which is told; a change brings nothing."""
    small, now = {"prefetch": (1, 2), "batch_size": (32, 64)}[key]
    found = advice(run(loader(300.0, 2), loader(301.0, 2, **told(key, small))))[key]
    assert (found.state, found.value) == ("keep", now)
    assert f"{small} would do as well" in found.evidence


def test_a_smaller_one_that_is_better_is_advised() -> None:
    """By 10 %, in every round."""
    found = advice(run(loader(300.0, 2), loader(330.0, 2, batch_size=32)))["batch_size"]
    assert (found.state, found.value) == ("change", 32)


def test_where_the_model_does_not_hold_no_workers_are_advised() -> None:
    """What the loader does alone is told, and that it says nothing of the loop."""
    loops = loop("synthetic", 900.0, workers=8), loop("warm", 300.0, workers=8)
    found = advice(run(CURVE, *loops))["workers"]
    assert (found.state, found.value, found.gain) == ("unknown", None, None)
    assert "the loader alone" in found.evidence
    assert "the model does not hold for the loop" in found.evidence


def test_more_workers_must_be_better_beyond_doubt() -> None:
    """Better by medians, worse in one round: what is used now stays."""
    one, two = loader(300.0, 1), loader(340.0, 2)
    noisy = [
        replace(trial, metrics={**trial.metrics, "samples_per_s": rate})
        for trial, rate in zip(two, (250.0, 340.0, 350.0), strict=True)
    ]
    found = advice(run(one, noisy))["workers"]
    assert (found.state, found.value) == ("keep", 1)
    assert found.evidence.endswith("not told apart from what is used now")


def test_no_workers_at_all_are_never_advised_by_the_loader_alone() -> None:
    """Its rate does not show that the device would wait for each batch."""
    found = advice(run(loader(400.0, 0), loader(300.0, 1), loader(350.0, 2)))["workers"]
    assert (found.state, found.value, found.now) == ("change", 2, 0)
    assert advice(run(loader(400.0, 0), loader(300.0, 1)))["workers"].state == "unknown"


@pytest.mark.parametrize(
    ("key", "values"), [("prefetch", (1, 2, 4)), ("batch_size", (16, 64, 256))]
)
def test_the_smallest_of_others_too(key: str, values: tuple[int, int, int]) -> None:
    """Rates 300, 395 and 400 over them."""
    low, middle, _ = values
    points = [
        loader(r, 2, **told(key, v)) for r, v in zip((300.0, 395.0, 400.0), values, strict=True)
    ]
    found = advice(run(*points))[key]
    assert (found.state, found.value, found.now) == ("change", middle, low)
    assert found.gain is not None
    assert found.gain.median == pytest.approx(395 / 300)


def test_one_value_alone_says_nothing() -> None:
    """And what would be run instead."""
    found = advice(run(loader(300.0, 1)))
    for key in ("workers", "prefetch", "batch_size"):
        assert (found[key].state, found[key].value) == ("unknown", None)
        assert "configs/bench/advise.yaml" in found[key].evidence


def test_pinned_memory_is_for_gpus() -> None:
    """Without one there is nothing to try; with one both ways are compared."""
    assert "this machine has none" in advice(run(CURVE))["pin_memory"].evidence
    gpu = {"processors": 8, "gpus": [{"name": "NVIDIA H100"}]}
    assert advice(run(CURVE, environment=gpu))["pin_memory"].state == "unknown"
    loops = [
        loop("synthetic", 900.0, group="plain"),
        loop("warm", 300.0, group="plain"),
        loop("warm", 330.0, group="pinned", pin_memory=True),
    ]
    found = advice(run(*loops, environment=gpu))["pin_memory"]
    assert (found.state, found.value, found.now) == ("change", True, False)
    assert found.gain is not None
    assert found.gain.median == pytest.approx(1.1)


def test_all_changes_together_are_predicted_as_one() -> None:
    """Other data and other workers: the least of the capacities with both."""
    points = together(forms(1), forms(2))
    found = advice(run(points, over_photos(148.0, workers=1)))
    whole = found["together"]
    assert found["workers"].value == 2
    assert (whole.state, whole.basis) == ("change", "model")
    assert whole.gain is not None
    assert whole.gain.median == pytest.approx(500 / 150)
    assert whole.value["data"] == "shards"
    assert dict(whole.config) == {
        "training.0.loader": "torch-iterable",
        "training.0.data": "shards",
        "training.0.workers": 2,
    }


def test_a_run_without_loops_and_loaders_has_no_advice() -> None:
    """Nothing is used now."""
    assert advice(run(loader(300.0, 2, loader="raw"))) == {}
