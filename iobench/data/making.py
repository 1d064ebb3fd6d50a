"""Data by name: taken where it lies, drawn, sharded, unpacked, copied to a store."""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

from pydantic import ByteSize

from dataprep.config import ShardConfig
from dataprep.dataset import open_dataset
from dataprep.errors import ConfigError, StoreError, StoreFull
from dataprep.image.policy import ImagePolicy
from dataprep.job import shard
from dataprep.sample import draw_tree
from dataprep.sources import Listing
from dataprep.sources.imagefolder import ImageFolder
from dataprep.stores import StoreOptions, open_store
from iobench.data.given import expanded
from iobench.data.pixel_shards import write_pixel_shards
from iobench.data.settings import DataSettings, has_side, sized, split_name
from iobench.errors import Unavailable
from iobench.trial import Place

_COMPLETE = "complete"


class _NotMade(Exception):
    """What is looked for would have to be made."""


class Maker:
    """Makes what is asked for, once; what an earlier run made is used again.

    ``bucket`` tells where copies on a store go, ``note`` is told what is being done.
    """

    def __init__(
        self,
        settings: DataSettings,
        bucket: Callable[[], Place],
        note: Callable[[str], None],
        signed_in: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._settings = settings
        self._bucket = bucket
        self._note = note
        self._signed_in = signed_in
        self._folder = Path(settings.folder).expanduser()
        self._made: dict[str, Place] = {}
        self._listed: str | None = None
        self._only_looks = False

    def place(self, name: str) -> Place:
        """The place called ``name``, such as ``shards-16MB@s3``.

        Raises:
            DataprepError: it cannot be made; says why.
        """
        if name not in self._made and has_side(name):
            self._made[name] = self._of_side(name)
        if name not in self._made:
            form, size_bytes, remote = split_name(name)
            if remote:
                self._made[name] = self._remote(form, size_bytes)
            else:
                self._made[name] = self._local(form, size_bytes)
        return self._made[name]

    def found(self, name: str) -> Place | None:
        """Data on a disk that are there already; None where ``place`` would make them.

        Raises:
            DataprepError: they cannot be looked at.
        """
        self._only_looks = True
        try:
            return self.place(name)
        except _NotMade:
            return None
        finally:
            self._only_looks = False

    def take(self, listing: Listing) -> None:
        """What ``source`` holds, by whoever has listed it, so that it is not listed again."""
        self._listed = listing.digest()

    def _of_side(self, name: str) -> Place:
        """The same images in another size: shards of other settings."""
        plain, settings = sized(name, self._settings)
        other = Maker(settings, self._bucket, self._note, self._signed_in)
        other._listed, other._only_looks = self._listed, self._only_looks
        return other.place(plain)

    def _local(self, form: str, size_bytes: int | None) -> Place:
        """Data on a disk by their form, as ``split_name`` has it."""
        match form:
            case "photos":
                return self._local_photos()
            case "files":
                return Place(str(self._files()), "files")
            case "pixels":
                return self._pixels()
            case "originals":
                return self._packed(size_bytes, resized=False)
            case _:
                return self._shards(size_bytes)

    def _local_photos(self) -> Place:
        place = Place(self._photos(), "files", self._settings.store)
        if place.is_remote:
            raise Unavailable(
                f"{place.uri} is not on a disk: copy it here, or read photos@s3 or files@disk"
            )
        return place

    def _photos(self) -> str:
        settings = self._settings
        if settings.source is not None:
            return expanded(settings.source)
        if settings.shards is not None:
            raise ConfigError(
                "data.shards says what is read: photos and originals need data.source too"
            )
        return str(self._once(settings.drawn, f"drawing {settings.images:,} images", self._draw))

    def _draw(self, dest: Path) -> None:
        settings = self._settings
        draw_tree(dest, images=settings.images, classes=settings.classes, seed=settings.seed)

    def _shards(self, size_bytes: int | None) -> Place:
        settings = self._settings
        if settings.shards is not None and size_bytes is None:
            place = self._given()
            if settings.mount is not None:
                return Place(expanded(settings.mount), "shards", split=settings.split)
            return self._downloaded(place) if place.is_remote else place
        if settings.shards is not None:
            raise ConfigError(
                "data.shards is read as it is: other shard sizes are made from data.source"
            )
        return self._packed(size_bytes, resized=True)

    def _packed(self, size_bytes: int | None, *, resized: bool) -> Place:
        """Shards of the source's images: resized, or as they are."""
        settings = self._settings
        wanted = size_bytes or int(settings.shard_size)
        content = self._content()
        if not resized:
            content.pop("size")
        form, said = ("shards", "") if resized else ("originals", ", not resized")
        note = f"sharding at {wanted / 1e6:g} MB{said}"
        photos = self._photos()  # before the note: what is drawn is drawn first
        image = ImagePolicy(size=settings.size if resized else None, quality=settings.quality)
        shard = partial(self._shard, photos, wanted, image)
        made = self._once(f"{form}-{wanted}-{_digest(content)}", note, shard)
        return Place(str(made), "shards", split=settings.split)

    def _given(self) -> Place:
        settings = self._settings
        assert settings.shards is not None  # noqa: S101  asked before
        return Place(expanded(settings.shards), "shards", settings.store, settings.split)

    def _shard(self, photos: str, size_bytes: int, image: ImagePolicy, dest: Path) -> None:
        settings = self._settings
        config = ShardConfig(
            source=photos,
            output=str(dest),
            split=settings.split,
            format=("tfrecord", "recordio"),
            image=image,
            shard_size=ByteSize(size_bytes),
            seed=settings.seed,
            source_store=settings.store,
        )
        shard(config)

    def _files(self) -> Path:
        note = "writing the images of the shards as files"
        source = self._shards(None)
        key = f"files-{_edition(source)}"
        return self._once(key, note, partial(_unpack, source))

    def _pixels(self) -> Place:
        source = self._shards(None)
        made = self._once(
            f"pixels-{_edition(source)}",
            "writing the images of the shards as pixels",
            partial(write_pixel_shards, source),
        )
        return Place(str(made), "shards", split=source.split, decoded=True)

    def _downloaded(self, place: Place) -> Place:
        key = f"copy-{_edition(place)}"
        copy = partial(_copy, place, StoreOptions())
        dest = self._once(key, f"copying {place.uri} here", lambda dest: copy(str(dest)))
        return Place(str(dest), "shards", split=place.split)

    def _remote(self, form: str, size_bytes: int | None) -> Place:
        settings = self._settings
        if form == "shards" and size_bytes is None and settings.shards is not None:
            place = self._given()
            if place.is_remote:
                return place
        if form == "photos" and settings.source is not None and "://" in settings.source:
            return Place(settings.source, "files", settings.store)
        name = f"{form}-{size_bytes // 1_000_000}MB@disk" if size_bytes else f"{form}@disk"
        local = self.place(name)
        edition = _edition(local) if local.holds == "shards" else self._content()
        key = _digest({"uri": str(Path(local.uri).absolute()), "edition": edition})
        bucket = self._bucket()
        target = f"{bucket.uri.rstrip('/')}/iobench-data/{form}-{key}"
        self._note(f"copying {name.partition('@')[0]} to the object store")
        with self._signed_in():
            _copy(local, bucket.store, target)
        return replace(local, uri=target, store=bucket.store)

    def _once(self, key: str, note: str, make: Callable[[Path], None]) -> Path:
        """``folder/key``, made anew unless an earlier run made it to its end."""
        dest = self._folder / key
        done = self._folder / f"{key}.{_COMPLETE}"
        if self._only_looks:
            if not (done.exists() and dest.exists()):
                raise _NotMade(key)
            return dest
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"data.folder {self._folder}: {error.strerror}") from None
        with (self._folder / f"{key}.lock").open("a") as lock:
            # Another run may be making the same.
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (done.exists() and dest.exists()):
                self._note(note)
                done.unlink(missing_ok=True)
                shutil.rmtree(dest, ignore_errors=True)
                make(dest)
                done.touch()
        return dest

    def _content(self) -> dict[str, object]:
        """What determines the bytes of shards that are made here."""
        names = {"images", "classes", "seed", "size", "quality", "split"}
        content = self._settings.model_dump(mode="json", include=names)
        if self._settings.source is None:
            return content
        if self._listed is None:
            source = ImageFolder(self._photos(), self._settings.store)
            self._listed = source.list().digest()
        return {**content, "source": self._listed}


def _unpack(source: Place, dest: Path) -> None:
    dataset = open_dataset(source.uri, source.split, options=source.store)
    for number, sample in enumerate(dataset):
        # By number, in the order of the labels: a class may have any name.
        folder = dest / f"{sample.label:06d}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number:07d}.jpg").write_bytes(sample.image)


def _copy(source: Place, target_store: StoreOptions, target: str) -> None:
    """Every object that is not there in its size already.

    Raises:
        StoreFull: they have no room there; nothing is copied.
    """
    origin, dest = open_store(source.uri, source.store), open_store(target, target_store)
    dest.prepare()
    there = {info.key: info.bytes for info in dest.list()}
    missing = [info for info in origin.list() if there.get(info.key) != info.bytes]
    needed, free = sum(info.bytes for info in missing), dest.free_bytes()
    if free is not None and needed > free:
        raise StoreFull(
            f"{source.uri} has {needed / 1e6:,.0f} MB to copy, and data.folder room for "
            f"{free / 1e6:,.0f} MB: set another data.folder, or read data called ...@s3"
        )
    for info in missing:
        dest.put(info.key, origin.get(info.key))


def _edition(place: Place) -> str:
    """What tells one output of ``dataprep shard`` from a later one at the same place."""
    manifest = open_dataset(place.uri, place.split, options=place.store).manifest
    made = {"fingerprint": manifest.fingerprint, "created": manifest.created}
    return _digest({"uri": place.uri, "split": place.split, **made})


def _digest(content: dict[str, object]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]
