"""Make the data that a name such as ``shards-16MB@s3`` asks for, or take what is there."""

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

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ByteSize

from dataprep import keys
from dataprep.config import ShardConfig
from dataprep.dataset import Dataset, Shard, open_dataset
from dataprep.errors import ConfigError, StoreError, StoreFull
from dataprep.formats import get_format
from dataprep.image.policy import ImagePolicy
from dataprep.image.rgb import decode_whole
from dataprep.job import shard
from dataprep.manifest import FormatEntry, ShardEntry
from dataprep.ordered import in_order
from dataprep.processors import usable_processors
from dataprep.record_file import RecordFile
from dataprep.sample import draw_tree
from dataprep.samples import in_numpy, read_table, stored_table
from dataprep.sources.imagefolder import ImageFolder
from dataprep.stores import open_store
from iobench.data.copying import AT_ONCE, Part, copy
from iobench.data.given import expanded
from iobench.data.settings import DataSettings, side_of, split_name
from iobench.errors import Unavailable
from iobench.numbers import size
from iobench.pixels import CHANNELS, packed
from iobench.stored import open_shards
from iobench.trial import ANY_FORMAT, Place

_BLOCK_BYTES = 4096  # a file takes whole ones
_FEATURES_BYTES = 1000  # of a sample beside its pixels, at most


class Maker:
    """Makes data by their names, once; what an earlier run made is used again.

    Args:
        settings: which images, and where.
        bucket: entered while something is copied to the store; gives the place for copies.
        note: receives a line about each piece of work.
        formats_read: the record formats that trials read of the data of a name; None for all. Only
            shards of these formats are copied.
    """

    def __init__(
        self,
        settings: DataSettings,
        bucket: Callable[[], AbstractContextManager[Place]],
        note: Callable[[str], None],
        formats_read: Callable[[str], Collection[str] | None] = lambda name: None,
    ) -> None:
        self._settings, self._bucket, self._note = settings, bucket, note
        self._formats_read = formats_read
        self._folder = Path(settings.folder).expanduser()
        self._made: dict[str, Place] = {}
        self._listed: str | None = None

    def place(self, name: str) -> Place:
        """The place called ``name``, such as ``shards-16MB@s3``.

        Raises:
            DataprepError: it cannot be made; says why.
        """
        if name not in self._made:
            *_, remote = split_name(name)
            self._made[name] = self._remote(name) if remote else self._local(name)
        return self._made[name]

    def _local(self, name: str) -> Place:
        """Data on a disk."""
        form, size_bytes, _ = split_name(name)
        match form:
            case "photos":
                place = Place(self._photos(), "files", self._settings.store)
                if place.is_remote:
                    raise Unavailable(
                        f"{place.uri} is not on a disk: copy it here, or read photos@s3 or "
                        "files@disk"
                    )
                return place
            case "files":
                return Place(self._unpacked("files", ANY_FORMAT, _unpack), "files")
            case "pixels":
                uri = self._unpacked("pixels", "tfrecord", write_pixel_shards)
                return Place(uri, "shards", split=self._settings.split, decoded=True)
            case "originals":
                return self._sharded(size_bytes, None)
            case _:
                return self._shards(size_bytes, side_of(name), self._formats_read(name))

    def _photos(self) -> str:
        settings = self._settings
        if settings.source is not None:
            return expanded(settings.source)
        if settings.shards is not None:
            raise ConfigError(
                "data.shards says what is read: photos and originals need data.source too"
            )
        draw = partial(
            draw_tree, images=settings.images, classes=settings.classes, seed=settings.seed
        )
        return str(self._once(settings.drawn, f"drawing {settings.images:,} images", draw))

    def _unpacked(self, form: str, reads: str, write: Callable[[Place, Path], None]) -> str:
        """Write the images of the shards in another form; returns the folder.

        ``write`` reads shards of the format ``reads``.
        """
        source = self._shards(None, None, {reads})
        note = f"writing the images of the shards as {form}"
        return str(self._once(f"{form}-{_edition(source)}", note, partial(write, source)))

    def _shards(
        self, size_bytes: int | None, side: int | None, formats: Collection[str] | None
    ) -> Place:
        """Shards of a size, with images of a size; None for those of the settings.

        Given shards on a store are copied here in these ``formats`` alone; None for all.
        """
        settings = self._settings
        if settings.shards is None:
            return self._sharded(size_bytes, side or settings.size)
        if size_bytes or side:
            what = "other shard sizes" if size_bytes else "images of other sizes"
            raise ConfigError(f"data.shards is read as it is: {what} are made from data.source")
        if settings.mount is not None:
            return Place(expanded(settings.mount), "shards", split=settings.split)
        place = Place(expanded(settings.shards), "shards", settings.store, settings.split)
        return self._copied_here(place, Part(formats)) if place.is_remote else place

    def _sharded(self, size_bytes: int | None, side: int | None) -> Place:
        """Shards of the source's images, resized to a short side; None for the original images."""
        settings = self._settings
        wanted = size_bytes or int(settings.shard_size)
        content = self._content()
        content.pop("size")
        form, said = "originals", ", not resized"
        if side is not None:
            content["size"] = side
            form, said = "shards", ""
        photos = self._photos()  # before the note, since this may draw them

        def make(dest: Path) -> None:
            config = ShardConfig(
                source=photos,
                output=str(dest),
                split=settings.split,
                format=("tfrecord", "recordio"),
                image=ImagePolicy(size=side, quality=settings.quality),
                shard_size=ByteSize(wanted),
                seed=settings.seed,
                source_store=settings.store,
            )
            shard(config)

        note = f"sharding at {size(wanted)}{said}"
        made = self._once(f"{form}-{wanted}-{_digest(content)}", note, make)
        return Place(str(made), "shards", split=settings.split)

    def _remote(self, name: str) -> Place:
        """Data on a store: the given ones, else a copy of those on the disk."""
        settings, form = self._settings, name.removesuffix("@s3")
        shards, source = settings.shards or "", settings.source or ""
        if form == "shards" and "://" in shards:
            return Place(shards, "shards", settings.store, settings.split)
        if form == "photos" and "://" in source:
            return Place(source, "files", settings.store)
        local = self.place(f"{form}@disk")
        part = Part(self._formats_read(name))
        edition = _edition(local) if local.holds == "shards" else self._content()
        key = _digest({"uri": str(Path(local.uri).absolute()), "edition": edition})
        with self._bucket() as bucket:
            target = f"{bucket.uri.rstrip('/')}/iobench-data/{form.partition('-')[0]}-{key}"
            self._note(f"copying {form} to the object store")
            remote = replace(local, uri=target, store=bucket.store)
            require_room = partial(_require_room, remote, form, "set another data.bucket")
            copy(local, remote, part, require_room=require_room)
        return remote

    def _copied_here(self, place: Place, part: Part) -> Place:
        """A copy of shards on a store, in the formats of ``part``.

        A later run that reads another format adds its shards to the same folder.
        """
        key = f"copy-{_edition(place)}"
        dest = self._folder / key
        with open_dataset(place.uri, place.split, options=place.store) as dataset:
            formats = part.of(dataset).formats
        wanted = ["complete"]
        if formats is not None:
            wanted = [f"{name}.complete" for name in sorted(formats)] or ["tables.complete"]
        with self._locked(key):
            if not dest.exists():
                for stale in self._folder.glob(f"{key}.*complete"):
                    stale.unlink()
            there = {path.name.removeprefix(f"{key}.") for path in self._folder.glob(f"{key}.*")}
            if "complete" not in there and not there.issuperset(wanted):
                self._note(f"copying {place.uri} here")
                local = Place(str(dest), "shards", split=place.split)
                copy(place, local, part, require_room=partial(_require_room_here, dest, place.uri))
                for name in wanted:
                    (self._folder / f"{key}.{name}").touch()
        return Place(str(dest), "shards", split=place.split)

    def _once(self, key: str, note: str, make: Callable[[Path], object]) -> Path:
        """Make ``folder/key``, unless an earlier run has made it completely; returns its path."""
        dest, done = self._folder / key, self._folder / f"{key}.complete"
        with self._locked(key):
            if not (done.exists() and dest.exists()):
                self._note(note)
                done.unlink(missing_ok=True)
                shutil.rmtree(dest, ignore_errors=True)
                make(dest)
                done.touch()
        return dest

    @contextmanager
    def _locked(self, key: str) -> Iterator[None]:
        """Keep other runs, which may make the same data, from it meanwhile."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"data.folder {self._folder}: {error.strerror}") from None
        with (self._folder / f"{key}.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _content(self) -> dict[str, object]:
        """The settings that determine the bytes of shards that are made here."""
        names = {"images", "classes", "seed", "size", "quality", "split"}
        content = self._settings.model_dump(mode="json", include=names)
        if self._settings.source is None:
            return content
        if self._listed is None:
            listing = ImageFolder(self._photos(), self._settings.store).list()
            self._listed = listing.digest()
        return {**content, "source": self._listed}


def _unpack(source: Place, dest: Path) -> None:
    """Write each image of a data set on a disk as a file, several at a time.

    Raises:
        StoreFull: there is too little room; nothing is written.
    """
    with open_dataset(source.uri, source.split, options=source.store) as dataset:
        lengths = dataset.places.lengths
        _require_room_here(dest, "files", int(np.sum(-(-lengths // _BLOCK_BYTES) * _BLOCK_BYTES)))

        def write(number: int) -> None:
            sample = dataset[number]  # one record is read, not its shard
            # Named by the label's number, since a class may have any name.
            folder = f"{sample.label:06d}" if sample.label >= 0 else "unlabelled"
            path = dest / folder / f"{number:07d}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(sample.image)

        for _ in in_order(write, range(len(dataset)), AT_ONCE):
            pass


def _require_room(target: Place, what: str, remedy: str, needed_bytes: int) -> None:
    """Refuse to write more than there is room for, where the target knows how much that is.

    Raises:
        StoreFull: says what is missing, where, and what to do.
    """
    free_bytes = open_store(target.uri, target.store).free_bytes()
    if free_bytes is not None and needed_bytes > free_bytes:
        raise StoreFull(
            f"{what}: about {size(needed_bytes)} would be written to {target.uri}, where "
            f"{size(free_bytes)} are free: {remedy}"
        )


def _require_room_here(dest: Path, what: str, needed_bytes: int) -> None:
    remedy = "set another data.folder on a larger disk, or free some space"
    _require_room(Place(str(dest), "empty"), what, remedy, needed_bytes)


def _edition(place: Place) -> str:
    """A digest that differs between two outputs of ``dataprep shard`` at one place."""
    manifest = open_dataset(place.uri, place.split, options=place.store).manifest
    made = {"fingerprint": manifest.fingerprint, "created": manifest.created}
    return _digest({"uri": place.uri, "split": place.split, **made})


def _digest(content: dict[str, object]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]


def write_pixel_shards(source: Place, dest: Path) -> None:
    """Write the TFRecord shards at ``source``, with pixels for JPEGs, as a data set at ``dest``.

    There are as many shards, with the same samples in the same order, so that reading them differs
    only in decoding. They are for measuring: of dataprep's tools only the record readers read them.
    Several are written at a time, an image after the other.

    Raises:
        StoreFull: there is too little room; nothing is written.
        Unavailable: the data set has no TFRecord shards.
        ImageError: an image of it cannot be decoded.
        DatasetError: its table of samples is damaged.
    """
    with open_shards(source, "tfrecord") as dataset:
        rows = stored_table(dataset.store, dataset.manifest)
        sides = rows.columns(["width", "height"], written=True)
        widths, heights = (in_numpy(column).astype(np.int64) for column in sides.columns)
        pixels = int(np.sum(widths * heights))
        needed_bytes = pixels * CHANNELS + len(dataset) * _FEATURES_BYTES
        _require_room_here(dest, "pixels", needed_bytes)
        shards = dataset.shards()
        for folder in {(dest / shard.key).parent for shard in shards}:
            folder.mkdir(parents=True, exist_ok=True)
        threads = min(AT_ONCE, usable_processors())
        decode = partial(_decode_records, dataset, dest)
        written = list(in_order(decode, shards, threads))
        (dest / keys.LABELS).write_bytes(dataset.store.get(keys.LABELS))
        table = read_table(rows.content)
        places = [place for _, shard_places in written for place in shard_places]
        pq.write_table(_placed(table, places), dest / keys.samples(source.split))
        entry = FormatEntry(
            label_offset=dataset.manifest.formats["tfrecord"].label_offset,
            records=len(places),
            bytes=sum(shard.bytes for shard, _ in written),
            shards=tuple(shard for shard, _ in written),
        )
        manifest = replace(dataset.manifest, formats={"tfrecord": entry}, table=None)
        # Last, as in every data set: its presence means complete.
        (dest / keys.manifest(source.split)).write_bytes(manifest.to_json())


def _decode_records(
    dataset: Dataset, dest: Path, shard: Shard
) -> tuple[ShardEntry, list[tuple[int, int]]]:
    """Write a shard with pixels; returns its entry, and offset and length of each record."""
    path = dest / shard.key
    places = []
    with RecordFile(path) as file:
        writer = get_format("tfrecord").writer(file, dataset.manifest.record_options("tfrecord"))
        for number in shard.samples:
            sample = dataset[number]  # one record is read, not the shard
            image = packed(decode_whole(sample.image))
            pixels = replace(sample, image=image, encoding="RGB", colorspace="RGB", channels=3)
            places.append(writer.write(pixels))
    with path.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    return ShardEntry(shard.key, path.stat().st_size, len(shard), digest), places


def _placed(table: pa.Table, places: list[tuple[int, int]]) -> pa.Table:
    """The table of samples with the places of their new records, and none of other formats.

    It has no checksums of records, since the records are others.
    """
    ends = ("_offset", "_length", "_crc32c")
    table = table.drop_columns([name for name in table.column_names if name.endswith(ends)])
    written = np.array(table["status"].to_pylist()) == "written"
    for what, values in zip(("offset", "length"), np.array(places, np.int64).T, strict=True):
        column = np.zeros(len(table), np.int64)
        column[written] = values
        table = table.append_column(f"tfrecord_{what}", pa.array(column, mask=~written))
    return table
