"""What measuring cost, in two lines."""

from __future__ import annotations

from iobench.report.model.instrumentation import section
from iobench.report.model.shapes import Words
from iobench.trial import Trial
from tests.iobench.summary.made import one, result


def lines(*trials: Trial) -> tuple[str, ...]:
    """Of a run of these; nothing where there is no section."""
    found = section(result(trials))
    if found is None:
        return ()
    (words,) = found.blocks
    assert isinstance(words, Words)
    return words.lines


def test_a_steps_cost_and_its_share() -> None:
    """And what sampling takes of a core."""
    trial = one("watch", {}, harness_step_s=4e-6, harness_share=0.0002, sampling_core_share=0.003)
    assert lines(trial) == (
        "Instrumentation: 4\u00a0µs a step, 0.02\u00a0% of a step.",
        "Sampling the machine: 0.30\u00a0% of one core, in another process than the loop’s.",
    )


def test_of_several_trials_the_worst_is_told() -> None:
    """A median alone would hide it."""
    (line,) = lines(
        *(one("loader", {"n": n}, harness_step_s=4e-6, harness_share=n / 1000) for n in (1, 2, 9))
    )
    assert "0.20\u00a0% (the median of 3 trials; at most 0.90\u00a0%) of a step." in line


def test_above_one_percent_it_is_said() -> None:
    """Not only in the findings."""
    assert "above the 1 % that is aimed at" in lines(one("loader", {}, sampling_core_share=0.02))[0]


def test_the_harness_measuring_itself_is_no_step() -> None:
    """The null loader has no share."""
    assert lines(one("loader", {}, harness_step_s=4e-6)) == ()


def test_old_runs_say_nothing() -> None:
    """They did not measure it."""
    assert lines(one("loader", {}, samples_per_s=1.0)) == ()
