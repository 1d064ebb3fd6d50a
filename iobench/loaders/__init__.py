"""Storage to batches: loaders by name, through entry points."""

from __future__ import annotations

from importlib.metadata import entry_points

from dataprep.errors import ConfigError
from iobench.loaders.protocol import Batch, Framework, Loader, LoaderSettings

__all__ = ["Batch", "Framework", "Loader", "LoaderSettings", "get_loader", "loader_names"]

_GROUP = "iobench.loaders"


def loader_names() -> list[str]:
    """Every loader that is registered, sorted."""
    return sorted({point.name for point in entry_points(group=_GROUP)})


def get_loader(name: str) -> type[Loader]:
    """The loader class of that name.

    Raises:
        ConfigError: nobody registered one.
    """
    for point in entry_points(group=_GROUP, name=name):
        loader: type[Loader] = point.load()
        return loader
    raise ConfigError(f"no loader {name!r}: known are {', '.join(loader_names())}")
