"""Plan a loop before its first epoch: its rate rule, its full batches, and the steps of ranks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dataprep.message_text import counted
from iobench.data.data_summary import DataSummary
from iobench.errors import TrialFailed
from iobench.loaders import CountsBatches, CountsReads, Loader, LoaderSettings, ReadPattern
from iobench.loaders.capabilities import capabilities_of
from iobench.trials.loader_grid import LoopTrial
from iobench.trials.samples_in_flight import SampleFlow, sample_flow
from iobench.trials.training_settings import TrainingTrial
from iobench.trials.window import MIN_EPOCHS, MIN_ROUNDS, Minimum
from iobench.trials.window_rules import RateRule, choose_rule

_IMAGENET_CLASSES = 1000


@dataclass(frozen=True, slots=True)
class RatePlan:
    """How the rate of a trial is measured.

    Attributes:
        rule: the rule with which the trial begins. If the first epoch is too short for this rule,
            whole epochs count instead.
        flow: how samples flow through the loader.
        minimum: the minimum length of the steps that count.
        give_up_s: the moment on the loop's clock after which the trial ends by itself.
        epoch_samples: the samples of an epoch of this process; None if epochs have no end.
    """

    rule: RateRule
    flow: SampleFlow
    minimum: Minimum = field(default_factory=Minimum)
    give_up_s: float = math.inf
    epoch_samples: int | None = None


def plan_rate(
    loader: Loader,
    trial: LoopTrial,
    data: DataSummary | None,
    minimum: Minimum,
    *,
    epoch_samples: int | None,
    by_epochs: bool,
    give_up_s: float,
) -> RatePlan:
    """Choose the rule by which the rate of a loader is measured.

    Args:
        loader: the loader, before its first epoch.
        trial: the parameters of the trial.
        data: the data that the loader reads; None if it reads nothing.
        minimum: the minimum length of the steps that count.
        epoch_samples: the samples of an epoch of this process; None if epochs have no end.
        by_epochs: whether the config requires whole epochs (``needs_whole_epochs``).
        give_up_s: the moment on the loop's clock after which the trial ends by itself.
    """
    flow = loader_flow(loader, trial, data)
    rule = choose_rule(
        flow,
        counts_reads=isinstance(loader, CountsReads),
        epoch_samples=epoch_samples,
        by_epochs=needs_whole_epochs(trial, by_epochs=by_epochs),
    )
    return RatePlan(rule, flow, minimum, give_up_s, epoch_samples)


def needs_whole_epochs(trial: LoopTrial, *, by_epochs: bool) -> bool:
    """Whether whole epochs must count.

    Args:
        trial: the parameters of the trial.
        by_epochs: whether the config requires whole epochs. Access ``file`` requires them in any
            case. Neither has an effect on a loader that reads no data: its epochs have no end.
    """
    has_epochs = capabilities_of(trial.loader).reads_data
    return has_epochs and (by_epochs or trial.access == "file")


def loader_flow(loader: Loader, settings: LoaderSettings, data: DataSummary | None) -> SampleFlow:
    """How samples flow through a loader. Only batches are known if it does not count its reads."""
    pattern = ReadPattern(max(1, settings.workers))
    if isinstance(loader, CountsReads):
        pattern = loader.read_pattern(data.sample_bytes if data is not None else 1.0)
    return sample_flow(
        pattern,
        batch_size=settings.batch_size,
        workers=settings.workers,
        prefetch=settings.prefetch,
    )


def rank_samples(samples: int, rank: int, world_size: int) -> int:
    """The number of samples of one rank. Rank ``r`` has the samples r, r + world_size and so on."""
    return len(range(rank, samples, world_size))


def count_full_batches(loader: Loader, settings: LoaderSettings, samples: int) -> int:
    """The number of full batches of this rank in an epoch over data of ``samples`` samples."""
    if isinstance(loader, CountsBatches):
        return loader.whole_batches()
    return rank_samples(samples, settings.rank, settings.world_size) // settings.batch_size


def check_full_batches(
    trial: TrainingTrial, data: DataSummary | None, full_batches: Sequence[int]
) -> None:
    """Refuse data that are too few for a full batch of every rank.

    Args:
        trial: the parameters of the loop.
        data: the data that the loop reads; None if it reads nothing.
        full_batches: the number of full batches of each rank; empty if nothing is read.

    Raises:
        TrialFailed: a rank would have no step.
    """
    if not full_batches or min(full_batches) > 0:
        return
    samples = data.samples if data is not None else 0
    raise TrialFailed(
        f"{samples:,} images among {counted(len(full_batches), 'rank')} with "
        f"{counted(trial.workers, 'worker')} have no full batch of {trial.batch_size} for each: "
        "use more images, more shards, a smaller batch_size or fewer workers"
    )


class RankSteps(NamedTuple):
    """The steps of a loop of several ranks. Every rank has the same steps.

    Attributes:
        epochs: the number of epochs.
        left_out: the steps at the start of each epoch that do not count.
        steps: the steps of each epoch that count.
    """

    epochs: int
    left_out: int
    steps: int


def plan_rank_steps(
    trial: TrainingTrial, flow: SampleFlow, full_batches: Sequence[int]
) -> RankSteps:
    """Choose the steps of a loop of several ranks.

    Ranks exchange gradients in every step, so the number of steps must be known before the loop. If
    an epoch is long enough, the first steps do not count: they take the samples that can be in
    flight before time begins to count. If it is shorter, whole epochs count, and each rank takes as
    many steps as the rank with the fewest full batches.

    Args:
        trial: the parameters of the loop.
        flow: how samples flow through the loader of a rank.
        full_batches: the number of full batches of each rank; empty if epochs have no end.
    """
    left_out = math.ceil(flow.max_in_flight / trial.batch_size)
    steps_of_rounds = math.ceil(MIN_ROUNDS * flow.round_samples / trial.batch_size)
    steps = max(trial.steps, steps_of_rounds)
    if not full_batches:
        return RankSteps(1, left_out, steps)
    steps_of_epoch = min(full_batches)
    # The last ``left_out`` steps of an epoch do not count either: they consume the samples in
    # flight, while no more samples arrive.
    if trial.epochs is None and left_out + steps + left_out <= steps_of_epoch:
        return RankSteps(1, left_out, steps)
    later_steps = max(1, steps_of_epoch - 1)  # Quantiles leave out the first step of an epoch.
    epochs_for_steps = math.ceil(trial.steps / later_steps)
    epochs = max(MIN_EPOCHS, trial.epochs or 1, epochs_for_steps)
    return RankSteps(epochs, 0, steps_of_epoch)


def network_classes(data: DataSummary | None) -> int:
    """The classes of the network's last layer: ImageNet's 1,000, or more if the data have more."""
    return max(data.classes if data is not None else 0, _IMAGENET_CLASSES)
