"""PURE. Findings: what takes a loop's time, and why.

Shares come from differences of wall times where the inputs for them were measured: a ladder, or
synthetic, warm and the farthest. Where they were not, the whole loss is given to reading or to
preparing by what the loader gives alone, else by how busy the CPUs were.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from iobench.analysis.capacity import Capacities, setting_of
from iobench.analysis.loops import Loop, by_rank
from iobench.analysis.points import by_point, cold_label, middle, rate_of
from iobench.analysis.recommend import Recommendation
from iobench.analysis.remedies import shard_command
from iobench.analysis.rules import (
    BUSY,
    CROWDED,
    FINE,
    IDLE,
    LATE_S,
    OUTLIER,
    REFUSED,
    SMALL_BYTES,
    found,
    share_words,
)
from iobench.analysis.store_limits import (
    TO_MEASURE,
    connections_of,
    limit_of,
    read_bytes_of,
)
from iobench.analysis.watched import InputCost, input_cost
from iobench.data.settings import AS_FILES
from iobench.numbers import percent
from iobench.result import Finding, Result
from iobench.stats import Estimate
from iobench.trial import Metrics, Trial
from iobench.words import params_words

_RUNGS = {
    "copy": ("slow-copy", "copying to the device"),
    "collate": ("slow-collate", "collating and handing over batches"),
    "augment": ("slow-augmentation", "augmenting"),
    "decode": ("slow-decode", "decoding"),
    "warm": ("slow-read-path", "reading from the page cache"),
}
_MUCH_FASTER = 3.0
"""Rate of a storage / rate of a loop from which on reading cannot be the larger part of a step.

A smaller ratio proves nothing: a loop over short data also waits at the start of each epoch, while
the storage is idle. Behind a link of 12 MB/s the ratio was 1.5.
"""
_QUANTILES = {"p99": "a hundred", "p95": "twenty", "p90": "ten"}
_FIRST_BATCH = {
    "listing": "listing what there is to read",
    "worker_start": "starting workers",
    "fetch": "reading its samples",
    "decode": "decoding and augmenting its samples",
}


def of_loop(loop: Loop, known: Capacities) -> Iterator[Finding]:
    """Causes of a loop's loss, the largest first, then its other findings."""
    loss = loop.loss or loop.waiting
    causes = sorted(_causes(loop, known), key=lambda cause: -(cause.share or 0.0))
    if loss is not None and (loss.median < FINE or _has_no_large_part(loop)):
        code = "slow-device" if loop.loss is not None else "input-fine"
        yield found(
            code,
            f"{loop.group}: {_lost(loop, loss)}",
            of=loop.group,
            share=loss,
        )
    elif loss is not None and not causes:
        ladder = ", or run iobench ladder CONFIG" if loop.has_all_rungs else ""
        yield found(
            "input-bound",
            f"{loop.group}: {_lost(loop, loss)}; which part of the input is slow is unknown",
            f"add inputs: training.inputs: [synthetic, warm, cold]{ladder}",
            of=loop.group,
            share=loss,
        )
    yield from causes
    if known.processors and loop.workers > CROWDED * known.processors:
        number = max(1, int(known.processors) // loop.devices)
        yield found(
            "too-many-workers",
            f"{loop.group}: {loop.workers} workers on {known.processors:g} CPUs",
            of=loop.group,
            recommendation=Recommendation(
                "workers",
                f"Use {number} loader workers, one a CPU",
                config={f"training.{loop.index}.workers": number},
                value=number,
                now=loop.params.get("workers"),
            ),
        )
    yield from _outliers(loop.group, {name: loop.metric(name) for name in _step_metrics()})
    yield from _ranks(loop)


def _has_no_large_part(loop: Loop) -> bool:
    """Whether the starts of epochs and the rest of the loss are each below 5 % of the time."""
    starts, rest = loop.start_share, loop.lost_beyond_starts
    if starts is None or rest is None:
        return False
    return starts.median < FINE and rest.median < FINE


def _lost(loop: Loop, share: Estimate) -> str:
    """The loss in words; where it is not known, the time that the loop waits for batches."""
    if loop.loss is None:
        return f"the loop waits for batches {share_words(share)} of its time"
    return f"the loss is {share_words(share)} of a step"


def _causes(loop: Loop, known: Capacities) -> Iterator[Finding]:
    alone = _alone(loop)
    own = _own_rungs(loop, alone)
    for rung, share in own.items():
        if rung in _RUNGS and _counts(share):
            code, doing = _RUNGS[rung]
            if rung == "copy" and loop.on_gpu and not loop.params.get("pin_memory"):
                code = "unpinned-copy"
            said = f"{loop.group}: {doing} takes {share_words(share)} of a step"
            crowd = _crowd(loop, known) if rung in ("augment", "decode") else ""
            if crowd:
                code = "other-programs"
            if rung == "decode":
                said += crowd or _processors(loop, known)
            elif rung == "augment":
                said += crowd
            yield found(code, said, of=loop.group, share=share)
    yield from _epoch_starts(loop)
    preparing, reading = loop.preparing_share, loop.fetch_stall
    if preparing is None and "decode" not in alone:
        preparing, reading = _given(loop, known)
    if "decode" not in alone and preparing is not None and _counts(preparing):
        crowd = _crowd(loop, known)
        said = f"{loop.group}: preparing samples takes {share_words(preparing)} of a step"
        code = "other-programs" if crowd else "slow-preparation"
        yield found(
            code, said + (crowd or _processors(loop, known)), of=loop.group, share=preparing
        )
    farthest = "store" if loop.farthest == "store" else "cold"
    waiting = own.get(farthest) or reading
    if waiting is not None and _counts(waiting):
        yield _storage(loop, known, waiting)


def _epoch_starts(loop: Loop) -> Iterator[Finding]:
    """The starts of epochs, where whole epochs were measured."""
    share, trials = loop.start_share, loop.start_trials
    if share is None or not _counts(share):
        return
    said = f"{loop.group}: the starts of epochs take {share_words(share)} of the time"
    source = trials[0].params.get("input")
    said += f" with input {source}" if source != loop.farthest else ""
    first_s, later_s = (middle(trials, name) for name in ("time_to_first_batch_s", "epoch_start_s"))
    if first_s is not None and later_s is not None:
        said += f": {first_s:.2g} s for the first batch, {later_s:.2g} s for each later start"
    yield found("epoch-starts", said, of=loop.group, share=share)


def _alone(loop: Loop) -> set[str]:
    """Rungs of the ladder that are one part alone, on the way to the farthest."""
    hides = {rung.rung: set(rung.within) - {"warm"} for rung in loop.ladder.rungs if rung.above}
    return {rung for rung in loop.ladder.path if not hides.get(rung)}


def _own_rungs(loop: Loop, alone: set[str]) -> dict[str, Estimate]:
    """Shares of those rungs whose part is distinguishable from zero."""
    shares = {}
    for rung in loop.ladder.rungs:
        told = rung.share is not None and (rung.tells or rung.share.repeats == 1)
        if rung.rung in alone and told and rung.share is not None:
            shares[rung.rung] = rung.share
    if "decode" not in loop.inputs:
        shares.pop("warm", None)  # of three rungs it contains all preparing
    return shares


def _given(loop: Loop, known: Capacities) -> tuple[Estimate | None, Estimate | None]:
    """Attribute the loss to preparing or to reading, where inputs do not separate them.

    The starts of epochs are a cause of their own, and are not part of it.
    """
    loss, rate = loop.lost_beyond_starts, loop.rate()
    if loss is None or rate is None or loop.farthest is None:
        return None, None
    if loop.farthest == "warm":
        return loss, None
    setting = setting_of(loop.params, "warm", loop.devices)
    alone = known.supply(setting, from_loops=False).rate
    if alone is not None:
        return (loss, None) if alone.median < 1.25 * rate.median else (None, loss)
    storage = known.storage_rate(setting.changed(source=loop.farthest))
    if storage is not None and storage.median < 1.25 * rate.median:
        return None, loss
    if storage is not None and storage.median >= _MUCH_FASTER * rate.median:
        # Reading takes at most rate / storage of a step: a third. The larger part is preparing.
        return loss, None
    busy = loop.metric("cpu_busy_share")
    if busy is not None and busy >= BUSY:
        return loss, None
    return (None, loss) if busy is not None and busy < IDLE else (None, None)


def _counts(share: Estimate) -> bool:
    """Whether a share is large enough to report, and distinguishable from zero."""
    return share.median >= FINE and share.low > 0


def _processors(loop: Loop, known: Capacities) -> str:
    """Workers, and how busy the CPUs were."""
    said = f"; {loop.workers} worker{'s' * (loop.workers != 1)}"
    if known.processors:
        said += f" on {known.processors:g} CPUs"
    busy = loop.metric("cpu_busy_share")
    return said + (f", which were {percent(busy)} busy" if busy is not None else "")


def _crowd(loop: Loop, known: Capacities) -> str:
    """Evidence that other programs leave too few CPUs; empty if they do not."""
    busy, own = loop.metric("cpu_busy_share"), loop.metric("cores_busy")
    cpu_s, consumes = loop.metric("cpu_s_per_1000_samples"), loop.consumes
    there = known.processors
    if not there or busy is None or own is None or cpu_s is None or consumes is None:
        return ""
    others, wanted = max(0.0, busy * there - own), consumes.median * cpu_s / 1000
    if busy < BUSY or others < there / 4 or wanted < there / 4 or wanted <= there - others:
        return ""
    return (
        f"; at the device's rate it would use {min(wanted, there):.2g} of {there:g} CPUs, and "
        f"other programs leave {there - others:.2g}"
    )


def _storage(loop: Loop, known: Capacities, share: Estimate) -> Finding:
    where = "the object store" if loop.farthest == "store" else "the disk"
    said = f"{loop.group}: reading from {where} takes {share_words(share)} of a step"
    refused, requests = loop.metric("store_refused"), loop.metric("store_requests")
    if refused and requests is not None and refused / (refused + requests) > REFUSED:
        said += f"; {refused:,.0f} of {refused + requests:,.0f} answers were 503 or 429"
        return found("store-throttles", said, of=loop.group, share=share)
    size = loop.metric("mean_object_bytes")
    if loop.reads_files and size is not None and size < SMALL_BYTES:
        said += f"; each sample is a file of {size / 1e3:,.0f} kB"
        return found("tiny-files", said, of=loop.group, share=share)
    if loop.farthest != "store":
        return found("slow-disk", said + _of_disk(loop), of=loop.group, share=share)
    first_s, whole_s = loop.metric("store_first_byte_s"), loop.metric("store_get_s")
    if first_s is not None and whole_s:
        waits = percent(first_s / whole_s)
        said += f"; a GET takes {whole_s * 1e3:,.0f} ms, {waits} of it to the first byte"
    connections = connections_of(loop.params)
    if not known.store_points or connections is None:
        said += f"; whether latency or bandwidth limits was not measured ({TO_MEASURE})"
        return found("slow-store", said, of=loop.group, share=share)
    form = str(loop.params.get("data", "")).partition("@")[0]
    read_bytes = read_bytes_of(loop.params, known.sample_bytes.get(form), size)
    limit = limit_of(known.store_points, connections * loop.devices, read_bytes)
    said += f"; {limit.evidence}" if limit.evidence else ""
    if limit.limit == "unclear":
        said += f": neither latency nor bandwidth for certain; vary {TO_MEASURE}"
        return found("slow-store", said, of=loop.group, share=share)
    return found(f"slow-store-{limit.limit}", said, of=loop.group, share=share)


def _of_disk(loop: Loop) -> str:
    rate, waiting = loop.metric("disk_read_mb_per_s"), loop.metric("cpu_iowait_share")
    said = f"; disks gave {rate:,.0f} MB/s" if rate is not None else ""
    return said + (f", iowait {percent(waiting)}" if waiting is not None else "")


def first_batches(trials: Sequence[Trial]) -> Iterator[Finding]:
    """The latest first batch of all points, and what it waits for."""
    late = []
    for kind in ("loader", "train"):
        for params, repeats in by_point(trials, kind):
            first_s = middle(repeats, "time_to_first_batch_s")
            if first_s is not None and first_s >= LATE_S:
                late.append((first_s, params_words(kind, params), repeats))
    if not late:
        return
    first_s, named, repeats = max(late, key=lambda one: one[0])
    said = f"{named}: {first_s:.0f} s to the first batch"
    parts = {part: middle(repeats, f"first_batch_{part}_s") or 0.0 for part in _FIRST_BATCH}
    longest = max(parts, key=lambda part: parts[part])
    if parts[longest] > first_s / 2:
        said += f", {parts[longest]:.0f} s of it {_FIRST_BATCH[longest]}"
    advice = "shards list one manifest; workers kept from epoch to epoch start once"
    more = f"; {len(late) - 1} more points are as late" if len(late) > 1 else ""
    yield found("late-first-batch", said + more, advice)


def of_probes(result: Result) -> Iterator[Finding]:
    """Findings of the probes: refused requests, small files that are slower than shards."""
    for params, repeats in by_point(result.trials, "object"):
        refused, requests = middle(repeats, "refused") or 0.0, middle(repeats, "requests") or 0.0
        if refused and refused / (refused + requests) > REFUSED:
            share = percent(refused / (refused + requests))
            said = f"{params_words('object', params)}: {share} of its requests were refused"
            yield found("store-throttles", said, "fewer connections, larger requests")
            break
    forms = {
        str(trial.params.get("data", "")).partition("@")[0]
        for trial in result.trials
        if trial.kind in ("loader", "train")
    }
    if forms and not forms & AS_FILES:
        return  # nobody here opens small files
    rates: dict[tuple[str, str, str], dict[str, float]] = {}
    for params, repeats in by_point(result.trials, "layout"):
        if (rate := rate_of(repeats)) is not None:
            place = str(params.get("data", "")).partition("@")[2]
            key = (place, str(params.get("parallelism")), cold_label(repeats))
            best = rates.setdefault(key, {})
            access = str(params.get("access", ""))
            best[access] = max(best.get(access, 0.0), rate.median)
    for (place, _, label), by_access in rates.items():
        files, shards = by_access.get("files"), by_access.get("shards")
        if files and shards and files < 0.5 * shards:
            rates_said = f"small files give {files:,.0f} samples/s, shards {shards:,.0f}"
            said = f"on {place}, {label}: {rates_said}"
            yield found("tiny-files", said, shard_command(result.config.get("data") or {}, ""))


def watched(trials: Sequence[Trial]) -> Iterator[Finding]:
    """Findings of each watched loop, by how busy the CPUs were."""
    for trial in trials:
        if trial.kind == "watch" and trial.status == "done":
            named = f"loop over {trial.params.get('loader', '')}"
            yield from _waiting(named, trial)
            yield from _starts(named, trial)
            yield from _outliers(named, trial.metrics)


def _waiting(named: str, trial: Trial) -> Iterator[Finding]:
    """That the input costs much, by the measured loss or else by the waiting, and why."""
    metrics = trial.metrics
    cost = input_cost(metrics)
    if cost is None:
        return
    said = _cost_words(named, metrics, cost)
    part = cost.as_estimate
    if cost.by == "loss" and cost.grade == "fine":
        yield found("slow-device", said, share=part)
    if cost.grade != "high":
        return
    busy = metrics.get("cpu_busy_share")
    said += "" if busy is None else f"; CPUs {percent(busy)} busy"
    more = "to find the part: dataprep init, then iobench run configs/bench/train-resnet50.yaml"
    if busy is None or IDLE <= busy < BUSY:
        yield found("waiting", said, f"DataLoader(num_workers=...); {more}", share=part)
    elif busy < IDLE:
        disk = metrics.get("disk_read_mb_per_s")
        said += "" if disk is None else f", disks gave {disk:,.0f} MB/s"
        advice = "more workers: DataLoader(num_workers=..., prefetch_factor=...); if that brings "
        yield found("waiting-workers", said, f"{advice}nothing, storage is the limit", share=part)
    elif metrics.get("loop_cpu_share", busy) < busy / 2:
        said += f", {percent(metrics['loop_cpu_share'])} by the loop and its workers"
        advice = (
            "stop what runs beside the training, then measure again; if the loop still waits, its "
            "workers wait for storage or are too few: DataLoader(num_workers=...)"
        )
        yield found("waiting-others", said, advice, share=part)
    else:
        advice = "store smaller images: dataprep shard --size 256; or use a machine with more CPUs"
        yield found("waiting-preparation", said, advice, share=part)


def _cost_words(named: str, metrics: Metrics, cost: InputCost) -> str:
    """The figure by which a watched loop is graded, and the host's waiting."""
    host_share = metrics.get("wait_share")
    if cost.by == "loss":
        said = f"{named}: its loader costs {cost.words} of its rate"
        return said if host_share is None else f"{said}; it waits {percent(host_share)} of its time"
    subject = f"{named}: its GPU" if cost.by == "device" else f"{named}:"
    said = f"{subject} waits for data {cost.words} of its time"
    if cost.by == "device" and host_share is not None:
        said += f", the host {percent(host_share)}"
    return said


def _starts(named: str, trial: Trial) -> Iterator[Finding]:
    metrics = trial.metrics
    first_s, seconds = metrics.get("time_to_first_batch_s") or 0.0, metrics.get("seconds") or 0.0
    if first_s >= LATE_S and first_s >= FINE * seconds:
        yield found(
            "late-first-batch",
            f"{named}: {first_s:.0f} s to the first batch, {seconds:.0f} s of steps",
            "look for a download, a listing of many files, or workers that import much",
        )
    share = metrics.get("epoch_start_share") or 0.0
    taker = "its"
    if (idle := metrics.get("device_wait_share")) is not None:
        # Runs of earlier versions have no share of the starts: it is at most the whole.
        share = metrics.get("device_epoch_start_share", min(share, idle))
        taker = "its GPU's"
    if share > FINE:
        each_s = metrics.get("epoch_start_s") or 0.0
        yield found(
            "epoch-starts",
            f"{named}: the starts of epochs take {percent(share)} of {taker} time, "
            f"{each_s:.2g} s each",
            "keep workers between epochs: DataLoader(persistent_workers=True)",
            share=Estimate(share, share, share, 0.0, 1),
        )


def _step_metrics() -> tuple[str, ...]:
    return ("step_s_p50", *(f"step_s_{name}" for name in _QUANTILES))


def _outliers(named: str, metrics: Any) -> Iterator[Finding]:
    """Steps far longer than the median, by the highest quantile that is known."""
    usual = metrics.get("step_s_p50")
    for name, of in _QUANTILES.items():
        rare = metrics.get(f"step_s_{name}")
        if usual and rare:
            if rare > OUTLIER * usual:
                said = (
                    f"{named}: one step of {of} takes {rare / usual:.1f} times the median or more"
                )
                yield found(
                    "step-outliers", said, "see the chart of steps; try training.prefetch: 4"
                )
            return


def _ranks(loop: Loop) -> Iterator[Finding]:
    for source, repeats in loop.inputs.items():
        named = f"{loop.group}, {source}"
        if any(trial.metrics.get("ranks_agree") is False for trial in repeats):
            said = f"{named}: the ranks' parameters differ at the end"
            yield found("ranks-differ", said, "gradients were not exchanged", of=loop.group)
        share = middle(repeats, "rank_uneven_share") or 0.0
        waits = by_rank(repeats, "rank_wait_s")
        if share > FINE and waits:
            slow = waits.index(max(waits))
            yield found(
                "uneven-ranks",
                f"{named}: {percent(share)} of the time ranks wait for a slower one; rank {slow} "
                f"waits {waits[slow] * 1e3:,.3g} ms a step, the fastest {min(waits) * 1e3:,.3g} ms",
                "look at the CPUs, disk and network of that rank; training.prefetch: 4 evens out",
                of=loop.group,
                share=Estimate(share, share, share, 0.0, 1),
            )
