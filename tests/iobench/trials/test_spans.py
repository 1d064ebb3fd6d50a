"""The spans that a trial keeps for a trace, whose number is limited."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from iobench.loaders import WorkerBatch
from iobench.results.trial import Span
from iobench.trials import spans
from iobench.trials.loop_timings import LoopTimings
from iobench.trials.spans import last_batches, process_spans, rank_spans, worker_spans


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit the spans of each sort to four."""
    monkeypatch.setattr(spans, "MAX_SPANS", 4)


def batches(count: int, worker: int = 0) -> list[WorkerBatch]:
    """Return batches of a worker that take one second, every two seconds from 100 s on."""
    return [WorkerBatch(worker, 100.0 + 2 * n, 101.0 + 2 * n) for n in range(count)]


def test_batches_of_workers_count_from_the_origin() -> None:
    """The last batches are kept, with times from the origin."""
    assert worker_spans(batches(1, worker=3), 90.0) == [Span("worker 3", "batch", 10.0, 1.0)]
    assert [span.begin_s for span in worker_spans(batches(6), 100.0)] == [4, 6, 8, 10]


def test_processes_keep_equal_parts() -> None:
    """Each process keeps as many batches, and its number names its workers."""
    kept = process_spans([batches(5), batches(5)], 100.0)
    assert [(span.track, span.begin_s) for span in kept] == [
        ("rank 0 worker 0", 6),
        ("rank 0 worker 0", 8),
        ("rank 1 worker 0", 6),
        ("rank 1 worker 0", 8),
    ]
    assert last_batches(batches(5), 2) == batches(5)[-2:]
    assert last_batches(batches(5), 9) == batches(5)[-1:]


def test_steps_of_ranks_end_where_they_ended() -> None:
    """The time between epochs belongs to no step."""
    first = LoopTimings(
        requested_s=10.0,
        time_to_first_batch_s=0.0,
        begun_s=10.0,
        seconds=3.0,
        samples=2,
        all_samples=2,
        wait_s=np.array([0.5, 0.25]),
        step_s=np.array([1.0, 2.0]),
        compute_s=np.array([0.5, 0.5]),
    )
    epochs = [first, replace(first, requested_s=20.0, begun_s=20.0)]
    assert rank_spans([epochs], 10.0) == [
        Span("rank 0", "step", 0.0, 1.0, 0.5),
        Span("rank 0", "step", 1.0, 2.0, 0.25),
        Span("rank 0", "step", 10.0, 1.0, 0.5),
        Span("rank 0", "step", 11.0, 2.0, 0.25),
    ]
    assert [span.begin_s for span in rank_spans([epochs, epochs], 10.0)] == [10, 11, 10, 11]
