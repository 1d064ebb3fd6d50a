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
from numpy.typing import NDArray

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
from dataprep.formats.recordio import MAGIC, read_recordio
from dataprep.formats.tfrecord import read_tfrecords
from dataprep.labels import LabelSpace
from dataprep.names import unescape_all
from dataprep.ordered import in_order
from dataprep.samples import read_table, stored_table
from dataprep.snapshot import Snapshot
from dataprep.sources.class_names import read_class_names
from dataprep.sources.files import list_files, read_error, split_uri
from dataprep.sources.options import RecordsOptions
from dataprep.sources.protocol import REMOTE_READS, Listing, Located, Problem
from dataprep.sources.record_scan import (
    Scanned,
    classes_of,
    content_of,
    fields_of,
    sample_names,
    scan,
)
from dataprep.stores import ObjectInfo, StoreOptions, open_store
from dataprep.stores.local import LocalStore

_ROOM_BYTES = 2048
_SHARDS_AT_ONCE = 8
_MANIFEST = re.compile(r"([^/]*)\.manifest\.json")
_NUMBERED = re.compile(r"[-_.](\d{5,})-of-(\d{5,})(?=$|\.)")
_IN_SET = re.compile(r"(.*[-_.])(\d{5,})-of-(\d{5,})(|\..*)", re.DOTALL)
_EXTENSION = re.compile(r"\.(tfrecords?|tfrec|rec)(?=$|[-_.]\d{5,}-of-\d{5,}$|\.gz$)")
_INDEX = (".idx", ".lst", ".json", ".txt", ".index", ".parquet", ".tsv", ".csv")
_ALIASES = {"val": "validation", "valid": "validation", "training": "train", "eval": "validation"}


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
        self.concurrency = 1 if isinstance(self._store, LocalStore) else REMOTE_READS
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
        length = item.bytes + _ROOM_BYTES
        while True:
            store = self._snapshot or self._store
            data = store.get_range(item.container, item.offset, length)
            recordio = data.startswith(MAGIC)
            try:
                for record in read_recordio(data) if recordio else read_tfrecords(data):
                    return bytes(content_of(record, self._fields, recordio=recordio).image)
                raise TruncatedRecord("the file ends before it")
            except TruncatedRecord:
                if len(data) < length:
                    raise
            length *= 16

    def list(self) -> Listing:
        """Every record; of an output of this program by its tables, of others by a scan."""
        entries = {info.key: info for info in list_files(self._store, self._prefix)}
        split = self._section.split or "train"
        if self._prefix or not self._is_own(entries, split):
            return self._scanned(self._shards(entries, split))
        try:
            return self._own(entries, split)
        except (DatasetError, ObjectNotFound, LookupError, ValueError) as error:
            raise SourceError(
                f"{self.uri}: the tables of split {split!r} cannot be read ({error}): mend "
                "them (dataprep verify), or name the folder of its shards as the source"
            ) from None

    def _is_own(self, entries: Mapping[str, ObjectInfo], split: str) -> bool:
        """Whether this is an output of this program that has the split. Raises SourceError."""
        complete = [match[1] for key in sorted(entries) if (match := _MANIFEST.fullmatch(key))]
        begun = [found for key in sorted(entries) if (found := keys.split_of_job(key))]
        if complete and split not in complete:
            raise SourceError(
                f"{self.uri} has no split {split!r}: it has {', '.join(complete)}; say which with "
                "--set records.split=NAME"
            )
        if begun and not complete:
            raise SourceError(
                f"{self.uri} is not complete: split {begun[0]!r} has no manifest; run the job that "
                "makes it again, it resumes"
            )
        return bool(complete)

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
        table = stored.columns(["source", "synset", "shard", f"{wanted}_offset", size])
        names = unescape_all(table["source"].to_pylist())
        listing = Listing.sorted(
            names,
            table[size].to_pylist(),
            unescape_all(table["synset"].to_pylist()),
            {},
            containers=[shards[number] for number in table["shard"].to_pylist()],
            offsets=table[f"{wanted}_offset"].to_numpy().astype(np.int64),
            values=planned_values(self._store.get(keys.plan(split)), names),
            label_space=LabelSpace.from_json(self._store.get(keys.LABELS)),
            notes=_box_notes(manifest.config.get("boxes") is not None),
        )
        snapshot.check()
        self._snapshot = snapshot
        self._fields = fields_of(manifest.config.get("layout", "imagenet"))
        return listing

    def _shards(self, entries: Mapping[str, ObjectInfo], split: str) -> Sequence[ObjectInfo]:
        """The shards to read, by name, all of one format."""
        named = [key for key, info in entries.items() if is_shard_name(key) and info.bytes]
        wanted = self._section.format
        chosen = [key for key in of_split(named, split, self.uri) if wanted in ("auto", form(key))]
        if not chosen:
            raise SourceNotFound(
                f"no shards in {self.uri!r}: names such as train-00000-of-00128, NAME.tfrecord "
                "or NAME.rec are expected"
            )
        if len({form(key) for key in chosen}) > 1:
            raise SourceError(
                f"{self.uri} has shards of both formats: choose with --set "
                "records.format=tfrecord or recordio"
            )
        # One shard that is named is wanted alone.
        is_part = self._section.incomplete or bool(_NUMBERED.search(self._prefix))
        require_whole(chosen, entries, self.uri, incomplete=is_part)
        return [entries[key] for key in chosen]

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
            notes=classes.notes + _box_notes(has_boxes),
        )


def _box_notes(has_boxes: bool) -> tuple[str, ...]:
    if not has_boxes:
        return ()
    return (
        "its records have bounding boxes, which are not carried over: make the shards from the "
        "images to have boxes in them",
    )


def planned_values(plan: bytes, names: Sequence[str]) -> NDArray[np.float32] | None:
    """All labels of samples that have several, as a job's plan has them; raises ValueError."""
    table = read_table(plan)
    if "values" not in table.column_names:
        return None
    sources = unescape_all(table["source"].to_pylist())
    found = dict(zip(sources, table["values"].to_pylist(), strict=True))
    return np.array([found[name] for name in names], dtype=np.float32)


def is_shard_name(key: str) -> bool:
    """Whether a file of this name is expected to be a shard of records.

    ``train-00000-of-00128`` (customary), ``imagenet2012-train.tfrecord-00000-of-01024`` (TFDS),
    ``train_0.rec`` (im2rec with ``--chunks``), ``val.rec``, ``anything.tfrecord``.
    """
    name = key.rpartition("/")[2]
    if name.startswith(".") or name.endswith(_INDEX):
        return False
    return bool(_NUMBERED.search(name) or _EXTENSION.search(name))


def form(key: str) -> str:
    """The format of a shard by its name."""
    extension = _EXTENSION.search(key)
    return "recordio" if extension and extension[1] == "rec" else "tfrecord"


def of_split(names: Iterable[str], split: str, where: str) -> list[str]:
    """The shards of ``split``, sorted; all shards where their names name one split only.

    Raises:
        SourceError: they name several splits, and not exactly one of them is this one.
    """
    groups: dict[str, list[str]] = {}
    for key in sorted(names):
        stem = _EXTENSION.sub("", _NUMBERED.sub("", key.rpartition("/")[2]))
        groups.setdefault(re.sub(r"[-_.]\d+$", "", stem), []).append(key)
    if len(groups) <= 1:
        return [key for group in groups.values() for key in group]
    wanted = _ALIASES.get(split, split)
    spellings = {wanted, *(word for word, meaning in _ALIASES.items() if meaning == wanted)}
    fitting = [stem for stem in groups if spellings & {stem, *re.split(r"[-_.]", stem.lower())}]
    if len(fitting) == 1:
        return groups[fitting[0]]
    shown = ", ".join(repr(name) for name in sorted(groups)[:8])
    raise SourceError(
        f"{where} has shards of several splits, {shown}, and which of them is {split!r} is not "
        "clear: name one with --set records.split=NAME"
    )


def require_whole(
    chosen: Iterable[str], present: Iterable[str], where: str, *, incomplete: bool
) -> None:
    """Refuse numbered shards of several sets, or of which some are missing.

    Args:
        chosen: those that are to be read.
        present: all files, among them empty shards. They are numbered from 0 or from 1.
        where: the address of the source, for the error.
        incomplete: accept missing shards.

    Raises:
        SourceError: it names one shard of each set, or the first one that is missing.
    """
    sets: dict[tuple[str, str], dict[str, dict[int, str]]] = {}
    for key in present:
        if found := _IN_SET.fullmatch(key):
            before, number, total, after = found.groups()
            sets.setdefault((before, after), {}).setdefault(total, {})[int(number)] = key
    for (before, after), totals in sets.items():
        (total, shards), *others = totals.items()
        if not {*shards.values()} & {*chosen}:
            continue
        if others:
            raise SourceError(
                f"{where} has shards of several sets, such as {min(shards.values())!r} and "
                f"{min(others[0][1].values())!r}, in which the same samples may be: move one set "
                "elsewhere"
            )
        missing = int(total) - len(shards)
        if missing > 0 and not incomplete:
            lost = next(n for n in count(int(total) in shards) if n not in shards)
            raise SourceError(
                f"{where} lacks {missing:,} of {int(total):,} shards, such as "
                f"'{before}{lost:0{len(total)}}-of-{total}{after}': put what is missing there, or "
                "read what there is with --set records.incomplete=true"
            )
