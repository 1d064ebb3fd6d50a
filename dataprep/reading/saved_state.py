"""Saved states of an epoch in torch: their entries, and checks of a state that is loaded."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict

from dataprep.errors import ConfigError
from dataprep.reading.frameworks import BUFFER_CANNOT_RESUME


class SavedState(TypedDict):
    """How much of an epoch was read, as programs and torchdata save it.

    The names are the keys of the state.

    ``samples`` is the number of samples of the epoch that all ranks together have read.
    ``dataset``, ``subset`` and ``order`` are the attributes of ``Origin``. The entries after
    ``subset`` are only in the state of one rank or worker. ``of_worker`` or ``of_rank`` is the
    number of samples that it has yielded. This number is valid only with the same ``world_size``,
    ``global_batch`` and ``rank_batch``.
    """

    epoch: int
    seed: int
    samples: int
    dataset: str
    order: str
    subset: NotRequired[str]
    world_size: NotRequired[int]
    global_batch: NotRequired[int | None]
    rank_batch: NotRequired[int | None]
    of_worker: NotRequired[int]
    of_rank: NotRequired[int]


@dataclass(frozen=True, slots=True)
class Origin:
    """The samples and the order to which a state belongs.

    Attributes:
        dataset: a name of the samples.
        subset: the name of the subset; None if the samples are no subset.
        order: a name of the order of an epoch.
    """

    dataset: str
    subset: str | None
    order: str


def checked_state(state: Mapping[str, Any], origin: Origin) -> tuple[int, int, int]:
    """Return the epoch, the seed and the number of samples of a state.

    States of earlier versions do not name their samples and their order. These are then not
    compared. A state without ``subset`` belongs to a data set that is no subset.

    Raises:
        ConfigError: it is not a state, or it belongs to other samples or to another order.
    """
    try:
        epoch = operator.index(state["epoch"])
        seed = operator.index(state["seed"])
        samples = operator.index(state["samples"])
    except (KeyError, TypeError):
        raise ConfigError(
            f"not a state of dataprep.to_torch: {state!r}; it has whole numbers for epoch, seed and"
            " samples"
        ) from None
    if state.get("subset") != origin.subset:
        raise ConfigError(
            f"the state belongs to {_subset_name(state.get('subset'))}, the samples are those of "
            f"{_subset_name(origin.subset)}: select the same samples by dataset.where or "
            "dataset.select as when it was saved, or begin without the state"
        )
    if state.get("dataset", origin.dataset) != origin.dataset:
        raise ConfigError(
            "the state belongs to another data set: open the split, the share or the shards with "
            "which it was saved"
        )
    if state.get("order", origin.order) != origin.order:
        raise ConfigError(
            f"the state belongs to samples that are read {state['order']}, these are read "
            f"{origin.order}: use the same iterable, shuffle and format"
        )
    return epoch, seed, samples


def _subset_name(subset: object) -> str:
    """Describe a subset for messages."""
    if subset is None:
        return "the whole data set"
    return f"the subset {str(subset)[:12]} (dataset.subset)"


def require_no_buffer(buffer: int) -> None:
    """Raise ConfigError if a shuffle buffer mixes the samples: a state cannot count them."""
    if buffer:
        raise ConfigError(BUFFER_CANNOT_RESUME)
