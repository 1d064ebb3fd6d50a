"""PURE. Every rule, in the order of precedence."""

from __future__ import annotations

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
from iobench.diagnosis.rule import Rule

CAUSES: tuple[Rule, ...] = (
    # What explains as much as another comes first where it says more: why storage is slow before
    # that it is, who has the processors before that they are missing.
    storage.THROTTLED,
    storage.TINY_FILES,
    workers.OTHERS_BUSY,
    watched.OTHERS,
    workers.TOO_FEW,
    *preparation.RULES,
    storage.LATENCY_BOUND,
    storage.BANDWIDTH_BOUND,
    storage.SLOW_STORE,
    storage.SLOW_DISK,
    watched.PREPARATION,
    watched.WORKERS,
    watched.WAITING,
    watched.EPOCH_STARTS,
    ranks.UNEVEN,
)
RULES: tuple[Rule, ...] = (
    *CAUSES,
    *grades.RULES,
    *first_batch.RULES,
    *(batches.BATCH_TOO_SMALL, workers.TOO_MANY, steps.STEP_OUTLIERS),
    *(ranks.DIFFER, *measurement.RULES, *instrumentation.RULES, *idle_workers.RULES),
    *(*targets.RULES, *limits.RULES, *processes.RULES),
)
PRECEDENCE = {rule.code: place for place, rule in enumerate(RULES)}
KINDS = {rule.code: rule.kind for rule in RULES}
