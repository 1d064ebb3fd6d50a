"""Measure whether storage and loaders can feed a training loop.

>>> import iobench
>>> loader = iobench.watch(loader, "reports/mine")                  # doctest: +SKIP

``import iobench`` is quick, because the names below are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from iobench.watching import finish, watch

__all__ = ["finish", "watch"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'iobench' has no attribute {name!r}")
    return getattr(import_module("iobench.watching"), name)


def __dir__() -> list[str]:
    return __all__
