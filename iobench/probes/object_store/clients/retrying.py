"""Requests again after an answer that may pass, counted."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import TypeVar

from iobench.clock import Clock
from iobench.probes.object_store.clients.protocol import RequestFailed

Result = TypeVar("Result")

_PASSING = {"408", "429", "500", "502", "503", "504", "connection", "timeout"}
_REFUSED = {"429", "503"}
_FIRST_WAIT_S = 0.1
_LONGEST_WAIT_S = 15.0


class Retrying:
    """Up to ``attempts`` in all, with waits that double and are cut short at random.

    For clients that do not say how often they tried. The waits are those of the Rust library
    ``object_store``. ``refused`` counts answers 503 and 429, by which a store asks for fewer.
    """

    def __init__(self, attempts: int, clock: Clock) -> None:
        self.attempts = attempts
        self._clock = clock
        self._lock = threading.Lock()
        self.retries = 0
        self.refused = 0

    def call(self, request: Callable[[], Result]) -> Result:
        """What ``request`` returns, or its last failure."""
        for attempt in range(1, self.attempts):
            try:
                return self._tried(request)
            except RequestFailed as error:
                if error.status not in _PASSING:
                    raise
            with self._lock:
                self.retries += 1
            wait_s = min(_FIRST_WAIT_S * 2**attempt, _LONGEST_WAIT_S)
            self._clock.sleep(random.uniform(_FIRST_WAIT_S, wait_s))
        return self._tried(request)

    def _tried(self, request: Callable[[], Result]) -> Result:
        try:
            return request()
        except RequestFailed as error:
            with self._lock:
                self.refused += error.status in _REFUSED
            raise
