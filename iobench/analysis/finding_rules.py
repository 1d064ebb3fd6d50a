"""PURE. The rules for findings: the title, the condition in words and the source of each finding.

The conditions are checked in the modules whose names end in ``_findings``, and in ``evidence``,
``hosts`` and ``bandwidth_limits``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from iobench.results.numbers import exact_percent
from iobench.results.result import Finding
from iobench.results.statistics import Estimate

RuleKind = Literal["cause", "grade", "start", "setting", "measurement"]
"""What a finding is about: a cause of the loss (``cause``), the size of the loss (``grade``), the
start of the loop, a setting, or the measurement itself."""
Severity = Literal["info", "warning", "problem"]

FINE_SHARE, HIGH_SHARE = 0.05, 0.20
"""Limits for the share of a step that the input takes. Below the first limit the share is fine,
above the second limit it is high (TensorFlow Profiler's input-pipeline analyzer)."""
BUSY_SHARE, IDLE_SHARE = 0.80, 0.50
"""Limits for the busy share of all CPUs. From the first limit on the CPUs count as busy, below the
second limit they count as idle."""
MAX_WORKERS_PER_CPU = 2.0
"""Maximum number of workers for each CPU. More workers only take CPU time from each other."""
MAX_REFUSED_SHARE = 0.01
"""Maximum share of requests that a store may refuse."""
SMALL_FILE_BYTES = 1_000_000
"""Files below this size are small: reading one mostly means waiting for its first byte."""
LATE_BATCH_S = 10.0
"""The first batch is late if it comes after this many seconds or more."""
OUTLIER_FACTOR = 3.0
"""A step that takes more than this many times the median is an outlier."""
ENOUGH_REPEATS = 6
"""With this number of repeats, the interval from minimum to maximum has a coverage of 96.9 %."""

# The sources of the conditions.
_CLOUD = (
    'AWS, "Optimizing I/O for GPU performance tuning of deep learning training in Amazon SageMaker"'
)
_STALLS = 'Mohan et al., "Analyzing and mitigating data stalls in DNN training", VLDB 2021'
_S3 = 'AWS, "Best practices design patterns: optimizing Amazon S3 performance"'
_TORCH = "PyTorch, torch.utils.data"
_PROFILER = "TensorFlow Profiler's input-pipeline analyzer"
_OURS = "docs/diagnosis.md"

# Conditions of several rules.
_TAKES_PART = f"takes {exact_percent(FINE_SHARE)} of a step or more"
_WAITS = (
    f"a watched loop waits over {exact_percent(HIGH_SHARE)} of its time (with a replay: loses over "
    f"{exact_percent(HIGH_SHARE)})"
)


@dataclass(frozen=True, slots=True)
class Rule:
    """The rule for one kind of finding.

    Attributes:
        code: the code of the finding.
        kind: what the finding is about.
        severity: how bad it is. A cause is a problem or a warning, by its share of a step.
        title: the finding in a few words.
        when: the condition under which the rule applies, as docs/diagnosis.md shows it.
        source: where the condition comes from.
    """

    code: str
    kind: RuleKind
    severity: Severity
    title: str
    when: str
    source: str = _OURS


def _cause(code: str, title: str, when: str = _TAKES_PART, source: str = _STALLS) -> Rule:
    """Return the rule of a cause, whose severity depends on its share of a step."""
    return Rule(code, "cause", "problem", title, when, source)


def _measurement(code: str, severity: Severity, title: str, when: str, source: str = _OURS) -> Rule:
    """Return the rule of a finding about the measurement."""
    return Rule(code, "measurement", severity, title, when, source)


_CAUSES = (
    _cause(
        "store-throttles",
        "The store refuses requests",
        "more than 1 % of the answers are 503 or 429",
        _S3,
    ),
    _cause(
        "tiny-files",
        "Samples are read as many small files",
        "each sample is a file below 1 MB",
        _CLOUD,
    ),
    _cause(
        "other-programs",
        "Other programs use the CPUs",
        "they leave less than the loop needs",
        _CLOUD,
    ),
    _cause("slow-decode", "Decoding is the bottleneck", source=_CLOUD),
    _cause("slow-augmentation", "Augmenting is the bottleneck", source=_CLOUD),
    _cause("slow-preparation", "Preparing samples is the bottleneck"),
    _cause("slow-collate", "Collating and handing over batches takes long", source=_OURS),
    _cause("unpinned-copy", "Copies to the GPU come from unpinned memory", source=_TORCH),
    _cause("slow-copy", "Copying to the device takes long", source=_TORCH),
    _cause("slow-read-path", "Reading is slow even from memory"),
    _cause("slow-store-latency", "The object store's latency is the bottleneck", source=_S3),
    _cause("slow-store-bandwidth", "The object store's bandwidth is the bottleneck", source=_S3),
    _cause("slow-store", "Reading from the object store is the bottleneck"),
    _cause("slow-disk", "Reading from the disk is the bottleneck"),
    _cause("input-bound", "The loop waits for input", source=_PROFILER),
    _cause("waiting-others", "Other programs use the CPUs", _WAITS, _CLOUD),
    _cause(
        "waiting-preparation",
        "The loop waits for preparing: CPUs are busy",
        f"{_WAITS}, {exact_percent(BUSY_SHARE)} of the CPUs are busy",
        _CLOUD,
    ),
    _cause(
        "waiting-workers",
        "The loop waits while CPUs are idle",
        f"{_WAITS}, less than {exact_percent(IDLE_SHARE)} of the CPUs are busy",
        _CLOUD,
    ),
    _cause("waiting", "The loop waits for data", _WAITS, _PROFILER),
    Rule(
        "epoch-starts",
        "cause",
        "warning",
        "The starts of epochs take long",
        f"they take {exact_percent(FINE_SHARE)} of the time or more; a start lasts from the "
        "request of an epoch to its first batch",
    ),
    Rule(
        "uneven-ranks",
        "cause",
        "warning",
        "Ranks wait for a slower rank",
        f"they wait more than {exact_percent(FINE_SHARE)} of the time",
    ),
)

_LOOPS = (
    Rule(
        "slow-device",
        "grade",
        "info",
        "The device is the limit: its input keeps up",
        f"input takes less than {exact_percent(FINE_SHARE)} of a step",
        _STALLS,
    ),
    Rule(
        "input-fine",
        "grade",
        "info",
        "Input takes little time",
        f"it takes less than {exact_percent(FINE_SHARE)} of a step",
    ),
    Rule(
        "late-first-batch",
        "start",
        "warning",
        "The first batch comes late",
        f"it comes after {LATE_BATCH_S:g} s or more",
        _CLOUD,
    ),
    Rule(
        "too-many-workers",
        "setting",
        "warning",
        "Far more workers than CPUs",
        f"there are more than {MAX_WORKERS_PER_CPU:g} workers for each CPU",
        _TORCH,
    ),
    Rule(
        "step-outliers",
        "setting",
        "info",
        "Some steps take far longer than the rest",
        f"a high quantile is {OUTLIER_FACTOR:g} times the median",
    ),
    Rule(
        "processes-share",
        "setting",
        "info",
        "Loader processes slow each other down",
        "n processes reach less than 0.8 n times the rate of one process",
    ),
)

_MEASUREMENTS = (
    _measurement(
        "unfinished",
        "warning",
        "The run was stopped before its end",
        "fewer trials were run than planned",
    ),
    _measurement(
        "stood-still",
        "warning",
        "A trial was suspended",
        "its process was stopped for a second or more",
    ),
    _measurement(
        "scattered",
        "warning",
        "Repeats differ widely",
        "the largest of three repeats or more is 1.5 times the smallest",
    ),
    _measurement(
        "not-shown-cold",
        "warning",
        "Cold was requested and not proved",
        "over 1 % of the pages were resident, or storage gave less than 95 % of the bytes",
    ),
    _measurement(
        "not-all-warm",
        "warning",
        "Warm was requested and storage was read",
        "storage was read, or pages were missing before",
    ),
    _measurement(
        "faster-than-storage",
        "problem",
        "Faster than its storage: the measurement is at fault",
        "the rate is over 1.1 times what the probe or loader raw got from the same storage",
    ),
    _measurement(
        "ceiling-not-measured",
        "info",
        "The maximum rate of the storage was not measured",
        "no probe of the storage and no loader raw had as many requests at a time",
    ),
    _measurement(
        "host-missing",
        "problem",
        "A host has no result",
        "one of several hosts was late, failed or disappeared",
    ),
    _measurement(
        "hosts-uneven",
        "warning",
        "A host is slower than the others",
        "it gets less than 0.8 of the rate of the median host",
    ),
    _measurement(
        "hosts-apart",
        "warning",
        "Hosts did not measure at the same time",
        "all hosts measured in less than 0.8 of the time, so that sums over hosts are too high",
    ),
    _measurement(
        "ranks-differ",
        "problem",
        "Ranks trained separate networks",
        "their parameters differ at the end",
    ),
    _measurement(
        "few-repeats",
        "info",
        "Smoke run: few repeats",
        f"each point has fewer than {ENOUGH_REPEATS} repeats",
    ),
    _measurement(
        "cache-resident",
        "info",
        "The data are smaller than 5 times the memory",
        "the memory is that of the machine or of its control group",
    ),
    _measurement(
        "store-on-this-machine",
        "info",
        "The object store runs on this machine",
        "the store is a server of this run",
    ),
    _measurement(
        "emulated",
        "info",
        "The device is emulated",
        "the consumer is paced: it sleeps for each step",
    ),
    _measurement(
        "instrumentation",
        "warning",
        "Timing the steps slows them",
        "the loop's clock takes over 1 % of a step",
    ),
    _measurement(
        "sampling",
        "warning",
        "Sampling the machine uses CPU time",
        "the samplers take over 1 % of a CPU",
    ),
    _measurement(
        "beyond-limit",
        "warning",
        "Faster than the link: a cache answered",
        "a cold or direct rate is above the limit of its link, volume or network",
    ),
    _measurement(
        "target-in-memory",
        "warning",
        "A target is memory, not a disk",
        "it is on tmpfs or a RAM disk",
    ),
    _measurement(
        "target-in-layers",
        "info",
        "A target is a container's layers",
        "it is on an overlay file system",
    ),
    _measurement(
        "target-rotates",
        "info",
        "A target is a rotating disk",
        "the kernel reports it as rotational",
    ),
    _measurement(
        "target-over-network",
        "info",
        "A target is behind a network: server cache unknown",
        "it is on EBS, NFS, Lustre or another remote file system",
    ),
    _measurement(
        "nfs-reads-little-ahead",
        "info",
        "NFS reads little ahead",
        "read_ahead_kb is 128 or less",
        "AWS, Amazon EFS performance tips",
    ),
)

RULES = {rule.code: rule for rule in (*_CAUSES, *_LOOPS, *_MEASUREMENTS)}
"""All rules by the codes of their findings."""


def make_finding(
    code: str,
    evidence: str,
    remark: str = "",
    *,
    of: str = "",
    share: Estimate | None = None,
) -> Finding:
    """Return the finding of a rule.

    A cause is a problem if it takes more than ``HIGH_SHARE`` of a step, otherwise a warning.

    Args:
        code: the code of the rule.
        evidence: a sentence with the figures that show it.
        remark: what to do, as a sentence of ``finding_remarks``; empty if there is none.
        of: the group of the loop that it is about; empty for the whole run.
        share: the share of a step that a cause takes.
    """
    rule = RULES[code]
    severity = rule.severity
    if share is not None and rule.kind == "cause":
        severity = "problem" if share.median > HIGH_SHARE else "warning"
    finding = Finding(code, severity, evidence, remark, title=rule.title, of=of)
    if share is None:
        return finding
    if share.repeats <= 1:
        return replace(finding, share=share.median)  # It has no interval.
    return replace(finding, share=share.median, share_low=share.low, share_high=share.high)
