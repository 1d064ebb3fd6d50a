"""Tests of dataprep.versions."""

from __future__ import annotations

import platform

import pytest

from dataprep.errors import JobError
from dataprep.versions import determining, require_versions


def test_the_processor_is_told_where_it_matters() -> None:
    """Bytes that are the same everywhere do not name a processor; others do."""
    exact, depends = dict(determining()), dict(determining(same_everywhere=False))
    assert "processor" not in exact
    assert depends.pop("processor").startswith(platform.machine())
    assert depends == exact


def test_another_processor_is_refused() -> None:
    """A worker on another processor than the job was planned on refuses, where it matters."""
    require_versions(determining())
    planned = determining(same_everywhere=False)
    require_versions(planned)
    elsewhere = tuple((name, "abacus" if name == "processor" else v) for name, v in planned)
    with pytest.raises(JobError, match=r"processor .* instead of abacus"):
        require_versions(elsewhere)
