"""Leave to write, for as long as a run has its lease: asked for before each object and attempt.

A process may stand still, alone or with its machine, while another run takes over. What it would
store after that, it would store over what that run has made. A store's library repeats a request
that failed, for minutes, so that a store that uses one lets it ``ask`` before each attempt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_WRITING = ("PUT", "POST", "DELETE")
_leave: ContextVar[Callable[[], None] | None] = ContextVar("leave", default=None)


@contextmanager
def writing_while(check: Callable[[], None] | None) -> Iterator[None]:
    """Within the block ``check`` is called before this thread writes, and raises to stop it.

    Without one, nobody else can write there. Uploads in parts are sent by threads of their own,
    which do not ask; shards are never so large.
    """
    before = _leave.set(check)
    try:
        yield
    finally:
        _leave.reset(before)


def require() -> None:
    """Go on only while there is leave to write. Raises what the check of the block raises."""
    check = _leave.get()
    if check is not None:
        check()


def ask(request: Any, **_: Any) -> None:
    """``require`` as botocore's event ``before-send``, for requests that write."""
    if request.method in _WRITING:
        require()
