"""Processes started here do as the samples say that they are given."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def crashing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where faults that happen once are noted."""
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'tests/reliability/crashing'}:{ROOT}")
    notes = tmp_path / "notes"
    notes.mkdir()
    monkeypatch.setenv("CRASHING", str(notes))
    return notes
