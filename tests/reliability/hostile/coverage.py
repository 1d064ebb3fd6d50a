"""Which lines of some files an input reaches, so that inputs that reach new ones are kept."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from types import FrameType, TracebackType
from typing import Any, TypeAlias

_Trace: TypeAlias = Callable[[FrameType, str, Any], Any]


class Lines:
    """Lines reached in the block, in files whose path has one of ``parts`` in it."""

    def __init__(self, parts: Collection[str]) -> None:
        self._parts = tuple(parts)
        self._wanted: dict[str, bool] = {}
        self.known: set[tuple[str, int]] = set()
        self.new = False

    def __enter__(self) -> Lines:
        self.new = False
        sys.settrace(self._call)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        sys.settrace(None)

    def _call(self, frame: FrameType, event: str, argument: Any) -> _Trace | None:
        name = frame.f_code.co_filename
        wanted = self._wanted.get(name)
        if wanted is None:
            wanted = self._wanted[name] = any(part in name for part in self._parts)
        return self._line if wanted else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> _Trace:
        if event == "line":
            place = (frame.f_code.co_filename, frame.f_lineno)
            if place not in self.known:
                self.known.add(place)
                self.new = True
        return self._line
