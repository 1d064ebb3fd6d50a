"""Data by name: taken where it lies, drawn, sharded, unpacked, copied to a store."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pydantic import ByteSize

from dataprep.config import ShardConfig
from dataprep.dataset import open_dataset
from dataprep.errors import ConfigError
from dataprep.image.policy import ImagePolicy
from dataprep.job import shard
from dataprep.sample import draw_tree
from dataprep.stores import StoreOptions, open_store
from iobench.data.settings import DataSettings, split_name
from iobench.trial import Place

_COMPLETE = "complete"


class Maker:
    """Makes what is asked for, once; what an earlier run made is used again.

    ``bucket`` tells where copies on a store go, ``note`` is told what is being done.
    """

    def __init__(
        self, settings: DataSettings, bucket: Callable[[], Place], note: Callable[[str], None]
    ) -> None:
        self._settings = settings
        self._bucket = bucket
        self._note = note
        self._folder = Path(settings.folder).expanduser()
        self._made: dict[str, Place] = {}

    def place(self, name: str) -> Place:
        """The place called ``name``, such as ``shards-16MB@s3``.

        Raises:
            DataprepError: it cannot be made; says why.
        """
        if name not in self._made:
            form, size_bytes, remote = split_name(name)
            if remote:
                self._made[name] = self._remote(form, size_bytes)
            elif form == "photos":
                self._made[name] = Place(self._photos(), "files", self._settings.store)
            elif form == "files":
                self._made[name] = Place(str(self._files()), "files")
            else:
                self._made[name] = self._shards(size_bytes)
        return self._made[name]

    def _photos(self) -> str:
        settings = self._settings
        if settings.source is not None:
            return (
                str(Path(settings.source).expanduser())
                if "://" not in settings.source
                else (settings.source)
            )
        if settings.shards is not None:
            raise ConfigError("data.shards says what is read: photos@disk needs data.source too")
        key = f"drawn-{settings.images}-{settings.classes}-{settings.seed}"
        return str(self._once(key, f"drawing {settings.images:,} images", self._draw))

    def _draw(self, dest: Path) -> None:
        settings = self._settings
        draw_tree(dest, images=settings.images, classes=settings.classes, seed=settings.seed)

    def _shards(self, size_bytes: int | None) -> Place:
        settings = self._settings
        if settings.shards is not None and size_bytes is None:
            place = Place(settings.shards, "shards", settings.store, settings.split)
            return self._downloaded(place) if place.is_remote else place
        if settings.shards is not None:
            raise ConfigError(
                "data.shards is read as it is: other shard sizes are made from data.source"
            )
        wanted = size_bytes or int(settings.shard_size)
        key = f"shards-{wanted}-{_digest(self._content())}"
        note = f"sharding at {wanted / 1e6:g} MB"
        photos = self._photos()  # before the note: what is drawn is drawn first
        made = self._once(key, note, partial(self._shard, photos, wanted))
        return Place(str(made), "shards", split=settings.split)

    def _shard(self, photos: str, size_bytes: int, dest: Path) -> None:
        settings = self._settings
        config = ShardConfig(
            source=photos,
            output=str(dest),
            split=settings.split,
            format=("tfrecord", "recordio"),
            image=ImagePolicy(size=settings.size, quality=settings.quality),
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

    def _downloaded(self, place: Place) -> Place:
        key = f"copy-{_edition(place)}"
        copy = partial(_copy, place, StoreOptions())
        dest = self._once(key, f"copying {place.uri} here", lambda dest: copy(str(dest)))
        return Place(str(dest), "shards", split=place.split)

    def _remote(self, form: str, size_bytes: int | None) -> Place:
        settings = self._settings
        if form == "shards" and size_bytes is None and settings.shards is not None:
            place = Place(settings.shards, "shards", settings.store, settings.split)
            if place.is_remote:
                return place
        name = f"{form}-{size_bytes // 1_000_000}MB@disk" if size_bytes else f"{form}@disk"
        local = self.place(name)
        key = _digest({"uri": local.uri, "content": self._content()})
        bucket = self._bucket()
        target = f"{bucket.uri.rstrip('/')}/iobench-data/{form}-{key}"
        self._note(f"copying {name.partition('@')[0]} to the object store")
        _copy(local, bucket.store, target)
        return Place(target, local.holds, bucket.store, local.split)

    def _once(self, key: str, note: str, make: Callable[[Path], None]) -> Path:
        """``folder/key``, made anew unless an earlier run made it to its end."""
        dest = self._folder / key
        done = self._folder / f"{key}.{_COMPLETE}"
        if not (done.exists() and dest.exists()):
            self._note(note)
            done.unlink(missing_ok=True)
            shutil.rmtree(dest, ignore_errors=True)
            dest.parent.mkdir(parents=True, exist_ok=True)
            make(dest)
            done.touch()
        return dest

    def _content(self) -> dict[str, object]:
        """What determines the bytes of shards that are made here."""
        names = {"source", "images", "classes", "seed", "size", "quality", "split"}
        return self._settings.model_dump(mode="json", include=names)


def _unpack(source: Place, dest: Path) -> None:
    dataset = open_dataset(source.uri, source.split, options=source.store)
    for number, sample in enumerate(dataset):
        # By number, in the order of the labels: a class may have any name.
        folder = dest / f"{sample.label:06d}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number:07d}.jpg").write_bytes(sample.image)


def _copy(source: Place, target_store: StoreOptions, target: str) -> None:
    """Every object that is not there in its size already."""
    origin, dest = open_store(source.uri, source.store), open_store(target, target_store)
    dest.prepare()
    there = {info.key: info.bytes for info in dest.list()}
    for info in origin.list():
        if there.get(info.key) != info.bytes:
            dest.put(info.key, origin.get(info.key))


def _edition(place: Place) -> str:
    """What tells one output of ``dataprep shard`` from a later one at the same place."""
    manifest = open_dataset(place.uri, place.split, options=place.store).manifest
    made = {"fingerprint": manifest.fingerprint, "created": manifest.created}
    return _digest({"uri": place.uri, "split": place.split, **made})


def _digest(content: dict[str, object]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]
