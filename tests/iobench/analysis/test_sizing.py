"""Sizing: how many accelerators a host feeds, hosts for N devices, and what an epoch costs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from iobench.analysis.feeds_table import FeedsRow, feeds, feeds_line
from iobench.cli.main import app
from iobench.config.benchmark import BenchConfig
from iobench.consumers.accelerators import RATES
from iobench.results.result import Result
from iobench.results.trial import Cold, Trial
from tests.iobench.analysis.made import (
    SAMPLE_BYTES,
    analysed,
    done,
    loader,
    loop,
    probe,
    run,
    together,
)

LOOP = together(loader(1500, 2), loop("synthetic", 2000), loop("cold", 1000))


def disk(mb_per_s: float, target: str = "data") -> list[Trial]:
    """Return trials of the disk probe that read a target in direct mode."""
    params: dict[str, Any] = {"target": target, "operation": "read", "pattern": "sequential"}
    params |= {"cache": "direct", "block_bytes": 2**20, "parallelism": 4}
    return done("disk", params, Cold("direct", "direct"), mb_per_s=mb_per_s)


def scale_output(folder: Path, result: Result, *options: str, code: int = 0) -> str:
    """Return what ``iobench scale`` prints for a saved run, and check its exit code."""
    (folder / "result.json").write_bytes(result.to_json())
    outcome = CliRunner().invoke(app, ["scale", str(folder), *options])
    assert outcome.exit_code == code, outcome.output
    return outcome.output


def run_with_config(*trials: list[Trial], **how: Any) -> Result:
    """Return a run whose config has every key that ``iobench run`` stores."""
    config = BenchConfig().model_dump(mode="json")
    config.pop("data")
    return run(*trials, **{**config, **how})


def test_a_host_feeds_fractions_of_accelerators() -> None:
    """Rows are for the loop now and after the first change, for the CPUs and for the disk."""
    feeds = analysed(LOOP, disk(400)).feeds
    assert feeds is not None
    rows = {row.of: row.samples_per_s for row in feeds.rows}
    assert rows["this loop, now"] == pytest.approx(1000, rel=0.01)
    assert rows["this host's CPUs"] == pytest.approx(1500, rel=0.01)
    assert rows["this disk, cold"] == pytest.approx(400e6 / SAMPLE_BYTES, rel=0.01)
    assert (feeds.model, feeds.limit) == ("ResNet-50", "CPUs")
    json_rows = feeds.as_dict()["rows"][0]["feeds"]
    assert json_rows["H100"] == pytest.approx(1000 / 7000, rel=0.01)
    assert list(json_rows) == ["V100", "A100", "H100"]


def test_the_disk_is_that_of_the_data() -> None:
    """A faster probe counts only if its target is on the same file system as the data."""
    here = {"kind": "nfs", "file_system": "nfs4", "total_bytes": 10**12}
    fast = {"kind": "nvme", "file_system": "ext4", "total_bytes": 10**11}
    environment = {"targets": {"data": here, "here": here, "fast": fast}}
    probes = [disk(400), disk(500, "here"), disk(3000, "fast")]

    def disk_rate(*trials: list[Trial]) -> float | None:
        supplies = analysed(*trials, environment=environment).supplies
        return {supply.part: supply.samples_per_s for supply in supplies}["disk"]

    assert disk_rate(LOOP, *probes) == pytest.approx(500e6 / SAMPLE_BYTES, rel=0.01)
    assert disk_rate(LOOP, disk(3000, "fast")) is None
    far = [loop("synthetic", 2000), loop("store", 500)]
    assert disk_rate(*far, *probes) == pytest.approx(3000e6 / SAMPLE_BYTES, rel=0.01)


def test_a_disk_counts_unless_it_is_known_to_be_another_one() -> None:
    """Earlier results lack the size of a folder that was made during the run."""
    new_folder = {"kind": "nvme", "file_system": "ext4"}
    same = {"kind": "nvme", "file_system": "ext4", "total_bytes": 10**12}
    other = {"kind": "nfs", "file_system": "nfs4", "total_bytes": 10**12}
    for target, is_counted in ((same, True), (other, False)):
        environment = {"targets": {"data": new_folder, "probed": target}}
        supplies = analysed(LOOP, disk(3000, "probed"), environment=environment).supplies
        rate = {supply.part: supply.samples_per_s for supply in supplies}["disk"]
        assert (rate is not None) == is_counted


@pytest.mark.parametrize(
    ("data", "name", "uri"),
    [
        ({"source": "s3://photos/imagenet"}, "photos", "s3://photos/imagenet"),
        ({"source": "s3://photos/imagenet"}, "shards", "s3://bench/x"),
        ({"source": "s3://photos/imagenet"}, "files", "s3://bench/x"),
        ({"shards": "s3://shards/imagenet"}, "shards", "s3://shards/imagenet"),
        ({"shards": "s3://shards/imagenet"}, "shards-16MB", "s3://bench/x"),
        ({"shards": "/local/shards"}, "shards", "s3://bench/x"),
    ],
)
def test_the_probed_store_is_that_of_the_data_that_are_read(
    data: dict[str, Any], name: str, uri: str
) -> None:
    """Existing data are read where they are; all others are copied to ``data.bucket``."""
    section = {"bucket": {"uri": "s3://bench/x"}, **data}
    far = [loop("synthetic", 2000), loop("store", 500, form=name)]
    far.append(loader(4000, 2, data=f"{name}@disk"))
    for probed in ("s3://photos/probe", "s3://shards/probe", "s3://bench/y"):
        targets = {"targets": [{"label": "s3", "uri": probed}]}
        result = analysed(*far, probe({(8_000_000, 4): 100.0}), data=section, object_store=targets)
        rate = {supply.part: supply.samples_per_s for supply in result.supplies}["store"]
        assert (rate is not None) == (probed.split("/")[2] == uri.split("/")[2])


def test_a_prediction_takes_the_disk_of_the_data() -> None:
    """The predicted rate is that of the disk with the data, not of a faster disk."""
    environment = {"targets": {"data": {"total_bytes": 1}, "fast": {"total_bytes": 2}}}
    trials = [loader(1500, 2), loop("synthetic", 2000, workers=2), loop("cold", 495, workers=2)]
    probes = [disk(20), disk(3000, "fast")]
    (check,) = analysed(*trials, *probes, environment=environment).checks
    assert check.prediction.limit == "disk"
    assert check.error == pytest.approx(0, abs=0.05)


def test_the_store_is_that_of_the_data() -> None:
    """A faster store counts only if no data were read from a store."""
    stores = [{"label": "s3", "uri": "local"}, {"label": "fast", "uri": "s3://other/probe"}]
    config: dict[str, Any] = {"object_store": {"targets": stores}}
    gets = probe({(8_000_000, 4): 100.0})
    for trial in probe({(8_000_000, 4): 900.0}):
        gets.append(replace(trial, params={**trial.params, "store": "fast"}))
    far = [loader(4000, 2), loop("synthetic", 2000), loop("store", 500)]
    for trials, mb_per_s in ((far, 100), ([LOOP], 900)):
        supplies = analysed(*trials, gets, **config).supplies
        rates = {supply.part: supply.samples_per_s for supply in supplies}
        assert rates["store"] == pytest.approx(mb_per_s * 1e6 / SAMPLE_BYTES, rel=0.01)


def test_rates_of_accelerators_are_for_resnet50_alone() -> None:
    """Another model is compared with the device that was measured."""
    small = together(loop("synthetic", 2000, model="lenet"), loop("cold", 1000, model="lenet"))
    feeds = analysed(small).feeds
    assert feeds is not None
    assert feeds.model == "LeNet"
    assert list(feeds.rates) == ["emulated device"]
    assert analysed(loop("cold", 1000, image_size=32)).feeds is None


def test_a_loop_at_its_devices_rate_may_feed_more() -> None:
    """The row is a lower bound if the device was the limit."""
    feeds = analysed(loader(1500, 2), loop("synthetic", 500), loop("warm", 499)).feeds
    assert feeds is not None
    assert feeds.rows[0].at_least is True


def test_rows_say_that_they_are_computed_and_from_what() -> None:
    """Rows of a run without accelerators are computed, and each names the rate that it divides."""
    result = analysed(loader(1500, 2), loader(750, 1), loop("synthetic", 2000), loop("warm", 700))
    assert result.feeds is not None
    hows = {row.of: (row.how, row.basis) for row in result.feeds.rows}
    assert hows["this loop, now"] == ("computed", "the loop's rate")
    assert hows["with change 1"] == ("computed", "a predicted rate")
    assert hows["this host's CPUs"] == ("computed", "its rate alone")
    json_rows = result.feeds.as_dict()["rows"]
    assert {row["how"] for row in json_rows} == {"computed"}


def test_the_row_after_a_change_has_the_number_of_the_change() -> None:
    """If the first recommended change has no predicted rate, the row is about the second one."""
    result = analysed(loader(1500, 2), loader(750, 1), loop("synthetic", 2000), loop("warm", 700))
    without_rate = replace(result.advice.changes[0], rate=None)
    advice = replace(result.advice, changes=(without_rate, *result.advice.changes))
    fed = feeds(result.supplies, result.loop, advice)
    assert fed is not None
    names = [row.of for row in fed.rows]
    assert "with change 2" in names
    assert "with change 1" not in names


def test_measured_rows_stand_before_computed_ones() -> None:
    """Measured rows count the accelerators that ran, and the terminal shows them first."""
    result = analysed(LOOP)
    ran = FeedsRow("this host, side by side", 7_410, False, {"A100": 3}, "measured", "3 ranks")
    fed = feeds(result.supplies, result.loop, result.advice, measured=[ran])
    assert fed is not None
    assert fed.rows[0] is ran
    assert {row.how for row in fed.rows[1:]} == {"computed"}
    assert feeds_line(fed) == "This host feeds, for ResNet-50:  3 A100  (measured)"
    own = FeedsRow("this host, side by side", 600, False, {"200 img/s": 3}, "measured", "3 ranks")
    fed = feeds(result.supplies, result.loop, result.advice, measured=[own])
    assert fed is not None
    assert fed.names == ("V100", "A100", "H100", "200 img/s")


@pytest.mark.parametrize(
    ("preset", "model", "names"),
    [
        ("H100", "resnet50", ["V100", "A100", "H100"]),
        ("V100-mxnet-64", "resnet50", ["V100", "A100", "H100"]),
        ("H100-mlperf", "resnet50", ["A100-mlperf", "H100-mlperf"]),
        ("B200-mlperf", "retinanet", ["B200-mlperf", "MI355-mlperf"]),
    ],
)
def test_rates_of_one_table_have_one_meaning(preset: str, model: str, names: list[str]) -> None:
    """Tuned steps stand beside tuned steps, and emulations of MLPerf Storage beside each other."""
    how: dict[str, Any] = {"preset": preset, "model": model}
    feeds = analysed(loop("synthetic", 2000, **how), loop("cold", 1000, **how)).feeds
    assert feeds is not None
    assert list(feeds.rates) == names


def test_hosts_for_devices(tmp_path: Path) -> None:
    """The scarcest part decides; the output names what was not measured."""
    output = scale_output(tmp_path, run_with_config(LOOP, disk(400)), "--devices", "8")
    assert "8 devices, emulated device: consume 16,000 img/s" in output
    assert "Hosts like this one: 11." in output
    assert "CPUs      1,500 img/s per host: the limit" in output
    remedy = "dataprep init, then iobench run configs/bench/s3.yaml"
    assert f"store     not measured ({remedy})" in output
    assert "network   unknown: give limits.network_gbit_per_s" in output
    assert "This host feeds, for ResNet-50:" in output


def test_a_named_device_has_its_published_rate(tmp_path: Path) -> None:
    """The rate of ``--device`` is the published one, and ``--device-rate`` gives another."""
    saved = run_with_config(LOOP)
    output = scale_output(tmp_path, saved, "--devices", "4", "--device", "A100", "--json")
    assert json.loads(output)["scale"]["images_per_s"] == 4 * 2470
    output = scale_output(tmp_path, saved, "--devices", "4", "--device-rate", "100", "--json")
    assert json.loads(output)["scale"]["images_per_s"] == 400
    refused = scale_output(tmp_path, saved, "--device", "K80", code=2)
    assert "--device K80: known are V100, V100-mxnet-64" in refused
    assert "A100, A100-mlperf, H100, H100-mlperf, B200-mlperf" in " ".join(refused.split())


@pytest.mark.parametrize(
    ("device", "rate"),
    [
        *[("V100", 1_200), ("V100-mxnet-64", 687), ("V100-tensorflow-64", 640)],
        *[("A100", 2_470), ("H100", 7_000), ("A100-mlperf", 400 / 0.435)],
        *[("H100-mlperf", 400 / 0.224), ("B200-mlperf", 24 / 0.04755)],
    ],
)
def test_scale_takes_every_rate_by_its_name(tmp_path: Path, device: str, rate: float) -> None:
    """The output says what the rate means and where it comes from."""
    options = ("--devices", "4", "--device", device)
    content = json.loads(scale_output(tmp_path, run_with_config(LOOP), *options, "--json"))["scale"]
    assert content["images_per_s"] == pytest.approx(4 * rate)
    assert RATES[device].work_kind.value in content["rate"]
    assert RATES[device].source in scale_output(tmp_path, run_with_config(LOOP), *options)


def test_scale_prices_the_accelerators(tmp_path: Path) -> None:
    """The price belongs to the rate; if none is known, there is no line."""
    saved = run_with_config(LOOP)
    output = scale_output(tmp_path, saved, "--devices", "64", "--device", "H100")
    assert "price     $440.32 an hour for all devices: p5.48xlarge with 8 for $55.04" in output
    assert "as of 2026-01-19" in output
    output = scale_output(tmp_path, saved, "--devices", "64", "--device", "MI355-mlperf")
    assert "for all devices" not in output
    assert "for all devices" not in scale_output(tmp_path, saved, "--devices", "64")


def test_scale_says_when_a_rate_is_of_another_model(tmp_path: Path) -> None:
    """A line warns if the rate is of RetinaNet and the run trained ResNet-50."""
    saved = run_with_config(LOOP)
    output = scale_output(tmp_path, saved, "--devices", "4", "--device", "B200-mlperf")
    assert "the rate is of RetinaNet, but the run's loop trained ResNet-50" in output
    output = scale_output(tmp_path, saved, "--device", "H100-mlperf")
    assert "the rate is of" not in output


def test_a_run_that_tells_nothing_is_a_wrong_request(tmp_path: Path) -> None:
    """The exit code is 2, and the message names what is missing."""
    output = scale_output(tmp_path, run_with_config(disk(400)), "--devices", "4", code=2)
    assert "the rate of a device was not measured" in output


def test_an_epoch_in_hours_and_dollars(tmp_path: Path) -> None:
    """The loss in hours is named beside the hours; ``cost`` is the same command."""
    options = ("--samples", "3600000", "--usd-per-h", "3", "--epochs", "2")
    output = scale_output(tmp_path, run_with_config(LOOP), *options)
    assert "cold    1 h an epoch, 30 min of it loss; $3.00 an epoch, $6.00 in all" in output
    outcome = CliRunner().invoke(app, ["cost", str(tmp_path), *options, "--json"])
    (row,) = json.loads(outcome.output)["cost"]["rows"]
    assert row["usd"] == pytest.approx(3.0, rel=0.01)


def test_requests_to_amazons_store_are_priced(tmp_path: Path) -> None:
    """Requests are counted by object or by sample, as the loader reads."""
    stores = {"data": {"kind": "aws-s3", "name": "Amazon S3"}}
    for name, gets in (("torch-iterable", 36_000), ("torch-map", 3_600_000)):
        trials = together(loop("synthetic", 2000, loader=name), loop("store", 1000, loader=name))
        result = run_with_config(trials, environment={"stores": stores})
        output = scale_output(tmp_path, result, "--samples", "3600000", "--json")
        (row,) = json.loads(output)["cost"]["rows"]
        assert row["requests_usd"] == pytest.approx(gets * 0.0004 / 1000, rel=0.02)


def test_a_device_that_is_the_limit_of_hosts(tmp_path: Path) -> None:
    """The devices of a host can be the limit, so that more hosts are needed than for input."""
    output = scale_output(tmp_path, run_with_config(LOOP), "--devices", "8", "--device-rate", "10")
    assert "devices   1 per host: the limit" in output


def test_the_summary_has_the_sizing_of_the_config() -> None:
    """The summary has ``scale`` and ``cost`` if the config has these keys."""
    result = analysed(LOOP, scale={"devices": 8}, cost={"epochs": 3, "samples": 1000})
    assert result.summary["scale"]["hosts_needed"] == 11
    assert result.summary["cost"]["epochs"] == 3
