"""Shards that exist as a source: outputs of this program, TFRecord and RecordIO of others.

An entry lies at the byte where its record begins, in the shard that is its container; its size
is that of the image alone. Reading it is one request for the image and some room around it, a
second one where labels or texts take more than that. TFRecord's checksums are checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain

import numpy as np

from dataprep.errors import (
    CorruptImage,
    CorruptRecord,
    DatasetChanged,
    ObjectNotFound,
    SourceChanged,
    SourceError,
    SourceNotFound,
)
from dataprep.formats.recordio import MAGIC
from dataprep.snapshot import Snapshot
from dataprep.sources.class_names import read_class_names, split_uri
from dataprep.sources.files import reading
from dataprep.sources.framing import Framed, recordio_at, tfrecord_at
from dataprep.sources.options import RecordsOptions
from dataprep.sources.own_output import OwnSplit, find_own, read_own
from dataprep.sources.protocol import REMOTE_READS, Listing, Located, Problem
from dataprep.sources.ranges import Ranges
from dataprep.sources.record_classes import classes_of, sample_names
from dataprep.sources.record_content import (
    LAYOUTS,
    Content,
    Fields,
    fields_of,
    layout_of,
    of_example,
    of_image_record,
)
from dataprep.sources.record_files import (
    Format,
    format_of,
    is_shard_name,
    of_split,
    one_format,
)
from dataprep.sources.record_scan import scan
from dataprep.sources.record_sets import is_numbered, require_one_set, require_whole
from dataprep.sources.scan_cache import ScanCache
from dataprep.stores import ObjectInfo, StoreOptions, open_store
from dataprep.stores.local import LocalStore

_ROOM_BYTES = 2048
_SLACK_BYTES = 2**20
_BOXES_STAY = (
    "its records have bounding boxes, which are not carried over: make the shards from the images "
    "to have boxes in them"
)


class RecordsSource:
    """The images in a folder or prefix of shards, or in a single one."""

    only_images = True

    def __init__(
        self, uri: str, options: StoreOptions | None = None, section: RecordsOptions | None = None
    ) -> None:
        self._options = options
        self._section = section or RecordsOptions()
        name = uri.rstrip("/").rpartition("/")[2]
        # A single shard, or what the names of several begin with.
        self._prefix = name if is_shard_name(name) else ""
        folder = split_uri(uri.rstrip("/"))[0] if self._prefix else uri
        self._store = open_store(folder, options)
        self.concurrency = 1 if isinstance(self._store, LocalStore) else REMOTE_READS
        self._form: Format | None = None
        self._fields: Fields | None = None
        self._snapshot: Snapshot | None = None

    @property
    def uri(self) -> str:
        """Where the shards lie."""
        return f"{self._store.uri}/{self._prefix}" if self._prefix else self._store.uri

    def read(self, item: Located) -> bytes:
        """The image of one record.

        Raises:
            SourceChanged: the output that it lies in was made anew since it was listed.
        """
        where = f"record at byte {item.offset} of {item.container}"
        try:
            with reading(self._store, item.container, self.uri):
                form, framed = self._framed(item)
        except DatasetChanged as error:
            raise SourceChanged(str(error)) from None
        if framed.problem:
            raise CorruptImage(f"{where}: {framed.problem}")
        try:
            image = bytes(self._content(form, framed).image)
        except CorruptRecord as error:
            raise CorruptImage(f"{where}: {error}") from None
        if len(image) != item.bytes:
            raise CorruptImage(
                f"{where}: an image of {len(image):,} bytes, where {item.bytes:,} were planned"
            )
        return image

    def list(self) -> Listing:
        """Every record; of an output of this program by its tables, of others by a scan."""
        try:
            entries = {info.key: info for info in self._store.list(self._prefix)}
        except ObjectNotFound as error:
            raise SourceNotFound(f"{error} (check --source)") from None
        except OSError as error:
            why = str(error).removeprefix(f"{self.uri}: ")
            raise SourceError(f"cannot list {self.uri}: {why}") from None
        split = self._section.split or "train"
        if not self._prefix and find_own(entries, split, self.uri):
            return self._own(read_own(self._store, entries, split, self._section.format))
        return self._scanned(self._shards(entries, split))

    def _framed(self, item: Located) -> tuple[Format, Framed]:
        fetch = partial((self._snapshot or self._store).get_range, item.container)
        data = Ranges(fetch, item.bytes + _ROOM_BYTES)
        form = self._form
        if form is None:
            form = "recordio" if data.at(item.offset, len(MAGIC)) == MAGIC else "tfrecord"
        if form == "recordio":
            return form, recordio_at(data, item.offset, limit=item.bytes + _SLACK_BYTES)
        return form, tfrecord_at(data, item.offset)

    def _content(self, form: Format, framed: Framed) -> Content:
        if form == "recordio":
            return of_image_record(framed.payload)
        fields = self._fields or LAYOUTS[layout_of(framed.payload)]
        return of_example(framed.payload, fields)

    def _own(self, own: OwnSplit) -> Listing:
        self._form, self._fields, self._snapshot = own.form, own.fields, own.snapshot
        sizes = own.sizes
        if sizes is None:
            places = self._sizes_by_place(own)
            spans = zip(own.shard.tolist(), own.offsets.tolist(), strict=True)
            sizes = np.array([places.get(span, 0) for span in spans], dtype=np.int64)
        shards = [shard.key for shard in own.shards]
        return Listing.sorted(
            own.names,
            sizes.tolist(),
            own.classes,
            own.cut_off(),
            containers=[shards[number] for number in own.shard.tolist()],
            offsets=own.offsets,
            values=own.values,
            label_space=own.label_space,
            notes=_stay(own.has_boxes),
        )

    def _sizes_by_place(self, own: OwnSplit) -> dict[tuple[int, int], int]:
        """Bytes of each image, for outputs whose tables do not tell them."""
        scanned = scan(self._store, own.shards, own.form, own.fields)
        return {
            (number, record.offset): record.bytes
            for number, records in enumerate(scanned)
            for record in records
        }

    def _shards(self, entries: dict[str, ObjectInfo], split: str) -> Sequence[ObjectInfo]:
        """The shards to read, by name, and their format."""
        named = [key for key, info in entries.items() if is_shard_name(key) and info.bytes]
        if not named:
            raise SourceNotFound(
                f"no shards in {self.uri!r}: names such as train-00000-of-00128, "
                "NAME.tfrecord or NAME.rec are expected"
            )
        wanted = self._section.format
        chosen = of_split(named, split, self.uri)
        if wanted != "auto":
            chosen = [key for key in chosen if self._format_of(key) == wanted]
            if not chosen:
                raise SourceNotFound(f"no {wanted} shards in {self.uri!r}")
            self._form = wanted
        else:
            self._form = one_format([self._format_of(key) for key in chosen], self.uri)
        require_one_set(chosen, self.uri)
        # One shard that is named is wanted alone.
        if not self._section.incomplete and not is_numbered(self._prefix):
            require_whole(chosen, entries, self.uri)
        return [entries[key] for key in chosen]

    def _format_of(self, key: str) -> Format:
        return format_of(self._store.get_range(key, 0, 16), key)

    def _scanned(self, shards: Sequence[ObjectInfo]) -> Listing:
        assert self._form is not None  # noqa: S101  for the type checker
        fields = self._choose_fields(shards[0].key) if self._form == "tfrecord" else {}
        cache = ScanCache(self._section.cache)
        records = cache.find(self._store, shards, fields)
        if records is None:
            found = scan(self._store, shards, self._form, fields)
            records = list(chain.from_iterable(found))
            cache.keep(self._store, shards, fields, records)
        section = self._section
        given = section.class_names and read_class_names(section.class_names, self._options)
        classes = classes_of(
            records, section.label_offset, fields == LAYOUTS["imagenet"], given or None
        )
        return Listing.sorted(
            sample_names(records, classes.names),
            [record.bytes for record in records],
            classes.names,
            {row: Problem("failed", why) for row, why in classes.problems.items()},
            containers=[record.shard for record in records],
            offsets=np.array([record.offset for record in records], dtype=np.int64),
            values=classes.values,
            label_space=classes.space,
            notes=(*classes.notes, *_stay(any(record.boxes for record in records))),
        )

    def _choose_fields(self, key: str) -> Fields:
        """What the features hold: as asked for, or as the first intact record has it."""
        layout = self._section.layout
        if layout != "auto":
            self._fields = fields_of(layout)
        else:
            data = Ranges(partial(self._store.get_range, key), 2**20)
            framed = tfrecord_at(data, 0)
            while framed.problem and framed.end:
                framed = tfrecord_at(data, framed.end)
            try:
                self._fields = LAYOUTS[layout_of(framed.payload)]
            except CorruptRecord as error:
                raise SourceError(f"{key}: {error}") from None
        return self._fields


def _stay(have_boxes: bool) -> tuple[str, ...]:
    return (_BOXES_STAY,) if have_boxes else ()
