"""Tests of dataprep.execution."""

from __future__ import annotations

import os

import pytest
from pydantic import ValidationError

from dataprep.execution import DaskOptions, PlanOptions


def test_as_many_workers_as_processors() -> None:
    """Where none is named, those that this process may run on; else what was said."""
    assert 1 <= DaskOptions().worker_count <= len(os.sched_getaffinity(0))
    assert DaskOptions(workers=7).worker_count == 7


@pytest.mark.parametrize("wrong", [{"workers": 0}, {"retries": 21}, {"max_concurrent_uploads": 0}])
def test_numbers_have_bounds(wrong: dict[str, int]) -> None:
    """None of them is below what does any work."""
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        DaskOptions.model_validate(wrong)


def test_a_scheduler_has_no_password() -> None:
    """Its address stands in the manifest, and in what is said where nobody answers."""
    with pytest.raises(ValidationError, match="must not carry a user or password"):
        DaskOptions(scheduler="tcp://jo:hunter2@host:8786")


@pytest.mark.parametrize("wrong", [{"readers": 0}, {"upload_mb_per_s": 0}])
def test_a_forecast_is_told_what_exists(wrong: dict[str, int]) -> None:
    """At least one reader, and a speed above nothing."""
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        PlanOptions.model_validate(wrong)
