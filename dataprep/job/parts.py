"""PURE. Which shards a part of a job makes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from dataprep.errors import ConfigError

_WRITTEN = re.compile(r"([0-9]{1,6})/([0-9]{1,6})")
_MOST = 999_999


class Part(NamedTuple):
    """One of ``count`` machines that share a job; ``number`` counts from 0.

    Shards are dealt out like cards: part I has the shards I, I + N, I + 2N ... so that every
    part has the same number of them, give or take one.
    """

    number: int
    count: int  # type: ignore[assignment]  # hides tuple.count

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    @classmethod
    def parse(cls, text: str) -> Part:
        """``0/4`` to ``3/4``.

        Raises:
            ConfigError: it is something else.
        """
        match = _WRITTEN.fullmatch(text.strip())
        if not match or not int(match[1]) < int(match[2]):
            raise ConfigError(
                f"--part {text!r}: write I/N with I from 0 to N-1 and N at most {_MOST:,}, as in "
                "--part 0/4 for the first of four"
            )
        return cls(int(match[1]), int(match[2]))

    def of(self, shards: Iterable[int]) -> list[int]:
        """Those of ``shards`` that this part makes."""
        return [shard for shard in shards if shard % self.count == self.number]
