"""Existing data: the images or shards that a config names."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from pathlib import Path

from dataprep.errors import (
    ConfigError,
    DataprepError,
    ManifestMissing,
    ObjectNotFound,
    PermissionRefused,
    SourceNotFound,
)
from dataprep.output import keys
from dataprep.output.manifest import Manifest
from dataprep.reading.dataset import open_dataset
from dataprep.sources import open_source
from dataprep.sources.file_names import promises_image
from dataprep.stores import StoreOptions, open_store
from dataprep.stores.protocol import Close
from iobench.data.settings import DataSettings
from iobench.results.trial import Location

_SHARD_HINT = " (check --source)"
"""A hint in messages about sources: the option belongs to ``dataprep shard``, not to iobench."""


def expand_home(uri: str) -> str:
    """Expand ``~`` in a path; addresses do not change."""
    return uri if "://" in uri else str(Path(uri).expanduser())


def local_folders(settings: DataSettings) -> dict[str, Path]:
    """Return the local folders that data are read from, by the key of the config.

    ``data`` is ``data.folder``, where data are made; ``shards``, ``mount`` and ``source`` exist
    already. Keys that are not set, or that name a store, are left out.
    """
    uris = {
        "data": settings.folder,
        "shards": settings.shards,
        "mount": settings.mount,
        "source": settings.source,
    }
    folders = {}
    for key, uri in uris.items():
        path = (uri or "").removeprefix("file://")
        if path and "://" not in path:
            folders[key] = Path(expand_home(path))
    return folders


def folder_key(name: str, folders: Container[str]) -> str:
    """Return the key of the local folder that holds data.

    Args:
        name: the data, as trials name them (``shards@disk``).
        folders: the keys of ``local_folders``.
    """
    keys_of_name = {"photos@disk": ("source",), "shards@disk": ("mount", "shards")}
    for key in keys_of_name.get(name, ()):
        if key in folders:
            return key
    return "data"


def check_existing_data(settings: DataSettings) -> None:
    """Check that ``shards`` and ``mount`` are one data set, and that ``source`` has class folders.

    Raises:
        ConfigError: they are not.
        StoreError: their store does not answer.
    """
    if settings.shards is not None:
        edition = _edition("shards", settings.shards, settings)
        if settings.mount is not None and _edition("mount", settings.mount, settings) != edition:
            raise ConfigError(
                f"data.mount: {settings.mount} holds another output than {settings.shards}"
            )
    if settings.source is not None:
        _check_source(settings.source, settings.store)


def _check_source(source: str, options: StoreOptions) -> None:
    """Check that a class folder has a file that is named as an image.

    If no such file is found, list all files as sharding does, which explains the problem.
    """
    uri = expand_home(source)
    if "://" not in uri and not Path(uri).is_dir():
        raise ConfigError(f"data.source: no folder {uri!r}")
    store = open_store(uri, options)
    try:
        has_image = any("/" in entry.key and promises_image(entry.key) for entry in store.list())
        if not has_image:
            open_source(uri, options=options).list()
    except (SourceNotFound, ObjectNotFound, PermissionRefused) as error:
        raise ConfigError(f"data.source: {str(error).removesuffix(_SHARD_HINT)}") from None
    finally:
        if isinstance(store, Close):
            store.close()


def _edition(key: str, uri: str, settings: DataSettings) -> tuple[str, str]:
    """Return fingerprint and time of an output of ``dataprep shard``.

    Raises:
        ConfigError: there is no complete output.
    """
    try:
        with open_dataset(expand_home(uri), settings.split, options=settings.store) as dataset:
            return dataset.manifest.fingerprint, dataset.manifest.created
    except ManifestMissing as error:
        raise ConfigError(f"data.{key}: {error}") from None


@dataclass(frozen=True, slots=True)
class ShardingRun:
    """How shards were made; a result keeps it under the names of these fields.

    Attributes:
        samples: number of samples in the shards.
        reencoded: number of samples whose image was encoded anew.
        seconds: duration of the run.
        workers: number of worker processes; None if unknown.
    """

    samples: int
    reencoded: int
    seconds: float
    workers: int | None


def sharding_run(location: Location) -> ShardingRun | None:
    """Return how shards were made; None if unknown.

    It is known for encoded shards on a disk whose manifest has the duration of the run.
    """
    manifest = None if location.decoded else _manifest(location)
    if manifest is None or not manifest.run.get("seconds"):
        return None
    return ShardingRun(
        samples=manifest.samples.written,
        reencoded=manifest.samples.reencoded,
        seconds=float(manifest.run["seconds"]),
        workers=manifest.run.get("workers"),
    )


def _manifest(location: Location) -> Manifest | None:
    """Return the manifest of shards on a disk; None for other data, or if it cannot be read."""
    if location.holds != "shards" or location.is_remote:
        return None
    file = Path(location.uri) / keys.manifest(location.split)
    try:
        return Manifest.from_json(file.read_bytes(), str(file))
    except (OSError, DataprepError):
        return None


def changed_shards(fingerprints: dict[str, str], locations: Mapping[str, Location]) -> str:
    """Return a message about the first shards that are not the shards that earlier trials read.

    Only shards on a disk are compared. Equal images that are sharded again with equal settings have
    equal fingerprints.

    Args:
        fingerprints: the fingerprint of the shards by the name of the data. New names are added.
        locations: the locations of the data, by the name of the data.

    Returns:
        The message; empty if no shards have changed.
    """
    for name, location in locations.items():
        manifest = _manifest(location)
        if manifest is None:
            continue
        if fingerprints.setdefault(name, manifest.fingerprint) != manifest.fingerprint:
            return (
                f"{name} ({location.uri}) were made anew since this run began and are other "
                "shards: choose another --output"
            )
    return ""
