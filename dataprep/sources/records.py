"""Shards that exist as a source: outputs of this program, TFRecord and RecordIO of others.

An entry is at the byte where its record begins, in the shard that is its container; its size
is that of the image alone. Reading it is one request for the image and some room around it, a
second one where labels or texts take more than that. TFRecord's checksums are checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import chain, count

import numpy as np

from dataprep import keys
from dataprep.errors import (
    CorruptImage,
    DatasetChanged,
    DatasetError,
    ObjectNotFound,
    PermissionRefused,
    RecordError,
    SourceChanged,
    SourceError,
    SourceNotFound,
    TruncatedRecord,
)
from dataprep.formats.protocol import without_place
from dataprep.formats.recordio import MAGIC
from dataprep.labels import LabelSpace
from dataprep.names import unescape_all
from dataprep.ordered import in_order
from dataprep.samples import read_table, stored_table
from dataprep.snapshot import Snapshot
from dataprep.sources.class_names import read_class_names
from dataprep.sources.files import list_files, read_error, reads_at_once, split_uri
from dataprep.sources.options import RecordsOptions
from dataprep.sources.protocol import Listing, Located, Problem
from dataprep.sources.record_scan import (
    Scanned,
    classes_of,
    content_of,
    fields_of,
    records_in,
    sample_names,
    scan,
)
from dataprep.stores import ObjectInfo, StoreOptions, open_store

_ROOM_BYTES = 2048
_SHARDS_AT_ONCE = 8
_MANIFEST = re.compile(r"([^/]*)\.manifest\.json")
_TOTAL = re.compile(r"[-_.](?:\d{5,}|\*)-of-(\d{5,})(?=$|\.)")
_NUMBER = re.compile(
    r"(?<=[-_.])\d+(?=-of-\d{5,}(?:$|\.)|(?:\.(?:tfrecords?|tfrec|rec))?(?:\.gz)?$)"
)
_EXTENSION = re.compile(r"\.(tfrecords?|tfrec|rec)(?=$|[-_.]\d{5,}-of-\d{5,}$|\.gz$)")
_INDEX = (".idx", ".lst", ".json", ".txt", ".index", ".parquet", ".tsv", ".csv")
_SPELLINGS = ({"train", "training"}, {"validation", "val", "valid", "eval"})
_BOXES_NOTE = (
    "its records have bounding boxes, which are not carried over: make the shards from the "
    "images to have boxes in them"
)


class RecordsSource:
    """The images in a folder or prefix of shards, or in a single one."""

    only_images = True

    def __init__(
        self, uri: str, options: StoreOptions | None = None, section: RecordsOptions | None = None
    ) -> None:
        self._options = options
        self._section = section or RecordsOptions()
        layout = self._section.layout
        self._fields = None if layout == "auto" else fields_of(layout)
        name = uri.rstrip("/").rpartition("/")[2]
        # A single shard, or what the names of several begin with.
        self._prefix = name if is_shard_name(name) else ""
        folder = split_uri(uri.rstrip("/"))[0] if self._prefix else uri
        self._store = open_store(folder, options)
        self.concurrency = reads_at_once(self._store)
        self._snapshot: Snapshot | None = None

    @property
    def uri(self) -> str:
        """The address of the shards."""
        return f"{self._store.uri}/{self._prefix}" if self._prefix else self._store.uri

    def read(self, item: Located) -> bytes:
        """The image of one record.

        Raises:
            SourceChanged: the output that it belongs to was made anew since it was listed.
        """
        try:
            return self._image(item)
        except DatasetChanged as error:
            raise SourceChanged(str(error)) from None
        except RecordError as error:
            where = f"record at byte {item.offset} of {item.container}"
            raise CorruptImage(f"{where}: {without_place(str(error))}") from None
        except (ObjectNotFound, PermissionRefused) as error:
            raise read_error(error, self._store, item.container, self.uri) from None

    def _image(self, item: Located) -> bytes:
        store = self._snapshot or self._store
        length = item.bytes + _ROOM_BYTES
        while True:
            data = store.get_range(item.container, item.offset, length)
            recordio = data.startswith(MAGIC)
            try:
                for record in records_in(data, recordio=recordio):
                    found = content_of(record.payload, self._fields, recordio=recordio)
                    return bytes(found.image)
                raise TruncatedRecord("the file ends before it")
            except TruncatedRecord:
                if len(data) < length:
                    raise
            length *= 16

    def list(self) -> Listing:
        """Every record; of an output of this program by its tables, of others by a scan."""
        entries = {info.key: info for info in list_files(self._store, self._prefix)}
        split = self._section.split or "train"
        complete = [match[1] for match in map(_MANIFEST.fullmatch, sorted(entries)) if match]
        begun = [*filter(None, map(keys.split_of_job, sorted(entries)))]
        if split in complete:
            try:
                return self._own(entries, split)
            except (DatasetError, ObjectNotFound, LookupError, ValueError) as error:
                raise SourceError(
                    f"{self.uri}: the tables of split {split!r} cannot be read ({error}): mend "
                    "them (dataprep verify), or name the folder of its shards as the source"
                ) from None
        if complete:
            raise SourceError(
                f"{self.uri} has no split {split!r}: it has {', '.join(complete)}; say which with "
                "--set records.split=NAME"
            )
        if begun:
            raise SourceError(
                f"{self.uri} is not complete: split {begun[0]!r} has no manifest; run the job that "
                "makes it again, it resumes"
            )
        return self._scanned(self._shards(entries, split))

    def _own(self, entries: Mapping[str, ObjectInfo], split: str) -> Listing:
        """The samples of a complete split of this program, by its tables."""
        manifest, snapshot = Snapshot.open(self._store, split)
        wanted = self._section.format
        if wanted == "auto":
            wanted = "tfrecord" if "tfrecord" in manifest.formats else "recordio"
        if wanted not in manifest.formats:
            raise SourceError(f"{self.uri} was made as {', '.join(manifest.formats)}, not {wanted}")
        shards = [shard.key for shard in manifest.formats[wanted].shards]
        if missing := sorted({*shards} - entries.keys()):
            raise SourceError(
                f"{self.uri} lacks {missing[0]}, which its manifest names: put it back, or run the "
                "job that made it again"
            )
        stored = stored_table(self._store, manifest)
        # Tables of earlier versions have no image_bytes; that of the record is little more.
        size = "image_bytes" if "image_bytes" in stored.names else f"{wanted}_length"
        offset = f"{wanted}_offset"
        table = stored.columns(["source", "synset", "shard", offset, size]).to_pydict()
        plan = read_table(self._store.get(keys.plan(split)))
        values = None
        if "values" in plan.column_names:  # all labels of samples that have several
            planned = plan.to_pydict()
            found = dict(zip(planned["source"], planned["values"], strict=True))
            values = np.array([found[name] for name in table["source"]], dtype=np.float32)
        listing = Listing.sorted(
            unescape_all(table["source"]),
            table[size],
            unescape_all(table["synset"]),
            {},
            containers=[shards[number] for number in table["shard"]],
            offsets=np.array(table[offset], dtype=np.int64),
            values=values,
            label_space=LabelSpace.from_json(self._store.get(keys.LABELS)),
            notes=(_BOXES_NOTE,) if manifest.config.get("boxes") is not None else (),
        )
        snapshot.check()
        self._snapshot = snapshot
        self._fields = fields_of(manifest.config.get("layout", "imagenet"))
        return listing

    def _shards(self, entries: Mapping[str, ObjectInfo], split: str) -> Sequence[ObjectInfo]:
        """The shards to read, by name, all of one format."""
        wanted = self._section.format
        named = [key for key in entries if is_shard_name(key) and wanted in ("auto", form(key))]
        if not any(entries[key].bytes for key in named):
            raise SourceNotFound(
                f"no shards in {self.uri!r}: names such as train-00000-of-00128, NAME.tfrecord "
                "or NAME.rec are expected"
            )
        # One shard that is named is wanted alone.
        is_part = self._section.incomplete or bool(_TOTAL.search(self._prefix))
        chosen = shards_of(named, split, self.uri, incomplete=is_part)
        return [entries[key] for key in chosen if entries[key].bytes]

    def _scanned(self, shards: Sequence[ObjectInfo]) -> Listing:
        def scan_one(shard: ObjectInfo) -> list[Scanned]:
            fetch = partial(self._store.get_range, shard.key)
            recordio = form(shard.key) == "recordio" or fetch(0, len(MAGIC)) == MAGIC
            return scan(shard.key, shard.bytes, fetch, self._fields, recordio=recordio)

        records = [*chain.from_iterable(in_order(scan_one, shards, _SHARDS_AT_ONCE))]
        problems = {row: record.problem for row, record in enumerate(records) if record.problem}
        if len(problems) == len(records):
            raise SourceError(
                f"{shards[0].key}: no record can be read: {problems[0]}. A shard that is "
                "compressed as a whole has to be decompressed first (gzip -d)"
            )
        section = self._section
        given = section.class_names and read_class_names(section.class_names, self._options)
        classes, values = classes_of(records, section.label_offset, given or None, problems)
        has_boxes = any(record.content.has_boxes for record in records)
        return Listing.sorted(
            sample_names(records, classes.names),
            [record.bytes for record in records],
            classes.names,
            {row: Problem("failed", why) for row, why in problems.items()},
            containers=[record.shard for record in records],
            offsets=np.array([record.offset for record in records], dtype=np.int64),
            values=values,
            label_space=classes.space,
            notes=(*classes.notes, _BOXES_NOTE) if has_boxes else classes.notes,
        )


def is_shard_name(key: str) -> bool:
    """Whether a file of this name is expected to be a shard of records.

    ``train-00000-of-00128`` (customary), ``imagenet2012-train.tfrecord-00000-of-01024`` (TFDS),
    ``train_0.rec`` (im2rec with ``--chunks``), ``val.rec``, ``anything.tfrecord``.
    """
    name = key.rpartition("/")[2]
    if name.startswith(".") or name.endswith(_INDEX):
        return False
    return bool(_TOTAL.search(name) or _EXTENSION.search(name))


def form(key: str) -> str:
    """The format of a shard by its name."""
    extension = _EXTENSION.search(key)
    return "recordio" if extension and extension[1] == "rec" else "tfrecord"


def shards_of(names: Iterable[str], split: str, where: str, *, incomplete: bool) -> list[str]:
    """The shards of one set, whose names differ in a number: the only set, or that of ``split``.

    Args:
        names: all shards, among them empty ones.
        split: a word in the names of the set, where there are several.
        where: the address of the source, for errors.
        incomplete: accept a set of which shards are missing.

    Raises:
        SourceError: several sets fit, or none, or a numbered shard is missing.
    """
    sets: dict[str, list[str]] = {}
    for name in sorted(names):
        sets.setdefault(_NUMBER.sub("*", name, count=1), []).append(name)
    fitting = [*sets]
    if len(sets) > 1:
        words = next((words for words in _SPELLINGS if split in words), {split})
        spelled = rf"(?:^|[-_.])(?:{'|'.join(map(re.escape, words))})(?:[-_.]|$)"
        named = re.compile(spelled, re.IGNORECASE)
        fitting = [pattern for pattern in sets if named.search(pattern.rpartition("/")[2])]
    if len(fitting) != 1:
        shown = ", ".join(map(repr, [*sets][:8]))
        raise SourceError(
            f"{where} has several sets of shards, {shown}, and which of them is split {split!r} is "
            "not clear: choose with --set records.split=NAME or records.format=tfrecord or "
            "recordio, or move the others elsewhere"
        )
    (pattern,) = fitting
    total = _TOTAL.search(pattern)
    if total and len(sets[pattern]) < int(total[1]) and not incomplete:
        # They are numbered from 0 or from 1.
        first = int(pattern.replace("*", total[1]) in sets[pattern])
        all_names = (pattern.replace("*", f"{n:0{len(total[1])}}") for n in count(first))
        lost = next(name for name in all_names if name not in sets[pattern])
        raise SourceError(
            f"{where} lacks {int(total[1]) - len(sets[pattern]):,} of {int(total[1]):,} shards, "
            f"such as {lost!r}: put what is missing there, or read what there is with --set "
            "records.incomplete=true"
        )
    return sets[pattern]
