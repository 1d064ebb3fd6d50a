"""Samplers that behave, and some that do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from iobench.errors import Unavailable


class Counting:
    """Says how often it was asked."""

    notes: Sequence[str] = ("a count",)

    def __init__(self, process: int = 0) -> None:
        self.count, self.closed = 0, False

    def read(self, now_s: float) -> Mapping[str, float]:
        """1, 2, 3 ..."""
        self.count += 1
        return {"count": self.count}

    def close(self) -> None:
        """Remember."""
        self.closed = True


class Failing(Counting):
    """Breaks at its third reading."""

    def read(self, now_s: float) -> Mapping[str, float]:
        """1, 2."""
        if self.count == 2:
            raise OSError("the wire is cut")
        return super().read(now_s)


class Missing(Counting):
    """Not to be had here."""

    def __init__(self, process: int = 0) -> None:
        raise Unavailable("no such thing: buy one")


class Broken(Counting):
    """Cannot even be made."""

    def __init__(self, process: int = 0) -> None:
        raise KeyError("x")
