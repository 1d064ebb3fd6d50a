"""What goes between a trial's process and the one that waits for it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from dataprep.stores import StoreOptions
from iobench.messages import outcome_of, request, requested
from iobench.trial import Cold, Outcome, Place, TrialSpec


def test_a_request_arrives_as_it_was() -> None:
    """With every place, and how to reach it."""
    spec = TrialSpec("loader", {"loader": "raw", "workers": 2, "block_bytes": [1, 2]}, repeat=3)
    places = {
        "shards@disk": Place("/data", "shards", split="validation"),
        "shards@s3": Place("s3://b/p", "shards", StoreOptions(endpoint_url="http://127.0.0.1:1")),
    }
    assert requested(request(spec, places)) == (spec, places, None)
    scratch = Path("/run/.scratch")
    assert requested(request(spec, places, scratch)) == (spec, places, scratch)


def test_an_outcome_arrives_as_it_was() -> None:
    """With its coldness, or without."""
    for cold in (None, Cold("cold", "warm", 0.5, 0.5, True, "half was resident")):
        outcome = Outcome({"samples_per_s": 1.5}, cold, {"wait_s": [0.5]}, 12.5, (1.0, 2.5))
        line = json.dumps({"outcome": asdict(outcome)})
        assert outcome_of(json.loads(line)) == outcome
