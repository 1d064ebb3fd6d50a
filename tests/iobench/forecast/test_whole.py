"""A whole run: sums of its trials and of what is made, stores apart, dollars where known."""

from __future__ import annotations

from dataclasses import astuple, replace
from typing import Any

import pytest

from iobench.child import KINDS as RUN
from iobench.config import BenchConfig
from iobench.forecast import Facts, StoreFacts, forecast
from iobench.forecast.bounds import Bounds
from iobench.forecast.whole import KINDS, predicted, usd
from iobench.plan import trials
from iobench.requests import Requests
from iobench.trial import Trial, TrialSpec
from tests.iobench.forecast.made import AMAZON, OTHER, PRICE, data, forecast_of

DISK = {"targets": [{"label": "here", "path": "."}], "file_bytes": "1MiB", "block_bytes": 4096}
DISK |= {"parallelism": 1, "at_parallelism": 1, "at_block_bytes": 4096, "seconds": 1}
STORE: dict[str, Any] = {
    "targets": [{"label": "s3", "uri": "s3://b/x"}],
    "clients": "boto3",
    "operations": "put",
    "object_bytes": 1000,
    "at_object_bytes": 1000,
    "connections": 1,
    "at_connections": 1,
    "max_requests": 50,
    "seconds": 60,
}
NULL = [{"loader": "null", "workers": [0, 1], "seconds": 1}]


def test_every_kind_is_predicted() -> None:
    """All that this version can run."""
    assert set(RUN) <= set(KINDS)


def test_another_kind_is_bounded() -> None:
    """By the time that a trial may take; the rest is unknown, not invented."""
    found = predicted(TrialSpec("new", {}), Facts(), 60.0)
    assert found.seconds == Bounds(0.0, 60.0)
    assert found.likely_s is None
    assert found.unknown == ("what trials of kind new take and move",)


def test_trials_are_those_that_are_run() -> None:
    """In their order."""
    config = BenchConfig.model_validate({"loaders": NULL, "repeats": 3})
    found = forecast(config, trials(config), Facts())
    assert [spec for spec, _ in found.trials] == trials(config)
    assert found.likely_s == (6 * 1.5, 0)
    assert found.most_s == 6 * 600.0


def test_nothing_lasts_longer_than_its_limit() -> None:
    """What would is stopped."""
    found = forecast_of(loaders=NULL, repeats=1, trial_timeout_s=1)
    assert found.likely_s == (2.0, 0)


def test_disks_are_summed_with_their_test_file() -> None:
    """Two patterns, three caches, once written: a file each at most."""
    found = forecast_of(disk={**DISK, "operations": "read"}, repeats=2)
    assert [step.words for step in found.making] == ["a test file of 1.0 MB on here"]
    assert found.bytes["disk_read"].high == 2 * 6 * 2**20
    assert found.bytes["disk_written"].high == 2**20


def test_stores_are_priced_apart() -> None:
    """Requests of all trials, each store its own; another server has no price."""
    found = forecast_of(Facts(stores={"store/s3": AMAZON}), object_store=STORE, repeats=2)
    total = found.stores["store/s3"]
    assert total.requests[1] == Requests(puts=2 * 50, gets=2 * 2, lists=2 * 2)
    assert total.usd is not None
    assert total.usd.high == pytest.approx(PRICE.of_requests(*astuple(total.requests[1])))
    assert found.usd == total.usd
    elsewhere = forecast_of(Facts(stores={"store/s3": OTHER}), object_store=STORE)
    assert elsewhere.usd == Bounds()
    assert elsewhere.stores["store/s3"].usd is None


def test_amazon_without_a_price_may_cost_anything() -> None:
    """So that somebody is asked."""
    unpriced = replace(AMAZON, price=None)
    found = forecast_of(Facts(stores={"store/s3": unpriced}), object_store=STORE)
    assert found.usd.high is None
    assert usd((Requests(), None), AMAZON) == Bounds(0.0, None)
    assert usd((Requests(), Requests()), StoreFacts()) is None


def test_objects_to_read_are_put_once() -> None:
    """Whoever reads them."""
    store = {**STORE, "operations": ["get", "put"], "clients": ["boto3", "obstore"]}
    found = forecast_of(Facts(stores={"store/s3": AMAZON}), object_store=store, repeats=3)
    assert [step.words for step in found.making] == ["64 objects of 0.001 MB to read, in store/s3"]


def test_data_are_made_before_the_trials() -> None:
    """Those that trials name."""
    facts = Facts({"shards@disk": replace(data(), made=False)})
    found = forecast_of(facts, loaders=[{"loader": "raw"}], data={"source": "x"})
    assert [step.words for step in found.making] == ["shards@disk: images sharded"]


def test_earlier_trials_tell() -> None:
    """How long the rest takes."""
    config = BenchConfig.model_validate({"loaders": NULL, "repeats": 1})
    specs = trials(config)
    done = [Trial(s.id, s.kind, s.params, 0, "done", {}, seconds=7.0) for s in specs]
    assert forecast(config, specs, Facts(), done).likely_s == (14.0, 0)


def test_trials_that_may_not_be_needed_are_counted() -> None:
    """Which is said where a loader has workers to be raised."""
    many = [{"loader": "null", "workers": [1, 2, 4]}]
    assert "more_workers_gain" in forecast_of(loaders=many).problems[0]
    assert forecast_of(loaders=many, more_workers_gain=None).problems == ()
    assert forecast_of(loaders=NULL).problems == ()
