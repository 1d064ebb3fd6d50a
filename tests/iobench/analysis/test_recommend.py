"""What a run recommends, first of all in four cases of which the right answer is known."""

from __future__ import annotations

from typing import Any

import pytest

from iobench.analysis.analyse import how_words, result_lines
from iobench.stats import Estimate
from tests.iobench.analysis.made import GPU, analysed, by_code, loader, loop, run, together

ONE_WORKER = together(
    *(loader(900, 1), loader(1440, 2)), *(loop("synthetic", 2000), loop("warm", 880))
)
RECORDS: dict[str, Any] = {"loader": "torch-map"}
FAR_STORE = together(
    loader(900, 1),
    loader(880, 1, **RECORDS),
    loader(17, 1, data="shards@s3", **RECORDS),
    loader(70, 4, data="shards@s3", **RECORDS),
    loader(730, 1, data="shards@s3"),
    *(loop("synthetic", 2000, **RECORDS), loop("store", 16.6, **RECORDS)),
)
DECODE_BOUND = together(
    loader(600, 2, data="originals@disk"),
    loader(900, 2),
    *(loop("synthetic", 2000, form="originals", workers=2),),
    *(loop("warm", 595, form="originals", workers=2),),
)
SLOW_DEVICE = together(
    *(loader(900, 1), loader(1440, 2)), *(loop("synthetic", 200), loop("warm", 199))
)


def gain(found: Estimate | None) -> float:
    """Its median."""
    assert found is not None
    return found.median


def test_one_worker_on_two_processors() -> None:
    """A second worker comes first, with the gain that the loader alone shows."""
    found = analysed(ONE_WORKER)
    first = found.advice.changes[0]
    assert first.setting == "workers"
    assert gain(first.gain) == pytest.approx(1.6, rel=0.02)
    assert (first.basis, first.limit) == ("predicted", "decode")
    assert how_words(first) == [
        "iobench: --set training.0.workers=2",
        "PyTorch: DataLoader(num_workers=2)",
    ]
    assert found.verdict.startswith("The loop gets 44 % of what the emulated device can consume.")


def test_a_store_far_away_read_record_by_record() -> None:
    """Reading in sequence or a local copy, either of which gains far more than workers do."""
    found = analysed(FAR_STORE)
    first = found.advice.changes[0]
    assert first.setting in ("loader", "stage")
    assert gain(first.gain) > 40
    assert "object store" in found.verdict
    assert found.findings[0].code.startswith("slow-store")
    assert "Decoding" not in found.verdict


def test_a_decode_bound_loop() -> None:
    """Smaller images, then more processors; storage is not mentioned."""
    resize, more = analysed(DECODE_BOUND).advice.changes
    assert (resize.setting, resize.value) == ("resize", 256)
    assert gain(resize.gain) == pytest.approx(1.5, rel=0.02)
    assert resize.command == "dataprep shard --source /photos --output OUTPUT --size 256"
    assert more.setting == "processors"
    assert gain(more.gain) == pytest.approx(2000 / (595 * 1.5), rel=0.02)


def test_a_device_slower_than_its_input() -> None:
    """Nothing to change, and nothing named that would gain 1.00 times."""
    found = analysed(SLOW_DEVICE)
    assert found.advice.changes == ()
    assert "workers" in found.advice.without_effect
    assert "The device is the limit" in found.verdict
    assert found.findings[0].code == "slow-device"


def test_measured_loops_decide_before_predictions() -> None:
    """A loop with two workers was run: its rate is the gain, within rounds."""
    second = loop("warm", 1100, group="two", workers=2)
    (first, *_) = analysed(ONE_WORKER, second).advice.changes
    assert first.setting == "workers"
    assert first.basis == "measured"
    assert gain(first.gain) == pytest.approx(1100 / 880, rel=0.01)


def test_one_measured_number_of_workers_predicts_a_range() -> None:
    """From what a second hardware thread gives to a whole processor."""
    found = analysed(loop("synthetic", 4000), loop("warm", 800))
    (first, *_) = found.advice.changes
    assert first.setting == "workers"
    assert first.gain is not None
    assert first.gain.low == pytest.approx(1.3, rel=0.03)
    assert first.gain.high == pytest.approx(2.0, rel=0.03)


def test_without_workers_the_loop_itself_tells_what_loading_takes() -> None:
    """Seconds of device and loader add; with a worker the slower of the two decides."""
    found = analysed(loop("synthetic", 1000, workers=0), loop("warm", 500, workers=0), processors=1)
    (first, *_) = found.advice.changes
    assert (first.setting, first.value) == ("workers", 1)
    assert gain(first.gain) == pytest.approx(2.0, rel=0.05)


@pytest.mark.parametrize(
    ("workers", "rate", "change"), [(1, 900, "workers"), (2, 1440, "processors")]
)
def test_a_model_that_misses_the_loop_predicts_nothing(
    workers: int, rate: float, change: str
) -> None:
    """The change is still named, and that no gain is predicted."""
    fast, slow = loop("synthetic", 2000, workers=workers), loop("warm", 500, workers=workers)
    found = analysed(loader(900, 1), loader(1440, 2), fast, slow)
    (first, *_) = found.advice.changes
    assert (first.setting, first.gain, first.basis) == (change, None, "not predicted")
    assert found.checks[0].error == pytest.approx(rate / 500 - 1, abs=0.02)


def test_a_loop_that_computes_on_its_workers_processors_is_not_modelled_untested() -> None:
    """More workers would take the processors that train."""
    cpu = {"device": "Xeon, 2 threads"}
    found = analysed(loop("synthetic", 900, metrics=cpu), loop("warm", 300, metrics=cpu))
    assert all(change.gain is None for change in found.advice.changes)


def test_later_gains_are_on_top_of_those_before() -> None:
    """With both changes the device is fed: the second gains what the first left."""
    trials = together(
        *(loader(900, 1), loader(1440, 2)),
        *(loader(500, 1, data="originals@disk"), loader(900, 2, data="originals@disk")),
        loop("synthetic", 1440, form="originals"),
        loop("warm", 500, form="originals"),
    )
    changes = analysed(trials).advice.changes
    rates = [change.rate for change in changes if change.setting != "processors"]
    assert [change.setting for change in changes][:2] in (
        ["workers", "resize"],
        ["resize", "workers"],
    )
    assert rates[1] == pytest.approx(1440, rel=0.03)


def test_files_are_packed_where_shards_of_the_same_images_are_faster() -> None:
    """By loaders of one framework; other frameworks say nothing of this loop."""
    folder: dict[str, Any] = {"loader": "torch-folder", "data": "files@disk"}
    trials = together(
        *(loader(400, 1, **folder), loader(900, 1), loader(2000, 1, loader="tf-data")),
        loop("synthetic", 2000, loader="torch-folder", form="files"),
        loop("warm", 398, loader="torch-folder", form="files"),
    )
    changes = {change.setting: change for change in analysed(trials, processors=1).advice.changes}
    assert gain(changes["sharding"].gain) == pytest.approx(900 / 400, rel=0.02)
    assert changes["sharding"].command.startswith("dataprep shard --source /photos")
    assert "loader" not in changes


def test_given_shards_are_not_resized() -> None:
    """What they were made of is not known."""
    given = {"data": {"shards": "/shards", "source": None}}
    found = analysed(loader(900, 1), loader(1800, 1, data="shards-224px@disk"), ONE_WORKER, **given)
    assert "resize" not in {change.setting for change in found.advice.changes}


def test_images_are_not_stored_smaller_than_the_model_takes() -> None:
    """They would be enlarged again."""
    trials = together(loader(3000, 1, data="shards-128px@disk"), ONE_WORKER)
    assert "resize" not in {change.setting for change in analysed(trials).advice.changes}


@pytest.mark.parametrize("name", ["tf-data", "mxnet-record"])
def test_other_frameworks_are_not_told_what_torch_can_do(name: str) -> None:
    """No script argument, no loader, no shard size for random reads."""
    trials = together(
        *(loader(900, 1, loader=name), loader(1440, 2, loader=name)),
        *(loop("synthetic", 2000, loader=name), loop("store", 100, loader=name)),
        loader(100, 1, loader=name, data="shards@s3"),
    )
    for change in analysed(trials).advice.changes:
        assert change.setting != "loader"
        assert "DataLoader" not in change.code


def test_pinned_memory_is_for_gpus() -> None:
    """An emulated device copies nothing."""
    pinned = loader(1000, 1, pin_memory=True)
    of = {False: analysed(ONE_WORKER, pinned), True: None}
    found = of[False]
    assert found is not None
    assert "pin_memory" not in found.advice.not_measured
    gpu = together(
        loader(900, 1), loop("synthetic", 2000, metrics=GPU), loop("warm", 880, metrics=GPU)
    )
    assert "pin_memory" in analysed(gpu).advice.not_measured


def test_the_primary_finding_has_the_first_recommendation() -> None:
    """Verdict, findings and advice cannot contradict each other."""
    for trials in (ONE_WORKER, FAR_STORE, DECODE_BOUND):
        found = analysed(trials)
        (primary,) = [finding for finding in found.findings if finding.primary]
        assert primary.recommendation == found.advice.changes[0].as_dict()
        assert found.advice.changes[0].action in primary.advice
        assert found.summary["recommendations"][0] == primary.recommendation
        assert found.advice.changes[0].action in result_lines(found.summary)[1]


def test_too_many_workers_are_named() -> None:
    """With the number of processors instead; no gain is predicted."""
    trials = together(loop("synthetic", 2000, workers=9), loop("warm", 1000, workers=9))
    found = by_code(trials)["too-many-workers"]
    assert found.recommendation is not None
    assert found.recommendation["config"] == {"training.0.workers": 2}


def test_a_run_without_loops_advises_its_loader() -> None:
    """Of the first that decodes."""
    found = analysed(loader(900, 1), loader(1440, 2))
    assert found.now is not None
    assert [change.setting for change in found.advice.changes] == ["workers"]
    assert analysed(loader(900, 1, loader="raw")).now is None


def test_the_longest_stored_side_within_two_percent_is_taken() -> None:
    """Pixels are not given up for nothing."""
    trials = together(
        loader(600, 2, data="originals@disk"),
        *(
            loader(rate, 2, data=f"shards-{side}px@disk")
            for side, rate in ((320, 995), (256, 1000))
        ),
        *(loop("synthetic", 4000, form="originals", workers=2),),
        *(loop("warm", 595, form="originals", workers=2),),
    )
    assert analysed(trials).advice.changes[0].value == 320


def test_what_the_loop_gets_may_be_asked_of_another_group() -> None:
    """Its keys are its own."""
    from iobench.analysis.analyse import analyse

    other = together(loop("synthetic", 2000, group="b"), loop("warm", 880, group="b"))
    found = analyse(run(ONE_WORKER, other), "b")
    assert found.loop is not None
    assert found.advice.changes[0].config == {"training.1.workers": 2}
