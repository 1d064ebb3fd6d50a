"""What a run will take: time, and requests to S3 with their price; and leave to begin it."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import dataprep
from dataprep.sample import draw_tree
from iobench import run
from iobench.config import BenchConfig
from iobench.display import Lines
from iobench.errors import NotApproved
from iobench.forecast import Forecast, forecast, require_leave
from iobench.plan import trials
from iobench.rundir import begin_log, open_run, read
from iobench.trial import Trial
from iobench.words import duration_words
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
    """Stores are Amazon's unless a test names an endpoint."""
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)


def forecast_of(**values: Any) -> Forecast:
    """Of a config that copies its data to a bucket of Amazon's."""
    given = {"data": {"bucket": {"uri": "s3://bucket"}}, **values}
    return forecast(BenchConfig.model_validate({"name": "small", "repeats": 1, **given}))


def test_a_run_stays_within_its_bounds(configs: Configs, tmp_path: Path) -> None:
    """In requests, whatever the operation, and in time; the result keeps the sums."""
    store = {**STORE, "operations": ["get", "range_get", "put"]}
    (asked,) = forecast_of(object_store=store).requests.values()
    values = configs.values(object_store={**store, "targets": [{"uri": "local"}]}, repeats=1)
    found = forecast_of(**values)
    stream = Lines(io.StringIO())
    done = run.run(BenchConfig.model_validate(values), tmp_path, stream, forecast=found.totals())
    by_time = sorted(done.result.trials, key=lambda trial: trial.started_s)
    assert [step.spec.id for step in found.steps] == [trial.id for trial in by_time]
    assert {trial.status for trial in done.result.trials} == {"done"}, done.counts
    assert sum(trial.seconds for trial in done.result.trials) < found.most_s
    sent = sum(trial.metrics["requests"] for trial in done.result.trials)
    assert 0 < sent <= asked["puts"] + asked["gets"]
    assert done.result.forecast["trials"] == 3


@pytest.mark.parametrize(
    ("grid", "gets"),
    [
        ({"seconds": 10, "workers": 4}, 8 * 2_001),
        ({"seconds": 10, "workers": 4, "processes": 2}, 16 * 2_001),
        ({"epochs": 2, "workers": 1}, 2 * 1_000),
    ],
)
def test_a_loader_on_a_store(grid: dict[str, Any], gets: int) -> None:
    """A hundred requests a second by each of two a worker; no sample twice an epoch."""
    given = {"loader": "torch-map", "data": ["shards@s3"], "cache": ["warm"], **grid}
    found = forecast_of(loaders=[given])
    (asked,) = found.requests.values()
    assert gets < asked["gets"] < gets + 500
    assert (found.steps[0].likely_s is None) == ("epochs" in grid)


def test_copies_are_put_there_first() -> None:
    """Each image of files is an object."""
    given = {"loader": "torch-folder", "data": ["files@s3"], "cache": ["warm"], "workers": 1}
    (asked,) = forecast_of(loaders=[given]).requests.values()
    assert asked["puts"] == 1_000


def test_a_described_device_tells_the_time() -> None:
    """Of a real one it is not known."""
    loop = {"loader": "raw", "batch_size": 10, "steps": 100, "workers": 0, "inputs": ["warm"]}
    paced = forecast_of(training=[{**loop, "consumer": "paced", "images_per_s": 500}])
    assert [step.likely_s for step in paced.steps] == [3.0]
    torch = forecast_of(training=[{**loop, "consumer": "torch", "loader": "torch-map"}])
    assert [step.likely_s for step in torch.steps] == [None]
    assert "1 trial to come, 1 trial of unknown length (at most 10 min)" in torch.text()


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(45.0, "45.0 s"), (700, "12 min"), (12_000, "3 h 20 min"), (3_600, "1 h"), (4e5, "5 days")],
)
def test_durations(seconds: float, words: str) -> None:
    """In the unit that fits."""
    assert duration_words(seconds) == words


def test_nobody_pays_more_than_a_limit_without_having_agreed() -> None:
    """A person is asked with the sum and the limit; without one it is refused."""
    found = forecast_of(object_store={**STORE, "max_requests": 100_000, "seconds": 3600})
    asked: list[str] = []

    def answer(question: str) -> bool:
        asked.append(question)
        return len(asked) == 1

    require_leave(found, 1.0, yes=False, ask=None)
    require_leave(found, 0.1, yes=True, ask=None)
    require_leave(found, 0.1, yes=False, ask=answer)
    with pytest.raises(NotApproved, match="not begun"):
        require_leave(found, 0.1, yes=False, ask=answer)
    assert asked[0].endswith("at most; cost_limit_usd is 0.1. Begin?")
    with pytest.raises(NotApproved, match=r"for \$0\.50 at most.*--yes") as caught:
        require_leave(found, 0.1, yes=False, ask=None)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("endpoint", [None, "http://127.0.0.1:1"])
def test_amazons_store_is_billed(monkeypatch: pytest.MonkeyPatch, endpoint: str | None) -> None:
    """Any other endpoint is not, wherever it is named."""
    if endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", endpoint)
    found = forecast_of(object_store=STORE)
    assert [store.uri for store in found.requests] == ([] if endpoint else ["s3://bucket"])
    assert bool(found.usd) != bool(endpoint)
    require_leave(found, 1.0, yes=False, ask=None)


def test_a_price_that_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Is said, and nothing is begun without leave."""
    monkeypatch.setenv("AWS_REGION", "xx-nowhere-1")
    found = forecast_of(object_store=STORE)
    assert found.usd is None
    assert "requests to S3 at an unknown price" in found.text()
    with pytest.raises(NotApproved):
        require_leave(found, 1.0, yes=False, ask=None)


@pytest.mark.parametrize("given", ["source", "shards", "none"])
def test_images_are_counted(tmp_path: Path, given: str) -> None:
    """By a listing or a manifest; what cannot be counted is a warning, and costs more."""
    photos, shards = tmp_path / "photos", tmp_path / "shards"
    draw_tree(photos, images=12, classes=2)
    if given == "shards":
        asked = {"source": str(photos), "output": str(shards)}
        dataprep.shard(dataprep.ShardConfig.model_validate(asked))
    data = {"folder": str(tmp_path / "data"), "bucket": {"uri": "s3://bucket/x"}}
    data |= {"source": str(photos)} if given == "source" else {"shards": str(shards)}
    grid = [{"loader": "raw", "data": ["files@s3"], "cache": ["warm"], "workers": 1}]
    found = forecast_of(data=data, loaders=grid)
    (requests,) = found.requests.values()
    assert requests["puts"] == (10_000_000 if given == "none" else 12)
    assert ("could not be counted" in found.text()) == (given == "none")


class TestEarlier:
    @pytest.fixture
    def config(self, configs: Configs) -> BenchConfig:
        """Three repeats of one loader."""
        return BenchConfig.model_validate(configs.values(loaders=loaders("null"), repeats=3))

    @pytest.fixture
    def folder(self, config: BenchConfig, tmp_path: Path) -> Path:
        """A run of which the first trial is done, in 40 s."""
        begun = run._begun(config, trials(config))
        directory = tmp_path / "run"
        directory.mkdir()
        open_run(directory, config, begun.environment, resume=False)
        spec = trials(config)[0]
        done = Trial(spec.id, spec.kind, spec.params, 0, "done", {}, seconds=40.0)
        begin_log(directory, begun.with_trial(done))
        return tmp_path / "run"

    def test_a_resumed_run_has_the_rest_to_come(self, config: BenchConfig, folder: Path) -> None:
        """And knows how long that takes; a folder without a run begins anew."""
        found = forecast(config, resumed=folder)
        assert (len(found.steps), found.before) == (2, 1)
        assert found.likely_s == (80.0, 0)
        assert forecast(config, resumed=folder / "none").before == 0

    def test_another_run_tells_the_times(self, config: BenchConfig, folder: Path) -> None:
        """All trials are to come; another machine's times are remarked."""
        found = forecast(config, like=folder)
        assert (len(found.steps), found.before, found.likely_s) == (3, 0, (120.0, 0))
        assert found.problems == []
        result = read(folder)
        moved = replace(result, environment={**result.environment, "processor": "another"})
        begin_log(folder, moved)
        (said,) = forecast(config, like=folder).problems
        assert "another machine (processor differ)" in said
