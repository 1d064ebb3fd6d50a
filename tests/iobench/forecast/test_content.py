"""A forecast as JSON: everything that the words say, in numbers."""

from __future__ import annotations

import json

from iobench.forecast import Facts
from iobench.forecast.content import content, totals
from tests.iobench.forecast.made import AMAZON, OTHER, forecast_of
from tests.iobench.forecast.test_whole import DISK, STORE


def test_all_of_it_is_json() -> None:
    """Trials with their ids, what is made, sums."""
    facts = Facts(stores={"store/s3": AMAZON}, problems=("p",))
    found = forecast_of(facts, object_store=STORE, disk=DISK, loaders=[{"loader": "raw"}])
    said = json.loads(json.dumps(content(found), allow_nan=False))
    assert [trial["id"] for trial in said["trials"]] == [spec.id for spec, _ in found.trials]
    assert said["warnings"] == ["p"]
    assert said["total"]["trials"] == len(found.trials)
    assert said["total"]["usd"] == list(found.usd)
    assert said["total"]["disk_written_bytes"] == list(found.bytes["disk_written"])
    assert said["making"][0]["what"].startswith("a test file")
    assert said["total"]["disk_read_bytes"][1] is None


def test_sums_name_each_store() -> None:
    """And its server."""
    found = totals(forecast_of(Facts(stores={"store/s3": OTHER}), object_store=STORE))
    assert found["stores"]["store/s3"]["server"] == "http://127.0.0.1:9000"
    assert found["stores"]["store/s3"]["usd"] is None
    assert found["usd"] == [0.0, 0.0]
