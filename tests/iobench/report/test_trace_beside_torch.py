"""A trace of a watched loop and one of torch.profiler share one timeline."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from iobench.runner.run_folder import run_trace

pytestmark = [pytest.mark.slow, pytest.mark.process]

SCRIPT = """
import sys, torch, iobench

loader = iobench.watch([torch.ones(2, 3)] * 30, sys.argv[1], samplers=())
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
    for number, batch in enumerate(loader):
        with torch.profiler.record_function(f"work {number}"):
            for _ in range(200):
                batch = batch @ torch.ones(3, 3) / 3
profiler.export_chrome_trace(sys.argv[2])
iobench.finish()
"""
SLACK_US = 1_000.0
"""The allowed difference: the profiler's own clock is only compared with the system's."""


def test_both_have_one_base_and_one_clock(tmp_path: Path) -> None:
    """Work that torch recorded within a step is within the work of that step in our trace."""
    pytest.importorskip("torch")
    run, file = tmp_path / "run", tmp_path / "torch.json"
    subprocess.run([sys.executable, "-c", SCRIPT, run, file], check=True, capture_output=True)
    theirs: dict[str, Any] = json.loads(file.read_text())
    ours: dict[str, Any] = json.loads(run_trace(run).encoded())
    assert ours["baseTimeNanoseconds"] == theirs["baseTimeNanoseconds"]
    recorded = {}
    for event in theirs["traceEvents"]:
        if event["name"].startswith("work ") and event.get("cat") == "user_annotation":
            recorded[event["name"]] = event
    work = [event for event in ours["traceEvents"] if event["name"] == "work"]
    assert len(recorded) == 30
    # The first step does not count, so that our trace begins with the second one.
    assert len(work) == 29
    for number, own in enumerate(work, start=1):
        their = recorded[f"work {number}"]
        assert own["ts"] - SLACK_US <= their["ts"]
        assert their["ts"] + their["dur"] <= own["ts"] + own["dur"] + SLACK_US
    numbers = {event["pid"] for event in ours["traceEvents"]}
    assert not numbers & {event["pid"] for event in theirs["traceEvents"]}
