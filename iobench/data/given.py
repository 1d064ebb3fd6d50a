"""What a run is told to read, looked for before its first trial."""

from __future__ import annotations

from pathlib import Path

from dataprep.dataset import open_dataset
from dataprep.errors import ConfigError, ManifestMissing
from iobench.data.settings import DataSettings


def expanded(uri: str) -> str:
    """An address as it is, a path with its ``~`` followed."""
    return uri if "://" in uri else str(Path(uri).expanduser())


def local_folders(settings: DataSettings) -> dict[str, Path]:
    """What is read from a disk lies there, by key: ``data`` is ``data.folder``, for all that is
    made, ``shards`` and ``source`` what is read as it is."""
    named = {"data": settings.folder, "shards": settings.shards, "source": settings.source}
    paths = {key: uri.removeprefix("file://") for key, uri in named.items() if uri is not None}
    return {key: Path(expanded(path)) for key, path in paths.items() if "://" not in path}


def require_given(settings: DataSettings) -> None:
    """Make sure that the shards are a data set and that the source is a folder, if they are named.

    Raises:
        ConfigError: they are not.
        StoreError: the store that has the shards does not answer.
    """
    if settings.shards is not None:
        try:
            open_dataset(expanded(settings.shards), settings.split, options=settings.store).close()
        except ManifestMissing as error:
            raise ConfigError(f"data.shards: {error}") from None
    source = settings.source
    if source is not None and "://" not in source and not Path(expanded(source)).is_dir():
        raise ConfigError(f"data.source: no folder {expanded(source)!r}")
