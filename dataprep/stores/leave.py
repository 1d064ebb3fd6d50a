"""Leave to write, asked for again before each attempt at a request that writes.

A store's library repeats a request that failed, for minutes. A process that stood still meanwhile,
alone or with its machine, finds its connection closed and sends the whole of it anew: by then
another run may have made what it would write over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_WRITING = ("PUT", "POST", "DELETE")
_leave: ContextVar[Callable[[], None] | None] = ContextVar("leave", default=None)


@contextmanager
def writing_while(check: Callable[[], None]) -> Iterator[None]:
    """Within the block this thread's requests call ``check`` first, which raises to stop them.

    Uploads in parts are sent by threads of their own, which do not; shards are never so large.
    """
    before = _leave.set(check)
    try:
        yield
    finally:
        _leave.reset(before)


def ask(request: Any, **_: Any) -> None:
    """Of botocore's event ``before-send``, which each attempt is one of; what only reads may go."""
    check = _leave.get()
    if check is not None and request.method in _WRITING:
        check()
