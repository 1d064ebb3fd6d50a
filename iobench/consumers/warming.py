"""Steps before the first one that counts."""

from __future__ import annotations

from collections.abc import Callable

from iobench.clock import Clock


def until_steady(
    step: Callable[[], None],
    wait: Callable[[], None],
    clock: Clock,
    *,
    at_most: int,
    within: float = 0.1,
) -> list[float]:
    """Seconds of each ``step`` until one takes as long as that before it, or ``at_most`` ran.

    ``wait`` comes back when the step's work is done. Two steps are always made: the first
    builds, tunes and allocates. As long as means: a share of ``within`` longer or shorter at
    most.
    """
    taken_s: list[float] = []
    while len(taken_s) < max(at_most, 2):
        began_s = clock.now_s()
        step()
        wait()
        taken_s.append(clock.now_s() - began_s)
        if len(taken_s) > 1 and abs(taken_s[-1] - taken_s[-2]) <= within * taken_s[-2]:
            break
    return taken_s


def per_step_s(
    step: Callable[[], None], wait: Callable[[], None], clock: Clock, *, steps: int = 10
) -> float:
    """Seconds of one of ``steps`` steps in a row; ``wait`` comes back when all are done."""
    began_s = clock.now_s()
    for _ in range(steps):
        step()
    wait()
    return (clock.now_s() - began_s) / steps
