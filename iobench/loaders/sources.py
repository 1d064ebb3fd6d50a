"""What a loader needs, or a word of why it cannot have it."""

from __future__ import annotations

from dataprep.adapters import import_framework
from dataprep.errors import ConfigError
from iobench.errors import Unavailable
from iobench.trial import Place


def need_place(place: Place | None, loader: str, holds: str) -> Place:
    """The place, which must hold ``shards`` or ``files``.

    Raises:
        ConfigError: there is none, or it holds something else.
    """
    if place is None:
        raise ConfigError(f"loader {loader!r} reads {holds}: give it data")
    if place.holds != holds:
        raise ConfigError(f"loader {loader!r} reads {holds}, but {place.uri} holds {place.holds}")
    return place


def need_framework(name: str) -> None:
    """Import it here, before any clock runs: the first batch is not to pay for it.

    Raises:
        Unavailable: it is not installed; the message says what installs it.
    """
    try:
        import_framework(name)
    except ImportError as error:
        raise Unavailable(str(error)) from None
