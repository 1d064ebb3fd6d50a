"""Which engine a job gets."""

from __future__ import annotations

from typing import Any

import pytest

from dataprep.execution import DaskOptions
from dataprep.job.choice import SMALL_JOB_SOURCE_BYTES, Engines
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
    with engines(**options) as chosen:
        assert type(chosen.choose(source_bytes)) is kind


def test_workers_that_there_are_serve_what_is_small() -> None:
    """A split of a few images after a large one does not wait for a cluster."""
    with engines(workers=1, processes="auto", dashboard="127.0.0.1:0") as chosen:
        chosen.expect(SMALL_JOB_SOURCE_BYTES)
        assert isinstance(chosen.choose(1), Cluster)


def test_nothing_is_begun_for_a_small_job() -> None:
    """Nor where a scheduler runs already: it is asked when there is a plan."""
    with engines() as chosen:
        chosen.expect(SMALL_JOB_SOURCE_BYTES - 1)
        assert isinstance(chosen.choose(1), Threads)
    with engines(scheduler="tcp://host:8786") as chosen:
        chosen.expect(SMALL_JOB_SOURCE_BYTES)
        chosen_one = chosen.choose(1)
        assert isinstance(chosen_one, Cluster)
        assert not chosen_one.begun


def engines(**options: Any) -> Engines:
    """Those of a job whose progress nobody hears of."""
    return Engines(DaskOptions(**options), lambda progress: None, lambda line: None)
