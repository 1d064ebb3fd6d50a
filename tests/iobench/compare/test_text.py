"""What a terminal shows."""

from __future__ import annotations

import re

import pytest

from iobench.compare import Saved, compare, trend
from iobench.compare.text import comparison_text, trend_text
from tests.iobench.compare.saved_runs import (
    MACHINE,
    NOISY,
    STEADY,
    params,
    repeats,
    saved,
    scaled,
    stopped,
)

HOSTILE = "x\x1b[31m\ny\udce9"


def run(factor: float, where: str, day: int = 1, **changes: object) -> Saved:
    """A steady point, a noisy one, one that only this run has, and one that failed."""
    trials = [
        *repeats(scaled(STEADY, factor), params("raw")),
        *repeats(scaled(NOISY, factor), params("tf-data")),
        *repeats(STEADY, params(f"only-{where}")),
        *stopped("failed", "it broke", loader="null"),
    ]
    environment = {**MACHINE, **changes}
    started = f"2026-11-{day:02}T00:00:00+00:00"
    return saved(*trials, where=where, started=started, environment=environment)


def shown(found: str) -> list[str]:
    """Its lines, without indents."""
    return [line.strip() for line in found.splitlines()]


def test_the_verdict_comes_first_then_what_differs_then_figures() -> None:
    """And drift last."""
    lines = comparison_text(compare(run(1, "a"), run(0.8, "b", kernel="new"), 0.05)).splitlines()
    assert lines[0].startswith("Regression: 2 of 2 figures are worse by 5 % or more")
    software = lines.index("Software differs:")
    figures = next(i for i, line in enumerate(lines) if " -> " in line and "%" in line)
    assert lines[software + 1] == "  kernel  Linux 6.8.0 -> new"
    assert software < figures
    assert not any(re.search(r"\d %.*\(", line) for line in lines[1:software])
    assert lines[-1].endswith("drift between them is not excluded.")


def test_a_figure_has_medians_change_ratio_interval_and_what_it_lacks() -> None:
    """On one line below its point."""
    lines = shown(comparison_text(compare(run(1, "a"), run(0.98, "b"), 0.05)))
    at = lines.index("loader tf-data shards@disk warm workers=2 batch=64")
    pattern = r"samples/s +102 -> 100 +-2\.0 %  0\.980 \(0\.\d{3} to 1\.\d{3}\)  \d+ more repeats"
    assert re.fullmatch(pattern, lines[at + 1])


def test_what_covers_less_than_95_says_so() -> None:
    """An interval of three repeats is none of 95 %."""
    pairs = [(3, ", 90 %)"), (1, "(no interval)  3+ more repeats")]
    for count, said in pairs:
        some = saved(*repeats(STEADY[:count]))
        assert said in comparison_text(compare(some, some, 0.05))


def test_nothing_is_dropped() -> None:
    """What only one run has, and what failed, in both."""
    text = comparison_text(compare(run(1, "a"), run(1, "b"), 0.05))
    for said in ("only-a", "only in base (6 repeats)", "only-b", "only in new (6 repeats)"):
        assert said in text
    assert "6 of 6 repeats failed in base: it broke" in text
    assert "6 of 6 repeats failed in new: it broke" in text


def test_unlike_machines_stand_on_top() -> None:
    """Where they were compared all the same."""
    found = compare(run(1, "a"), run(1, "b", processors=2), 0.05, force=True)
    lines = comparison_text(found).splitlines()
    assert lines[0].endswith("of unlike machines.")
    assert "The machines differ:" in lines
    assert "  processors  16 -> 2" in lines


def test_many_differences_are_cut() -> None:
    """And how many there are is told."""
    base = saved(*repeats(STEADY), config={f"key{i}": i for i in range(50)})
    text = comparison_text(compare(base, saved(*repeats(STEADY), config={}), 0.05))
    assert "and 30 more: --json has all" in text


@pytest.mark.parametrize("several", [False, True])
def test_names_cannot_reach_the_terminal(several: bool) -> None:
    """Control characters and bytes that are no text are escaped, wherever they stand."""
    trials = [
        *repeats(STEADY, params(HOSTILE)),
        *stopped("failed", HOSTILE, loader="null"),
        *repeats(STEADY, {HOSTILE: HOSTILE}, kind=HOSTILE),
        *repeats(STEADY, kind="train", device=HOSTILE),
    ]
    base = saved(*trials, where=HOSTILE, environment={**MACHINE, HOSTILE: HOSTILE})
    new = saved(*trials[:-6], where=HOSTILE, started=HOSTILE, config={HOSTILE: HOSTILE})
    if several:
        text = trend_text(trend(base, [new, new], 0.05))
    else:
        text = comparison_text(compare(base, new, 0.05))
    assert r"x\x1b[31m\x0ay\xe9" in text
    assert not re.search(r"[\x00-\x09\x0b-\x1f\udc80-\udcff]", text)
    text.encode()


@pytest.mark.parametrize("factor", [1.0, 0.001, 1000.0])
def test_lines_fit_a_terminal(factor: float) -> None:
    """Of figures, at most 100 characters."""
    found = compare(run(1, "a"), run(factor, "b"), 0.05)
    for line in comparison_text(found).splitlines():
        if "(" in line and " -> " in line:
            assert len(line) <= 100
    days = [run(factor, str(day), day) for day in range(2, 5)]
    for line in trend_text(trend(run(1, "base"), days, 0.05)).splitlines():
        assert len(line) <= 100 or "figure" in line


def test_a_trend_has_each_run_and_each_figure_through_them() -> None:
    """With what changed against the base and against the run before."""
    text = trend_text(trend(run(1, "a", 1), [run(0.5, "c", 3), run(0.8, "b", 2)], 0.05))
    lines = text.splitlines()
    assert lines[0].startswith("Newest run against the base: regression: ")
    assert [line[:9] for line in lines[2:5]] == ["#1 base  ", "#2       ", "#3       "]
    at = lines.index("loader raw shards@disk warm workers=2 batch=64, samples/s")
    assert re.fullmatch(r"  #1 base +100 \(99\.7 to 101\)", lines[at + 1])
    assert re.search(r"-20\.0 %  regression +-20\.0 %  regression$", lines[at + 2])
    assert re.search(r"-50\.0 %  regression +-37\.5 %  regression$", lines[at + 3])
    assert "#3 against the base" in lines


def test_a_trend_without_times_says_so() -> None:
    """Its order is that of the command line."""
    odd = saved(*repeats(STEADY, params("raw")), started="")
    assert "does not say when it started" in trend_text(trend(run(1, "a"), [odd, odd], 0.05))
