"""fio as the engine of the disk probe."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from iobench.errors import TrialFailed, Unavailable
from iobench.probes import fio
from iobench.probes.fio import fio_figures, fio_options
from iobench.probes.parallel import Moved
from iobench.probes.settings import DiskTrial
from iobench.results.statistics import QUANTILES
from tests.iobench.probes.conftest import FILE_BYTES, Probe, is_provable
from tests.programs import find_program

pytestmark = pytest.mark.slow

TRIAL = DiskTrial(
    target="here",
    operation="read",
    pattern="sequential",
    block_bytes=2**16,
    parallelism=3,
    cache="cold",
    file_bytes=10 * 2**16,
    seconds=1.5,
    repeat=3,
)
installed = pytest.mark.skipif(find_program("fio") is None, reason="fio is not installed")


@pytest.mark.parametrize(
    ("changes", "options"),
    [
        # Regions are equally long and have whole blocks; the rest of the file is left out.
        ({}, {"size": str(3 * 2**16), "offset_increment": str(3 * 2**16)}),
        ({}, {"numjobs": "3", "bs": "65536", "runtime": "1500000us"}),
        ({}, {"rw": "read", "time_based": "0", "filename": r"/d/a\:b"}),
        ({"pattern": "random"}, {"rw": "randread"}),
        ({"operation": "write", "pattern": "random"}, {"rw": "randwrite"}),
        ({"cache": "warm"}, {"time_based": "1"}),
        ({"cache": "direct"}, {"direct": "1"}),
        ({"cache": "buffered", "operation": "write"}, {"direct": "0"}),
    ],
)
def test_params_in_fios_words(changes: dict[str, Any], options: dict[str, str]) -> None:
    """Trial parameters become options of fio; a colon in a path is escaped."""
    values = {}
    for option in fio_options(Path("/d/a:b"), replace(TRIAL, **changes)):
        name, _, value = option.removeprefix("--").partition("=")
        values[name] = value
    assert options.items() <= values.items()


def check(metrics: Any) -> None:
    """Check the figures of a trial that read or wrote its whole file."""
    assert (metrics["bytes"], metrics["operations"]) == (FILE_BYTES, FILE_BYTES // 2**16)
    assert metrics["mb_per_s"] == pytest.approx(FILE_BYTES / 1e6 / metrics["seconds"])
    assert metrics["engine"].startswith("fio-")
    assert metrics["latency_s_p50"] > 0
    assert "latency_s_p99" not in metrics  # 64 operations are too few for p99.


@installed
@pytest.mark.parametrize("pattern", ["sequential", "random"])
def test_a_cold_read_is_proved(disk_folder: Path, probe: Probe, pattern: str) -> None:
    """Bytes that fio read from storage are counted."""
    outcome = probe(disk_folder, engine="fio", pattern=pattern)
    check(outcome.metrics)
    assert outcome.cold is not None
    if outcome.cold.label != "cold" and not is_provable(disk_folder):
        pytest.skip(f"not provable here: {outcome.cold.why}")
    assert outcome.cold.label == "cold"


@installed
def test_a_warm_read_goes_round(tmp_path: Path, probe: Probe) -> None:
    """A warm read continues until the time is over."""
    reported_bytes: list[float] = []
    outcome = probe(
        tmp_path,
        engine="fio",
        cache="warm",
        seconds=0.3,
        file_bytes=2**17,
        block_bytes=4096,
        progress=lambda done, unit: reported_bytes.append(done),
    )
    assert outcome.metrics["bytes"] > 2**17
    assert reported_bytes == [outcome.metrics["bytes"]]


@installed
@pytest.mark.parametrize("operation", ["read", "write"])
def test_direct(direct_folder: Path, probe: Probe, operation: str) -> None:
    """Direct trials work, and a write leaves no file."""
    outcome = probe(direct_folder, engine="fio", cache="direct", operation=operation)
    check(outcome.metrics)
    assert "fsync_s" not in outcome.metrics
    assert [path for path in direct_folder.iterdir() if "write" in path.name] == []


@installed
def test_a_buffered_write_counts_until_the_disk_has_it(tmp_path: Path, probe: Probe) -> None:
    """The final fsync counts in its time."""
    metrics = probe(tmp_path, engine="fio", operation="write", cache="buffered").metrics
    assert metrics["bytes"] == FILE_BYTES
    assert 0 <= metrics["fsync_s"] <= metrics["seconds"]


def test_without_fio(tmp_path: Path, probe: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the package."""
    monkeypatch.setattr(fio, "find_program", lambda name: None)
    with pytest.raises(Unavailable, match="fio is not installed"):
        probe(tmp_path, engine="fio")


@pytest.mark.parametrize(
    ("stdout", "message"),
    [
        ("", "fio ended with exit code 1: bad option"),
        ("fio: warning\n{", "fio ended with exit code 1"),
        (json.dumps({"jobs": []}), "fio ended with exit code 1"),
        ('{"jobs": [{"error": "x"}]}', "fio ended with exit code 1"),
        (json.dumps({"jobs": [{"error": 28}]}), "is full"),
        (
            json.dumps({"jobs": [{"error": 0, "write": {"io_bytes": 0, "total_ios": 0}}]}),
            "moved nothing",
        ),
    ],
)
def test_the_error_has_the_message_of_fio(
    tmp_path: Path, probe: Probe, monkeypatch: pytest.MonkeyPatch, stdout: str, message: str
) -> None:
    """The message is that of fio or of the disk."""

    def answered(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 1, stdout, "bad option")

    monkeypatch.setattr(fio, "find_program", os.fspath)
    monkeypatch.setattr(fio.subprocess, "run", answered)  # type: ignore[attr-defined]
    with pytest.raises(TrialFailed, match=message):
        probe(tmp_path, engine="fio", operation="write", cache="buffered")


@pytest.mark.parametrize(
    "changes",
    [
        {"io_bytes": None},
        {"total_ios": "many"},
        {"clat_ns": {}},
        {"clat_ns": {"percentile": [1]}},
        {"clat_ns": {"percentile": {"": 1}}},
    ],
)
def test_a_report_of_another_form_is_no_figure(changes: dict[str, Any]) -> None:
    """An unexpected report of fio fails the trial with a message."""
    percentile = {f"{q * 100:.6f}": 1000 for q in QUANTILES.values()}
    side = {"io_bytes": 4096, "total_ios": 100, "runtime": 5, "clat_ns": {"percentile": percentile}}

    def figures(**changes: Any) -> Moved:
        report = {"jobs": [{"error": 0, "read": {**side, **changes}}]}
        done = subprocess.CompletedProcess(["fio"], 0, json.dumps(report), "")
        return fio_figures(done, "read", None)

    assert (figures().bytes, figures().latency_s["p50"]) == (4096, 1e-6)
    with pytest.raises(TrialFailed, match="fio"):
        figures(**changes)
