"""PURE. What a reader of the figures must know about how they came about."""

from __future__ import annotations

from collections.abc import Iterator

from dataprep.counted import counted
from iobench.result import Finding, Result
from iobench.summary import first_batch, instrumentation, ranks, starved, workers
from iobench.summary.targets import of_targets
from iobench.trial import Trial


def findings(result: Result) -> tuple[Finding, ...]:
    """Findings about the measurement itself."""
    return tuple(_found(result))


def _found(result: Result) -> Iterator[Finding]:
    done = [trial for trial in result.trials if trial.status == "done"]
    repeats = int(result.config.get("repeats", 0))
    if 0 < repeats < 6:
        yield Finding(
            "few-repeats",
            "info",
            f"{repeats} of each point: intervals cover less than 95 %",
            "set repeats: 6 or more for a figure that is reported",
        )
    resident = [trial for trial in done if trial.cold is not None and trial.cold.cache_resident]
    if resident:
        yield Finding(
            "cache-resident",
            "info",
            f"the data of {counted(len(resident), 'trial')} are smaller than 5 times the memory",
            "later epochs may come from the page cache; use at least 5 times the memory to see the "
            "disk in every epoch",
        )
    not_cold = [
        trial
        for trial in done
        if trial.cold is not None and trial.cold.asked == "cold" and trial.cold.label == "warm"
    ]
    if not_cold:
        yield Finding(
            "not-shown-cold",
            "warning",
            f"{len(not_cold)} trials were to be cold and are labelled warm: "
            f"{not_cold[0].cold.why if not_cold[0].cold else ''}",
            "read their figures as warm",
        )
    not_warm = [
        trial
        for trial in done
        if trial.cold is not None and trial.cold.asked == "warm" == trial.cold.label
        if trial.cold.why
    ]
    if not_warm:
        yield Finding(
            "not-all-warm",
            "warning",
            f"{len(not_warm)} trials were to be warm and were not quite: "
            f"{not_warm[0].cold.why if not_warm[0].cold else ''}",
            "fewer images, or a machine with more memory"
            + ("; the loop's stall is not split" if any(map(_is_loop, not_warm)) else ""),
        )
    yield from starved.findings(done)
    yield from first_batch.findings(done)
    yield from ranks.findings(done)
    yield from instrumentation.findings(done)
    yield from workers.findings(done)
    emulated = {trial.params["group"] for trial in done if trial.metrics.get("emulated")}
    if emulated:
        yield Finding(
            "emulated",
            "info",
            f"no device computes in {', '.join(sorted(emulated))}: a pace is kept",
            "measure with the real training loop before buying anything",
        )
    yield from of_targets(result)


def _is_loop(trial: Trial) -> bool:
    return trial.kind == "train"
