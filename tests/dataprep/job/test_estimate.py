"""``plan`` derives sizes, times and prices from a few conversions."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.config.prices import Price, read_prices, storage_price
from dataprep.config.shard_config import ShardConfig
from dataprep.drawn.drawing import draw_photo
from dataprep.errors import ConfigError
from dataprep.image import ImagePolicy, convert
from dataprep.job.calibration import Calibration, calibration_samples, choose_evenly
from dataprep.job.plan_command import estimate_from_trial, plan, seconds_with_workers
from dataprep.job.plan_costs import cost_on_aws, region_warnings
from dataprep.job.plan_report import Cost, Estimate, Requests, SplitEstimate
from dataprep.job.report import Understood
from dataprep.output.receipt import Row
from dataprep.stores import StoreOptions
from dataprep.stores.s3 import S3Store

pairs = st.lists(st.tuples(st.integers(0, 10**8), st.integers(0, 10**8)), min_size=1, max_size=256)
sizes = st.lists(st.integers(0, 2**36), min_size=1, max_size=50).map(
    lambda values: np.array(values, np.int64)
)


@pytest.mark.parametrize(
    ("samples", "expected"), [(0, 0), (5, 5), (32, 32), (33, 32), (1000, 100), (10**6, 128)]
)
def test_sample_sizes(samples: int, expected: int) -> None:
    """A tenth of the samples is converted, at least 32 and at most 128, or all if fewer."""
    assert calibration_samples(samples) == expected


@given(values=sizes, data=st.data())
def test_picks_are_spread_over_the_sizes(
    values: np.ndarray[tuple[int], np.dtype[np.int64]], data: st.DataObject
) -> None:
    """Picks are distinct rows, in the middles of equal slices of the samples by size."""
    count = data.draw(st.integers(1, len(values)))
    chosen = choose_evenly(values, count).tolist()
    assert len(set(chosen)) == count
    rank = np.argsort(np.argsort(values, kind="stable"), kind="stable")
    middles = (np.arange(count) + 0.5) * len(values) / count
    assert np.abs(rank[chosen] + 0.5 - middles).max() <= 0.5


@given(learnt=pairs, values=sizes)
def test_predictions_are_positive_whole_numbers(
    learnt: list[tuple[int, int]], values: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> None:
    """A file has at least 1 predicted byte, an empty one has none, and the order has no effect."""
    model = Calibration.fit(learnt)
    predicted = model.predict(values)
    assert predicted.dtype == np.int64
    assert ((predicted >= 1) == (values > 0)).all()
    assert (predicted[values == 0] == 0).all()
    assert Calibration.fit(learnt[::-1]) == model


@given(factor=st.integers(1, 9), count=st.integers(1, 256), values=sizes)
def test_what_is_proportional_is_predicted(
    factor: int, count: int, values: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> None:
    """Records that are proportional to their files are predicted exactly."""
    model = Calibration.fit([(10 * i, factor * i) for i in range(1, count + 1)])
    inside = values % (10 * count) + 1
    assert np.abs(model.predict(inside) - inside * factor / 10).max() <= 2


def test_a_constant_part_is_learnt() -> None:
    """Records of one size are predicted for all source sizes, even beyond those learnt."""
    model = Calibration.fit([(1000 * i, 20_000) for i in range(1, 257)])
    assert model.predict(np.array([1, 5000, 10**9], np.int64)).tolist() == [20_000] * 3


def test_held_out_photographs_are_predicted() -> None:
    """The total of 64 drawn photographs is predicted from 64 others within 10 %."""
    policy = ImagePolicy(size=128)
    learnt: list[tuple[int, int]] = []
    for seed in range(128):
        data = draw_photo(seed)
        learnt.append((len(data), len(convert(data, policy).data)))
    files = np.array([pair[0] for pair in learnt[1::2]], np.int64)
    predicted = int(Calibration.fit(learnt[::2]).predict(files).sum())
    truth = sum(pair[1] for pair in learnt[1::2])
    assert predicted == pytest.approx(truth, rel=0.1)
    assert int(files.sum()) != pytest.approx(truth, rel=0.5)


ROWS = [
    Row(0, "a", 0, "n", "written", action="passthrough"),
    Row(1, "b", 0, "n", "written", action="reencoded", notes="cmyk_converted,icc_dropped"),
    Row(2, "c", 0, "n", "failed", kind="corrupt"),
    Row(3, "d", 0, "n", "skipped", notes="too_small"),
]


def test_a_trial_stands_for_all_samples() -> None:
    """Bytes and counts are multiplied, shares are kept, and a failure counts under its kind."""
    estimate = estimate_from_trial(ROWS, {"tfrecord": 1_000}, 400)
    assert estimate.bytes_by_format == {"tfrecord": 100_000}
    assert (estimate.passthrough, estimate.reencoded) == (0.25, 0.25)
    assert (estimate.failed, estimate.skipped) == (100, 100)
    assert estimate.met == {
        "cmyk_converted": 100,
        "failed_corrupt": 100,
        "icc_dropped": 100,
        "too_small": 100,
    }


@pytest.mark.parametrize(
    ("shards", "workers", "seconds"), [(100, 4, 25.0), (1, 4, 25.0), (1, 10**6, 100 / 32)]
)
def test_workers_share_the_work(shards: int, workers: int, seconds: float) -> None:
    """Shards are shared among workers, and fewer shards than workers in part as well."""
    assert seconds_with_workers(100.0, shards, workers) == seconds


def test_an_estimate_in_words() -> None:
    """The text begins with what was understood, gives units, and ends with warnings."""
    estimate = estimate_from_trial(ROWS, {"tfrecord": 1_000_000}, 400)
    split = SplitEstimate("train", 400, 4, estimate.bytes_by_format, 401, 101, 4)
    text = Estimate(
        source="s3://b/photos",
        output="s3://b/out",
        entries=401,
        refused={"failed: broken symlink": 1},
        classes=1,
        splits=(split,),
        label_offsets={"tfrecord": 1},
        outcome=estimate,
        workers=64,
        duration={"listing": 1.0, "planning": 0.0, "converting": 7_000.0},
        memory_bytes=10**9,
        machine_bytes=25 * 10**9,
        requests={"output": Requests(20, 30, 3)},
        cost=Cost(0.5, 2.0, 5.55, "c7i.16xlarge", "USD", "example prices"),
        warnings=("look", "odd"),
        understood=Understood("photos/", "class folders", 1, 400, "by name", ("odd",)),
    ).to_text()
    assert text.splitlines() == [
        "photos/: class folders, 1 class, 400 images; label 0",
        "  note: odd",
        "train: 400 photos would become 4 shards per format in s3://b/out (about 101 of 401 fail)",
        "  tfrecord   100.0 MB, 25.0 MB each; labels from 1",
        "  time       about 1:56:41 with 64 workers (listing 1.0 s, converting 7,000.0 s)",
        "  memory     about 1.0 GB of 25 GB",
        "  images     25% re-encoded, 25% stored unchanged (from 4 conversions)",
        "  quirks     cmyk converted 100, failed corrupt 100, colour profile dropped 100, "
        "too small 100",
        "  refused    failed: broken symlink: 1",
        "  requests   output: 20 PUT, 30 GET and HEAD, 3 LIST",
        "  cost       0.5 USD for requests, 2 USD a month for storage (example prices)",
        "  machine    5.55 USD for this time on c7i.16xlarge",
        "warning: look",
        "Nothing was written.",
    ]


def test_the_example_is_dated_and_says_where_it_is_from() -> None:
    """The included prices have a source and a date, and prices of machines their own date."""
    prices = read_prices(None)
    assert (prices.as_of[:2], prices.currency) == ("20", "USD")
    assert prices.source.startswith("https://aws.amazon.com/")
    assert "STANDARD" in prices.s3["us-east-1"]
    assert prices.instances is not None
    assert prices.instances.as_of == "2026-07-20"
    assert prices.instances.source.startswith("https://")
    assert prices.instances.usd_per_h["us-east-1"]["g5.xlarge"] == 1.006


def test_a_sum() -> None:
    """LIST costs as much as PUT, HEAD as much as GET, and a GB of storage is 2^30 bytes."""
    price = Price(put_per_1000=5.0, get_per_1000=0.4, gb_month=2.0)
    assert price.requests_cost(puts=1_500, gets=10_000, lists=500) == 10.0 + 4.0
    assert price.month_cost(3 * 2**30) == 6.0


def test_prices_of_ones_own(tmp_path: Path) -> None:
    """A copy of the prices with other figures is used instead."""
    path = tmp_path / "mine.yaml"
    path.write_text(
        "as_of: 2031-02-03\nsource: a contract\ncurrency: EUR\n"
        "s3: {here: {STANDARD: {put_per_1000: 1, get_per_1000: 2, gb_month: 3}}}\n"
    )
    prices = read_prices(path)
    assert (prices.as_of, prices.currency) == ("2031-02-03", "EUR")
    assert prices.s3["here"]["STANDARD"] == Price(put_per_1000=1, get_per_1000=2, gb_month=3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("as_of: x\nsource: y\ns3: {}\n", "no region"),
        ("as_of: x\nsource: y\ns3: {a: {B: {put: 1}}}\n", "put"),
        ("as_of: x\ns3: {a: {}}\n", "source is missing: add it$"),
        ("[1]", "mapping"),
        (None, r"prices\.yaml"),
    ],
)
def test_no_prices(tmp_path: Path, text: str | None, message: str) -> None:
    """A malformed or missing file of prices is refused, with the wrong key."""
    path = tmp_path / "prices.yaml"
    if text:
        path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_prices(path)


def test_the_price_of_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """The region comes from options, the environment, or the first price, and names its origin."""
    prices = read_prices(None)
    monkeypatch.delenv("AWS_REGION", raising=False)
    price, about = storage_price(prices, StoreOptions())
    assert price == prices.s3["us-east-1"]["STANDARD"]
    assert about.startswith("us-east-1, STANDARD, https://aws.amazon.com/s3/pricing/ as of")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    assert storage_price(prices, StoreOptions())[1].startswith("eu-west-1")
    settings = StoreOptions(region="us-west-2", storage_class="GLACIER")
    assert storage_price(prices, settings) == (
        None,
        "the file of prices has no price of GLACIER in us-west-2",
    )


@pytest.mark.parametrize("setting", ["scheduler", "cluster"])
def test_workers_of_a_cluster_do_not_share_this_machine(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    """The processors of this machine limit its own workers only, not those of a cluster."""
    monkeypatch.setattr("dataprep.job.plan_command.usable_processors", lambda: 1)
    seconds = {}
    for workers in (1, 4):
        ticks = itertools.count()
        clock = SimpleNamespace(perf_counter=lambda ticks=ticks: float(next(ticks)))
        monkeypatch.setattr("dataprep.job.plan_command.time", clock)
        dask = {setting: "tcp://example:8786" if setting == "scheduler" else "some.Cluster"}
        config = ShardConfig.model_validate(
            {"source": images, "output": tmp_path, "dask": {**dask, "workers": workers}}
        )
        seconds[workers] = plan(config).duration["converting"]
    assert seconds[1] == 4 * seconds[4] > 0


REQUESTS = {"source": Requests(0, 1000, 0), "output": Requests(1000, 0, 0)}
OWN_SERVER = {"endpoint_url": "http://minio:9000"}


def cost_of(requests: dict[str, Requests], **settings: Any) -> Cost | None:
    """The cost of a job from bucket to bucket, which stores a GiB."""
    config = ShardConfig.model_validate(
        {"source": "s3://b/photos", "output": "s3://c/out", **settings}
    )
    return cost_on_aws(config, requests, 2**30, read_prices(None), 3600.0)


def test_only_what_is_on_aws_has_a_price(monkeypatch: pytest.MonkeyPatch) -> None:
    """A source or an output on a server with its own endpoint costs nothing on AWS."""
    variables = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3")
    for name in (*variables, "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    amazon = {"region": "us-east-1"}
    both = cost_of(REQUESTS, store=amazon)
    assert both is not None
    assert both.requests == pytest.approx(0.0004 + 0.005)
    output_only = cost_of(REQUESTS, store=amazon, source_store=OWN_SERVER)
    assert output_only is not None
    assert output_only.requests == pytest.approx(0.005)
    assert output_only.month == both.month
    source_only = cost_of(
        REQUESTS, store=OWN_SERVER, source_store=amazon, plan={"instance": "c7i.16xlarge"}
    )
    assert source_only is not None
    assert source_only.requests == pytest.approx(0.0004)
    assert source_only.month == 0
    assert source_only.machine == pytest.approx(2.856)
    assert "us-east-1" in source_only.prices
    assert cost_of(REQUESTS, store=OWN_SERVER) is None
    source_requests = {"source": REQUESTS["source"]}
    assert cost_of(source_requests, store=amazon, source_store=OWN_SERVER) is None
    no_prices = {"region": "mars-1"}
    assert cost_of(REQUESTS, store=amazon, source_store=no_prices) is None
    for name in variables:
        with monkeypatch.context() as environment:
            environment.setenv(name, OWN_SERVER["endpoint_url"])
            assert cost_of(REQUESTS, store=amazon) is None


def test_regions_are_those_of_each_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """The source has options of its own, and an unknown region is no warning."""
    monkeypatch.setenv("AWS_REGION", "us-east-1")

    def warnings_of(**settings: Any) -> list[str]:
        config = ShardConfig.model_validate(
            {"source": "s3://b/photos", "output": "s3://c/out", **settings}
        )
        return [*region_warnings(config)]

    asked = []

    def region(store: S3Store) -> str:
        asked.append((store.uri, store.options.profile))
        return "eu-west-1"

    monkeypatch.setattr(S3Store, "region", region)
    assert len(warnings_of(store={"profile": "out"}, source_store={"profile": "in"})) == 2
    assert asked == [("s3://b/photos", "in"), ("s3://c/out", "out")]
    (warning,) = warnings_of(source_store=OWN_SERVER)
    assert "s3://c/out is in eu-west-1" in warning
    (warning,) = warnings_of(store=OWN_SERVER, source_store={"profile": "in"})
    assert "s3://b/photos is in eu-west-1" in warning
    monkeypatch.setattr(S3Store, "region", lambda store: "")
    assert warnings_of() == []
