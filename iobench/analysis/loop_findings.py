"""PURE. Findings about training loops: the parts that take a loop's time, and the reasons.

Preparing samples means to decode, augment, collate and copy them. Reading means to fetch their
bytes from a disk or a store. The share of such a part is the difference of two measured times, if
the loop was measured with the rungs of a ladder, or with the inputs synthetic, warm, and cold or
store. Otherwise the whole loss is attributed to reading or to preparing. The rate of the loader
alone decides which of them it is, or else the rate of the storage, or else how busy the CPUs were.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from dataprep.message_text import counted
from iobench.analysis.capacity import Capacities
from iobench.analysis.finding_remarks import remark_on
from iobench.analysis.finding_rules import (
    BUSY_SHARE,
    FINE_SHARE,
    IDLE_SHARE,
    LATE_BATCH_S,
    MAX_REFUSED_SHARE,
    MAX_WORKERS_PER_CPU,
    OUTLIER_FACTOR,
    SMALL_FILE_BYTES,
    make_finding,
)
from iobench.analysis.loader_setting import setting_of
from iobench.analysis.loops import Loop, median_by_rank
from iobench.analysis.repeats import by_settings, data_name, median_of
from iobench.analysis.store_limits import TO_MEASURE, connections_of, limit_of, read_bytes_of
from iobench.results.numbers import percent, precise_number, rough_number
from iobench.results.result import Finding
from iobench.results.statistics import Estimate, estimate
from iobench.results.trial import Metrics, Trial
from iobench.results.wording import params_words, share_words

_CAUSE_OF_RUNG = {
    "copy": ("slow-copy", "copying to the device"),
    "collate": ("slow-collate", "collating and handing over batches"),
    "augment": ("slow-augmentation", "augmenting"),
    "decode": ("slow-decode", "decoding"),
    "warm": ("slow-read-path", "reading from the page cache"),
}
"""The code of the finding and the activity, by the rung of the ladder that costs time."""
_SIMILAR_RATE = 1.25
"""A loader or storage is the limit if its rate alone is below this multiple of the loop's rate.

It would be 1 if rates did not differ between measurements.
"""
_MUCH_FASTER = 3.0
"""If the rate of the storage is at least this multiple of the loop's rate, reading is not the
larger part of a step.

A smaller multiple does not prove that reading is the smaller part. A loop over few data also waits
at the start of each epoch, while the storage is idle. The multiple was 1.5 for a loop that was
limited by a link of 12 MB/s.
"""
_TAIL_QUANTILES = {"p99": "a hundred", "p95": "twenty", "p90": "ten"}
"""High quantiles of step times, the highest first. Of this many steps, one takes as long as the
quantile or longer."""
_FIRST_BATCH_PARTS = {
    "listing": "listing the data",
    "worker_start": "starting workers",
    "fetch": "reading its samples",
    "decode": "decoding and augmenting its samples",
}
"""The parts of the time to the first batch in words, by their names in the metrics
``first_batch_..._s``."""


def loop_findings(loop: Loop, capacities: Capacities) -> Iterator[Finding]:
    """Yield the findings about a loop: the size of its loss, its causes, and other findings.

    The finding about the size of the loss is only yielded if the loss is small, or if no cause was
    found. Causes come with the largest share first.
    """
    loss = loop.loss or loop.waiting
    causes = sorted(_causes(loop, capacities), key=lambda cause: -(cause.share or 0.0))
    if loss is not None and (loss.median < FINE_SHARE or _has_no_large_part(loop)):
        code = "slow-device" if loop.loss is not None else "input-fine"
        evidence = f"{loop.group}: {_loss_words(loop, loss)}"
        yield make_finding(code, evidence, of=loop.group, share=loss)
    elif loss is not None and not causes:
        remark = remark_on("input-bound-ladder" if loop.has_all_rungs else "input-bound")
        evidence = f"{loop.group}: {_loss_words(loop, loss)}"
        evidence += "; the slow part of the input is unknown"
        yield make_finding("input-bound", evidence, remark, of=loop.group, share=loss)
    yield from causes
    if capacities.processors and loop.workers > MAX_WORKERS_PER_CPU * capacities.processors:
        evidence = f"{loop.group}: {loop.workers} workers on {capacities.processors:g} CPUs"
        yield make_finding("too-many-workers", evidence, of=loop.group)
    step_times = {name: loop.metric(name) for name in ("step_s_p50", *_tail_metrics())}
    yield from outlier_findings(loop.group, step_times)
    yield from _rank_findings(loop)


def first_batch_finding(trials: Sequence[Trial]) -> Iterator[Finding]:
    """Yield one finding if loaders or loops have late first batches.

    The finding is about the setting with the latest first batch, and counts the others.

    Args:
        trials: all trials of the run.
    """
    late = []
    for kind in ("loader", "train"):
        for params, repeats in by_settings(trials, kind):
            first_s = median_of(repeats, "time_to_first_batch_s")
            if first_s is not None and first_s >= LATE_BATCH_S:
                late.append((first_s, params_words(kind, params), repeats))
    if not late:
        return
    first_s, name, repeats = max(late, key=lambda late_setting: late_setting[0])
    evidence = f"{name}: {first_s:.0f} s to the first batch"
    parts_s = {}
    for part in _FIRST_BATCH_PARTS:
        parts_s[part] = median_of(repeats, f"first_batch_{part}_s") or 0.0
    longest = max(parts_s, key=lambda part: parts_s[part])
    if parts_s[longest] > first_s / 2:
        evidence += f", {parts_s[longest]:.0f} s of it {_FIRST_BATCH_PARTS[longest]}"
    if len(late) > 1:
        evidence += f"; {counted(len(late) - 1, 'more point')} with a late first batch"
    yield make_finding("late-first-batch", evidence, remark_on("late-first-batch"))


def outlier_findings(name: str, step_times: Metrics) -> Iterator[Finding]:
    """Yield a finding if some steps take far longer than the median.

    Args:
        name: the name of the loop.
        step_times: quantiles of step times in seconds, by metric, such as ``step_s_p99``. The
            median is compared with the highest quantile that was measured.
    """
    median_s = step_times.get("step_s_p50")
    measured = [quantile for quantile in _TAIL_QUANTILES if step_times.get(f"step_s_{quantile}")]
    if not median_s or not measured:
        return
    highest = measured[0]
    tail_s = step_times[f"step_s_{highest}"]
    if tail_s > OUTLIER_FACTOR * median_s:
        steps, factor = _TAIL_QUANTILES[highest], f"{tail_s / median_s:.1f}"
        evidence = f"{name}: one step of {steps} takes {factor} times the median or more"
        yield make_finding("step-outliers", evidence, remark_on("step-outliers"))


def _tail_metrics() -> list[str]:
    """Return the names of the metrics of the high quantiles, the highest first."""
    return [f"step_s_{quantile}" for quantile in _TAIL_QUANTILES]


def _has_no_large_part(loop: Loop) -> bool:
    """Return whether the starts of epochs and the rest of the loss are each below 5 %.

    Together they may be above 5 %. False if either is unknown.
    """
    starts, rest = loop.start_share, loop.loss_without_starts
    if starts is None or rest is None:
        return False
    return starts.median < FINE_SHARE and rest.median < FINE_SHARE


def _loss_words(loop: Loop, share: Estimate) -> str:
    """Return the loss as a sentence, or the waiting of the loop if the loss is unknown.

    Args:
        loop: the loop.
        share: its loss, or its waiting if the loss is unknown.
    """
    if loop.loss is None:
        return f"the loop waits for batches {share_words(share)} of its time"
    return f"the loss is {share_words(share)} of a step"


def _causes(loop: Loop, capacities: Capacities) -> Iterator[Finding]:
    """Yield a finding for each part of the input that takes a large share of a step.

    The parts are the rungs of the ladder, the starts of epochs, preparing samples if decoding has
    no rung of its own, and reading from the disk or the store. They are in this order.
    """
    separate = _separate_rungs(loop)
    shares = _rung_shares(loop, separate)
    for rung, share in shares.items():
        if rung in _CAUSE_OF_RUNG and _is_large(share):
            yield _rung_cause(loop, capacities, rung, share)
    yield from _epoch_starts(loop)
    preparing, reading = loop.preparing_share, loop.fetch_stall
    if preparing is None and "decode" not in separate:
        preparing, reading = _attributed_loss(loop, capacities)
    if preparing is not None and "decode" not in separate and _is_large(preparing):
        yield _preparing_cause(loop, capacities, preparing)
    farthest = "store" if loop.farthest == "store" else "cold"
    fetching = shares.get(farthest) or reading
    if fetching is not None and _is_large(fetching):
        yield _storage_cause(loop, capacities, fetching)


def _rung_cause(loop: Loop, capacities: Capacities, rung: str, share: Estimate) -> Finding:
    """Return the finding that a rung of the ladder takes a large share of a step.

    Args:
        loop: the loop.
        capacities: the measured rates.
        rung: a rung of ``_CAUSE_OF_RUNG``.
        share: its share of a step.
    """
    code, activity = _CAUSE_OF_RUNG[rung]
    evidence = f"{loop.group}: {activity} takes {share_words(share)} of a step"
    if rung == "copy" and loop.on_gpu and not loop.params.get("pin_memory"):
        code = "unpinned-copy"
    if rung in ("augment", "decode"):
        other_programs = _other_programs_words(loop, capacities)
        if other_programs:
            code = "other-programs"
            evidence += other_programs
        elif rung == "decode":
            evidence += _cpu_words(loop, capacities)
    return make_finding(code, evidence, of=loop.group, share=share)


def _preparing_cause(loop: Loop, capacities: Capacities, share: Estimate) -> Finding:
    """Return the finding that preparing samples takes a large share of a step."""
    evidence = f"{loop.group}: preparing samples takes {share_words(share)} of a step"
    other_programs = _other_programs_words(loop, capacities)
    if other_programs:
        evidence += other_programs
        return make_finding("other-programs", evidence, of=loop.group, share=share)
    evidence += _cpu_words(loop, capacities)
    return make_finding("slow-preparation", evidence, of=loop.group, share=share)


def _epoch_starts(loop: Loop) -> Iterator[Finding]:
    """Yield a finding if the starts of epochs take a large share of the time.

    Only loops that were measured over whole epochs have this share.
    """
    share, trials = loop.start_share, loop.start_trials
    if share is None or not _is_large(share):
        return
    evidence = f"{loop.group}: the starts of epochs take {share_words(share)} of the time"
    source = trials[0].params.get("input")
    if source != loop.farthest:
        evidence += f" with input {source}"
    first_s = median_of(trials, "time_to_first_batch_s")
    later_s = median_of(trials, "epoch_start_s")
    if first_s is not None and later_s is not None:
        evidence += f": {rough_number(first_s)} s for the first batch"
        evidence += f", {rough_number(later_s)} s for each later start"
    yield make_finding("epoch-starts", evidence, of=loop.group, share=share)


def _separate_rungs(loop: Loop) -> set[str]:
    """Return the rungs of the ladder's path that add a single stage, or that begin the path."""
    separate = set(loop.ladder.path)
    for rung in loop.ladder.rungs:
        # A cold read takes the place of the warm read. Therefore the rung ``cold`` adds a single
        # stage even if ``warm`` was not measured.
        if rung.above and set(rung.skipped) - {"warm"}:
            separate.discard(rung.rung)
    return separate


def _rung_shares(loop: Loop, separate: set[str]) -> dict[str, Estimate]:
    """Return the shares of separate rungs whose costs can be distinguished from zero.

    The share of a single repeat is returned too. It has no interval, so it cannot be tested.
    """
    shares = {}
    for rung in loop.ladder.rungs:
        if rung.rung not in separate or rung.share is None:
            continue
        if rung.differs_from_zero or rung.share.repeats == 1:
            shares[rung.rung] = rung.share
    if "decode" not in loop.inputs:
        shares.pop("warm", None)  # Without the rung ``decode``, it includes decoding.
    return shares


def _attributed_loss(loop: Loop, capacities: Capacities) -> tuple[Estimate | None, Estimate | None]:
    """Attribute the whole loss to preparing or to reading, for inputs that do not separate them.

    The loss is counted without the starts of epochs, which are a cause of their own.

    Returns:
        The shares of preparing and of reading. The share of the smaller part is None. Both are None
        if it is unknown which part is larger.
    """
    loss = loop.loss_without_starts
    larger_part = _larger_part(loop, capacities)
    if larger_part == "preparing":
        return loss, None
    if larger_part == "reading":
        return None, loss
    return None, None


def _larger_part(loop: Loop, capacities: Capacities) -> Literal["preparing", "reading", "unknown"]:
    """Return which part of the input takes more time.

    A loop that reads from the page cache only prepares. Otherwise the rate decides that the loader
    alone has on samples from memory, or else the rate of the storage, or else how busy the CPUs
    were. A rate of the storage between ``_SIMILAR_RATE`` and ``_MUCH_FASTER`` times the loop's rate
    decides nothing.
    """
    rate = loop.rate()
    if rate is None or loop.farthest is None:
        return "unknown"
    if loop.farthest == "warm":
        return "preparing"
    setting = setting_of(loop.params, "warm", loop.devices)
    loader_rate = capacities.predict_loader(setting, from_loops=False).rate
    if loader_rate is not None:
        is_slow = loader_rate.median < _SIMILAR_RATE * rate.median
        return "preparing" if is_slow else "reading"
    storage_rate = capacities.storage_rate(replace(setting, source=loop.farthest))
    if storage_rate is not None and storage_rate.median < _SIMILAR_RATE * rate.median:
        return "reading"
    if storage_rate is not None and storage_rate.median >= _MUCH_FASTER * rate.median:
        # Reading alone takes at most a third of the time of a step, so preparing is larger.
        return "preparing"
    busy_share = loop.metric("cpu_busy_share")
    if busy_share is not None and busy_share >= BUSY_SHARE:
        return "preparing"
    if busy_share is not None and busy_share < IDLE_SHARE:
        return "reading"
    return "unknown"


def _is_large(share: Estimate) -> bool:
    """Return whether a share is large enough to report, and its interval is above zero."""
    return share.median >= FINE_SHARE and share.low > 0


def _cpu_words(loop: Loop, capacities: Capacities) -> str:
    """Return the number of workers and of CPUs, and how busy the CPUs were, if it is known."""
    text = f"; {counted(loop.workers, 'worker')}"
    if capacities.processors:
        text += f" on {capacities.processors:g} CPUs"
    busy_share = loop.metric("cpu_busy_share")
    if busy_share is not None:
        subject = ", which" if capacities.processors else "; CPUs"
        text += f"{subject} were {percent(busy_share)} busy"
    return text


def _other_programs_words(loop: Loop, capacities: Capacities) -> str:
    """Return the evidence that other programs leave too few CPUs for the loop.

    Two conditions must hold. The CPUs are busy, and other programs use a quarter of them or more.
    At the rate of its device, the loop would need a quarter of them or more, and more than the
    others leave. Empty if either does not hold, or if a figure is unknown.
    """
    cpus = capacities.processors
    busy_share = loop.metric("cpu_busy_share")
    own_cpus = loop.metric("cores_busy")
    cpu_s = loop.metric("cpu_s_per_1000_samples")
    device_rate = loop.device_rate
    if not cpus or busy_share is None or own_cpus is None or cpu_s is None or device_rate is None:
        return ""
    other_cpus = max(0.0, busy_share * cpus - own_cpus)
    needed_cpus = device_rate.median * cpu_s / 1000
    remaining_cpus = cpus - other_cpus
    others_use_many = busy_share >= BUSY_SHARE and other_cpus >= cpus / 4
    needs_more = needed_cpus >= cpus / 4 and needed_cpus > remaining_cpus
    if not others_use_many or not needs_more:
        return ""
    return (
        f"; at the device's rate it would use {rough_number(min(needed_cpus, cpus))} of "
        f"{cpus:g} CPUs, and other programs leave {rough_number(remaining_cpus)}"
    )


def _storage_cause(loop: Loop, capacities: Capacities, share: Estimate) -> Finding:
    """Return the finding that reading from a disk or a store takes a large share of a step.

    Of several reasons, the first counts: the store refuses requests, samples are small files, the
    disk is slow, the store is slow.
    """
    location = "the object store" if loop.farthest == "store" else "the disk"
    evidence = f"{loop.group}: reading from {location} takes {share_words(share)} of a step"
    refused, requests = loop.metric("store_refused"), loop.metric("store_requests")
    if refused and requests is not None:
        answers = refused + requests
        if refused / answers > MAX_REFUSED_SHARE:
            evidence += f"; {refused:,.0f} of {answers:,.0f} answers were 503 or 429"
            return make_finding("store-throttles", evidence, of=loop.group, share=share)
    object_bytes = loop.metric("mean_object_bytes")
    if loop.reads_files and object_bytes is not None and object_bytes < SMALL_FILE_BYTES:
        evidence += f"; each sample is a file of {object_bytes / 1e3:,.0f} kB"
        return make_finding("tiny-files", evidence, of=loop.group, share=share)
    if loop.farthest != "store":
        evidence += _disk_words(loop)
        return make_finding("slow-disk", evidence, of=loop.group, share=share)
    evidence += _get_words(loop)
    return _store_cause(loop, capacities, share, evidence)


def _store_cause(loop: Loop, capacities: Capacities, share: Estimate, evidence: str) -> Finding:
    """Return the finding that a store is slow.

    It names the latency or the bandwidth of the store as the limit, if the probe shows which it is.

    Args:
        loop: the loop.
        capacities: the measured rates.
        share: the share of a step that reading takes.
        evidence: the beginning of the evidence.
    """
    connections = connections_of(loop.params)
    if not capacities.store_points or connections is None:
        evidence += f"; whether latency or bandwidth limits was not measured ({TO_MEASURE})"
        return make_finding("slow-store", evidence, of=loop.group, share=share)
    sample_bytes = capacities.sample_bytes.get(data_name(loop.params))
    read_bytes = read_bytes_of(loop.params, sample_bytes, loop.metric("mean_object_bytes"))
    limit = limit_of(capacities.store_points, connections * loop.devices, read_bytes)
    if limit.evidence:
        evidence += f"; {limit.evidence}"
    if limit.limit == "unclear":
        evidence += f": this shows neither latency nor bandwidth as the limit; vary {TO_MEASURE}"
        return make_finding("slow-store", evidence, of=loop.group, share=share)
    return make_finding(f"slow-store-{limit.limit}", evidence, of=loop.group, share=share)


def _get_words(loop: Loop) -> str:
    """Return how long a GET takes, and its part to the first byte; empty if not measured."""
    first_byte_s, get_s = loop.metric("store_first_byte_s"), loop.metric("store_get_s")
    if first_byte_s is None or not get_s:
        return ""
    share = percent(first_byte_s / get_s)
    return f"; a GET takes {get_s * 1e3:,.0f} ms, {share} of it to the first byte"


def _disk_words(loop: Loop) -> str:
    """Return the rate of the disks and the share of time in which CPUs waited for them.

    A figure that was not measured is left out.
    """
    text = ""
    mb_per_s, waiting_share = loop.metric("disk_read_mb_per_s"), loop.metric("cpu_iowait_share")
    if mb_per_s is not None:
        text += f"; disks gave {mb_per_s:,.0f} MB/s"
    if waiting_share is not None:
        text += f", iowait {percent(waiting_share)}"
    return text


def _rank_findings(loop: Loop) -> Iterator[Finding]:
    """Yield findings about ranks that trained separate networks, or that wait for a slower rank.

    The findings are about each input of the loop.
    """
    for source, repeats in loop.inputs.items():
        name = f"{loop.group}, {source}"
        if any(trial.metrics.get("ranks_agree") is False for trial in repeats):
            evidence = f"{name}: the ranks' parameters differ at the end"
            remark = remark_on("ranks-differ")
            yield make_finding("ranks-differ", evidence, remark, of=loop.group)
        share = median_of(repeats, "rank_uneven_share") or 0.0
        waits_s = median_by_rank(repeats, "rank_wait_s")
        if share > FINE_SHARE and waits_s:
            evidence = f"{name}: {_uneven_ranks_words(share, waits_s)}"
            remark = remark_on("uneven-ranks")
            yield make_finding(
                "uneven-ranks", evidence, remark, of=loop.group, share=estimate([share])
            )


def _uneven_ranks_words(share: float, waits_s: Sequence[float]) -> str:
    """Return how long ranks wait for the slowest rank.

    The slowest rank is the one that waits longest for its own input. All others wait for it at the
    end of each step.

    Args:
        share: the share of the time that would be saved if all ranks waited equally long.
        waits_s: for each rank, the mean seconds in a step that it waits for its own input.
    """
    longest_s, shortest_s = max(waits_s), min(waits_s)
    slowest = waits_s.index(longest_s)
    return (
        f"ranks wait for a slower one {percent(share)} of the time; rank {slowest} waits "
        f"{precise_number(longest_s * 1e3)} ms in each step, the fastest "
        f"{precise_number(shortest_s * 1e3)} ms"
    )
