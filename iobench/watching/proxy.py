"""A loader that is watched: to those who use it the loader itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

# What Python looks for on the class. Only what the loader has is there: code asks.
_FORWARDED = (
    *("__len__", "__getitem__", "__contains__", "__call__", "__reversed__", "__length_hint__"),
    *("__enter__", "__exit__", "__bool__", "__add__", "__or__"),
)
_STATE = "_iobench"


class Watched:
    """Every attribute is the loader's, to read and to set; iterating is the loader's too, timed.

    It is no instance of the loader's class: code that takes loaders apart and builds them anew
    (``accelerate.prepare``) would else build one that nobody watches, and not say so.
    """

    def __init__(self, loader: Any, epochs: Callable[[Callable[[], Iterator[Any]]], Any]) -> None:
        object.__setattr__(self, _STATE, (loader, epochs))

    def __iter__(self) -> Any:
        loader, epochs = object.__getattribute__(self, _STATE)
        return epochs(lambda: iter(loader))

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, _STATE)[0], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(object.__getattribute__(self, _STATE)[0], name, value)

    def __delattr__(self, name: str) -> None:
        delattr(object.__getattribute__(self, _STATE)[0], name)

    def __dir__(self) -> list[str]:
        return dir(object.__getattribute__(self, _STATE)[0])

    def __repr__(self) -> str:
        return f"watched {object.__getattribute__(self, _STATE)[0]!r}"

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Copies, and those that go to other processes, are the loader alone."""
        return _itself, (object.__getattribute__(self, _STATE)[0],)


def proxied(loader: Any, epochs: Callable[[Callable[[], Iterator[Any]]], Any]) -> Any:
    """``loader``, every pass over which goes through ``epochs``.

    Iterators (generators, DALI's) stay iterators: ``next`` goes on with the pass that began.
    """
    kind = type(loader)
    methods: dict[str, Any] = {name: _forwarded(name) for name in _FORWARDED if hasattr(kind, name)}
    if hasattr(kind, "__next__"):
        methods |= {"__iter__": _iterate, "__next__": _next}
    return type("Watched", (Watched,), methods)(loader, epochs)


def unwatched(loader: Any) -> Any:
    """The loader itself of one that is watched; others as they are."""
    return object.__getattribute__(loader, _STATE)[0] if isinstance(loader, Watched) else loader


def _forwarded(name: str) -> Callable[..., Any]:
    def method(self: Watched, *arguments: Any, **named: Any) -> Any:
        loader = object.__getattribute__(self, _STATE)[0]
        return getattr(loader, name)(*arguments, **named)

    method.__name__ = name
    return method


def _iterate(self: Watched) -> Any:
    """A new pass, which ``next`` goes on with."""
    begun = object.__getattribute__(self, "__dict__")["_iobench_pass"] = Watched.__iter__(self)
    return begun


def _next(self: Watched) -> Any:
    own = object.__getattribute__(self, "__dict__")
    begun = own.get("_iobench_pass") or _iterate(self)
    try:
        return next(begun)
    except StopIteration:
        del own["_iobench_pass"]
        raise


def _itself(loader: Any) -> Any:
    return loader
