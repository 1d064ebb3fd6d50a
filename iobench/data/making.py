"""Make the data that a name such as ``shards-16MB@s3`` stands for, unless they exist already."""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from pydantic import ByteSize

from dataprep.config.shard_config import ShardConfig
from dataprep.drawn import draw_tree
from dataprep.errors import ConfigError, StoreError
from dataprep.formats.protocol import encoding_of
from dataprep.image.policy import ImagePolicy
from dataprep.job.run import shard
from dataprep.reading.dataset import open_dataset
from dataprep.sources.imagefolder import ImageFolder
from dataprep.threaded_map import in_order
from iobench.data.copying import AT_ONCE, Selection, copy_data, disk_bytes, require_space
from iobench.data.existing import expand_home
from iobench.data.pixel_shards import write_pixel_shards
from iobench.data.settings import DataSettings, side_of, split_name
from iobench.errors import Unavailable
from iobench.results.numbers import size
from iobench.results.trial import ANY_FORMAT, Location

_EXTENSIONS = {"JPEG": "jpg", "PNG": "png", "WEBP": "webp"}
"""The endings of image files, by the format of the image."""

SPACE_REMEDY = "set another data.folder on a larger disk, or free some space"


class DataMaker:
    """Makes each data set once, and uses the data sets of earlier runs again.

    Args:
        settings: the images and their locations.
        bucket: returns a context manager with the location for copies on a store. It is entered
            while something is copied there.
        note: called with a line about each piece of work before it begins.
        formats_read: returns the record formats in which trials read the data of a name; None for
            all formats. Only shards of these formats are copied.
    """

    def __init__(
        self,
        settings: DataSettings,
        bucket: Callable[[], AbstractContextManager[Location]],
        note: Callable[[str], None],
        formats_read: Callable[[str], Collection[str] | None] = lambda name: None,
    ) -> None:
        self._settings, self._bucket, self._note = settings, bucket, note
        self._formats_read = formats_read
        self._folder = Path(settings.folder).expanduser()
        self._locations: dict[str, Location] = {}
        self._source_digest: str | None = None

    def location(self, name: str) -> Location:
        """Return the location of the data called ``name``, such as ``shards-16MB@s3``.

        The data are made first, unless they exist.

        Raises:
            DataprepError: the data cannot be made; the message has the reason.
        """
        if name not in self._locations:
            *_, is_remote = split_name(name)
            self._locations[name] = self._remote(name) if is_remote else self._local(name)
        return self._locations[name]

    def _local(self, name: str) -> Location:
        """Return the location of the data called ``name``, which are on a disk."""
        form, shard_bytes, _ = split_name(name)
        match form:
            case "photos":
                location = Location(self._photos(), "files", self._settings.store)
                if location.is_remote:
                    raise Unavailable(
                        f"{location.uri} is not on a disk: copy it here, or read photos@s3 or "
                        "files@disk"
                    )
                return location
            case "files":
                return Location(self._rewritten("files", ANY_FORMAT, write_image_files), "files")
            case "pixels":
                write = partial(write_pixel_shards, remedy=SPACE_REMEDY)
                uri = self._rewritten("pixels", "tfrecord", write)
                return Location(uri, "shards", split=self._settings.split, decoded=True)
            case "originals":
                return self._new_shards(shard_bytes, None)
            case _:
                return self._shards(shard_bytes, side_of(name), self._formats_read(name))

    def _photos(self) -> str:
        """Return the path or address of the source's images; draw them if there is no source."""
        settings = self._settings
        if settings.source is not None:
            return expand_home(settings.source)
        if settings.shards is not None:
            raise ConfigError(
                "data.shards names the shards to read: photos and originals also need data.source"
            )
        draw = partial(
            draw_tree, images=settings.images, classes=settings.classes, seed=settings.seed
        )
        note = f"drawing {settings.images:,} images"
        return str(self._make_once(settings.drawn_folder, note, draw))

    def _rewritten(
        self, form: str, record_format: str, write: Callable[[Location, Path], None]
    ) -> str:
        """Write the images of the shards in another form, unless this was done already.

        Returns the folder.

        Args:
            form: the form of the data, for names and messages.
            record_format: the format of the shards that ``write`` reads.
            write: writes the data, given the location of the shards and a new folder.
        """
        shards = self._shards(None, None, {record_format})
        note = f"writing the images of the shards as {form}"
        return str(self._make_once(f"{form}-{_edition(shards)}", note, partial(write, shards)))

    def _shards(
        self, shard_bytes: int | None, side: int | None, formats: Collection[str] | None
    ) -> Location:
        """Return the location of shards on a disk.

        They are the shards of the settings, or else new shards. Existing shards on a store are
        copied to the disk, unless the settings have a mount of them.

        Args:
            shard_bytes: the size of the shards in bytes; None for the size in the settings.
            side: the short side of their images in pixels; None for the one in the settings.
            formats: the record formats that are copied from a store; None for all.
        """
        settings = self._settings
        if settings.shards is None:
            return self._new_shards(shard_bytes, side or settings.size)
        if shard_bytes or side:
            change = "other shard sizes" if shard_bytes else "images of other sizes"
            raise ConfigError(f"data.shards is read as it is: {change} are made from data.source")
        if settings.mount is not None:
            return Location(expand_home(settings.mount), "shards", split=settings.split)
        location = Location(expand_home(settings.shards), "shards", settings.store, settings.split)
        return self._downloaded(location, Selection(formats)) if location.is_remote else location

    def _new_shards(self, shard_bytes: int | None, side: int | None) -> Location:
        """Return the location of shards of the source's images.

        Args:
            shard_bytes: the size of the shards in bytes; None for the size in the settings.
            side: the short side to which images are resized, in pixels; None for the original
                images.
        """
        settings = self._settings
        shard_bytes = shard_bytes or int(settings.shard_size)
        content = self._content()
        content.pop("size")
        form, suffix = "originals", ", not resized"
        if side is not None:
            content["size"] = side
            form, suffix = "shards", ""
        # This may draw the photos, so it comes before the note about sharding.
        photos = self._photos()

        def make(folder: Path) -> None:
            config = ShardConfig(
                source=photos,
                output=str(folder),
                split=settings.split,
                format=("tfrecord", "recordio"),
                image=ImagePolicy(size=side, quality=settings.quality),
                shard_size=ByteSize(shard_bytes),
                seed=settings.seed,
                source_store=settings.store,
            )
            shard(config)

        note = f"sharding at {size(shard_bytes)}{suffix}"
        folder = self._make_once(f"{form}-{shard_bytes}-{_digest(content)}", note, make)
        return Location(str(folder), "shards", split=settings.split)

    def _remote(self, name: str) -> Location:
        """Return the location of data on a store: the existing data, or a copy of local data."""
        settings, form = self._settings, name.removesuffix("@s3")
        shards, source = settings.shards or "", settings.source or ""
        if form == "shards" and "://" in shards:
            return Location(shards, "shards", settings.store, settings.split)
        if form == "photos" and "://" in source:
            return Location(source, "files", settings.store)
        local = self.location(f"{form}@disk")
        selection = Selection(self._formats_read(name))
        edition = _edition(local) if local.holds == "shards" else self._content()
        key = _digest({"uri": str(Path(local.uri).absolute()), "edition": edition})
        with self._bucket() as bucket:
            uri = f"{bucket.uri.rstrip('/')}/iobench-data/{form.partition('-')[0]}-{key}"
            self._note(f"copying {form} to the object store")
            remote = replace(local, uri=uri, store=bucket.store)
            copy_data(local, remote, selection, name=form, remedy="set another data.bucket")
        return remote

    def _downloaded(self, location: Location, selection: Selection) -> Location:
        """Return the location of a local copy of shards on a store.

        Beside the folder is a marker file for each format that is complete. A later run that reads
        another format adds its shards to the same folder.
        """
        key = f"copy-{_edition(location)}"
        folder = self._folder / key
        with open_dataset(location.uri, location.split, options=location.store) as dataset:
            formats = selection.in_dataset(dataset).formats
        needed_markers = _markers(formats)
        local = Location(str(folder), "shards", split=location.split)
        with self._locked(key):
            if not folder.exists():
                for stale_marker in self._folder.glob(f"{key}.*complete"):
                    stale_marker.unlink()
            markers = {path.name.removeprefix(f"{key}.") for path in self._folder.glob(f"{key}.*")}
            if "complete" not in markers and not markers.issuperset(needed_markers):
                self._note(f"copying {location.uri} here")
                copy_data(location, local, selection, name=location.uri, remedy=SPACE_REMEDY)
                for marker in needed_markers:
                    (self._folder / f"{key}.{marker}").touch()
        return local

    def _make_once(self, key: str, note: str, make: Callable[[Path], object]) -> Path:
        """Make the data in the folder ``key``, unless it is complete, and return its path.

        Args:
            key: the name of the folder below ``data.folder``.
            note: the line about this work.
            make: makes the data in a folder.
        """
        folder, marker = self._folder / key, self._folder / f"{key}.complete"
        with self._locked(key):
            if not (marker.exists() and folder.exists()):
                self._note(note)
                marker.unlink(missing_ok=True)
                shutil.rmtree(folder, ignore_errors=True)
                make(folder)
                marker.touch()
        return folder

    @contextmanager
    def _locked(self, key: str) -> Iterator[None]:
        """Lock a folder of data, so that two runs do not make the same data at the same time.

        The block waits until no other run has the lock. ``data.folder`` is made if needed.
        """
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"data.folder {self._folder}: {error.strerror}") from None
        with (self._folder / f"{key}.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _content(self) -> dict[str, object]:
        """Return the settings, and the digest of the source, that determine the new shards.

        The size of the shards is not among them.
        """
        names = {"images", "classes", "seed", "size", "quality", "split"}
        content = self._settings.model_dump(mode="json", include=names)
        if self._settings.source is None:
            return content
        if self._source_digest is None:
            listing = ImageFolder(self._photos(), self._settings.store).list()
            self._source_digest = listing.digest()
        return {**content, "source": self._source_digest}


def write_image_files(source: Location, folder: Path) -> None:
    """Write each image of a data set on a disk as a file, several at the same time.

    Args:
        source: the location of the data set.
        folder: where the files go, below a folder for each class.

    Raises:
        StoreFull: there is too little space; nothing is written.
    """
    with open_dataset(source.uri, source.split, options=source.store) as dataset:
        needed_bytes = disk_bytes(dataset.places.lengths.tolist())
        require_space(Location(str(folder), "empty"), "files", needed_bytes, SPACE_REMEDY)

        def write(number: int) -> None:
            sample = dataset[number]  # This reads one record, not its whole shard.
            # The folder is named by the number of the class, since a class may have any name.
            class_name = f"{sample.label:06d}" if sample.label >= 0 else "unlabelled"
            extension = _EXTENSIONS[encoding_of(sample.image)]
            path = folder / class_name / f"{number:07d}.{extension}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(sample.image)

        for _ in in_order(write, range(len(dataset)), AT_ONCE):
            pass


def _markers(formats: Collection[str] | None) -> list[str]:
    """Return the ends of the names of the marker files for a copy of shards of these formats.

    Args:
        formats: the formats; None for all formats, and empty if only the tables are copied.
    """
    if formats is None:
        return ["complete"]
    if not formats:
        return ["tables.complete"]
    return [f"{name}.complete" for name in sorted(formats)]


def _edition(location: Location) -> str:
    """Return a digest that changes when ``dataprep shard`` writes the location again."""
    manifest = open_dataset(location.uri, location.split, options=location.store).manifest
    return _digest(
        {
            "uri": location.uri,
            "split": location.split,
            "fingerprint": manifest.fingerprint,
            "created": manifest.created,
        }
    )


def _digest(content: dict[str, object]) -> str:
    """Return the first 12 hexadecimal digits of the SHA-256 of a mapping, for names of folders."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]
