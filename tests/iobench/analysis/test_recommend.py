"""What a run recommends, first in four cases whose right answer is known."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Any

import pytest

from dataprep.config.files import parse_settings
from iobench.analysis.analyse import analyse
from iobench.analysis.gain_words import how_words, result_lines
from iobench.analysis.recommendation_choice import advise
from iobench.analysis.store_limits import connections_of
from iobench.config.benchmark import BenchConfig
from iobench.results.statistics import Estimate
from iobench.results.trial import Trial
from tests.iobench.analysis.made import (
    GPU,
    PROBED,
    SAMPLE_BYTES,
    analysed,
    by_code,
    loader,
    loop,
    probe,
    run,
    together,
)

LOADERS = together(loader(900, 1), loader(1440, 2))
ONE_WORKER = together(LOADERS, loop("synthetic", 2000), loop("warm", 880))
RECORDS: dict[str, Any] = {"loader": "torch-map"}
FAR_STORE = together(
    loader(900, 1),
    loader(880, 1, **RECORDS),
    loader(17, 1, data="shards@s3", **RECORDS),
    loader(70, 4, data="shards@s3", **RECORDS),
    loader(730, 1, data="shards@s3"),
    loop("synthetic", 2000, **RECORDS),
    loop("store", 16.6, **RECORDS),
)
DECODE_BOUND = together(
    loader(600, 2, data="originals@disk"),
    loader(900, 2),
    loop("synthetic", 2000, form="originals", workers=2),
    loop("warm", 595, form="originals", workers=2),
)
SLOW_DEVICE = together(LOADERS, loop("synthetic", 200), loop("warm", 199))


def gain(estimate: Estimate | None) -> float:
    """Return the median of a gain."""
    assert estimate is not None
    return estimate.median


def test_one_worker_on_two_processors() -> None:
    """A second worker comes first, with the gain that the loader alone shows."""
    result = analysed(ONE_WORKER)
    first = result.advice.changes[0]
    assert first.setting == "workers"
    assert gain(first.gain) == pytest.approx(1.6, rel=0.02)
    assert (first.basis, first.limit) == ("predicted", "decode")
    assert how_words(first) == [
        "iobench: --set training.0.workers=2",
        "PyTorch: DataLoader(num_workers=2)",
    ]
    assert result.verdict.startswith("The loop gets 44 % of what the emulated device can consume.")


def test_a_store_far_away_read_record_by_record() -> None:
    """Sequential reading or a local copy comes first; either gains far more than workers do."""
    result = analysed(FAR_STORE)
    first = result.advice.changes[0]
    assert first.setting in ("loader", "stage")
    assert gain(first.gain) > 40
    assert "object store" in result.verdict
    assert result.findings[0].code.startswith("slow-store")
    assert "Decoding" not in result.verdict


def test_a_decode_bound_loop() -> None:
    """Smaller images come first, then more processors; storage is not mentioned."""
    resize, more = analysed(DECODE_BOUND).advice.changes
    assert (resize.setting, resize.value) == ("resize", 256)
    assert gain(resize.gain) == pytest.approx(1.5, rel=0.02)
    assert resize.command == "dataprep shard --source /photos --output OUTPUT --size 256"
    assert more.setting == "processors"
    assert more.gain is None


def test_a_device_slower_than_its_input() -> None:
    """No change is recommended; settings that would gain nothing are listed as such."""
    result = analysed(SLOW_DEVICE)
    assert result.advice.changes == ()
    assert "workers" in result.advice.without_effect
    assert "The device is the limit" in result.verdict
    assert result.findings[0].code == "slow-device"


def test_measured_loops_decide_before_predictions() -> None:
    """The gain of two workers is the measured one if a loop with two workers was run."""
    second = loop("warm", 1100, group="two", workers=2)
    (first, *_) = analysed(ONE_WORKER, second).advice.changes
    assert first.setting == "workers"
    assert first.basis == "measured"
    assert gain(first.gain) == pytest.approx(1100 / 880, rel=0.01)


@pytest.mark.parametrize(
    ("trials", "processors", "counts"),
    [
        (together(loop("synthetic", 4000), loop("warm", 800)), 2, "1,2,4"),
        (together(loop("synthetic", 4000), loop("warm", 800)), 8, "1,2,4,8"),
        (
            together(loop("synthetic", 4000, workers=0), loop("warm", 800, workers=0)),
            2,
            "1,2,4",
        ),
        (together(loader(820, 1), loop("synthetic", 4000), loop("warm", 800)), 4, "1,2,4"),
    ],
)
def test_one_measured_number_of_workers_is_no_prediction(
    trials: list[Trial], processors: int, counts: str
) -> None:
    """The advice is the command that measures more of them; a config accepts it."""
    result = analysed(trials, processors=processors)
    (first, *_) = result.advice.changes
    assert (first.setting, first.gain) == ("measure_workers", None)
    assert f"workers: [{counts}]" in first.command
    assert all(change.gain is None for change in result.advice.changes)
    program, name, config, *settings = shlex.split(first.command)
    assert (program, name, config) == ("iobench", "run", "CONFIG")
    requested = parse_settings([word for word in settings if word != "--set"])
    measured = BenchConfig.model_validate(requested)
    assert measured.loaders[0].workers == tuple(int(count) for count in counts.split(","))


def test_the_command_measures_the_loader_that_the_config_has() -> None:
    """The command names its entry under ``loaders``; an entry with other work is not the same."""
    other = {"loader": ["torch-iterable"], "data": ["shards@disk"], "image_size": [64]}
    same = {**other, "image_size": [224], "workers": [1]}
    trials = [loader(820, 1), loop("synthetic", 4000), loop("warm", 800)]
    result = analysed(*trials, loaders=[other, same], processors=4)
    assert "--set 'loaders.1.workers=[1,2,4]'" in result.advice.changes[0].command


def test_workers_that_a_run_left_out_as_useless_are_not_measured_again() -> None:
    """Two workers brought nothing over one, so four were skipped and are not recommended."""
    skipped = [
        replace(trial, status="skipped", reason="2 workers brought +0.5% (more_workers_gain)")
        for trial in loader(900, 4)
    ]
    flat = [loader(900, 1), loader(904, 2), skipped]
    result = analysed(*flat, loop("synthetic", 4000), loop("warm", 890), processors=8)
    assert "workers" in result.advice.without_effect
    assert "measure_workers" not in {change.setting for change in result.advice.changes}


CURVE = together(loader(400, 1), loader(780, 2), loader(1480, 4))


def test_three_measured_numbers_of_workers_predict_twice_the_largest_at_most() -> None:
    """On 32 CPUs 8 workers are predicted from 4, with an interval that shows the extrapolation."""
    trials = [CURVE, loop("synthetic", 9000), loop("warm", 398)]
    first = analysed(*trials, processors=32).advice.changes[0]
    assert (first.setting, first.value, first.basis) == ("workers", 8, "predicted")
    assert first.gain is not None
    assert first.gain.low < 0.85 * first.gain.median
    assert 4 < first.gain.median < 8
    assert analysed(*trials, processors=6).advice.changes[0].value == 6
    assert analysed(*trials, processors=4).advice.changes[0].value == 4


def test_workers_whose_memory_is_not_there_are_not_recommended() -> None:
    """Each worker needs 3 GB, so a machine with 16 GB has too little memory for eight."""
    curve = [
        replace(trial, metrics={**trial.metrics, "memory_bytes": 3e9 * trial.params["workers"]})
        for trial in CURVE
    ]
    trials = [curve, loop("synthetic", 9000), loop("warm", 398)]
    small = analysed(*trials, processors=32, environment={"memory_bytes": 16e9})
    assert small.advice.changes[0].value == 4
    large = analysed(*trials, processors=32, environment={"memory_bytes": 64e9})
    assert large.advice.changes[0].value == 8
    assert "takes about 24 GB of 64 GB" in large.advice.changes[0].why


def test_more_processors_need_the_curve_and_have_an_interval() -> None:
    """A number of CPUs is named only if three counts of workers up to the CPUs were measured."""
    trials = [loop("synthetic", 9000, workers=4), loop("warm", 1470, workers=4)]
    (first,) = analysed(CURVE, *trials, processors=4).advice.changes
    assert (first.setting, first.basis, first.value) == ("processors", "predicted", 8)
    assert first.gain is not None
    assert 1 < first.gain.low < first.gain.median < 2
    slower = [loop("synthetic", 2000, workers=4), loop("warm", 1470, workers=4)]
    (first,) = analysed(CURVE, *slower, processors=4).advice.changes
    assert "about 6 for this device" in first.action
    assert gain(first.gain) == pytest.approx(2000 / 1470, rel=0.02)
    two = together(loader(400, 1), loader(1480, 4))
    (*_, last) = analysed(two, *trials, processors=4).advice.changes
    assert (last.setting, last.gain) == ("processors", None)


def test_other_new_shards_that_gain_are_not_listed_as_without_effect() -> None:
    """Smaller images would gain beside larger shards, but new shards are recommended only once."""
    result = analysed(
        *(loader(600, 2), loader(900, 2, data="shards-64MB@disk")),
        loader(1400, 2, data="shards-240px@disk"),
        *(loop("synthetic", 4000, workers=2), loop("warm", 595, workers=2)),
    )
    assert result.situation is not None
    advice = advise(result.situation, ["shard_size"])
    assert advice.changes[0].setting == "shard_size"
    assert "resize" not in {change.setting for change in advice.changes}
    assert "resize" not in advice.without_effect


def test_the_remedy_of_the_cause_comes_before_a_small_gain() -> None:
    """If other programs take the CPUs, stopping them comes before another worker."""
    seen = {"cpu_busy_share": 0.98, "cores_busy": 0.5, "cpu_s_per_1000_samples": 2.0}
    crowded = [loop("synthetic", 2000, workers=2), loop("warm", 300, workers=2, metrics=seen)]
    third = loop("warm", 309, group="three", workers=3, metrics=seen)
    result = analysed(*crowded, third, processors=4)
    assert result.advice.changes[0].setting == "other_programs"
    assert "workers" in result.advice.without_effect
    faster = loop("warm", 450, group="three", workers=3, metrics=seen)
    result = analysed(*crowded, faster, processors=4)
    assert [change.setting for change in result.advice.changes][:2] == ["other_programs", "workers"]


def test_a_change_whose_interval_reaches_1_is_not_recommended() -> None:
    """A gain of 1.05 (1.00 to 1.14) is not recommended."""
    gains = [1.003, 1.02, 1.05, 1.06, 1.1, 1.14]
    more = []
    for trial in loop("warm", 800, group="two", workers=2):
        rate = 800 * gains[trial.repeat]
        more.append(replace(trial, metrics={**trial.metrics, "samples_per_s": rate}))
    steady = [replace(t, metrics={**t.metrics, "samples_per_s": 800}) for t in loop("warm", 800)]
    result = analysed(loop("synthetic", 2000), steady, more)
    assert "workers" in result.advice.without_effect


def test_behind_a_narrow_link_smaller_images_or_a_nearer_copy_come_first() -> None:
    """More workers have no effect, since they share the same link."""
    flat = {(8_000_000, 1): 11.8, (8_000_000, 4): 12.0, (8_000_000, 16): 12.0}
    local = [loader(rate, n) for rate, n in ((900, 1), (1700, 2), (1710, 4))]
    remote = [loader(rate, n, data="shards@s3") for rate, n in ((285, 1), (295, 2), (299, 4))]
    loops = [loop("synthetic", 2000, workers=2), loop("store", 293, workers=2)]
    result = analysed(*local, *remote, *loops, probe(flat), **PROBED)
    assert result.findings[0].code == "slow-store-bandwidth"
    assert result.advice.changes[0].setting in ("stage", "resize")
    assert "workers" in result.advice.without_effect


@pytest.mark.parametrize(
    ("name", "workers", "connections"),
    [("torch-iterable", 2, 4), ("torch-map", 2, 64), ("tf-data", 8, 2), ("raw", 3, 3)],
)
def test_a_store_is_predicted_with_the_connections_of_the_loader(
    name: str, workers: int, connections: int
) -> None:
    """A sequential worker reads two windows at a time, a worker of single samples 32 ranges."""
    params = {"loader": name, "workers": workers, "batch_size": 64}
    assert connections_of(params) == connections


def test_the_probe_predicts_a_loop_by_its_connections() -> None:
    """Two workers have four windows under way, so the point with four connections counts."""
    rates = {(8_000_000, 1): 4.0, (8_000_000, 2): 8.0, (8_000_000, 4): 16.0, (8_000_000, 8): 31.0}
    trials = [loader(1700, 2), loop("synthetic", 2000, workers=2), loop("store", 390, workers=2)]
    (check,) = analysed(*trials, probe(rates), **PROBED).checks
    assert check.prediction.rate is not None
    assert check.prediction.rate.median == pytest.approx(16e6 / SAMPLE_BYTES, rel=0.01)
    assert check.prediction.limit == "store"


@pytest.mark.parametrize(
    ("workers", "rate", "change"), [(1, 900, "workers"), (2, 1440, "processors")]
)
def test_a_model_that_misses_the_loop_predicts_nothing(
    workers: int, rate: float, change: str
) -> None:
    """The change is still named, without a predicted gain."""
    fast, slow = loop("synthetic", 2000, workers=workers), loop("warm", 500, workers=workers)
    result = analysed(loader(900, 1), loader(1440, 2), fast, slow)
    (first, *_) = result.advice.changes
    assert (first.setting, first.gain, first.basis) == (change, None, "not predicted")
    assert result.checks[0].error == pytest.approx(rate / 500 - 1, abs=0.02)


def test_a_loop_that_computes_on_its_workers_processors_is_not_modelled_untested() -> None:
    """No gain is predicted, since more workers would take the CPUs that train."""
    cpu = {"device": "Xeon, 2 threads"}
    result = analysed(loop("synthetic", 900, metrics=cpu), loop("warm", 300, metrics=cpu))
    assert all(change.gain is None for change in result.advice.changes)


def test_later_gains_are_on_top_of_those_before() -> None:
    """The second gain is what the first change left until both together feed the device."""
    trials = together(
        LOADERS,
        loader(500, 1, data="originals@disk"),
        loader(900, 2, data="originals@disk"),
        loop("synthetic", 1440, form="originals"),
        loop("warm", 500, form="originals"),
    )
    changes = analysed(trials).advice.changes
    assert {change.setting for change in changes[:2]} == {"workers", "resize"}
    assert changes[1].rate == pytest.approx(1440, rel=0.03)


def test_files_are_packed_where_shards_of_the_same_images_are_faster() -> None:
    """Files are compared with shards of the same framework only."""
    folder: dict[str, Any] = {"loader": "torch-folder", "data": "files@disk"}
    trials = together(
        loader(400, 1, **folder),
        loader(900, 1),
        loader(2000, 1, loader="tf-data"),
        loop("synthetic", 2000, loader="torch-folder", form="files"),
        loop("warm", 398, loader="torch-folder", form="files"),
    )
    changes = {change.setting: change for change in analysed(trials, processors=1).advice.changes}
    assert gain(changes["sharding"].gain) == pytest.approx(900 / 400, rel=0.02)
    assert changes["sharding"].command.startswith("dataprep shard --source /photos")
    assert "loader" not in changes


def test_given_shards_are_not_resized() -> None:
    """Resizing is not recommended if the source of the shards is unknown."""
    settings = {"data": {"shards": "/shards", "source": None}}
    result = analysed(
        loader(900, 1), loader(1800, 1, data="shards-224px@disk"), ONE_WORKER, **settings
    )
    assert "resize" not in {change.setting for change in result.advice.changes}


def test_images_are_not_stored_smaller_than_the_model_takes() -> None:
    """Images smaller than the model's input are not recommended, since they would be enlarged."""
    trials = together(loader(3000, 1, data="shards-128px@disk"), ONE_WORKER)
    assert "resize" not in {change.setting for change in analysed(trials).advice.changes}


@pytest.mark.parametrize("name", ["tf-data", "mxnet-record"])
def test_other_frameworks_are_not_told_what_torch_can_do(name: str) -> None:
    """The advice names no argument of a DataLoader and no other loader."""
    trials = together(
        loader(900, 1, loader=name),
        loader(1440, 2, loader=name),
        loop("synthetic", 2000, loader=name),
        loop("store", 100, loader=name),
        loader(100, 1, loader=name, data="shards@s3"),
    )
    for change in analysed(trials).advice.changes:
        assert change.setting != "loader"
        assert "DataLoader" not in change.code


def test_pinned_memory_is_for_gpus() -> None:
    """Pinned memory is not proposed for an emulated device, which copies nothing."""
    pinned = loader(1000, 1, pin_memory=True)
    emulated = analysed(ONE_WORKER, pinned)
    assert "pin_memory" not in emulated.advice.not_measured
    gpu_loops = [loop("synthetic", 2000, metrics=GPU), loop("warm", 880, metrics=GPU)]
    gpu = analysed(loader(900, 1), *gpu_loops)
    assert "pin_memory" in gpu.advice.not_measured


def test_the_primary_finding_has_the_first_recommendation() -> None:
    """Verdict, findings and advice cannot contradict each other."""
    for trials in (ONE_WORKER, FAR_STORE, DECODE_BOUND):
        result = analysed(trials)
        (primary,) = [finding for finding in result.findings if finding.primary]
        assert primary.recommendation == result.advice.changes[0].as_dict()
        assert result.advice.changes[0].action in primary.advice
        assert result.summary["recommendations"][0] == primary.recommendation
        assert result.advice.changes[0].action in result_lines(result.summary)[1]


def test_too_many_workers_are_named() -> None:
    """The advice is the number of CPUs, and no gain is predicted."""
    trials = together(loop("synthetic", 2000, workers=9), loop("warm", 1000, workers=9))
    findings = by_code(trials)["too-many-workers"]
    assert findings.recommendation is not None
    assert findings.recommendation["config"] == {"training.0.workers": 2}


def test_a_run_without_loops_advises_its_loader() -> None:
    """The advice is for the first loader that decodes."""
    result = analysed(loader(900, 1), loader(1440, 2))
    assert result.situation is not None
    assert [change.setting for change in result.advice.changes] == ["workers"]
    assert analysed(loader(900, 1, loader="raw")).situation is None


def test_advice_for_a_loader_changes_its_own_entry() -> None:
    """Entries of other loaders, and of the same loader with other settings, are not changed."""
    raw = {"loader": "raw", "seconds": 1.0}
    other = {"loader": ["torch-iterable"], "workers": [1, 2], "image_size": 64, "seconds": 1.0}
    entry = {**other, "loader": ["torch-map", "torch-iterable"], "image_size": 224}
    trials = [loader(900, 1), loader(1440, 2)]
    for loaders, key in (([raw, other, entry], "loaders.2"), ([entry, raw], "loaders.0")):
        (change,) = analysed(*trials, loaders=loaders).advice.changes
        assert change.config == {f"{key}.workers": 2}
    unknown = {"loader": "of-a-package-that-is-not-installed"}
    (change,) = analysed(*trials, loaders=[unknown, entry]).advice.changes
    assert change.config == {"loaders.1.workers": 2}


@pytest.mark.parametrize(
    ("trials", "config"),
    [
        (
            together(loader(900, 1, data="shards@s3"), loader(1800, 1)),
            {"loaders.0.data": "shards@disk", "loaders.0.cache": "warm"},
        ),
        (
            together(
                loader(600, 2, data="photos@disk", loader="torch-folder"),
                loader(1800, 2),
            ),
            {"loaders.0.loader": "torch-iterable", "loaders.0.data": "shards@disk"},
        ),
    ],
)
def test_advice_for_a_loader_has_keys_that_its_entry_accepts(
    trials: list[Trial], config: dict[str, str]
) -> None:
    """A loader has its location in the name of its data, and no ``inputs``."""
    change = analysed(trials).advice.changes[0]
    assert {key: value for key, value in change.config.items() if key != "data.shards"} == config
    entry = {key.removeprefix("loaders.0."): value for key, value in config.items()}
    BenchConfig.model_validate({"loaders": [{"loader": "torch-iterable", **entry}]})


def test_the_longest_stored_side_within_two_percent_is_taken() -> None:
    """The larger of two sizes is recommended if the smaller one gains less than two per cent."""
    trials = together(
        loader(600, 2, data="originals@disk"),
        loader(995, 2, data="shards-320px@disk"),
        loader(1000, 2, data="shards-256px@disk"),
        loop("synthetic", 4000, form="originals", workers=2),
        loop("warm", 595, form="originals", workers=2),
    )
    assert analysed(trials).advice.changes[0].value == 320


def test_advice_is_given_for_another_group() -> None:
    """Advice for another group names the keys of that group."""
    other = together(loop("synthetic", 2000, group="b"), loop("warm", 880, group="b"))
    result = analyse(run(ONE_WORKER, other), "b")
    assert result.loop is not None
    assert result.advice.changes[0].config == {"training.1.workers": 2}


def test_advice_names_the_entry_of_a_loop_after_several_devices() -> None:
    """An entry with several numbers of devices is one entry, but as many loops."""
    entries = [{"devices": [1, 2]}, {"consumer": "paced"}]
    loops = []
    for group, rate in (("one", 1900), ("two", 1900), ("other", 880)):
        loops += [loop("synthetic", 2000, group=group), loop("warm", rate, group=group)]
    result = analyse(run(LOADERS, *loops, training=entries), "other")
    assert result.advice.changes[0].config == {"training.1.workers": 2}


def whole_epochs(start_s: float, epoch_s: float, epochs: int) -> dict[str, Any]:
    """Return the metrics of ``epochs`` epochs of 1,000 samples, the first of which has a start."""
    return {
        "rate_rule": "epochs",
        "samples": 1_000 * epochs,
        "epochs": [{"number": number, "samples": 1_000} for number in range(epochs)],
        "whole_epochs": epochs,
        "first_epoch_s": start_s + epoch_s,
        "steady_samples_per_s": 1_000 / epoch_s,
    }


def rate_over(start_s: float, epoch_s: float, epochs: int) -> float:
    """Return the samples/s over ``epochs`` epochs of 1,000 samples with one start."""
    return 1_000 * epochs / (start_s + epochs * epoch_s)


def test_rates_are_compared_over_equal_numbers_of_epochs() -> None:
    """A loader over 15 epochs predicts a loop over 3, which has a larger share of worker starts."""
    loaders = []
    for workers, start_s, epoch_s in ((1, 0.5, 1.0), (2, 0.9, 0.5)):
        trials = loader(rate_over(start_s, epoch_s, 15), workers)
        metrics = whole_epochs(start_s, epoch_s, 15)
        loaders += [replace(trial, metrics={**trial.metrics, **metrics}) for trial in trials]
    few = whole_epochs(0.5, 1.0, 3)
    loops = loop("synthetic", 9_000), loop("warm", rate_over(0.5, 1.0, 3), metrics=few)
    analysis = analysed(loaders, *loops)
    assert analysis.checks[0].error == pytest.approx(0.0, abs=0.01)
    (first, *_) = analysis.advice.changes
    expected = rate_over(0.9, 0.5, 3) / rate_over(0.5, 1.0, 3)
    assert gain(first.gain) == pytest.approx(expected, rel=0.01)


def test_a_store_whose_probe_is_much_faster_leaves_preparing_as_the_cause() -> None:
    """Preparing is the cause if a loop gets 720 of 3,000 samples/s that its connections deliver."""
    rates = {(8_000_000, 1): 60.0, (8_000_000, 2): 120.0, (8_000_000, 4): 240.0}
    loaders = [loader(rate, n, data="shards@s3") for n, rate in ((1, 700), (2, 900), (4, 890))]
    loops = loop("synthetic", 5000), loop("store", 720)
    analysis = analysed(*loaders, *loops, probe(rates), **PROBED)
    (first,) = [finding for finding in analysis.findings if finding.primary]
    assert first.code == "slow-preparation"
    assert analysis.advice.changes[0].setting == "workers"
    assert gain(analysis.advice.changes[0].gain) == pytest.approx(900 / 700, rel=0.02)


FLOAT32 = together(loader(900, 2), loop("synthetic", 2000, workers=2), loop("warm", 880, workers=2))


def test_uint8_is_recommended_with_the_gain_that_loaders_show() -> None:
    """A loader that was measured with float32 and with uint8 predicts the gain of uint8."""
    (first, *_) = analysed(FLOAT32, loader(1350, 2, normalise=False)).advice.changes
    assert (first.setting, first.basis, first.value) == ("normalise", "predicted", "device")
    assert gain(first.gain) == pytest.approx(1.5, rel=0.02)
    assert how_words(first) == [
        "iobench: --set training.0.normalise_on=device",
        "dataprep.normalise(images)",
    ]


def test_uint8_is_recommended_with_the_gain_that_loops_show() -> None:
    """If the CPU normalises, only a loop with uint8 shows what normalising costs."""
    cpu = {"device": "CPU, 2 threads"}
    on_host = together(
        loop("synthetic", 2000, workers=2, metrics=cpu), loop("warm", 880, workers=2, metrics=cpu)
    )
    loaders = together(loader(900, 2), loader(1350, 2, normalise=False))
    alone = analysed(loaders, on_host).advice
    assert "normalise" in alone.not_measured
    assert "normalise" not in {change.setting for change in alone.changes}
    on_device = loop("warm", 1056, group="uint8", workers=2, metrics=cpu, normalise=False)
    (first, *_) = analysed(loaders, on_host, on_device).advice.changes
    assert (first.setting, first.basis) == ("normalise", "measured")
    assert gain(first.gain) == pytest.approx(1.2, rel=0.01)


@pytest.mark.parametrize(
    "params", [{"consumer": "tensorflow", "loader": "tf-data"}, {"loader": "mxnet-record"}], ids=str
)
def test_uint8_is_not_recommended_to_loaders_without_it(params: dict[str, Any]) -> None:
    """The advice is for torch's loops with loaders that give uint8."""
    loops = (loop("synthetic", 2000, **params), loop("warm", 880, **params))
    name = params["loader"]
    alone = (loader(900, 1, loader=name), loader(1350, 1, loader=name, normalise=False))
    advice = analysed(*alone, *loops).advice
    mentioned = {change.setting for change in advice.changes} | set(advice.not_measured)
    assert "normalise" not in mentioned
