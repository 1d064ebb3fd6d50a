"""PURE. The rules for findings: when each applies, and its source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from iobench.numbers import exact_percent, percent
from iobench.result import Finding
from iobench.stats import Estimate

Kind = Literal["cause", "grade", "start", "setting", "measurement"]
Severity = Literal["info", "warning", "problem"]

FINE, HIGH = 0.05, 0.20
"""Shares of a step spent on input: below the first fine, above the second high (TensorFlow
Profiler's input-pipeline analyzer)."""
BUSY, IDLE = 0.80, 0.50
"""Shares of all CPUs: from the first on they are busy, below the second idle."""
CROWDED = 2.0
"""Workers for each CPU, from which on they only take each other's time."""
REFUSED = 0.01
"""Share of requests that a store refuses."""
SMALL_BYTES = 1_000_000
"""Of one read: below it the time to the first byte is most of its time."""
LATE_S = 10.0
"""Seconds to the first batch."""
OUTLIER = 3.0
"""Times the median step."""
ENOUGH = 6
"""Repeats: from there on minimum to maximum covers the median with 96.9 %."""

_CLOUD = (
    'AWS, "Optimizing I/O for GPU performance tuning of deep learning training in Amazon SageMaker"'
)
_STALLS = 'Mohan et al., "Analyzing and mitigating data stalls in DNN training", VLDB 2021'
_S3 = 'AWS, "Best practices design patterns: optimizing Amazon S3 performance"'
_TORCH = "PyTorch, torch.utils.data"
_PROFILER = "TensorFlow Profiler's input-pipeline analyzer"
_OURS = "docs/results.md"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: ``when`` it applies, and the ``source`` for that."""

    code: str
    kind: Kind
    severity: Severity
    title: str
    when: str
    source: str = _OURS


_FINE = exact_percent(FINE)
_PART = f"{_FINE} of a step or more"
_CAUSES = (
    ("store-throttles", "The store refuses requests", "more than 1 % answers 503 or 429", _S3),
    ("tiny-files", "Samples are read as many small files", "a file below 1 MB a sample", _CLOUD),
    (
        "other-programs",
        "Other programs use the CPUs",
        "they leave less than the loop needs",
        _CLOUD,
    ),
    ("slow-decode", "Decoding is the bottleneck", _PART, _CLOUD),
    ("slow-augmentation", "Augmenting is the bottleneck", _PART, _CLOUD),
    ("slow-preparation", "Preparing samples is the bottleneck", _PART, _STALLS),
    ("slow-collate", "Collating and handing over batches takes long", _PART, _OURS),
    ("unpinned-copy", "Copies to the GPU come from unpinned memory", _PART, _TORCH),
    ("slow-copy", "Copying to the device takes long", _PART, _TORCH),
    ("slow-read-path", "Reading is slow even from memory", _PART, _STALLS),
    ("slow-store-latency", "The object store's latency is the bottleneck", _PART, _S3),
    ("slow-store-bandwidth", "The object store's bandwidth is the bottleneck", _PART, _S3),
    ("slow-store", "Reading from the object store is the bottleneck", _PART, _STALLS),
    ("slow-disk", "Reading from the disk is the bottleneck", _PART, _STALLS),
    ("input-bound", "The loop waits for input", _PART, _PROFILER),
)
_WAITS = (
    f"a watched loop waits over {exact_percent(HIGH)} of its time "
    f"(with a replay: loses over {exact_percent(HIGH)})"
)
RULES = {
    rule.code: rule
    for rule in (
        *(Rule(code, "cause", "problem", *rest) for code, *rest in _CAUSES),
        Rule("waiting-others", "cause", "problem", "Other programs use the CPUs", _WAITS, _CLOUD),
        Rule(
            "waiting-preparation",
            *("cause", "problem", "The loop waits for preparing: CPUs are busy"),
            f"{_WAITS}, {exact_percent(BUSY)} of the CPUs are busy",
            _CLOUD,
        ),
        Rule(
            "waiting-workers",
            *("cause", "problem", "The loop waits while CPUs are idle"),
            f"{_WAITS}, less than {exact_percent(IDLE)} of the CPUs are busy",
            _CLOUD,
        ),
        Rule("waiting", "cause", "problem", "The loop waits for data", _WAITS, _PROFILER),
        Rule(
            "epoch-starts",
            *("cause", "warning", "The starts of epochs take long"),
            f"{exact_percent(FINE)} of the time or more, from the request of an epoch to its "
            "first batch",
        ),
        Rule("uneven-ranks", "cause", "warning", "Ranks wait for a slower rank", "over 5 %"),
        Rule(
            "slow-device",
            *("grade", "info", "The device is the limit: its input keeps up"),
            f"input takes less than {exact_percent(FINE)} of a step",
            _STALLS,
        ),
        Rule("input-fine", "grade", "info", "Input takes little time", f"below {_FINE}"),
        Rule(
            "late-first-batch",
            *("start", "warning", "The first batch comes late"),
            f"{LATE_S:g} s or more to the first batch",
            _CLOUD,
        ),
        Rule(
            "too-many-workers",
            *("setting", "warning", "Far more workers than CPUs"),
            f"more than {CROWDED:g} workers a CPU",
            _TORCH,
        ),
        Rule(
            "step-outliers",
            *("setting", "info", "Some steps take far longer than the rest"),
            f"a high quantile is {OUTLIER:g} times the median",
        ),
        Rule(
            "processes-share",
            *("setting", "info", "Loader processes slow each other down"),
            "n processes give less than 0.8 n times one",
        ),
        Rule(
            "unfinished",
            *("measurement", "warning", "The run was stopped before its end"),
            "fewer trials than planned",
        ),
        Rule(
            "stood-still",
            *("measurement", "warning", "A trial was suspended"),
            "its process was stopped for a second or more",
        ),
        Rule(
            "scattered",
            *("measurement", "warning", "Repeats differ widely"),
            "the largest of three repeats or more is 1.5 times the smallest",
        ),
        Rule(
            "not-shown-cold",
            *("measurement", "warning", "Cold was asked for and not proved"),
            "over 1 % of pages resident, or less than 95 % of the bytes from storage",
        ),
        Rule(
            "not-all-warm",
            *("measurement", "warning", "Warm was asked for and storage was read"),
            "storage was read, or pages were missing before",
        ),
        Rule(
            "faster-than-storage",
            *("measurement", "problem", "Faster than its storage: the measurement is at fault"),
            "over 1.1 times what the probe or loader raw got from the same storage",
        ),
        Rule(
            "ceiling-not-measured",
            *("measurement", "info", "What the storage can give was not measured"),
            "no probe of the storage and no loader raw with as many requests at a time",
        ),
        Rule(
            "host-missing",
            *("measurement", "problem", "A host has no result"),
            "a host of several was late, failed or disappeared",
        ),
        Rule(
            "hosts-uneven",
            *("measurement", "warning", "A host is slower than the others"),
            "less than 0.8 of the rate of the median host",
        ),
        Rule(
            "hosts-apart",
            *("measurement", "warning", "Hosts did not measure at the same time"),
            "all of them in less than 0.8 of the time: sums over hosts are too high",
        ),
        Rule("ranks-differ", "measurement", "problem", "Ranks trained separate networks", "always"),
        Rule(
            "few-repeats",
            *("measurement", "info", "Smoke run: few repeats"),
            f"fewer than {ENOUGH} repeats of each point",
        ),
        Rule(
            "cache-resident",
            *("measurement", "info", "The data are smaller than 5 times the memory"),
            "less than 5 times the memory of machine or control group",
        ),
        Rule(
            "store-on-this-machine",
            *("measurement", "info", "The object store runs on this machine"),
            "the store is a server of this run",
        ),
        Rule("emulated", "measurement", "info", "The device is emulated", "a paced consumer"),
        Rule(
            "instrumentation",
            *("measurement", "warning", "Timing the steps slows them"),
            "the loop's clock takes over 1 % of a step",
        ),
        Rule(
            "sampling",
            *("measurement", "warning", "Reading the machine uses CPU time"),
            "samplers take over 1 % of a CPU",
        ),
        Rule(
            "beyond-limit",
            *("measurement", "warning", "Faster than the link: a cache answered"),
            "a cold or direct rate above what link, volume or network can carry",
        ),
        Rule(
            "target-in-memory",
            *("measurement", "warning", "A target is memory, not a disk"),
            "tmpfs or a RAM disk",
        ),
        Rule(
            "target-in-layers", "measurement", "info", "A target is a container's layers", "overlay"
        ),
        Rule(
            "target-rotates", "measurement", "info", "A target is a rotating disk", "by the kernel"
        ),
        Rule(
            "target-over-network",
            *("measurement", "info", "A target is behind a network: server cache unknown"),
            "EBS, NFS, Lustre and others",
        ),
        Rule(
            "nfs-reads-little-ahead",
            *("measurement", "info", "NFS reads little ahead"),
            "read_ahead_kb of 128 or less",
            "AWS, Amazon EFS performance tips",
        ),
    )
}


def found(
    code: str,
    evidence: str,
    advice: str = "",
    *,
    of: str = "",
    share: Estimate | None = None,
    recommendation: Any = None,
) -> Finding:
    """A finding of a rule; ``of`` is the loop that it is about.

    A cause is a problem where it takes more than ``HIGH`` of a step, else a warning.
    """
    rule = RULES[code]
    severity = rule.severity
    if share is not None and rule.kind == "cause":
        severity = "problem" if share.median > HIGH else "warning"
    return Finding(
        code=code,
        severity=severity,
        evidence=evidence,
        advice=advice,
        title=rule.title,
        of=of,
        share=share.median if share else None,
        share_low=share.low if share and share.repeats > 1 else None,
        share_high=share.high if share and share.repeats > 1 else None,
        recommendation=recommendation,
    )


def share_words(share: Estimate) -> str:
    """``40 % (36 to 44 %)``."""
    if share.repeats < 2:
        return percent(share.median)
    return f"{percent(share.median)} ({range_words(share)})"


def range_words(share: Estimate) -> str:
    """``36 to 44 %``."""
    return f"{percent(share.low).removesuffix(' %')} to {percent(share.high)}"
