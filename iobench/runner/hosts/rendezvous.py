"""Small JSON objects in a store, with which hosts communicate without any other service.

A host that waits for an object tries to read it again and again. Each attempt is a request, and
requests to Amazon's S3 cost money. The pauses between attempts therefore grow, up to two seconds.
Only just before a trial begins do hosts use short pauses (``Polling.quick_s``).
"""

from __future__ import annotations

import contextlib
import copy
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from dataprep.errors import ObjectNotFound
from dataprep.stores import Store, StoreOptions, open_store
from iobench.clock import Clock, SystemClock

Answer = TypeVar("Answer")
"""The value that a host waits for: the content of an object, or a fact about several objects."""


@dataclass(frozen=True, slots=True)
class Polling:
    """How often a waiting host tries to read an object.

    Attributes:
        first_s: the pause after the first attempt, in seconds.
        growth: the factor by which each pause is longer than the previous pause.
        longest_s: the longest pause, in seconds.
        quick_s: the short pause while all hosts wait for the signal to begin, in seconds. With
            short pauses, they notice the signal at nearly the same time.
        quick_limit_s: the longest time for which hosts use the short pause, in seconds.
    """

    first_s: float = 0.05
    growth: float = 1.5
    longest_s: float = 2.0
    quick_s: float = 0.05
    quick_limit_s: float = 30.0


class Rendezvous:
    """Reads and writes the objects below one root, waits for them, and counts the requests.

    Args:
        store: the store that holds the objects.
        polling: how often to try to read an object; None for the defaults.
        clock: the clock of all waits; None for the clock of the system.
    """

    def __init__(
        self, store: Store, polling: Polling | None = None, clock: Clock | None = None
    ) -> None:
        self._store, self._prefix = store, ""
        self.polling = polling or Polling()
        self.clock = clock or SystemClock()
        self.requests: Counter[str] = Counter()
        """The number of requests so far: ``puts``, ``gets``, ``lists`` and ``deletes``."""

    @classmethod
    def at(cls, uri: str, options: StoreOptions, polling: Polling | None = None) -> Rendezvous:
        """Open the rendezvous at an address, and make sure that it can be written to.

        Raises:
            ConfigError: the address is wrong.
            StoreError: the store cannot be reached or written.
        """
        store = open_store(uri, options)
        store.prepare()
        return cls(store, polling)

    def within(self, name: str) -> Rendezvous:
        """The objects below ``name/``. Both rendezvous share one count of requests."""
        inner = copy.copy(self)
        inner._prefix = f"{self._prefix}{name}/"
        return inner

    @property
    def uri(self) -> str:
        """The address of the store, for messages."""
        return self._store.uri

    def put(self, key: str, content: Mapping[str, Any]) -> None:
        """Write an object, or replace it."""
        self.requests["puts"] += 1
        self._store.put(self._prefix + key, json.dumps(content, allow_nan=False).encode())

    def get(self, key: str) -> Mapping[str, Any] | None:
        """The content of an object; None if there is no such object."""
        self.requests["gets"] += 1
        try:
            data = self._store.get(self._prefix + key)
        except ObjectNotFound:
            return None
        content: Mapping[str, Any] = json.loads(data)
        return content

    def keys(self, prefix: str) -> list[str]:
        """The keys that begin with ``prefix``, sorted and relative to the root of this object."""
        self.requests["lists"] += 1
        objects = self._store.list(self._prefix + prefix)
        return sorted(info.key.removeprefix(self._prefix) for info in objects)

    def remove(self, keys: Iterable[str]) -> None:
        """Delete objects. An object that does not exist is ignored."""
        for key in keys:
            self.requests["deletes"] += 1
            with contextlib.suppress(ObjectNotFound):
                self._store.delete(self._prefix + key)

    def wait(
        self, look: Callable[[], Answer | None], limit_s: float, *, quick: bool = False
    ) -> Answer | None:
        """Call ``look`` again and again until it returns an answer, and return the answer.

        Args:
            look: returns the answer, or None if there is no answer yet.
            limit_s: how long to wait, in seconds.
            quick: whether to make all pauses short (``Polling.quick_s``).

        Returns:
            The answer; None if there was none in time.
        """
        deadline_s = self.clock.now_s() + limit_s
        pause_s = self.polling.quick_s if quick else self.polling.first_s
        while True:
            answer = look()
            if answer is not None:
                return answer
            remaining_s = deadline_s - self.clock.now_s()
            if remaining_s <= 0:
                return None
            self.clock.sleep(min(pause_s, remaining_s))
            if not quick:
                pause_s = min(pause_s * self.polling.growth, self.polling.longest_s)
