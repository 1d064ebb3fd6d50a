"""Tests of dataprep.job.forecast_report."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dataprep.forecast import (
    Cost,
    Duration,
    Fate,
    Forecast,
    Machine,
    Outcome,
    SplitForecast,
)
from dataprep.job.forecast_report import forecast_json, forecast_text
from dataprep.requests import Requests

FORECAST = Forecast(
    source="s3://bucket/photos",
    output="s3://bucket/out",
    entries=1_281_200,
    refused={"failed: broken symlink": 33},
    classes=1_000,
    splits=(
        SplitForecast(
            "train",
            1_281_167,
            750,
            {"tfrecord": 50_000_000_000},
            Fate(1_281_200, 33, 10_009, 0, exact=False, allowed=12_812),
        ),
    ),
    label_offsets={"tfrecord": 1},
    outcome=Outcome(
        1_281_167, 256, {"tfrecord": 50_000_000_000}, 0.1, 0.875, {"cmyk": (2, 10_009)}
    ),
    machine=Machine(64, None),
    duration=Duration(100.0, 20.0, 0.0, 7_000.0, 300.0),
    requests={"source": Requests(0, 1_281_423, 1_282), "output": Requests(2_259, 3_014, 5)},
    cost=Cost(0.53, 1.07, "USD", "example prices: us-east-1, STANDARD, https://x as of 2025-01"),
    assumptions=("no request has to be repeated",),
    warnings=("train: 750 shards for 1,024 readers",),
)


def test_in_words() -> None:
    """Every figure stands in a line with its unit and what it rests on."""
    lines = forecast_text(FORECAST).splitlines()
    assert lines == [
        "s3://bucket/photos: 1,281,200 files, 1,000 classes",
        "  failed: broken symlink: 33",
        "train: 1,281,167 samples, about 1,271,158 of them written",
        "  about 10,042 of 1,281,200 files fail: 33 as listed, about 10,009 when converted",
        "  tfrecord: 750 shards, about 50,000.0 MB, 66.7 MB each; labels in records from 1",
        "  time: about 2 h 04 min with 64 workers (listing 100.0 s, planning 20.0 s, "
        "converting 7,000.0 s, storing 300.0 s)",
        "  10.0% pass through, 87.5% are re-encoded; to be met (an estimate from 256 conversions):",
        "    cmyk  10,009 (2 of 256 seen)",
        "  requests to the source: 0 PUT, 1,281,423 GET and HEAD, 1,282 LIST",
        "  requests to the output: 2,259 PUT, 3,014 GET and HEAD, 5 LIST",
        "  cost: 0.53 USD for requests, 1.07 USD a month to keep the shards (example prices: "
        "us-east-1, STANDARD, https://x as of 2025-01)",
        "  assumed: no request has to be repeated",
        "  warning: train: 750 shards for 1,024 readers",
        "  nothing was written to s3://bucket/out",
    ]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.04, "0.0 s"), (99.0, "99.0 s"), (119.0, "2 min"), (3_590.0, "1 h 00 min")],
)
def test_times(seconds: float, said: str) -> None:
    """Seconds below a hundred, then minutes, then hours."""
    found = replace(FORECAST, duration=Duration(0, 0, 0, seconds, 0))
    assert f"time: about {said} with" in forecast_text(found)


@pytest.mark.parametrize(
    ("amount", "said"),
    [(0.0, "0.00"), (0.00007, "0.00007"), (0.0123, "0.01"), (1234.5, "1,234.50")],
)
def test_amounts(amount: float, said: str) -> None:
    """Whole cents, and the first digit of what is less than one."""
    assert FORECAST.cost is not None
    found = forecast_text(replace(FORECAST, cost=replace(FORECAST.cost, requests=amount)))
    assert f"cost: {said} USD for requests" in found


def test_nothing_to_be_met() -> None:
    """Where all samples were plain that is said, and no estimate where all were converted."""
    plain = Outcome(20, 20, {"tfrecord": 1}, 1.0, 0.0, {})
    text = forecast_text(replace(FORECAST, outcome=plain, cost=None, requests={}))
    assert "all samples were converted" in text
    assert "nothing that a policy is about" in text
    assert "cost" not in text
    assert "requests" not in text.replace("no request", "")


def test_as_json() -> None:
    """One object with every figure, the total of the time among them."""
    found = json.loads(forecast_json(FORECAST))
    assert found["duration"]["total"] == 7_420.0
    assert found["outcome"]["met"] == {"cmyk": {"seen": 2, "expected": 10_009}}
    assert found["requests"]["output"] == {"puts": 2_259, "gets": 3_014, "lists": 5}
    assert found["splits"][0]["shards"] == 750
    assert found["cost"]["month"] == 1.07
