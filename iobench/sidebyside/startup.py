"""How long a command line takes to say what it can do."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

from iobench.sidebyside.contest import Contender, Contest, Goal, Measured
from iobench.sidebyside.workplace import Workplace

_STARTS = 10
_LIMIT_S = 0.2


def contests(place: Workplace) -> Iterator[Contest]:
    """Both programs' ``--help``."""
    for program in ("dataprep", "iobench"):
        yield Contest(
            name=f"start-{program}",
            title=f"`{program} --help`",
            unit="start",
            contenders=(
                Contender(program, f"{__name__}:helps", {"command": ["-m", program, "--help"]}),
                Contender("python alone", f"{__name__}:helps", {"command": ["-c", "pass"]}),
            ),
            goals=(Goal(_LIMIT_S, figure="seconds", bound="at most"),),
        )


def helps(command: list[str]) -> Measured:
    """The median of ten starts of this interpreter with some arguments, files warm."""
    seconds = [_start_s([sys.executable, *command]) for _ in range(_STARTS + 1)]
    return Measured(1, statistics.median(seconds[1:]))


def _start_s(command: list[str]) -> float:
    started_s = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started_s
