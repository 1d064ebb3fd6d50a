"""Memory and processors over the steps that count."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from iobench.process_use import process_use

TIMES = [-1.0, 0.0, 1.0, 2.0, 3.0, 4.0]
Column = Sequence[float | None]


def columns(**given: Column) -> dict[str, Column]:
    """Readings of the tree, a second apart."""
    return {"time_s": TIMES, **{f"tree.{name}": values for name, values in given.items()}}


BUSY = columns(
    user_cores=[None, 9.0, 9.0, 1.0, 2.0, 9.0],
    system_cores=[None, 9.0, 9.0, 0.5, 0.5, 9.0],
    worker_cores=[None, 9.0, 9.0, 1.0, 1.5, 9.0],
)


def test_processors_of_the_steps_that_count() -> None:
    """Of readings that lie within them: what came before and after is not theirs."""
    found = process_use(BUSY, 0.7, 3.4, 500)
    assert found["cores_busy"] == 2.0
    assert found["worker_cores_busy"] == 1.25
    assert found["cpu_s_per_1000_samples"] == pytest.approx(1000 * 2.0 * 2.7 / 500)
    assert found["worker_cpu_s_per_1000_samples"] == pytest.approx(1000 * 1.25 * 2.7 / 500)


def test_what_runs_between_epochs_is_not_theirs() -> None:
    """Readings that touch a pause are passed over, and its time does not count."""
    found = process_use(BUSY, 0.7, 3.4, 500, [(2.2, 2.6)])
    assert found["cores_busy"] == 1.5
    assert found["cpu_s_per_1000_samples"] == pytest.approx(1000 * 1.5 * 2.3 / 500)
    assert process_use(BUSY, 0.7, 3.4, 500, [(1.5, 2.5)]) == {}


@pytest.mark.parametrize(("begin_s", "end_s"), [(0.5, 1.9), (3.1, 3.2), (4.0, 9.0)])
def test_two_readings_have_to_lie_within(begin_s: float, end_s: float) -> None:
    """Else nothing is told rather than something of other times."""
    assert process_use(BUSY, begin_s, end_s, 500) == {}


def test_a_reading_that_failed_is_passed_over() -> None:
    """The others stand."""
    readings = columns(
        user_cores=[None, 1.0, None, 4.0, 2.0, 1.0], system_cores=[None, 0.0, 0.0, 0.0, 0.0, 0.0]
    )
    found = process_use(readings, 0.0, 3.0, 0)
    assert found == {"cores_busy": 3.0}


def test_the_largest_memory_since_the_first_batch_was_asked_for() -> None:
    """Until the steps end: opening before, and the end of the workers after, are not theirs."""
    memory = columns(pss_bytes=[99.0, None, 5.0, 7.0, None, 80.0], rss_bytes=[999.0] * 6)
    assert process_use(memory, 1.5, 3.5, 10) == {"memory_bytes": 7, "memory_counted": "PSS"}


def test_rss_where_no_pss_was_ever_read() -> None:
    """And it is called so; PSS at other times is no reason to mix the two."""
    memory = columns(rss_bytes=[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    assert process_use(memory, 1.5, 3.5, 10) == {"memory_bytes": 5, "memory_counted": "RSS"}
    mixed = columns(pss_bytes=[1.0, None, None, None, None, 1.0], rss_bytes=[9.0] * 6)
    assert process_use(mixed, 1.5, 3.5, 10) == {}


def test_nothing_read_is_nothing() -> None:
    """Sampling may be off."""
    assert process_use({}, 0.0, 1.0, 10) == {}
    assert process_use({"time_s": TIMES, "cpu.user_share": [0.5] * 6}, 0.0, 4.0, 10) == {}
