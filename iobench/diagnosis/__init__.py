"""PURE. What the figures of a run mean for whoever has to do something about them.

Each rule has a threshold, evidence, advice and a source; one finding of a result is primary.
"""

from __future__ import annotations

from collections.abc import Iterator

from iobench.diagnosis import (
    batches,
    first_batch,
    grades,
    idle_workers,
    instrumentation,
    limits,
    measurement,
    preparation,
    processes,
    ranks,
    steps,
    storage,
    targets,
    watched,
    workers,
)
from iobench.diagnosis.loop import loops
from iobench.diagnosis.primary import with_primary
from iobench.result import Finding, Result
from iobench.summary import summarise

__all__ = ["diagnose"]


def diagnose(result: Result) -> tuple[Finding, ...]:
    """All findings of a result, by its summary, or by one that is made of its trials."""
    return with_primary(tuple(_found(result)))


def _found(result: Result) -> Iterator[Finding]:
    done = [trial for trial in result.trials if trial.status == "done"]
    summary = result.summary or summarise(result)
    found = loops(result, summary)
    yield from storage.findings(found, done, summary)
    yield from workers.findings(found)
    yield from preparation.findings(found)
    yield from grades.findings(found)
    yield from watched.findings(done)
    yield from first_batch.findings(done)
    yield from ranks.findings(done)
    yield from batches.findings(found)
    yield from steps.outliers(found)
    yield from measurement.findings(result)
    yield from instrumentation.findings(done)
    yield from idle_workers.findings(done)
    yield from targets.of_targets(result)
    yield from limits.findings(summary.get("roofline") or ())
    yield from processes.findings(summary.get("processes") or ())
