"""Existing data: the images or shards that a config names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dataprep import keys
from dataprep.dataset import open_dataset
from dataprep.errors import (
    ConfigError,
    DataprepError,
    ManifestMissing,
    ObjectNotFound,
    PermissionRefused,
    SourceNotFound,
)
from dataprep.manifest import Manifest
from dataprep.sources import open_source
from dataprep.sources.file_names import promises_image
from dataprep.stores import StoreOptions, open_store
from dataprep.stores.protocol import Close
from iobench.data.settings import DataSettings
from iobench.trial import Place

_HINT = " (check --source)"  # an option of dataprep shard's


def expanded(uri: str) -> str:
    """Expand ``~`` in a path; addresses do not change."""
    return uri if "://" in uri else str(Path(uri).expanduser())


def local_folders(settings: DataSettings) -> dict[str, Path]:
    """The local folders that data are read from, by key.

    ``data`` is ``data.folder``, where data are made; ``shards``, ``mount`` and ``source`` exist
    already.
    """
    given = {name: getattr(settings, name) for name in ("shards", "mount", "source")}
    named: dict[str, str | None] = {"data": settings.folder, **given}
    paths = {key: uri.removeprefix("file://") for key, uri in named.items() if uri is not None}
    return {key: Path(expanded(path)) for key, path in paths.items() if "://" not in path}


def read_from(name: str, described: Mapping[str, Any]) -> str:
    """The key in ``local_folders`` of the folder that holds the data called ``name``."""
    given = {"photos@disk": ("source",), "shards@disk": ("mount", "shards")}.get(name, ())
    return next((label for label in given if label in described), "data")


def require_given(settings: DataSettings) -> None:
    """Check that ``shards`` and their ``mount`` are one data set, and ``source`` has class folders.

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
    """Check that a class folder has a file that is named as an image.

    If no such file is found, list all files as sharding does, which explains the problem.
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
    """Fingerprint and time of an output of ``dataprep shard``, which must be there."""
    try:
        with open_dataset(expanded(uri), settings.split, options=settings.store) as dataset:
            return dataset.manifest.fingerprint, dataset.manifest.created
    except ManifestMissing as error:
        raise ConfigError(f"data.{key}: {error}") from None


def making(place: Place) -> dict[str, Any] | None:
    """How shards were made: ``samples``, ``reencoded``, ``seconds``, ``workers``; None if unknown.

    Known for shards on a disk that are not decoded, if their manifest has it.
    """
    manifest = None if place.decoded else _manifest(place)
    if manifest is None or not manifest.run.get("seconds"):
        return None
    return {
        "samples": manifest.samples.written,
        "reencoded": manifest.samples.reencoded,
        "seconds": float(manifest.run["seconds"]),
        "workers": manifest.run.get("workers"),
    }


def _manifest(place: Place) -> Manifest | None:
    if place.holds != "shards" or place.is_remote:
        return None
    file = Path(place.uri) / keys.manifest(place.split)
    try:
        return Manifest.from_json(file.read_bytes(), str(file))
    except (OSError, DataprepError):
        return None


def made_anew(fingerprints: dict[str, str], places: Mapping[str, Place]) -> str:
    """The first of ``places`` whose shards are not those that earlier trials read, in words.

    Empty if there is none. ``fingerprints`` has the fingerprint of the shards of each name; new
    names are added. Only shards on a disk are compared. Equal images, sharded again with equal
    settings, have equal fingerprints.
    """
    for name, place in places.items():
        manifest = _manifest(place)
        if manifest is None:
            continue
        if fingerprints.setdefault(name, manifest.fingerprint) != manifest.fingerprint:
            return (
                f"{name} ({place.uri}) were made anew since this run began and are other shards: "
                "choose another --output"
            )
    return ""
