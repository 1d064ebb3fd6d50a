"""Which engine a job gets."""

from __future__ import annotations

from typing import Any

import pytest

from dataprep.execution import DaskOptions
from dataprep.job.choice import SMALL_JOB_SOURCE_BYTES, choose_engine
from dataprep.job.cluster import Cluster
from dataprep.job.threads import Threads


@pytest.mark.parametrize(
    ("options", "source_bytes", "kind"),
    [
        ({}, SMALL_JOB_SOURCE_BYTES - 1, Threads),
        ({}, SMALL_JOB_SOURCE_BYTES, Cluster),
        ({"processes": True}, 1, Cluster),
        ({"processes": False}, 10**12, Threads),
        ({"scheduler": "tcp://host:8786"}, 1, Cluster),
        ({"cluster": "package.Cluster", "processes": False}, 1, Cluster),
    ],
)
def test_choice(options: dict[str, Any], source_bytes: int, kind: type) -> None:
    """Small jobs run on threads, others on processes, unless the config says otherwise."""
    chosen = choose_engine(
        DaskOptions(**options), source_bytes, lambda progress: None, lambda line: None
    )
    assert type(chosen) is kind
