"""Trials of kind ``train``: a training loop with samples from the device, memory or storage."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import repeat

from iobench.consumers import CONSUMERS, Consumer
from iobench.data.data_summary import DataSummary
from iobench.errors import Unavailable
from iobench.loaders import HoldsSamples, Loader
from iobench.loaders.samples_in_memory import host_batch
from iobench.machine.hardware import available_bytes
from iobench.plug_ins import create
from iobench.results.trial import Context, Outcome, TrialSpec
from iobench.trials import multi_device_training
from iobench.trials.epoch_cache import EpochCache
from iobench.trials.epoch_loop import EpochTimings, run_epoch
from iobench.trials.ladder import PRELOADED_RUNGS
from iobench.trials.loader_measurement import measure_loader
from iobench.trials.loader_opening import (
    ReopenedLoader,
    check_frameworks,
    import_loader,
    open_loader,
    summarize_loader_data,
    warm_metrics,
    with_warm_part,
)
from iobench.trials.loop_metrics import DeviceMetrics, epoch_records, loop_outcome
from iobench.trials.loop_timings import window_timings
from iobench.trials.multi_device_training import ranks_of, thread_limits
from iobench.trials.rate_measurement import measure_rate
from iobench.trials.rate_plan import (
    check_full_batches,
    count_full_batches,
    network_classes,
    plan_rate,
)
from iobench.trials.training_settings import TrainingTrial
from iobench.trials.window import MIN_EPOCHS, Minimum
from iobench.trials.window_rules import FixedSteps

_MAX_HELD_SHARE_OF_MEMORY = 1 / 4
"""Samples that are read before the loop begins take at most this share of the free memory."""


def run(spec: TrialSpec, context: Context) -> Outcome:
    """Run one training loop with one input."""
    trial = TrainingTrial.model_validate(spec.params)
    environment = dict(os.environ)
    on_cpu = trial.device == "cpu"
    os.environ.update(thread_limits(trial.threads, trial.workers, environment, on_cpu=on_cpu))
    is_warm = trial.input == "warm"
    context, warm_share = with_warm_part(context, trial.data, is_warm=is_warm)
    warm = warm_metrics(warm_share, is_warm=is_warm)
    ranks = ranks_of(trial)
    if ranks is not None:
        outcome = multi_device_training.run(spec, trial, context, ranks, environment)
    else:
        outcome = _run_on_one_device(spec, trial, context)
    return replace(outcome, metrics={**outcome.metrics, **warm})


def _run_on_one_device(spec: TrialSpec, trial: TrainingTrial, context: Context) -> Outcome:
    """Prepare the loader and the consumer in this process, and run the loop."""
    # The location of the data that limit the number of samples of every input. If the trial itself
    # reads no data, its loader is created for this location.
    limiting_location = context.locations[trial.over] if trial.over else None
    location = context.locations[trial.data] if trial.data else None
    import_loader(trial.loader)
    begun_s = context.clock.now_s()
    loader = open_loader(trial, location or limiting_location, context)
    opening_s = context.clock.now_s() - begun_s
    data = summarize_loader_data(location or limiting_location, loader)
    epoch_samples = None
    if data is not None:
        full_batches = count_full_batches(loader, trial, data.samples)
        check_full_batches(trial, data, [full_batches])
        epoch_samples = full_batches * trial.batch_size
    if trial.input in PRELOADED_RUNGS:
        # Samples are read before the consumer warms up, because a GPU that waits for a long time
        # lowers its clocks.
        _hold_samples(trial, loader, epoch_samples)
    consumer = _create_consumer(trial, context, data)
    consumer.warm_up()
    if trial.input != "synthetic":
        check_frameworks(loader, consumer.framework)
    if trial.input in ("synthetic", "copy"):
        loader.close()
        return _train_on_one_batch(trial, context, consumer, data)
    return _train_on_epochs(spec, trial, context, loader, consumer, data, epoch_samples, opening_s)


def _hold_samples(trial: TrainingTrial, loader: Loader, epoch_samples: int | None) -> None:
    """Let the loader read samples into memory before the loop begins.

    Args:
        trial: the parameters of the trial.
        loader: the loader.
        epoch_samples: the number of samples to hold; None if epochs have no end. As many samples as
            the minimum steps need are held in this case.

    Raises:
        Unavailable: the loader cannot take samples from memory.
        TrialFailed: not even one sample fits.
    """
    if not isinstance(loader, HoldsSamples):
        raise Unavailable(f"loader {trial.loader} cannot be given samples from memory")
    samples = epoch_samples or trial.steps * trial.batch_size
    max_bytes = int(available_bytes() * _MAX_HELD_SHARE_OF_MEMORY)
    loader.hold(trial.input, samples, max_bytes)  # type: ignore[arg-type]


def _create_consumer(trial: TrainingTrial, context: Context, data: DataSummary | None) -> Consumer:
    """Create the consumer. Its network has enough classes for ``data``."""
    consumer_class = CONSUMERS.load(trial.consumer)
    settings = trial.model_copy(update={"classes": network_classes(data)})
    new_consumer = partial(consumer_class, settings, context.clock)
    consumer: Consumer = create(CONSUMERS, trial.consumer, Consumer, new_consumer)
    return consumer


def _train_on_one_batch(
    trial: TrainingTrial, context: Context, consumer: Consumer, data: DataSummary | None
) -> Outcome:
    """Train on the same batch in every step. The batch is on the device, or in host memory.

    Only the first step, which may take longer, does not count.
    """
    notes = []
    if trial.input == "copy":
        batch = host_batch(trial, network_classes(data))
        notes.append("input copy: one batch in host memory, given again and again")
    else:
        batch = consumer.synthetic()
    rule = FixedSteps(1, trial.steps, batch.samples)
    context.begin()
    epoch = run_epoch(
        lambda: repeat(batch),
        consumer,
        context.clock,
        rule,
        progress=lambda samples: context.progress(samples, "samples"),
    )
    assert epoch.window is not None  # noqa: S101  the batch is repeated without end
    timings = window_timings(epoch, epoch.window)
    metrics = _device_metrics(consumer, notes)
    return loop_outcome([timings], trial, context.clock, metrics, rule="steady")


def _train_on_epochs(
    spec: TrialSpec,
    trial: TrainingTrial,
    context: Context,
    loader: Loader,
    consumer: Consumer,
    data: DataSummary | None,
    epoch_samples: int | None,
    opening_s: float,
) -> Outcome:
    """Train on epochs of a loader. The page cache is prepared and judged between them.

    Args:
        spec: the trial.
        trial: the parameters of the trial.
        context: the context of the trial.
        loader: the loader, which holds the samples already if they come from memory.
        consumer: the consumer, which is warmed up.
        data: the size of the data for which the loader was created; None if it reads no data.
        epoch_samples: the number of samples in the full batches of an epoch; None if epochs have no
            end.
        opening_s: the seconds that creating the loader took.

    Raises:
        TrialFailed: no rate can be given in time.
    """
    location = context.locations[trial.data] if trial.data else None
    read_data = None if trial.input in PRELOADED_RUNGS else data
    cache = EpochCache(
        trial,
        trial.input,
        location,
        read_data,
        before_every_epoch=trial.evict == "every-epoch",
    )
    reopened = ReopenedLoader(loader, lambda: open_loader(trial, location, context))

    def between_epochs(timings: EpochTimings) -> None:
        reopened.prepare_next_epoch(cache, timings)

    cache.prepare()
    waited_s = context.begin()
    plan = plan_rate(
        loader,
        trial,
        data,
        Minimum(trial.steps, epochs=max(MIN_EPOCHS, trial.epochs or 1)),
        epoch_samples=epoch_samples,
        by_epochs=trial.epochs is not None,
        give_up_s=context.give_up_s + waited_s,
    )
    measure = partial(
        measure_rate,
        reopened.request,
        consumer,
        context.clock,
        plan,
        read_totals=reopened.read_totals,
        full_batch=trial.batch_size,
        between_epochs=between_epochs,
        progress=lambda samples: context.progress(samples, "samples"),
        opening_s=opening_s,
    )
    measurement = measure_loader(
        reopened, measure, params=spec.params, location=location, data=data, cache=cache
    )
    rate = measurement.rate
    more_metrics = {
        **measurement.first_batch,
        **measurement.access,
        **_device_metrics(consumer, reopened.notes),
        "epochs": epoch_records(rate.epochs, cache.judged),
    }
    return loop_outcome(
        measurement.counted_epochs,
        trial,
        context.clock,
        more_metrics,
        rule=rate.rule,
        bounds=rate.bounds,
        data=read_data,
        cold=measurement.cold,
        spans=measurement.spans,
    )


def _device_metrics(consumer: Consumer, loader_notes: Sequence[str]) -> DeviceMetrics:
    return {
        "emulated": consumer.emulated,
        "device": consumer.device,
        "precision": consumer.precision,
        "notes": [*consumer.notes, *loader_notes],
    }
