"""Sampling beside a trial, by a thread of the process that waits for it.

That process has nothing else to do, so that the thread takes nothing from the trial's interpreter
lock; it costs the machine its reading, which is measured, and no second start of Python.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

from iobench.clock import SystemClock
from iobench.samplers.recorder import Recorder, Samples
from iobench.samplers.settings import SamplingSettings


class Background:
    """Reads ``per_s`` times a second between ``begin`` and ``end``."""

    def __init__(self, recorder: Recorder, per_s: float) -> None:
        self._recorder, self._period_s = recorder, 1 / per_s
        self._enough = threading.Event()
        self._spent = (0.0, 0.0)
        self._thread = threading.Thread(target=self._read, name="sampling", daemon=True)
        self.samples = Samples({}, 0.0, ())
        """What was read; after ``end``."""

    def begin(self) -> None:
        """The first reading, and those that follow."""
        self._thread.start()

    def end(self) -> None:
        """Stop, with a last reading."""
        self._enough.set()
        self._thread.join()
        self.samples = self._recorder.end(*self._spent)

    def _read(self) -> None:
        begun_s, cpu_s = time.perf_counter(), time.thread_time()
        due_s = begun_s
        while True:
            self._recorder.sample()
            # Of a clock that stood still (a machine asleep) the missed readings are not made up.
            due_s = max(due_s + self._period_s, time.perf_counter())
            if self._enough.wait(max(0.0, due_s - time.perf_counter())):
                break
        self._recorder.sample()
        self._spent = (time.thread_time() - cpu_s, time.perf_counter() - begun_s)


@contextlib.contextmanager
def beside(settings: SamplingSettings | None, process: int) -> Iterator[Background | None]:
    """The machine is sampled while ``process`` is at work; nothing where it is not asked for."""
    if settings is None or not settings.samplers:
        yield None
        return
    recorder = Recorder.of(settings.samplers, process, SystemClock())
    background = Background(recorder, settings.per_s)
    background.begin()
    try:
        yield background
    finally:
        background.end()
