"""A plan of the size of ImageNet."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


def test_a_plan_of_1_3_million_samples_fits_into_a_gigabyte() -> None:
    """Listing, planning, storing and reading the plan together stay below 1 GB of memory."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.dataprep.job.million", "1300000"],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[3],
    )
    content = json.loads(done.stdout)
    assert content["samples"] == 1_300_000
    assert content["shards"] > 100
    assert content["peak_bytes"] < 10**9
