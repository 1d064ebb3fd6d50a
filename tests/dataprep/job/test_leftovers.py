"""Tests of dataprep.job.leftovers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import pytest

from dataprep.errors import ConfigError, DataprepError, JobError, LeaseLost, StoreUnreachable
from dataprep.job.leftovers import sweep, swept_if_stopped
from dataprep.plan import Part
from dataprep.stores.memory import MemoryStore

KEYS = ("tfrecord/train-00000-of-00002", "train.samples.parquet", "labels.json", "other.plan")


class Littered(MemoryStore):
    """A store that has been left uploads of ``KEYS``; it may fail to tidy."""

    def __init__(self, fails: bool = False) -> None:
        super().__init__("memory://littered")
        self.fails = fails
        self.uploads = [*KEYS]
        self.tidied = 0

    def tidy(self) -> None:
        """Count it."""
        self.tidied += 1
        if self.fails:
            raise DataprepError("the disk is gone")

    def abort_uploads(self, ours: Callable[[str], bool]) -> None:
        """Forget them."""
        self.uploads = [key for key in self.uploads if not ours(key)]


def test_uploads_of_a_split_are_aborted() -> None:
    """Those of its shards and tables, and none that another split may have."""
    store = Littered()
    sweep(store, ["train"])
    assert (store.tidied, store.uploads) == (1, ["labels.json", "other.plan"])


def test_a_store_that_keeps_no_uploads_is_tidied() -> None:
    """What a store cannot do is not asked of it."""
    sweep(MemoryStore("memory://nothing-left"), ["train"])


@pytest.mark.parametrize(
    ("error", "swept"),
    [
        (KeyboardInterrupt(), True),
        (JobError("stopped"), True),
        (None, False),
        (ConfigError("refused"), False),
        (StoreUnreachable("no answer"), False),
        (GeneratorExit(), False),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_what_stops_a_job_leaves_nothing(error: BaseException | None, swept: bool) -> None:
    """Unless nothing was written, or the store does not answer anyhow."""
    store = Littered()
    told: AbstractContextManager[object] = (
        nullcontext() if error is None else pytest.raises(type(error))
    )
    with told, swept_if_stopped(store, ["train"], None):
        if error is not None:
            raise error
    assert bool(store.tidied) == swept
    assert ("train.samples.parquet" not in store.uploads) == swept


def test_a_part_leaves_the_uploads_of_others() -> None:
    """Another part may be at it; half-written files of the dead are removed nevertheless."""
    store = Littered()
    with pytest.raises(JobError), swept_if_stopped(store, ["train"], Part(0, 2)):
        raise JobError("stopped")
    assert (store.tidied, store.uploads) == (1, [*KEYS])


def test_a_run_that_lost_its_lease_leaves_the_uploads_of_who_has_it() -> None:
    """They may be those of the run that took over."""
    store = Littered()
    with pytest.raises(LeaseLost), swept_if_stopped(store, ["train"], None):
        raise LeaseLost("lost")
    assert (store.tidied, store.uploads) == (1, [*KEYS])


def test_why_a_job_stopped_is_told_although_sweeping_fails() -> None:
    """The first error is the one to see."""
    with (
        pytest.raises(JobError, match="stopped"),
        swept_if_stopped(Littered(True), ["train"], None),
    ):
        raise JobError("stopped")
