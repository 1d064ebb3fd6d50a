"""Whether shards, and images resized beforehand, would help."""

from __future__ import annotations

from dataclasses import replace

import pytest

from iobench.trial import Trial
from tests.iobench.advice.made import DATA, advice, forms, over_photos, run
from tests.iobench.whatif.made import loader, loop, together


def test_resizing_pays_as_far_as_the_device_takes() -> None:
    """600 samples/s decoded, 500 taken, 295 now: by the model, which holds."""
    found = advice(run(forms(), over_photos()))["resize"]
    assert (found.state, found.value, found.now, found.basis) == ("change", 256, None, "model")
    assert found.gain is not None
    assert found.gain.median == pytest.approx(500 / 300)
    assert dict(found.config) == {"image.size": 256}
    assert found.command == "dataprep shard"
    assert "torch-folder over photos 300 samples/s, torch-folder over files 600" in found.evidence


def test_a_machines_moods_cancel_within_rounds() -> None:
    """Both loaders were slow in one round and fast in another: their ratio was 2 in each."""
    moods = (0.5, 1.0, 1.5)
    loaders = [
        replace(trial, metrics={**trial.metrics, "samples_per_s": rate * moods[trial.repeat]})
        for rate, form in ((300.0, "photos"), (600.0, "files"))
        for trial in loader(rate, 2, loader="torch-folder", data=f"{form}@disk")
    ]
    loops = together(
        loop("synthetic", 5000.0, loader="torch-folder", form="photos"),
        loop("warm", 295.0, loader="torch-folder", form="photos"),
    )
    found = advice(run(loaders, loops))["resize"]
    assert found.basis == "model"
    assert found.gain is not None
    assert found.gain.low == pytest.approx(2.0)
    assert found.gain.high == pytest.approx(2.0)


def test_a_decode_bound_loop_is_told_that_shards_will_not_help() -> None:
    """The same images, as fast to decode wherever they lie."""
    found = advice(run(forms(), over_photos()))["sharding"]
    assert (found.state, found.value) == ("keep", False)
    assert found.evidence.startswith("you are decode-bound: resharding will not help: ")


def test_shards_are_advised_where_small_files_are_slow() -> None:
    """Files that are read cold at a quarter of the rate of shards."""
    slow = together(
        loader(150.0, 2, loader="torch-folder", data="files@disk", cache="cold"),
        loader(600.0, 2, data="shards@disk", cache="cold"),
    )
    found = advice(run(slow))["sharding"]
    assert (found.state, found.value, found.now, found.basis) == ("change", True, False, "measured")
    assert found.gain is not None
    assert found.gain.median == pytest.approx(4.0)


def test_a_device_that_is_the_limit_is_named() -> None:
    """It takes no more than it gets."""
    slow = together(
        loop("synthetic", 290.0, loader="torch-folder", form="photos"),
        loop("warm", 289.0, loader="torch-folder", form="photos"),
    )
    found = advice(run(forms(), slow))["resize"]
    assert found.state == "keep"
    assert found.evidence.startswith("the device is the limit: resizing beforehand will not help")


def test_where_the_model_does_not_hold_the_loop_is_promised_nothing() -> None:
    """The loaders were measured, and their ratio is told; the loop gets half of what was said."""
    found = advice(run(forms(), over_photos(150.0)))
    resize = found["resize"]
    assert (resize.state, resize.gain, resize.basis) == ("change", None, "measured")
    assert "of the loop nothing is predicted: the model does not hold for it" in resize.evidence
    whole = found["together"]
    assert (whole.state, whole.gain) == ("unknown", None)
    assert whole.config["training.0.data"] == "shards"  # to be measured


def test_a_loop_that_was_run_so_is_its_own_evidence() -> None:
    """Two loops that differ in their data alone need no model."""
    after = loop("warm", 410.0, group="after", loader="torch-folder", form="files")
    before = over_photos(150.0)
    found = advice(run(forms(), before, after))["resize"]
    assert found.basis == "measured"
    assert found.gain is not None
    assert found.gain.median == pytest.approx(410 / 150)


def test_images_below_what_the_loop_takes_are_not_advised() -> None:
    """They would be enlarged again."""
    found = advice(run(forms(), over_photos(), data={**DATA, "size": 128}))["resize"]
    assert (found.state, found.value) == ("unknown", None)
    assert "128 pixels is below the 224" in found.evidence


def test_what_was_not_measured_says_what_measures_it() -> None:
    """One form of data says nothing of others."""
    one = loader(300.0, 2, loader="torch-folder", data="photos@disk")
    found = advice(run(one))
    assert {found[key].state for key in ("sharding", "resize")} == {"unknown"}
    assert "configs/bench/advise.yaml" in found["resize"].evidence
    given = advice(run(one, data={"shards": "out"}))["resize"]
    assert (given.state, "data.source" in given.evidence) == ("unknown", True)


def test_data_that_are_resized_shards_stay() -> None:
    """Nothing is left to do."""
    found = advice(run(loader(300.0, 2)))
    assert (found["sharding"].state, found["sharding"].value) == ("keep", True)
    assert (found["resize"].state, found["resize"].value) == ("keep", 256)


def test_what_may_help_and_cannot_be_told_is_not_known() -> None:
    """Half as fast again in one round, half in another."""
    before = loader(300.0, 2, loader="torch-folder", data="photos@disk")
    after = loader(360.0, 2, loader="torch-folder", data="files@disk")
    unsure = [
        replace(trial, metrics={**trial.metrics, "samples_per_s": rate})
        for trial, rate in zip(after, (250.0, 360.0, 450.0), strict=True)
    ]
    found = advice(run(before, unsure))["resize"]
    assert found.state == "unknown"
    assert found.evidence.startswith("it may help, and repeats differ too much: ")
    noisy = [
        replace(trial, metrics={**trial.metrics, "samples_per_s": rate})
        for trial, rate in zip(after, (250.0, 300.0, 450.0), strict=True)
    ]
    found = advice(run(before, noisy))["resize"]
    assert (found.state, found.value) == ("keep", None)
    assert "there is no sign that resizing beforehand helps" in found.evidence


def sizes(rates: dict[str, float]) -> list[Trial]:
    """Shards of the source's images, as they are and in several sizes."""
    return together(*(loader(rate, 2, data=f"{form}@disk") for form, rate in rates.items()))


def test_the_largest_side_that_gives_nothing_away_is_advised() -> None:
    """The device takes 500: 320 pixels are as good as 256; 384 are not. 192 are too few."""
    rates = {"originals": 300.0, "shards": 900.0, "shards-320px": 640.0, "shards-384px": 450.0}
    loops = together(
        loop("synthetic", 500.0, form="originals"), loop("warm", 298.0, form="originals")
    )
    found = advice(run(sizes({**rates, "shards-192px": 1500.0}), loops))
    resize = found["resize"]
    assert (resize.state, resize.value, resize.basis) == ("change", 320, "model")
    assert "times the rate by pixels 256: 1.67, 320: 1.67, 384: 1.50" in resize.evidence
    assert resize.gain is not None
    assert resize.gain.median == pytest.approx(500 / 300)
    assert dict(resize.config) == {"image.size": 320}
    assert found["together"].value["data"] == "shards-320px"


def test_where_decoding_limits_the_smallest_side_is_the_best() -> None:
    """Each pixel costs: so the loader alone, which nothing slows."""
    found = advice(run(sizes({"originals": 300.0, "shards": 900.0, "shards-320px": 640.0})))
    assert (found["resize"].value, found["resize"].basis) == (256, "measured")
    assert found["resize"].gain is not None
    assert found["resize"].gain.median == pytest.approx(3.0)


def test_what_resizes_and_packs_at_once_is_evidence_too() -> None:
    """Class folders as they are beside shards: which of both helps is not said."""
    photos = loader(300.0, 2, loader="torch-folder", data="photos@disk")
    found = advice(run(photos, loader(600.0, 2)))
    assert (found["resize"].state, found["resize"].value) == ("change", 256)
    assert "torch-folder over photos 300 samples/s, torch-iterable over shards 600" in (
        found["resize"].evidence
    )
    assert found["sharding"].state == "unknown"


def test_other_sides_are_other_images() -> None:
    """Small files beside smaller images in shards do not say what packing brings."""
    files = loader(300.0, 2, loader="torch-folder", data="files@disk")
    found = advice(run(files, loader(900.0, 2, data="shards-128px@disk")))
    assert found["sharding"].state == "unknown"
