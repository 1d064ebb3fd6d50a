"""PURE. What a reader of the figures must know about how they came about."""

from __future__ import annotations

from collections.abc import Iterator

from dataprep.counted import counted
from iobench.diagnosis.rule import Rule
from iobench.diagnosis.sources import OURS
from iobench.result import Finding, Result
from iobench.trial import Trial

ENOUGH = 6
"""Repeats: from there on minimum to maximum covers the median with 96.9 %."""

FEW_REPEATS = Rule(
    "few-repeats",
    "Few repeats: a look, not a figure to report",
    "measurement",
    "info",
    f"fewer than {ENOUGH} repeats of each point",
    "repeats of the config",
    f"set repeats: {ENOUGH} or more for a figure that is reported",
    OURS,
)
CACHE_RESIDENT = Rule(
    "cache-resident",
    "The data may stay in memory",
    "measurement",
    "info",
    "the data are smaller than 5 times the memory, of machine or control group",
    "cold.cache_resident of each trial",
    "later epochs may come from the page cache; use at least 5 times the memory to see the disk in "
    "every epoch",
    OURS,
)
NOT_SHOWN_COLD = Rule(
    "not-shown-cold",
    "Cold was asked for, and not shown",
    "measurement",
    "warning",
    "a trial was to be cold, and more than 1 % of its pages were resident before, or storage gave "
    "less than 95 % of the bytes",
    "cold.label and cold.why of each trial",
    "read their figures as warm",
    OURS,
)
NOT_ALL_WARM = Rule(
    "not-all-warm",
    "Warm was asked for, and not all was",
    "measurement",
    "warning",
    "a trial was to be warm, and storage was read, or pages were missing before",
    "cold.why of each trial",
    "fewer images, or a machine with more memory",
    OURS,
)
EMULATED = Rule(
    "emulated",
    "An emulated device: a pace is kept, nothing is computed",
    "measurement",
    "info",
    "a loop's consumer is paced",
    "emulated of each trial",
    "measure with the real training loop before buying anything",
    OURS,
)
STOOD_STILL = Rule(
    "stood-still",
    "A trial was stopped meanwhile",
    "measurement",
    "warning",
    "a trial's process was stopped for a second or more, or the program that waits for it for "
    "five: Ctrl-Z, SIGSTOP, a paused container",
    "stood_still_s of each trial",
    "the time may be in their figures: measure again, into another folder",
    OURS,
)
UNFINISHED = Rule(
    "unfinished",
    "The run was stopped before its end",
    "measurement",
    "warning",
    "fewer trials were tried than the config asks for",
    "references.planned beside the trials",
    "iobench run --resume goes on with it",
    OURS,
)
RULES = (
    UNFINISHED,
    STOOD_STILL,
    NOT_SHOWN_COLD,
    NOT_ALL_WARM,
    FEW_REPEATS,
    CACHE_RESIDENT,
    EMULATED,
)


def findings(result: Result) -> Iterator[Finding]:
    """Findings about the measurement itself."""
    done = [trial for trial in result.trials if trial.status == "done"]
    repeats = int(result.config.get("repeats", 0))
    if 0 < repeats < ENOUGH:
        yield FEW_REPEATS.found(f"{repeats} of each point: intervals cover less than 95 %")
    planned = result.references.get("planned")
    if isinstance(planned, int) and len(result.trials) < planned:
        yield UNFINISHED.found(f"{len(result.trials):,} of {planned:,} trials were tried")
    still = {t.id: s for t in done if (s := t.metrics.get("stood_still_s"))}
    if still:
        longest = max(still, key=lambda name: still[name])
        yield STOOD_STILL.found(
            f"{counted(len(still), 'trial')} stopped meanwhile, at most for {still[longest]:g} s: "
            f"{longest}"
        )
    resident = [trial for trial in done if trial.cold is not None and trial.cold.cache_resident]
    if resident:
        yield CACHE_RESIDENT.found(
            f"the data of {counted(len(resident), 'trial')} are smaller than 5 times the memory"
        )
    not_cold = [
        trial
        for trial in done
        if trial.cold is not None and trial.cold.asked == "cold" and trial.cold.label == "warm"
    ]
    if not_cold:
        yield NOT_SHOWN_COLD.found(
            f"{len(not_cold)} trials were to be cold and are labelled warm: {_why(not_cold[0])}"
        )
    not_warm = [
        trial
        for trial in done
        if trial.cold is not None and trial.cold.asked == "warm" == trial.cold.label
        if trial.cold.why
    ]
    if not_warm:
        loop = any(trial.kind == "train" for trial in not_warm)
        yield NOT_ALL_WARM.found(
            f"{counted(len(not_warm), 'trial')} asked for warm and not quite so: "
            f"{_why(not_warm[0])}",
            NOT_ALL_WARM.advice + ("; the loop's stall is not split" if loop else ""),
        )
    emulated = {trial.params["group"] for trial in done if trial.metrics.get("emulated")}
    if emulated:
        yield EMULATED.found(f"no device computes in {', '.join(sorted(emulated))}: a pace is kept")


def _why(trial: Trial) -> str:
    return trial.cold.why if trial.cold else ""
