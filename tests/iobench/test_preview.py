"""What a run will take: time, and requests to S3 with their price; and leave to begin it."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import dataprep
from dataprep.prices import Price
from dataprep.sample import draw_tree
from iobench import run
from iobench.config import BenchConfig
from iobench.display import Lines
from iobench.errors import NotApproved
from iobench.forecast import Billed, Facts, Forecast, duration, forecast, text
from iobench.plan import trials
from iobench.preview import preview, require_leave
from iobench.rundir import RunDirectory, read
from iobench.trial import Trial
from tests.iobench.small_runs import Configs, loaders

pytestmark = pytest.mark.slow

CHEAP = Price(put_per_1000=0.005, get_per_1000=0.0004, gb_month=0.023)
S3 = Billed("s3://bucket", CHEAP, "a file of prices")
STORE: dict[str, Any] = {
    "operations": "put",
    "clients": "boto3",
    "object_bytes": "10kB",
    "at_object_bytes": "10kB",
    "connections": 2,
    "at_connections": 2,
    "seconds": 0.2,
    "max_requests": 30,
}


def forecast_of(facts: Facts | None = None, **values: Any) -> Forecast:
    """Of a config whose object store, and data on one, are Amazon's."""
    config = BenchConfig.model_validate({"name": "small", "repeats": 1, **values})
    specs = trials(config)
    names = ("store/s3", "shards@s3", "files@s3")
    facts = facts or Facts(billed=dict.fromkeys(names, S3), samples=config.data.images)
    return forecast("small", config.data, specs, facts, config.trial_timeout_s)


def test_requests_lie_within_the_bounds(configs: Configs, tmp_path: Path) -> None:
    """Those that a run sent, whatever the operation; and it takes no more than its time."""
    store = {**STORE, "operations": ["get", "range_get", "put"]}
    values = configs.values(object_store=store, repeats=1)
    found = forecast_of(**values)
    stream = Lines(io.StringIO())
    done = run.run(BenchConfig.model_validate(values), tmp_path, stream, forecast=found.totals())
    assert [step.spec.id for step in found.steps] == [trial.id for trial in done.result.trials]
    for step, trial in zip(found.steps, done.result.trials, strict=True):
        assert trial.status == "done", trial.reason
        assert trial.seconds < found.most_s
        (asked,) = step.requests.values()
        assert 0 < trial.metrics["requests"] <= asked.puts + asked.gets
    assert done.result.forecast["trials"] == 3


@pytest.mark.parametrize(
    ("grid", "gets"),
    [
        ({"seconds": 10, "workers": 4}, 8 * 2_001 + 4 * 9),
        ({"seconds": 10, "workers": 4, "processes": 2}, 16 * 2_001 + 4 * 17),
        ({"epochs": 2, "workers": 1}, 2 * 1_000 + 4 * 3),
    ],
)
def test_a_loader_on_a_store(grid: dict[str, Any], gets: int) -> None:
    """A hundred requests a second by each of two a worker; no sample twice an epoch."""
    given = {"loader": "torch-map", "data": ["shards@s3"], "cache": ["warm"], **grid}
    (step,) = forecast_of(loaders=[given]).steps
    assert step.requests[S3].gets == gets
    assert (step.likely_s is None) == ("epochs" in grid)


def test_copies_are_put_there_first() -> None:
    """Each image of files, the objects of shards; what nobody could count has no bound."""
    given = {"loader": "torch-folder", "data": ["files@s3"], "cache": ["warm"], "workers": 1}
    found = forecast_of(loaders=[given])
    copied = found.requests[S3]
    assert copied is not None
    assert copied.puts == 1_000
    lost = forecast_of(Facts(billed={"files@s3": S3}), loaders=[given])
    assert lost.requests == {S3: None}
    assert lost.usd is None
    assert "requests to S3 at an unknown price" in text(lost)


def test_a_described_device_tells_the_time() -> None:
    """Of a real one it is not known."""
    loop = {"loader": "raw", "batch_size": 10, "steps": 100, "workers": 0, "inputs": ["warm"]}
    paced = forecast_of(training=[{**loop, "consumer": "paced", "images_per_s": 500}])
    assert [step.likely_s for step in paced.steps] == [3.0]
    torch = forecast_of(training=[{**loop, "consumer": "torch", "loader": "torch-map"}])
    assert [step.likely_s for step in torch.steps] == [None]
    assert "1 trial to come, 1 trial of unknown length (at most 10 min)" in text(torch)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(45.0, "45.0 s"), (700, "12 min"), (12_000, "3 h 20 min"), (3_600, "1 h"), (4e5, "5 days")],
)
def test_durations(seconds: float, words: str) -> None:
    """In the unit that fits."""
    assert duration(seconds) == words


class TestLeave:
    """Nobody pays more than a limit without having agreed."""

    DEAR = forecast_of(object_store={**STORE, "max_requests": 100_000, "seconds": 3600})

    def test_what_is_cheap_needs_none(self) -> None:
        """Nor does a server that is not Amazon's."""
        for found in (self.DEAR, forecast_of(Facts(), object_store=STORE)):
            require_leave(found, 1.0, yes=False, ask=None)

    def test_it_is_refused_without_anybody_to_ask(self) -> None:
        """What to give is said."""
        with pytest.raises(NotApproved, match=r"for \$0\.50 at most.*--yes") as caught:
            require_leave(self.DEAR, 0.1, yes=False, ask=None)
        assert caught.value.exit_code == 2
        require_leave(self.DEAR, 0.1, yes=True, ask=None)

    def test_a_person_decides(self) -> None:
        """Asked with the sum and the limit."""
        asked: list[str] = []

        def answer(question: str) -> bool:
            asked.append(question)
            return len(asked) == 1

        require_leave(self.DEAR, 0.1, yes=False, ask=answer)
        with pytest.raises(NotApproved, match="not begun"):
            require_leave(self.DEAR, 0.1, yes=False, ask=answer)
        assert asked[0].endswith("at most; cost_limit_usd is 0.1. Begin?")


class TestLook:
    """What is there is looked at, and nothing is written."""

    @pytest.mark.parametrize("endpoint", [None, "http://127.0.0.1:1"])
    def test_amazons_store_is_billed(
        self, configs: Configs, monkeypatch: pytest.MonkeyPatch, endpoint: str | None
    ) -> None:
        """An endpoint of anybody else is not, wherever it is named."""
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
        monkeypatch.delenv("AWS_ENDPOINT_URL_S3", raising=False)
        monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
        if endpoint:
            monkeypatch.setenv("AWS_ENDPOINT_URL_S3", endpoint)
        target = {"label": "s3", "uri": "s3://bucket/x"}
        values = configs.values(object_store={**STORE, "targets": [target]})
        found = preview(BenchConfig.model_validate(values))
        assert [store.uri for store in found.requests] == ([] if endpoint else ["s3://bucket/x"])
        assert (found.usd or 0) > 0 or endpoint

    @pytest.mark.parametrize("given", ["source", "shards", "none"])
    def test_images_are_counted(
        self, configs: Configs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
    ) -> None:
        """By a listing or a manifest; what cannot be counted is a warning."""
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        monkeypatch.delenv("AWS_ENDPOINT_URL_S3", raising=False)
        monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
        photos, shards = tmp_path / "photos", tmp_path / "shards"
        draw_tree(photos, images=12, classes=2)
        if given == "shards":
            asked = {"source": str(photos), "output": str(shards)}
            dataprep.shard(dataprep.ShardConfig.model_validate(asked))
        data = {"folder": str(tmp_path / "data"), "bucket": {"uri": "s3://bucket/x"}}
        data |= {"source": str(photos)} if given == "source" else {"shards": str(shards)}
        grid = [{"loader": "raw", "data": ["files@s3"], "cache": ["warm"], "workers": 1}]
        found = preview(BenchConfig.model_validate(configs.values(data=data, loaders=grid)))
        assert found.facts.samples == (None if given == "none" else 12)
        assert ("could not be counted" in text(found)) == (given == "none")


class TestEarlier:
    def measured(self, folder: Path, values: dict[str, Any], seconds: float) -> Path:
        """A run of which the first trial is done."""
        config = BenchConfig.model_validate(values)
        begun = run._begun(config, trials(config))
        directory = RunDirectory(folder)
        directory.open(config, begun.environment, resume=False)
        spec = preview(config).steps[0].spec
        done = Trial(spec.id, spec.kind, spec.params, 0, "done", {}, seconds=seconds)
        directory.begin(begun.with_trial(done))
        return folder

    def test_a_resumed_run_has_the_rest_to_come(self, configs: Configs, tmp_path: Path) -> None:
        """And knows how long that takes."""
        values = configs.values(loaders=loaders("null"), repeats=3)
        folder = self.measured(tmp_path / "run", values, 40.0)
        found = preview(BenchConfig.model_validate(values), resumed=folder)
        assert (len(found.steps), found.before) == (2, 1)
        assert found.likely_s == (80.0, 0)

    def test_another_run_tells_the_times(self, configs: Configs, tmp_path: Path) -> None:
        """All trials are to come; another machine's times are remarked."""
        values = configs.values(loaders=loaders("null"), repeats=3)
        folder = self.measured(tmp_path / "run", values, 40.0)
        config = BenchConfig.model_validate(values)
        found = preview(config, like=folder)
        assert (len(found.steps), found.before, found.likely_s) == (3, 0, (120.0, 0))
        assert found.facts.problems == []
        result = read(folder)
        moved = replace(result, environment={**result.environment, "processor": "another"})
        RunDirectory(folder).begin(moved)
        assert (
            "another machine (processor differ)" in preview(config, like=folder).facts.problems[0]
        )

    def test_a_folder_without_a_run_begins_anew(self, configs: Configs, tmp_path: Path) -> None:
        """As --resume does."""
        config = BenchConfig.model_validate(configs.values(loaders=loaders("null")))
        assert preview(config, resumed=tmp_path / "none").before == 0
