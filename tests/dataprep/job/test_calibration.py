"""How large records become is learnt alike, in this process or in another."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from dataprep.config import ShardConfig
from dataprep.errors import SourceError
from dataprep.job.calibration import calibrate
from dataprep.job.journal import Journal
from dataprep.job.plans import sample_rows
from dataprep.job.request import requested
from tests.reliability.rows import ROOT


@pytest.fixture
def isolating() -> Journal:
    """The journal of a run after one that died."""
    journal = Journal(None)
    journal.isolated = True
    return journal


def test_in_isolation(
    images: Path, tmp_path: Path, isolating: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same points; a sample that crashes counts as one that fails."""
    source = tmp_path / "photos"
    for path in images.rglob("*.JPEG"):
        copy = source / path.relative_to(images)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    victim = min(source.rglob("*.JPEG"))
    data = victim.read_bytes()
    config = ShardConfig(source=str(source), output=str(tmp_path / "out"))

    def points(journal: Journal | None = None) -> tuple[tuple[int, int], ...]:
        request = requested(config, lambda line: None)
        rows = sample_rows(request.listing)
        assert np.array_equal(rows, np.arange(24))
        return calibrate(request.listing, rows, request.source, config, journal).points

    assert points(isolating) == points()
    mark = b"@@SIGSEGV@@"
    victim.write_bytes(bytes(len(data) + len(mark)))
    failed = points()
    victim.write_bytes(data + mark)
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'tests/reliability/crashing'}:{ROOT}")
    monkeypatch.setenv("CRASHING", str(tmp_path))
    assert points(isolating) == failed
    assert failed != points()


def test_a_file_that_changes_meanwhile_is_the_sources_fault(images: Path, tmp_path: Path) -> None:
    """Nothing is stored yet: there is nothing to overwrite."""
    source = tmp_path / "photos"
    shutil.copytree(images, source)
    request = requested(
        ShardConfig(source=str(source), output=str(tmp_path / "out")), lambda line: None
    )
    for path in source.rglob("*.JPEG"):
        path.write_bytes(path.read_bytes() + b"more")
    with pytest.raises(SourceError, match="changed while the job was planned: run the same"):
        calibrate(request.listing, sample_rows(request.listing), request.source, request.config)
