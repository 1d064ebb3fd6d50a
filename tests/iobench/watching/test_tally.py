"""Steps added up."""

from __future__ import annotations

import math
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.watching import tally
from iobench.watching.passes import Passes
from iobench.watching.tally import Tally

Record = tuple[float, float, float, float, float]


def told(*records: Record) -> Tally:
    """All at once."""
    made = Tally()
    made.add(list(chain.from_iterable(records)))
    return made


def epoch(
    number: int, begun_s: float, batches: int, wait_s: float = 1, work_s: float = 3
) -> list[Record]:
    """A pass of batches of 4, and its end, which is waited for half as long."""
    step_s = wait_s + work_s
    starts = [begun_s + step_s * index for index in range(batches)]
    end_s = begun_s + step_s * batches
    steps = [(number, at, at + wait_s, at + step_s, 4) for at in starts]
    return [*steps, (number, end_s, end_s + wait_s / 2, end_s + wait_s / 2, -1)]


def test_the_first_step_stands_apart() -> None:
    """It is in no rate and no share."""
    found = told(*epoch(0, 10.0, 5))
    assert (found.origin_s, found.first_batch_s, found.first_step_s) == (10, 1, 3)
    assert (found.steps, found.samples, found.epochs) == (4, 16, 1)
    assert (found.seconds, found.wait_s) == (16.5, 4.5)


def test_time_between_epochs_is_nobodys() -> None:
    """Validation and checkpoints are not the loop's; how later epochs begin is known apart."""
    found = told(*epoch(0, 0.0, 3), *epoch(1, 1000.0, 3, wait_s=2))
    assert found.epochs == 2
    assert (found.starts, found.start_wait_s) == (1, 2)
    assert found.seconds == 2 * 4 + 0.5 + 3 * 5 + 1
    assert found.ended_s == 1000 + 15 + 1


def test_an_epoch_without_batches_is_none() -> None:
    """Before the first batch nothing counts."""
    found = told((0, 0.0, 1.0, 1.0, -1))
    assert (found.origin_s, found.steps, found.seconds) == (None, 0, 0)


def test_samples_that_are_unknown_stay_so() -> None:
    """One is enough: a rate of the others would be no rate."""
    records = epoch(0, 0.0, 4)
    records[2] = (*records[2][:4], math.nan)
    assert math.isnan(told(*records).samples)


def test_only_the_last_steps_are_kept_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums are of all."""
    monkeypatch.setattr(tally, "MOST_STEPS", 3)
    found = told(*epoch(0, 0.0, 10))
    assert [step.ended_s for step in found.detail] == [32, 36, 40]
    assert found.steps == 9


def test_idle_time_is_of_the_steps_that_count() -> None:
    """The first batch's stands apart here too; not asked is not none."""
    found = told(*epoch(0, 10.0, 3))
    assert found.idle_s is None
    found.add_idle([10.0, 99.0, 14.0, 0.5, 18.0, 0.25])
    assert found.idle_s == 0.75


def test_what_is_told_twice_counts_once() -> None:
    """An interrupted script does not know what it had said already."""
    once, twice = Tally(), Tally()
    records = list(chain.from_iterable(epoch(0, 10.0, 5)))
    once.add(records)
    once.add_idle([14.0, 0.5, 18.0, 0.25])
    twice.add(records[:10], 0)
    twice.add(records[:20], 0)
    twice.add(records[15:], 3)
    twice.add_idle([14.0, 0.5])
    twice.add_idle([14.0, 0.5, 18.0, 0.25])
    assert (twice.steps, twice.seconds, twice.wait_s) == (once.steps, once.seconds, once.wait_s)
    assert twice.idle_s == once.idle_s == 0.75


def test_a_pass_over_another_loader_is_no_part_of_a_step() -> None:
    """Validation within a training step, with a loop of its own within it; a broken one stays."""
    passes = Passes()
    training, validation, inner = (Tally(passes) for _ in range(3))
    plain = told(*epoch(0, 0.0, 4))
    inner.add(list(chain.from_iterable(epoch(0, 111.5, 2))))
    validation.add(list(chain.from_iterable(epoch(0, 110.0, 4, work_s=9))))
    validation.add(list(chain.from_iterable(epoch(1, 151.5, 1)[:1])))
    steps = [(0, 0, 1, 4, 4), (0, 4, 5, 8, 4), (0, 108, 109, 152.5, 4), (0, 152.5, 153.5, 156.5, 4)]
    # The third step holds one pass of 40.5 s; what was left by break has no end.
    training.add([*chain.from_iterable(steps), *(0, 156.5, 157, 157, -1)])
    assert training.elsewhere_s == 40.5
    assert training.seconds == plain.seconds
    assert training.wait_s == plain.wait_s
    assert (plain.elsewhere_s, validation.elsewhere_s, inner.elsewhere_s) == (0, 8.5, 0)


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100)), min_size=2, max_size=30))
def test_waits_are_part_of_steps(spans: list[tuple[float, float]]) -> None:
    """And steps that follow each other add up to the time that they took."""
    records, now_s = [], 5.0
    for wait_s, work_s in spans:
        records.append((0.0, now_s, now_s + wait_s, now_s + wait_s + work_s, 1.0))
        now_s += wait_s + work_s
    found = told(*records)
    assert found.seconds == pytest.approx(now_s - records[0][3])
    assert 0 <= found.wait_s <= found.seconds + 1e-9
