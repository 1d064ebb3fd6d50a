"""A sampler that works, and samplers that fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from iobench.errors import Unavailable


class Counting:
    """A sampler that counts its readings."""

    notes: Sequence[str] = ("a count",)

    def __init__(self, process: int = 0) -> None:
        self.count, self.closed = 0, False

    def read(self, now_s: float) -> Mapping[str, float]:
        """Return the number of this reading, from 1."""
        self.count += 1
        return {"count": self.count}

    def close(self) -> None:
        """Note that the sampler is closed."""
        self.closed = True


class Failing(Counting):
    """A sampler whose third reading fails."""

    def read(self, now_s: float) -> Mapping[str, float]:
        """Return the number of this reading, or raise at the third one."""
        if self.count == 2:
            raise OSError("the wire is cut")
        return super().read(now_s)


class Missing(Counting):
    """A sampler that is not available on this machine."""

    def __init__(self, process: int = 0) -> None:
        raise Unavailable("no such thing: buy one")


class Broken(Counting):
    """A sampler whose constructor fails."""

    def __init__(self, process: int = 0) -> None:
        raise KeyError("x")
