"""Worker processes that are gone are replaced, and no others."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest
from distributed.core import Status
from hypothesis import given
from hypothesis import strategies as st

from dataprep.job import replacing as module
from dataprep.job.replacing import replace_closed, replacing
from tests.commandline import wait_until

pytestmark = pytest.mark.process

GONE = (Status.closed, Status.failed)
STATUSES = st.sampled_from([*Status])


class Cluster:
    """As Dask's: workers by name, and the specification of those that there should be."""

    def __init__(self, statuses: list[Status]) -> None:
        self.workers = {n: SimpleNamespace(status=status) for n, status in enumerate(statuses)}
        self.worker_spec: dict[int, str] = dict.fromkeys(self.workers, "a worker")
        self.scaled: list[int] = []
        self._next = len(statuses)

    def new_worker_spec(self) -> dict[int, str]:
        """One of a new name."""
        self._next += 1
        return {self._next - 1: "a worker"}

    def scale(self, count: int) -> None:
        """Start those that are specified and do not run; forget those that are not."""
        self.scaled.append(count)
        assert count == len(self.worker_spec)
        self.workers = {
            name: self.workers.get(name, SimpleNamespace(status=Status.running))
            for name in self.worker_spec
        }


@given(st.lists(STATUSES, max_size=8))
def test_as_many_as_there_were(statuses: list[Status]) -> None:
    """Who runs, starts or closes stays; each that is gone has a successor of another name."""
    cluster = Cluster(statuses)
    before = dict(cluster.workers)
    replace_closed(cluster, len(statuses))
    kept = {name for name, nanny in before.items() if nanny.status not in GONE}
    assert len(cluster.worker_spec) == len(statuses)
    assert cluster.worker_spec.keys() & before.keys() == kept
    assert all(cluster.workers[name] is before[name] for name in kept)
    assert cluster.scaled == ([len(statuses)] if len(kept) < len(before) else [])
    replace_closed(cluster, len(statuses))  # whose new ones run
    assert len(cluster.scaled) <= 1


def test_one_that_is_not_wanted_any_more() -> None:
    """A cluster that is being scaled down by somebody gets no successor of it here."""
    cluster = Cluster([Status.closed, Status.running])
    del cluster.worker_spec[0]
    replace_closed(cluster, 1)
    assert cluster.worker_spec.keys() == {1}


def test_it_looks_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the block ends, by an error as well."""
    monkeypatch.setattr(module, "_LOOK_EVERY_S", 0.001)
    cluster = Cluster([Status.running, Status.running])

    def watched() -> None:
        with replacing(cluster, 2):
            for times in (1, 2):
                name = min(cluster.worker_spec)
                cluster.workers[name].status = Status.failed
                wait_until(lambda: len(cluster.scaled) == times, "it to be replaced")  # noqa: B023
                assert name not in cluster.worker_spec
            raise KeyError("over")

    with pytest.raises(KeyError, match="over"):
        watched()
    assert not [thread for thread in threading.enumerate() if thread.name == "replacing"]
    cluster.workers[max(cluster.workers)].status = Status.closed
    assert len(cluster.scaled) == 2
