"""Outcomes of samples that are converted one at a time in a process of their own.

As ``dataprep.outcomes`` gives them, to the same bytes: but a sample over which the process dies by
a fault, in a second process too, has failed, and the next one goes on in a new process.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

from dataprep.execution import SampleLimit
from dataprep.image import ImagePolicy
from dataprep.in_hand import UNNOTED, InHand
from dataprep.isolation.endings import Ending, conclusive, judged
from dataprep.isolation.process import IsolatedProcess
from dataprep.outcomes import Outcome
from dataprep.read_ahead import read_one
from dataprep.sources import Located, Source

_IN_MEMORY = "memory://"


def isolated_outcomes(
    source: Source,
    items: Sequence[Located],
    policy: ImagePolicy,
    limit: SampleLimit,
    in_hand: InHand = UNNOTED,
) -> Generator[Outcome, None, None]:
    """Of every item, in order. Reading is done there too: its native code may crash as well.

    Raises:
        SourceChanged, StoreError: a file could not be read.
        SampleLost: the process was killed over a sample, or hung, again and again.
    """
    with _Isolated(source, policy, limit) as isolated:
        for item in items:
            in_hand.take(item.name)
            try:
                outcome = isolated.outcome(item)
            finally:
                in_hand.lay_down()
            yield outcome


class _Isolated:
    """One process after the other."""

    def __init__(self, source: Source, policy: ImagePolicy, limit: SampleLimit) -> None:
        self._source, self._policy, self._limit = source, policy, limit
        self._here = source.uri.startswith(_IN_MEMORY)  # which is this process's
        self._process: IsolatedProcess | None = None

    def __enter__(self) -> _Isolated:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.end()

    def outcome(self, item: Located) -> Outcome:
        endings: list[Ending] = []
        while (last := conclusive(endings)) is None:
            found = self._tried(item)
            if isinstance(found, Outcome):
                return found
            endings.append(found)
        return Outcome(judged(item.name, last, self._limit), last.sha256)

    def _tried(self, item: Located) -> Outcome | Ending:
        data = read_one(self._source, item, self._policy.max_source_bytes) if self._here else None
        if self._process is not None and not self._process.alive:
            self._process.end()
            self._process = None
        if self._process is None:
            self._process = IsolatedProcess(None if self._here else self._source, self._policy)
        return self._process.convert(item, data, self._limit.seconds)
