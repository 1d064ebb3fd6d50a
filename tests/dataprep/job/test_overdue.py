"""A process that ends when a sample is overdue."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

from dataprep.job.overdue import Overdue, Timer

_HANGING = """
import ctypes
from dataprep.job.overdue import Overdue
overdue = Overdue(0.2)
overdue.take("quick")
overdue.lay_down()
overdue.take("hung")
ctypes.PyDLL(None).sleep(1000)
"""


class Clock:
    """Moved by the test; ``rings`` are what the kernel's timer was set to."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.rings: list[float] = []
        self.timer = Timer(lambda: self.now_s, self.rings.append)


def test_each_sample_has_the_whole_time() -> None:
    """The timer is set anew with each, and stands still between two."""
    clock = Clock()
    overdue = Overdue(600.0, clock.timer)
    for _ in range(2):
        overdue.take("a")
        clock.now_s += 500.0
        overdue.lay_down()
    assert clock.rings == [600.0, 0.0, 600.0, 0.0]


def test_the_longest_in_hand_counts() -> None:
    """Of several threads, each with a limit of its job; what is late rings at once."""
    clock = Clock()
    patient, strict = Overdue(600.0, clock.timer), Overdue(50.0, clock.timer)
    other = threading.Thread(target=strict.take, args=("b",))
    patient.take("a")
    clock.now_s += 10.0
    other.start()
    other.join()
    clock.now_s += 70.0
    patient.lay_down()
    assert clock.rings[:2] == [600.0, 50.0]
    assert 0.0 < clock.rings[2] < 0.001


def test_code_that_holds_the_interpreter_is_ended() -> None:
    """No thread of Python's could do that."""
    done = subprocess.run([sys.executable, "-c", _HANGING], check=False, timeout=120)
    assert done.returncode == -signal.SIGALRM
