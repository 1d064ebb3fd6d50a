"""Shards that exist as a source: outputs of this program, and shards of others.

An entry is at the byte where its record begins, in the shard that is its container; its size
is that of the image alone. Reading it is one request for the image and some room around it, a
second one where labels or texts take more than that. Checksums of records are compared.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from dataprep import keys
from dataprep.errors import (
    CorruptImage,
    CorruptRecord,
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
from dataprep.formats import (
    HEAD_BYTES,
    Buffer,
    BytesList,
    Feature,
    FloatList,
    Int64List,
    Layout,
    RecordFormat,
    RecordOptions,
    formats_like,
    get_format,
    preferred_format,
    usable_formats,
)
from dataprep.formats.protocol import without_location
from dataprep.labels import LabelSpace
from dataprep.names import unescape_all
from dataprep.ordered import in_order
from dataprep.samples import read_table, stored_table
from dataprep.shard_records import Shard
from dataprep.snapshot import Snapshot
from dataprep.sources.archives import StoredFile
from dataprep.sources.class_names import (
    Classes,
    by_name_or_number,
    by_number,
    first_labels,
    read_class_names,
    refuse_detection,
)
from dataprep.sources.exclusion import Exclusion
from dataprep.sources.files import disk_paths, list_files, read_error, reads_at_once, split_uri
from dataprep.sources.options import RecordsOptions
from dataprep.sources.other_kinds import advice_for
from dataprep.sources.protocol import Listing, Located, Problem
from dataprep.stores import ObjectInfo, Store, StoreOptions, open_store

_ROOM_BYTES = 3584  # of a record beside its image: framing, labels and names
_SHARDS_AT_ONCE = 8
_MANIFEST = re.compile(r"([^/]*)\.manifest\.json")
_TOTAL = re.compile(r"[-_.](?:\d{5,}|\*)-of-(\d{5,})(?=$|\.)")
_NUMBER = re.compile(
    r"(?<=[-_.])\d+(?=-of-\d{5,}(?:$|\.)|(?:\.(?:tfrecords?|tfrec|rec))?(?:\.gz)?$)"
)
_EXTENSION = re.compile(r"\.(tfrecords?|tfrec|rec)(?=$|[-_.]\d{5,}-of-\d{5,}$|\.gz$)")
_NUMBERED = re.compile(r"[-_.]\d{5,}-of-\d{5,}$")
_INDEX = (".idx", ".lst", ".json", ".txt", ".index", ".parquet", ".tsv", ".csv")
_SPELLINGS = ({"train", "training"}, {"validation", "val", "valid", "eval"})
_IDENTITY = "identity record without an image: its values are record numbers, no labels"
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
        # Of an output of this program: the format that is read, and how its records are written.
        self._own_format: tuple[str, RecordOptions] | None = None
        # Of other shards: the format of each, by its key.
        self._formats: dict[str, str] = {}
        self._exclusion = Exclusion()

    @property
    def uri(self) -> str:
        """The address of the shards."""
        return f"{self._store.uri}/{self._prefix}" if self._prefix else self._store.uri

    def disk_paths(self) -> Sequence[str]:
        """The folder that every worker has to see, if it is on a disk."""
        return disk_paths(self._store)

    def leave_out(self, globs: tuple[str, ...]) -> None:
        """Have ``list`` pass over shards, and folders of them, that these globs match."""
        self._exclusion = Exclusion(globs)

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
            raise CorruptImage(f"{where}: {without_location(str(error))}") from None
        except (ObjectNotFound, PermissionRefused) as error:
            raise read_error(error, self._store, item.container, self.uri) from None

    def _image(self, item: Located) -> bytes:
        store = self._snapshot or self._store
        length = item.bytes + _ROOM_BYTES
        while True:
            data = store.get_range(item.container, item.offset, length)
            try:
                return bytes(self._image_in(data, item.container))
            except TruncatedRecord:
                if len(data) < length:
                    raise
            length *= 16

    def _image_in(self, data: bytes, container: str) -> Buffer:
        """The image of the record that begins ``data``, which is part of ``container``."""
        if self._own_format is not None:
            name, options = self._own_format
            record_format = get_format(name)
            for record in record_format.read(data, "record"):
                return record_format.image(record.payload, options)
        else:
            record_format = get_format(self._format_of(data[:HEAD_BYTES], container))
            for record in record_format.read(data, "record"):
                return content_of(record.payload, record_format, self._fields).image
        raise TruncatedRecord("the file ends before it")

    def _format_of(self, head: Buffer, container: str) -> str:
        """The format of a shard of which a record begins with ``head``. Raises CorruptRecord."""
        if container not in self._formats:
            wanted, candidates = self._section.format, formats_like(head)
            if not candidates:
                raise CorruptRecord("no record begins here")
            self._formats[container] = wanted if wanted in candidates else candidates[0]
        return self._formats[container]

    def list(self) -> Listing:
        """Every record; of an output of this program by its tables, of others by a scan."""
        tree = list_files(self._store, self._prefix, self._exclusion.reason)
        listing = self._listed({info.key: info for info in tree.files})
        return replace(listing, notes=(*listing.notes, *tree.notes()), unread=tuple(tree.unread))

    def _listed(self, entries: Mapping[str, ObjectInfo]) -> Listing:
        """Every record of the shards among these files."""
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
        left_out = tuple(key for key in entries if self._exclusion.by_glob(key))
        entries = {key: info for key, info in entries.items() if not self._exclusion.by_glob(key)}
        return replace(self._scanned(self._shards(entries, split)), left_out=left_out)

    def _own(self, entries: Mapping[str, ObjectInfo], split: str) -> Listing:
        """The samples of a complete split of this program, by its tables."""
        manifest, snapshot = Snapshot.open(self._store, split)
        wanted = self._section.format
        if wanted == "auto":
            wanted = preferred_format(manifest.formats)
        if wanted not in manifest.formats:
            raise SourceError(f"{self.uri} was made as {', '.join(manifest.formats)}, not {wanted}")
        shards = {keys.shard_number(one.key): one.key for one in manifest.formats[wanted].shards}
        if missing := sorted({*shards.values()} - entries.keys()):
            raise SourceError(
                f"{self.uri} lacks {missing[0]}, which its manifest names: put it back, or run the "
                "job that made it again"
            )
        stored = stored_table(self._store, manifest)
        # Tables of earlier versions have no image_bytes; that of the record is little more.
        has_size = "image_bytes" in stored.columns().column_names
        size = "image_bytes" if has_size else f"{wanted}_length"
        offset = f"{wanted}_offset"
        columns = ["source", "synset", "label", "shard", offset, size]
        table = stored.columns(columns).to_pydict()
        plan = read_table(self._store.get(keys.plan(split)))
        values = None
        if "values" in plan.column_names:  # all labels of samples that have several
            planned = plan.select(["source", "values"]).to_pydict()
            found = dict(zip(planned["source"], planned["values"], strict=True))
            values = np.array([found[name] for name in table["source"]], dtype=np.float32)
            values[:, 0] = table["label"]  # as in the records
        listing = Listing.sorted(
            unescape_all(table["source"]),
            table[size],
            unescape_all([synset or "" for synset in table["synset"]]),
            {},
            containers=[shards[number] for number in table["shard"]],
            offsets=np.array(table[offset], dtype=np.int64),
            values=values,
            label_space=LabelSpace.from_json(self._store.get(keys.LABELS)),
            notes=(_BOXES_NOTE,) if manifest.config.get("boxes") is not None else (),
            form="shards of this program",
            file_versions={shard.key: shard.sha256 for shard in manifest.formats[wanted].shards},
        )
        snapshot.check()
        self._snapshot = snapshot
        self._own_format = wanted, manifest.record_options(wanted)
        return listing

    def _shards(self, entries: Mapping[str, ObjectInfo], split: str) -> Sequence[ObjectInfo]:
        """The shards to read, by name, all of one format."""
        wanted = self._section.format
        named = [key for key in entries if is_shard_name(key) and may_have_format(key, wanted)]
        # One shard that is named is wanted alone.
        is_part = self._section.incomplete or bool(_TOTAL.search(self._prefix))
        chosen = named and shards_of(named, split, self.uri, incomplete=is_part)
        shards = [entries[key] for key in chosen if entries[key].bytes]
        if not shards:
            raise SourceNotFound(
                f"no shards in {self.uri!r}: names such as train-00000-of-00128, NAME.tfrecord "
                "or NAME.rec are expected" + advice_for(entries)
            )
        return shards

    def _version(self, shard: ObjectInfo) -> str:
        """The version of a shard that was listed: its ETag, or that of the file as it is now."""
        return shard.etag or StoredFile.now(self._store, shard.key).version

    def _scanned(self, shards: Sequence[ObjectInfo]) -> Listing:
        wanted = self._section.format
        scan_one = partial(scan, self._store, fields=self._fields, wanted=wanted)
        # Before they are scanned, so that a shard that is replaced meanwhile has another version.
        versions = {shard.key: self._version(shard) for shard in shards}
        records = [*chain.from_iterable(in_order(scan_one, shards, _SHARDS_AT_ONCE))]
        problems = {row: record.problem for row, record in enumerate(records) if record.problem}
        if len(problems) == len(records):
            raise SourceError(f"{shards[0].key}: no record can be read: {problems[0]}")
        identities = {row for row, record in enumerate(records) if record.is_identity}
        problems |= dict.fromkeys(identities, _IDENTITY)
        labels = [() if row in problems else record.labels for row, record in enumerate(records)]
        refuse_detection(labels, shards[0].key)
        numbers, values = first_labels(labels, problems)
        offset, notes = self._section.label_offset, []
        from_background = any(record.from_background for record in records)
        if offset is None and from_background and min(numbers.values(), default=0) > 0:
            offset = 1
            notes.append(
                f"labels in the records are {min(numbers.values())} to {max(numbers.values())}: 0 "
                "is taken for the background, so that 1 is the first class; "
                "records.label_offset=0 changes that"
            )
        if offset:
            numbers = {row: number - offset for row, number in numbers.items()}
            if values is not None:
                values[:, 0] -= offset
        if self._section.class_names:
            given = read_class_names(self._section.class_names, self._options)
            classes = by_number(numbers, len(records), given, problems, "records")
        elif not any(record.labels or record.synset or record.text for record in records):
            classes = Classes([""] * len(records))
        else:
            synsets, texts = zip(*((record.synset, record.text) for record in records), strict=True)
            keep = values is not None
            classes = by_name_or_number(synsets, texts, numbers, problems, keep=keep)
        notes += classes.notes
        if any(record.has_boxes for record in records):
            notes.append(_BOXES_NOTE)
        return Listing.sorted(
            sample_names(records, classes.names),
            [record.bytes for record in records],
            classes.names,
            {
                row: Problem("skipped" if row in identities else "failed", why)
                for row, why in problems.items()
            },
            containers=[record.shard for record in records],
            offsets=np.array([record.offset for record in records], dtype=np.int64),
            values=values,
            label_space=classes.space,
            notes=tuple(notes),
            form="shards",
            file_versions=versions,
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


def may_have_format(key: str, wanted: str) -> bool:
    """Whether a shard of this name may have the format ``wanted``; ``auto`` is any."""
    if wanted == "auto":
        return True
    extensions = {known.extension for known in usable_formats()} - {""}
    name = _NUMBERED.sub("", key.removesuffix(".gz"))
    extension = next((known for known in extensions if name.endswith(known)), "")
    return extension == get_format(wanted).extension


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
            "not clear: choose with --set records.split=NAME or records.format=FORMAT, or move the "
            "others elsewhere"
        )
    (pattern,) = fitting
    total = _TOTAL.search(pattern)
    if total and len(sets[pattern]) < int(total[1]) and not incomplete:
        raise SourceError(
            f"{where} has {len(sets[pattern]):,} of {int(total[1]):,} shards {pattern!r}: put what "
            "is missing there, or read what there is with --set records.incomplete=true"
        )
    return sets[pattern]


Fields = Mapping[str, str]
"""The feature of an Example for each field, see docs/layouts.md."""


def fields_of(layout: str | Mapping[str, str]) -> Fields:
    """The feature for each field of a layout. Raises ConfigError for an unknown layout."""
    return {field: feature for feature, field in Layout.of(layout).features}


_IMAGENET = fields_of("imagenet")
_PLAIN = {**fields_of("tfds"), "synset": "synset", "bbox/xmin": "bbox/xmin"}
"""The names of TFDS, and those that formats without a layout have."""


class Record(NamedTuple):
    """A record of a shard; of one with a ``problem`` only its place is known.

    Attributes:
        image: the encoded image, which a scan leaves out.
        labels: as stored, offset included.
        synset, text, filename: empty where it has none.
        from_background: whether 0 is customarily the background in its layout, not a class.
        has_boxes: whether it has bounding boxes.
        is_identity: whether it has several values and no image, as in records of faces, where it
            says which records belong to one person.
        shard: its key.
        name: the shard and the number of the record there.
        offset: the byte at which it begins.
        bytes: the size of its image.
        problem: why it cannot be read.
    """

    image: Buffer = b""
    labels: Sequence[float] = ()
    synset: str = ""
    text: str = ""
    filename: str = ""
    from_background: bool = False
    has_boxes: bool = False
    is_identity: bool = False
    shard: str = ""
    name: str = ""
    offset: int = 0
    bytes: int = 0
    problem: str = ""


def scan(
    store: Store, info: ObjectInfo, fields: Fields | None, wanted: str = "auto"
) -> list[Record]:
    """The records of a shard in their order, also those without an image.

    ``wanted`` is the format of shards whose first bytes several formats have.

    Raises:
        SourceError: the shard is damaged or truncated, or the object is no shard.
    """
    found: list[Record] = []
    at = 0
    try:
        shard = Shard(store, info, lambda names: wanted if wanted in names else None)
        record_format = get_format(shard.format)
        for offset, length in shard.extents():
            (raw,) = record_format.read(shard[offset : offset + length], "record")
            record = _without_image(raw.payload, at, record_format, fields)
            name = f"{info.key}/{len(found):08d}"
            found.append(record._replace(shard=info.key, name=name, offset=at))
            at = offset + length
        if shard.fault:
            raise shard.fault
    except ValueError as error:  # also where the object became shorter meanwhile
        raise SourceError(
            f"{info.key}: damaged at byte {at}: {without_location(str(error))}: copy the shard "
            "again, or move it out of the source and set records.incomplete=true. A shard "
            "that is compressed as a whole has to be decompressed first (gzip -d)"
        ) from None
    return found


def _without_image(
    payload: Buffer, at: int, record_format: RecordFormat, fields: Fields | None
) -> Record:
    """A record with the size of its image only, or why it has none."""
    try:
        record = content_of(payload, record_format, fields)
    except RecordError as error:
        return Record(problem=f"damaged at byte {at}: {without_location(str(error))}")
    return record._replace(image=b"", bytes=memoryview(record.image).nbytes)


def content_of(payload: Buffer, record_format: RecordFormat, fields: Fields | None) -> Record:
    """Decode a record; if ``fields`` is None, the names in each record decide on its layout.

    No field but the image has to be there: writers differ.

    Raises:
        RecordError: it is no record of its format, or one without an image.
    """
    features = record_format.fields(payload)
    fields = fields or (_IMAGENET if _IMAGENET["encoded"] in features else _PLAIN)
    images = _values(features, fields["encoded"], BytesList)
    if len(images) != 1:
        shown = ", ".join(map(repr, sorted(features)[:12])) or "none"
        raise CorruptRecord(
            f"it has not one image under {fields['encoded']!r}, its keys are {shown}: name the "
            "keys with records.layout, as in {my/image: encoded, my/label: label}"
        )
    labels = _values(features, fields.get("values"), FloatList)
    if len(labels) < 2:
        labels = _values(features, fields.get("label"), Int64List | FloatList)
    is_empty = not memoryview(images[0]).nbytes
    return Record(
        images[0],
        labels,
        synset=_text(features, fields.get("synset")),
        text=_text(features, fields.get("text")),
        filename=_text(features, fields.get("filename")) or _text(features, fields.get("source")),
        from_background=fields == _IMAGENET,
        has_boxes=len(_values(features, fields.get("bbox/xmin"), FloatList)) > 0,
        is_identity=is_empty and len(labels) > 1,
    )


def _values(features: Mapping[str, Feature], key: str | None, kind: Any) -> Sequence[Any]:
    feature = features.get(key or "")
    return feature.values if isinstance(feature, kind) else ()


def _text(features: Mapping[str, Feature], key: str | None) -> str:
    values = _values(features, key, BytesList)
    return os.fsdecode(bytes(values[0])) if len(values) == 1 else ""


def sample_names(records: Sequence[Record], classes: Sequence[str]) -> list[str]:
    """``CLASS/FILE`` where every record has a file name and these differ, else ``SHARD/NUMBER``.

    A file name that has folders is the name by itself. Records without an image are
    ``SHARD/NUMBER``.
    """
    numbered = [record.name for record in records]
    names = list(numbered)
    for row, record in enumerate(records):
        filename, group = record.filename, classes[row]
        if filename:
            names[row] = filename if "/" in filename or not group else f"{group}/{filename}"
        elif not record.problem:
            return numbered
    return names if len(set(names)) == len(names) else numbered
