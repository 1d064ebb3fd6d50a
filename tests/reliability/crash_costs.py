"""What isolation costs, where nothing crashes and where something does.

``PYTHONPATH=. python -m tests.reliability.crash_costs [--rounds N]`` prints medians: by the clock,
and of processor time of this process and of all that it started, which other programs change less.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from dataprep.execution import USUAL_LIMIT
from dataprep.image import ImagePolicy
from dataprep.in_hand import InHand
from dataprep.isolation import isolated_outcomes
from dataprep.job.journal import Journal
from dataprep.job.overdue import Overdue
from dataprep.outcomes import outcomes
from dataprep.sample import draw_tree
from dataprep.sources import Located
from tests.reliability.around_folder import AroundFolder

_DEATHS = 20
_NOTES = 20_000
_ENDINGS = 2  # over each sample that crashes


class Fatal(AroundFolder):
    """A folder in which files that are called ``fatal`` fault when they are read."""

    def read(self, item: Located) -> bytes:
        """One file."""
        if item.name.startswith("fatal"):
            os.kill(os.getpid(), signal.SIGSEGV)
        return super().read(item)


def _spent() -> tuple[float, float]:
    """Seconds by the clock, and of processor time of this process and of those that ended."""
    own, others = (
        resource.getrusage(resource.RUSAGE_SELF),
        resource.getrusage(resource.RUSAGE_CHILDREN),
    )
    used_s = own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime
    return time.perf_counter(), used_s


def median(call: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Seconds that a call takes: by the clock, and of processor time."""
    found = []
    for _ in range(rounds):
        before = _spent()
        call()
        found.append([b - a for a, b in zip(before, _spent(), strict=True)])
    clock_s, used_s = map(statistics.median, zip(*found, strict=True))
    return clock_s, used_s


def measured(folder: Path, rounds: int) -> Iterator[tuple[str, tuple[float, float]]]:
    """Each cost by what it is of."""
    tree = draw_tree(folder / "photos", images=60, classes=3, seed=4).root
    source, policy = Fatal(str(tree)), ImagePolicy(size=64)
    listing = source.list()
    sound = [listing.located(row) for row in range(len(listing)) if row not in listing.problems]
    fatal = [Located(f"fatal {number}", 1) for number in range(_DEATHS)]

    def isolated(items: list[Located]) -> None:
        list(isolated_outcomes(source, items, policy, USUAL_LIMIT))

    begun = median(lambda: isolated(sound[:1]), rounds)
    here = median(lambda: list(outcomes(source, sound[:1], policy)), rounds)
    yield "an isolated shard, its start", _less(begun, here, 1)
    died = median(lambda: isolated([sound[0], *fatal]), rounds)
    yield "a process that dies, and the next one", _less(died, begun, _DEATHS * _ENDINGS)
    every = median(lambda: isolated(sound), rounds)
    plain = median(lambda: list(outcomes(source, sound, policy)), rounds)
    alone = _less(every, begun, len(sound) - 1)
    usual = _less(plain, here, len(sound) - 1)
    yield "an image converted in isolation, beyond what it costs otherwise", _less(alone, usual, 1)
    yield "an image converted as usual", usual
    with Journal(folder / "in-hand" / "x") as journal:
        yield "noting a read and a conversion, on threads", _noting(journal, rounds)
    yield "noting a read and a conversion, in a worker", _noting(Overdue(600.0), rounds)


def _noting(in_hand: InHand, rounds: int) -> tuple[float, float]:
    def note() -> None:
        for _ in range(_NOTES):
            in_hand.reach("n01440764/n01440764_10026.JPEG")
            in_hand.reached()
            in_hand.take("n01440764/n01440764_10026.JPEG")
            in_hand.lay_down()

    return _less(median(note, rounds), (0.0, 0.0), _NOTES)


def _less(whole: tuple[float, float], part: tuple[float, float], times: int) -> tuple[float, float]:
    return (whole[0] - part[0]) / times, (whole[1] - part[1]) / times


def main() -> None:
    """Print them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="crash-costs-") as folder:
        for what, (clock_s, used_s) in measured(Path(folder), given.rounds):
            sys.stdout.write(f"{what}: {clock_s * 1e3:.4f} ms, processor {used_s * 1e3:.4f} ms\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
