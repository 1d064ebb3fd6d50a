"""PURE. Training loops as ``result.json`` stores them, under ``training`` and ``ladder``."""

from __future__ import annotations

from typing import TypedDict

from iobench.analysis.loops import Loop
from iobench.analysis.repeats import (
    EstimateEntry,
    cold_label,
    estimate_as_dict,
    estimate_entry,
    estimate_of,
    rate_of,
)
from iobench.results.badges import badge_with_reason
from iobench.trials.ladder import START, Rung, first_from_memory


class LoopEntry(TypedDict):
    """A loop under ``training``: its settings, its rates in samples/s, and its loss."""

    group: str
    consumer: str | None
    model: str | None
    batch_size: int | None
    loader: str | None
    workers: int | None
    image_size: int | None
    augment: bool | None
    normalise: bool | None
    colour_jitter: bool | None
    pca_noise: bool | None
    device: str | None
    devices: int | None
    precision: str | None
    data: str
    emulated: bool | None
    input: str | None
    label: str
    badge: str
    cold_proved: bool
    cache_resident: bool
    consumes: EstimateEntry | None
    warm: EstimateEntry | None
    cold: EstimateEntry | None
    store: EstimateEntry | None
    achieved: EstimateEntry | None
    achieved_between: tuple[float, float] | None
    time_to_first_batch_s: EstimateEntry | None
    epoch_start_s: EstimateEntry | None
    epoch_start_share: EstimateEntry | None
    au_mlperf: EstimateEntry | None
    au_mlperf_slowest: EstimateEntry | None
    au_ceiling: EstimateEntry | None
    stall_fraction: EstimateEntry | None
    waiting_fraction: EstimateEntry | None
    preparation_stall: EstimateEntry | None
    fetch_stall: EstimateEntry | None


class RungEntry(TypedDict):
    """A rung of a ladder.

    ``part`` is the time that it takes longer than the rung ``above``. This time includes the costs
    of the rungs in ``within``, which were not measured. ``tells`` is whether the time can be
    distinguished from 0.
    """

    rung: str
    words: str
    input: str | None
    samples_per_s: EstimateEntry | None
    seconds_per_sample: EstimateEntry
    label: str
    badge: str
    above: str | None
    within: list[str]
    part: EstimateEntry | None
    share: EstimateEntry | None
    tells: bool


class LadderEntry(TypedDict):
    """A loop under ``ladder``: its rungs, and the reasons why rungs are missing.

    ``path``, ``stall`` and ``stall_share`` are those of ``iobench.trials.ladder.Ladder``.
    """

    group: str
    loader: str | None
    consumer: str | None
    workers: int | None
    pin_memory: bool | None
    device: str | None
    devices: int | None
    emulated: bool | None
    rungs: list[RungEntry]
    path: list[str]
    farthest: str | None
    stall: EstimateEntry | None
    stall_share: EstimateEntry | None
    not_measured: dict[str, str]


def loop_entry(loop: Loop) -> LoopEntry:
    """Return the entry of a loop under ``training``. Its figures are of the farthest input."""
    params, facts = loop.params, loop.facts
    colds = [trial.cold for trial in loop.trials if trial.cold is not None]

    def of_metric(name: str) -> EstimateEntry | None:
        return estimate_as_dict(estimate_of(loop.trials, name))

    return LoopEntry(
        group=loop.group,
        consumer=params.get("consumer"),
        model=params.get("model"),
        batch_size=params.get("batch_size"),
        loader=params.get("loader"),
        workers=params.get("workers"),
        image_size=params.get("image_size"),
        augment=params.get("augment"),
        normalise=params.get("normalise"),
        colour_jitter=params.get("colour_jitter"),
        pca_noise=params.get("pca_noise"),
        device=facts.get("device"),
        devices=facts.get("devices"),
        precision=facts.get("precision"),
        data=params.get("data", ""),
        emulated=facts.get("emulated"),
        input=loop.farthest,
        label=loop.label,
        badge=badge_with_reason(colds),
        cold_proved=bool(loop.trials) and loop.label == "cold",
        cache_resident=loop.is_cache_resident,
        consumes=estimate_as_dict(loop.device_rate),
        warm=estimate_as_dict(loop.rate("warm")),
        cold=estimate_as_dict(loop.rate("cold")),
        store=estimate_as_dict(loop.rate("store")),
        achieved=estimate_as_dict(loop.rate()) if loop.farthest else None,
        achieved_between=loop.bounds,
        time_to_first_batch_s=of_metric("time_to_first_batch_s"),
        epoch_start_s=of_metric("epoch_start_s"),
        epoch_start_share=of_metric("epoch_start_share"),
        au_mlperf=of_metric("au_mlperf"),
        au_mlperf_slowest=of_metric("au_mlperf_slowest"),
        au_ceiling=estimate_as_dict(loop.au_ceiling),
        stall_fraction=estimate_as_dict(loop.loss),
        waiting_fraction=estimate_as_dict(loop.waiting),
        preparation_stall=estimate_as_dict(loop.preparation_stall),
        fetch_stall=estimate_as_dict(loop.fetch_stall),
    )


def ladder_entry(loop: Loop) -> LadderEntry:
    """Return the entry of a loop under ``ladder``."""
    params, facts, ladder = loop.params, loop.facts, loop.ladder
    return LadderEntry(
        group=loop.group,
        loader=params.get("loader"),
        consumer=params.get("consumer"),
        workers=params.get("workers"),
        pin_memory=params.get("pin_memory"),
        device=facts.get("device"),
        devices=facts.get("devices"),
        emulated=facts.get("emulated"),
        rungs=[_rung_entry(loop, rung) for rung in ladder.rungs],
        path=list(ladder.path),
        farthest=ladder.path[-1] if ladder.path else None,
        stall=estimate_as_dict(ladder.stall),
        stall_share=estimate_as_dict(ladder.stall_share),
        not_measured=dict(loop.not_measured),
    )


def _rung_entry(loop: Loop, rung: Rung) -> RungEntry:
    """Return the entry of a rung in the ladder of a loop."""
    trials = loop.inputs.get(rung.rung, ())
    colds = [trial.cold for trial in trials if trial.cold is not None]
    source: str | None = rung.rung
    if rung.rung == START:
        source = first_from_memory(list(loop.inputs))
    return RungEntry(
        rung=rung.rung,
        words=loop.rung_words(rung),
        input=source,
        samples_per_s=estimate_as_dict(rate_of(trials)),
        seconds_per_sample=estimate_entry(rung.seconds),
        label=cold_label(trials),
        badge=badge_with_reason(colds),
        above=rung.above,
        within=list(rung.skipped),
        part=estimate_as_dict(rung.cost),
        share=estimate_as_dict(rung.share),
        tells=rung.differs_from_zero,
    )
