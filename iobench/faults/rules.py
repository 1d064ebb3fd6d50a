"""Which requests meet which fault: counted, and the same on every run."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from iobench.faults.kinds import Fault


@dataclass(frozen=True, slots=True)
class Match:
    """Which requests: all, unless ``method`` or ``path`` says otherwise.

    ``path`` is a regular expression, searched in path?query as the client sent it. Of the
    requests that fit, the first ``skip`` are left alone, the next ``times`` are hit (``None``:
    all), and the rest are left alone again; with ``every`` only each so many-th of those is hit,
    beginning with the first.
    """

    method: str | None = None
    path: str | None = None
    skip: int = 0
    times: int | None = None
    every: int = 1
    _pattern: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.skip < 0:
            raise ValueError(f"Match: skip must not be negative, not {self.skip}")
        if self.times is not None and self.times < 0:
            raise ValueError(f"Match: times must be None or not negative, not {self.times}")
        if self.every < 1:
            raise ValueError(f"Match: every must be at least 1, not {self.every}")
        try:
            pattern = re.compile(self.path or "")
        except re.error as error:
            raise ValueError(f"Match: path is not a regular expression: {error}") from error
        object.__setattr__(self, "_pattern", pattern)

    def fits(self, method: str, path: str) -> bool:
        """Whether a request fits by method and path, counts aside."""
        return self.method in (None, method) and self._pattern.search(path) is not None

    def hits(self, nth: int) -> bool:
        """Whether the ``nth`` fitting request, from 0, is hit."""
        if nth < self.skip or (self.times is not None and nth >= self.skip + self.times):
            return False
        return (nth - self.skip) % self.every == 0


@dataclass(frozen=True, slots=True)
class Rule:
    """One fault, and the requests that meet it."""

    match: Match
    fault: Fault


class Schedule:
    """Rules and their counts. Every rule counts every request that fits it, hit or not."""

    def __init__(self, rules: Sequence[Rule] = ()) -> None:
        self._lock = threading.Lock()
        self.replace(rules)

    def replace(self, rules: Sequence[Rule]) -> None:
        """Take other rules, and count from 0 again."""
        with self._lock:
            self._rules = tuple(rules)
            self._fitting = [0] * len(self._rules)

    def faults_for(self, method: str, path: str) -> tuple[Fault, ...]:
        """Count one request, and return the faults it meets, in the order of the rules."""
        faults: list[Fault] = []
        with self._lock:
            for index, rule in enumerate(self._rules):
                if rule.match.fits(method, path):
                    if rule.match.hits(self._fitting[index]):
                        faults.append(rule.fault)
                    self._fitting[index] += 1
        return tuple(faults)
