"""The forecast of a run: its time, its requests to S3 with their price, and the approval."""

from __future__ import annotations

import io
from collections import Counter
from dataclasses import replace
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

import dataprep
from dataprep.drawn import draw_tree
from dataprep.stores import StoreOptions
from iobench.clock import SystemClock
from iobench.config.benchmark import BenchConfig
from iobench.config.plan import trials
from iobench.errors import NotApproved
from iobench.probes.object_store.probe import run as run_trial
from iobench.results.trial import Context, Location, Params, Trial, TrialSpec
from iobench.runner import run
from iobench.runner.forecast import Forecast, forecast, require_approval
from iobench.runner.progress import Lines
from iobench.runner.run_folder import begin_log, open_run, read
from iobench.servers.fault_proxy import Answer, FaultProxy
from iobench.servers.memory_s3 import MemoryS3
from iobench.servers.moto_server import signed_in
from tests.iobench.small_runs import Configs, loaders

pytestmark = pytest.mark.slow


STORE: dict[str, Any] = {
    "operations": "put",
    "clients": "boto3",
    "object_bytes": "10kB",
    "at_object_bytes": "10kB",
    "connections": 2,
    "at_connections": 2,
    "seconds": 0.2,
    "max_requests": 30,
    "targets": [{"label": "s3", "uri": "s3://bucket"}],
}


@pytest.fixture(autouse=True)
def amazon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the endpoints of this machine, so that stores are Amazon's."""
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)


def forecast_of(**values: Any) -> Forecast:
    """Return the forecast of a config that copies its data to a bucket on Amazon S3."""
    settings = {"data": {"bucket": {"uri": "s3://bucket"}}, **values}
    return forecast(BenchConfig.model_validate({"name": "small", "repeats": 1, **settings}))


def test_a_run_stays_within_its_bounds(configs: Configs, tmp_path: Path) -> None:
    """A run sends no more requests and takes no longer than forecast; the result keeps the sums."""
    store = {**STORE, "operations": ["get", "range_get", "put"]}
    (requested,) = forecast_of(object_store=store).requests.values()
    values = configs.values(object_store={**store, "targets": [{"uri": "local"}]}, repeats=1)
    forecast = forecast_of(**values)
    stream = Lines(io.StringIO())
    done = run.run(BenchConfig.model_validate(values), tmp_path, stream, forecast=forecast.totals())
    by_time = sorted(done.result.trials, key=lambda trial: trial.started_s)
    assert [step.spec.id for step in forecast.planned] == [trial.id for trial in by_time]
    assert {trial.status for trial in done.result.trials} == {"done"}, done.counts
    assert sum(trial.seconds for trial in done.result.trials) < forecast.max_s
    sent = sum(trial.metrics["requests"] for trial in done.result.trials)
    assert 0 < sent <= requested["puts"] + requested["gets"]
    assert done.result.forecast["trials"] == 3


@pytest.mark.parametrize(
    ("client", "operation", "object_bytes"),
    [
        ("boto3", "get", 5_000),
        ("boto3", "range_get", 5_000),
        ("boto3", "put", 5_000),
        ("awscrt", "get", 20_000_000),  # It reads parts of an object.
        ("s5cmd", "get", 5_000),
    ],
)
def test_a_probe_sends_no_more_requests_than_the_maximum(
    client: str, operation: str, object_bytes: int
) -> None:
    """All requests that Amazon would bill are within the maximum, also those of the preparation."""
    sent: Counter[str] = Counter()
    objects = MemoryS3()

    def answer(method: str, path: str, headers: Message, body: bytes) -> Answer:
        kinds = {"PUT": "puts", "GET": "gets", "HEAD": "gets", "DELETE": "deletes"}
        sent["lists" if "list-type" in path else kinds[method]] += 1
        return objects.answer(method, path, headers, body)

    settings = {
        **STORE,
        "clients": client,
        "operations": operation,
        "at_object_bytes": object_bytes,
        "object_bytes": object_bytes,
        "seconds": 600,
        "max_requests": 10,
        "pool_bytes": 5 * object_bytes,
    }
    planned = forecast_of(object_store=settings)
    (maximum,) = planned.requests.values()
    (step,) = planned.planned
    with signed_in(), FaultProxy(answer) as proxy:
        location = Location("s3://bucket", "empty", StoreOptions(endpoint_url=proxy.url))
        context = Context({"store/s3": location}, SystemClock(), lambda done, unit: None)
        run_trial(step.spec, context)
    del sent["deletes"]  # They are free.
    assert sent <= maximum


@pytest.mark.parametrize("operation", ["get", "range_get", "put"])
def test_only_downloads_of_large_objects_by_awscrt_have_further_requests(operation: str) -> None:
    """awscrt reads whole objects in parts of at least 5 MiB, and sends all else at once."""
    maxima = []
    for client in ("boto3", "awscrt"):
        for object_bytes in (1_000_000, 100_000_000):
            sizes = {"at_object_bytes": object_bytes, "object_bytes": object_bytes}
            settings = {**STORE, "clients": client, "operations": operation, **sizes}
            (maximum,) = forecast_of(object_store=settings).requests.values()
            maxima.append(maximum)
    small, large, small_awscrt, large_awscrt = maxima
    assert small_awscrt == small
    assert (large_awscrt != large) == (operation == "get")


@pytest.mark.parametrize(
    ("grid", "gets"),
    [
        # 32 connections of each worker send requests during the seconds and before; then three
        # epochs follow.
        ({"seconds": 10, "workers": 4}, 4 * 32 * 2_001 + 3 * 1_000),
        ({"seconds": 10, "workers": 4, "processes": 2}, 8 * 32 * 2_001 + 3 * 1_000),
        ({"epochs": 2, "workers": 1}, 3 * 1_000),
        ({"epochs": 5, "workers": 1}, 5 * 1_000),
    ],
)
def test_a_loader_on_a_store(grid: dict[str, Any], gets: int) -> None:
    """Requests are bounded by the connections, and by three epochs that read each sample once."""
    settings = {"loader": "torch-map", "data": ["shards@s3"], "cache": ["warm"], **grid}
    forecast = forecast_of(loaders=[settings])
    (requested,) = forecast.requests.values()
    assert gets < requested["gets"] < gets + 1_500
    assert (forecast.planned[0].duration.likely_s is None) == ("epochs" in grid)


@pytest.mark.parametrize(
    ("loader", "connections"),
    [("raw", 4), ("torch-map", 4 * 32), ("torch-iterable", 4 * 2 * 32), ("tf-data", 2 * 32)],
)
def test_requests_end_with_the_trial(loader: str, connections: int) -> None:
    """A trial on large data sends what its connections can within ``trial_timeout_s``."""
    grid = {"loader": loader, "data": "shards@s3", "workers": 4, "seconds": 1}
    data = {"bucket": {"uri": "s3://bucket"}, "images": 100_000_000}
    (requested,) = forecast_of(loaders=[grid], data=data, trial_timeout_s=60).requests.values()
    gets = connections * 60 * 100
    # Each object that is copied there is confirmed by a request.
    assert gets <= requested["gets"] - requested["puts"] < 1.01 * gets + 5_000


def test_every_host_sends_the_requests_of_its_trials() -> None:
    """Four hosts together and one of them alone send five times the requests of a single host."""
    single_host = forecast_of(object_store=STORE)
    four_hosts = single_host.on_hosts(4, [1])
    (single_requests,) = single_host.requests.values()
    (all_requests,) = four_hosts.requests.values()
    assert all_requests == {kind: 5 * count for kind, count in single_requests.items()}
    assert len(four_hosts.planned) == 2 * len(single_host.planned)
    assert four_hosts.max_s == 2 * single_host.max_s
    assert (four_hosts.usd or 0) > 4 * (single_host.usd or 0) > 0


def test_a_loop_reads_three_epochs() -> None:
    """A training loop without ``epochs`` may read three of them, and more for its steps."""
    loop: dict[str, Any] = {"consumer": "paced", "images_per_s": 500, "inputs": ["store"]}
    loop |= {"loader": "torch-folder"}
    loop |= {"data": "files", "steps": 10, "batch_size": 32}
    (requested,) = forecast_of(training=[loop]).requests.values()
    assert requested["gets"] >= requested["puts"] + 3 * 1_000


def test_copies_are_put_there_first() -> None:
    """Each image of a folder is copied as an object."""
    settings = {"loader": "torch-folder", "data": ["files@s3"], "cache": ["warm"], "workers": 1}
    (requested,) = forecast_of(loaders=[settings]).requests.values()
    assert requested["puts"] == 1_000


def test_a_described_device_tells_the_time() -> None:
    """The time of a real device is unknown: from its start to ``trial_timeout_s``."""
    loop = {"loader": "raw", "batch_size": 10, "steps": 100, "workers": 0, "inputs": ["warm"]}
    paced = forecast_of(training=[{**loop, "consumer": "paced", "images_per_s": 500}])
    # 1,000 images are too few for a steady rate, which needs 20 shards, so three epochs count.
    assert [step.duration.likely_s for step in paced.planned] == [1.0 + 3_000 / 500]
    torch = forecast_of(training=[{**loop, "consumer": "torch", "loader": "torch-map"}])
    assert [step.duration.likely_s for step in torch.planned] == [None]
    assert "1 trial to come, 1 of unknown length, about 3.0 s to 10 min (at most" in torch.text()


def grid_of(loader: str, **values: Any) -> dict[str, Any]:
    """Return a grid of one point with two workers and batches of 64."""
    return {"loader": loader, "workers": 2, "batch_size": 64, "seconds": 10, **values}


@pytest.mark.parametrize(
    ("grid", "images", "least_s", "most_s", "rule"),
    [
        # The images are fewer than 20 rounds, so three epochs count, at 100 images/s or more.
        (grid_of("torch-map"), 1_000, 13, 3 + 30, "epochs"),
        (grid_of("torch-map", epochs=2), 1_000, 3, 3 + 30, "epochs"),
        (grid_of("torch-map", epochs=4), 1_000, 3, 3 + 40, "epochs"),
        # 20 rounds of 2 x 64 count, 10 more may balance them, and twice what is in flight is read.
        (grid_of("torch-map"), 100_000, 13, 3 + (30 * 128 + 2 * (4 + 3 * 128)) / 100, "steady"),
        # The seconds are longer than the rule; the last epoch may begin just before their end.
        (grid_of("torch-map", seconds=100), 1_000, 103, 3 + 100 + 10, "epochs"),
        # The time of these loaders is described.
        (grid_of("null"), 1_000, 10.5, 10.5, "bounds"),
        (grid_of("mock", item_s=0.1, seconds=1), 1_000, 128.5, 231.3, "steady"),
        # They read no data, so they have no whole epochs.
        (grid_of("null", epochs=3), 1_000, 0.5, 0.5, "bounds"),
        (grid_of("mock", item_s=0.1, epochs=3), 1_000, 128.5, 231.3, "steady"),
        # Nothing takes longer than trial_timeout_s.
        (grid_of("torch-iterable"), 90_000_000, 13, 300, "steady"),
        (grid_of("torch-map", epochs=1), 90_000_000, 3, 300, "epochs"),
    ],
)
def test_a_trial_lasts_until_its_rate_is_known(
    grid: dict[str, Any], images: int, least_s: float, most_s: float, rule: str
) -> None:
    """The range is from ``seconds`` to what the rule of the rate needs at a low rate."""
    forecast = forecast_of(loaders=[grid], data={"images": images}, trial_timeout_s=300)
    (trial,) = forecast.content()["trials"]
    assert trial["rate_rule"] == rule
    assert trial["least_s"] == pytest.approx(least_s)
    assert trial["most_s"] == pytest.approx(most_s, rel=0.03)
    assert forecast.totals()["least_s"] == trial["least_s"]
    assert forecast.totals()["slowest_s"] == pytest.approx(trial["most_s"], abs=0.001)
    assert forecast.totals()["most_s"] == 300


def test_the_range_is_shown_for_the_run_and_each_kind() -> None:
    """The first line has the sums, and each kind of trials has its own range."""
    loop = {"consumer": "paced", "images_per_s": 200, "loader": "mock"}
    forecast = forecast_of(
        loaders=[grid_of("torch-map", epochs=3), grid_of("null")],
        training=[{**loop, "steps": 100, "inputs": ["warm"]}],
        repeats=3,
    )
    first, loader, train, _ = forecast.text().splitlines()
    assert "9 trials to come, 3 of unknown length, about 2 to 4 min (at most 1 h 30 min)" in first
    assert loader.startswith("  loader       6  40.5 s to 2 min   torch-map, null;")
    assert train.startswith("  train        3")


class TestFailures:
    """Trials that cannot end in time have a warning that says what to set."""

    def warnings(self, **loop: Any) -> list[str]:
        """Return the warnings about a loop on a device of 100 images/s that is limited to 60 s."""
        described = {"group": "slow", "consumer": "paced", "images_per_s": 100, "inputs": ["warm"]}
        config = {"training": [{**described, **loop}], "data": {"images": 4_000}, "repeats": 2}
        return list(forecast_of(**config, trial_timeout_s=60).warnings)

    def test_epochs_take_too_long(self) -> None:
        """Three epochs of 4,000 images take 120 s at 100 images/s."""
        (warning,) = self.warnings(loader="torch-iterable", epochs=2)
        assert "slow" in warning
        assert "3 whole epochs of 4,000 samples take at least 2 min at 100 samples/s" in warning
        assert warning.endswith("set trial_timeout_s to 150 or more, or use fewer images")

    def test_rounds_take_too_long(self) -> None:
        """20 rounds of two workers with batches of 256 take 102 s at 100 images/s."""
        (warning,) = self.warnings(loader="mock", workers=2, batch_size=256)
        assert "20 rounds of 512 samples take at least 2 min" in warning
        assert "set trial_timeout_s to 128 or more, or use fewer workers or smaller" in warning

    def test_steps_on_the_device_take_too_long(self) -> None:
        """A loop on data in device memory takes its steps, and one more."""
        (warning,) = self.warnings(loader="mock", inputs=["synthetic"], steps=100, batch_size=64)
        assert "101 steps of 64 samples take at least 64.6 s" in warning

    def test_there_is_no_whole_batch(self) -> None:
        """A rank without a full batch is named."""
        (warning,) = self.warnings(loader="torch-map", accelerators=2, batch_size=2_048)
        assert "4,000 images among 2 ranks have no full batch of 2048" in warning

    def test_a_trial_that_can_end_in_time(self) -> None:
        """Such a trial causes no warning."""
        assert self.warnings(loader="torch-map", batch_size=16, steps=40) == []


def test_a_run_follows_its_forecast(configs: Configs, tmp_path: Path) -> None:
    """Trials have the forecast rule of their rates, and take no longer than forecast."""
    raw = {"loader": "raw", "seconds": 0.1, "workers": 1, "batch_size": 8}
    mock = {"loader": "mock", "item_s": 0.001, "seconds": 0.1, "workers": 2, "batch_size": 4}
    null = {"loader": "null", "epochs": 3, "workers": 0, "batch_size": 8}
    loop = {"consumer": "paced", "images_per_s": 1_000, "steps": 10, "workers": 0, "batch_size": 8}
    loops = [
        {**loop, "loader": "raw", "inputs": ["synthetic", "warm"]},
        {**loop, "loader": "mock", "inputs": ["warm"]},
        {**loop, "loader": "mock", "inputs": ["warm"], "epochs": 2},
    ]
    config = BenchConfig.model_validate(configs.values(loaders=[raw, mock, null], training=loops))
    estimate = forecast(config)
    done = run.run(config, tmp_path, Lines(io.StringIO()), forecast=estimate.totals())
    trials_by_id = {trial.id: trial for trial in done.result.trials}
    assert {trial.status for trial in done.result.trials} == {"done"}, done.counts
    for step in estimate.planned:
        trial = trials_by_id[step.spec.id]
        assert trial.metrics["rate_rule"] == step.duration.rate_rule, trial.id
        assert trial.metrics["seconds"] < step.duration.max_s, trial.id


def test_nobody_pays_more_than_a_limit_without_having_agreed() -> None:
    """A user is asked with the sum and the limit; without a user the run is refused."""
    forecast = forecast_of(object_store={**STORE, "max_requests": 100_000, "seconds": 3600})
    questions: list[str] = []

    def answer(question: str) -> bool:
        questions.append(question)
        return len(questions) == 1

    require_approval(forecast, 1.0, yes=False, ask=None)
    require_approval(forecast, 0.1, yes=True, ask=None)
    require_approval(forecast, 0.1, yes=False, ask=answer)
    with pytest.raises(NotApproved, match="not started"):
        require_approval(forecast, 0.1, yes=False, ask=answer)
    assert questions[0].endswith("at most; cost_limit_usd is 0.1. Start?")
    with pytest.raises(NotApproved, match=r"for \$0\.50 at most.*--yes") as caught:
        require_approval(forecast, 0.1, yes=False, ask=None)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("endpoint", [None, "http://127.0.0.1:1"])
def test_amazons_store_is_billed(monkeypatch: pytest.MonkeyPatch, endpoint: str | None) -> None:
    """Requests to any other endpoint have no price."""
    if endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", endpoint)
    forecast = forecast_of(object_store=STORE)
    assert [store.uri for store in forecast.requests] == ([] if endpoint else ["s3://bucket"])
    assert bool(forecast.usd) != bool(endpoint)
    require_approval(forecast, 1.0, yes=False, ask=None)


def test_a_price_that_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """An unknown price is shown as such, and the run needs approval."""
    monkeypatch.setenv("AWS_REGION", "xx-nowhere-1")
    forecast = forecast_of(object_store=STORE)
    assert forecast.usd is None
    assert "requests to S3 at an unknown price" in forecast.text()
    with pytest.raises(NotApproved):
        require_approval(forecast, 1.0, yes=False, ask=None)


@pytest.mark.parametrize("kind", ["source", "shards", "none"])
def test_images_are_counted(tmp_path: Path, kind: str) -> None:
    """A listing or a manifest gives the number; if there is none, a warning says so."""
    photos, shards = tmp_path / "photos", tmp_path / "shards"
    draw_tree(photos, images=12, classes=2)
    if kind == "shards":
        config = {"source": str(photos), "output": str(shards)}
        dataprep.shard(dataprep.ShardConfig.model_validate(config))
    data = {"folder": str(tmp_path / "data"), "bucket": {"uri": "s3://bucket/x"}}
    data |= {"source": str(photos)} if kind == "source" else {"shards": str(shards)}
    grid = [{"loader": "raw", "data": ["files@s3"], "cache": ["warm"], "workers": 1}]
    forecast = forecast_of(data=data, loaders=grid)
    (requests,) = forecast.requests.values()
    assert requests["puts"] == (10_000_000 if kind == "none" else 12)
    assert ("could not be counted" in forecast.text()) == (kind == "none")


class TestEarlier:
    """Forecasts from the times of an earlier run."""

    @pytest.fixture
    def config(self, configs: Configs) -> BenchConfig:
        """Return a config with three repeats of one loader."""
        return BenchConfig.model_validate(configs.values(loaders=loaders("null"), repeats=3))

    @pytest.fixture
    def folder(self, config: BenchConfig, tmp_path: Path) -> Path:
        """Return the folder of a run whose first trial took 40 s."""
        begun = run.new_result(config, trials(config))
        directory = tmp_path / "run"
        directory.mkdir()
        open_run(directory, config, begun.environment, resume=False)
        spec = trials(config)[0]
        metrics = {"samples_per_s": 1e6}
        done = Trial(spec.id, spec.kind, spec.params, 0, "done", metrics, seconds=40.0)
        begin_log(directory, begun.with_trial(done))
        return tmp_path / "run"

    def test_a_resumed_run_has_the_rest_to_come(self, config: BenchConfig, folder: Path) -> None:
        """The folder's run tells how long the rest takes; a folder without a run begins anew."""
        estimate = forecast(config, resumed=folder)
        assert (len(estimate.planned), estimate.measured_before) == (2, 1)
        assert estimate.likely_s == (80.0, 0)
        assert forecast(config, resumed=folder / "none").measured_before == 0

    def test_another_run_tells_the_times(self, config: BenchConfig, folder: Path) -> None:
        """All trials are to come, and times of another machine cause a warning."""
        estimate = forecast(config, like=folder)
        assert (len(estimate.planned), estimate.measured_before) == (3, 0)
        assert estimate.likely_s == (120.0, 0)
        assert estimate.warnings == []
        result = read(folder)
        moved = replace(result, environment={**result.environment, "processor": "another"})
        begin_log(folder, moved)
        (warning,) = forecast(config, like=folder).warnings
        assert "another machine (processor differ)" in warning

    def test_times_of_the_former_rule_are_not_used(self, config: BenchConfig, folder: Path) -> None:
        """A warning says that loaders took less time by the former rule."""
        begin_log(folder, replace(read(folder), rates=""))
        estimate = forecast(config, like=folder)
        assert estimate.likely_s[0] < 40
        (warning,) = estimate.warnings
        assert "measured rates by an earlier rule" in warning

    def test_a_rate_tells_the_time_of_another_length(
        self, config: BenchConfig, folder: Path, configs: Configs
    ) -> None:
        """The time of whole epochs follows from a trial that was measured for some seconds."""
        spec = TrialSpec("loader", _torch_map(configs, epochs=3))
        earlier = TrialSpec("loader", _torch_map(configs, seconds=5))
        metrics = {"samples_per_s": 10.0}
        done = Trial(earlier.id, "loader", earlier.params, 0, "done", metrics, seconds=9.0)
        begin_log(folder, replace(read(folder), trials=(done,)))
        grid = {"loader": "torch-map", "workers": 0, "epochs": 3}
        expected = BenchConfig.model_validate(configs.values(loaders=[grid]))
        (step,) = forecast(expected, like=folder).planned
        assert step.spec.id == spec.id
        assert step.duration.likely_s == 3.0 + 3 * 40 / 10.0


def _torch_map(configs: Configs, **length: Any) -> Params:
    """Return the params of a trial of torch-map with this length."""
    grid = {"loader": "torch-map", "workers": 0, **length}
    return trials(BenchConfig.model_validate(configs.values(loaders=[grid])))[0].params
