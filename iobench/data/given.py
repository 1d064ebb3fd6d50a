"""What a run is told to read, looked for before its first trial."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dataprep.dataset import open_dataset
from dataprep.errors import (
    ConfigError,
    ManifestMissing,
    ObjectNotFound,
    PermissionRefused,
    SourceNotFound,
)
from dataprep.sources import open_source
from dataprep.sources.classes import promises_image
from dataprep.stores import StoreOptions, open_store
from dataprep.stores.protocol import Close
from iobench.data.settings import DataSettings

_HINT = " (check --source)"  # an option of dataprep shard's


def expanded(uri: str) -> str:
    """An address as it is, a path with its ``~`` followed."""
    return uri if "://" in uri else str(Path(uri).expanduser())


def local_folders(settings: DataSettings) -> dict[str, Path]:
    """What is read from a disk lies there, by key: ``data`` is ``data.folder``, for all that is
    made, ``shards``, ``mount`` and ``source`` what is read as it is."""
    given = {name: getattr(settings, name) for name in ("shards", "mount", "source")}
    named: dict[str, str | None] = {"data": settings.folder, **given}
    paths = {key: uri.removeprefix("file://") for key, uri in named.items() if uri is not None}
    return {key: Path(expanded(path)) for key, path in paths.items() if "://" not in path}


def read_from(name: str, described: Mapping[str, Any]) -> str:
    """The label of the target that holds data of a name: what is read as it was given lies where
    that is; the rest is made in the data's folder."""
    given = {"photos@disk": ("source",), "shards@disk": ("mount", "shards")}.get(name, ())
    return next((label for label in given if label in described), "data")


def require_given(settings: DataSettings) -> None:
    """Make sure that what is named is there: shards are a data set, at their mount the same one,
    and the source has images in class folders.

    Raises:
        ConfigError: they are not.
        StoreError: the store that has them does not answer.
    """
    if settings.shards is not None:
        made = _edition("shards", settings.shards, settings)
        if settings.mount is not None and _edition("mount", settings.mount, settings) != made:
            raise ConfigError(
                f"data.mount: {settings.mount} holds another output than {settings.shards}"
            )
    if settings.source is not None:
        _require_source(settings.source, settings.store)


def _require_source(source: str, options: StoreOptions) -> None:
    """A folder with an image in a folder of its class: a look at the first files, by their names.

    Where none is named as an image all are listed, as they will be to make shards of them.
    """
    uri = expanded(source)
    if "://" not in uri and not Path(uri).is_dir():
        raise ConfigError(f"data.source: no folder {uri!r}")
    store = open_store(uri, options)
    try:
        if not any("/" in entry.key and promises_image(entry.key) for entry in store.list()):
            open_source(uri, options=options).list()
    except (SourceNotFound, ObjectNotFound, PermissionRefused) as error:
        raise ConfigError(f"data.source: {str(error).removesuffix(_HINT)}") from None
    finally:
        if isinstance(store, Close):
            store.close()


def _edition(key: str, uri: str, settings: DataSettings) -> tuple[str, str]:
    """What tells one output of ``dataprep shard`` from another, and that there is one."""
    try:
        with open_dataset(expanded(uri), settings.split, options=settings.store) as dataset:
            return dataset.manifest.fingerprint, dataset.manifest.created
    except ManifestMissing as error:
        raise ConfigError(f"data.{key}: {error}") from None
