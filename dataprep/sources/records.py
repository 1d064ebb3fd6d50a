"""Kind ``records``: existing shards, made by this program or by others.

The container of an entry is the shard, and its offset is the first byte of its record. Its size is
the size of the image, without the rest of the record. To read an entry, one request fetches
``_EXTRA_BYTES`` more than this size. If the record is larger, more requests follow. The checksums
of records are verified.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

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
    RecordFormat,
    RecordOptions,
    formats_like,
    get_format,
    preferred_format,
)
from dataprep.formats.protocol import without_location
from dataprep.labels import LabelSpace
from dataprep.name_encoding import unescape_all
from dataprep.output import keys
from dataprep.output.samples_table import read_table, stored_table
from dataprep.output.snapshot import Snapshot
from dataprep.sources.class_names import read_class_names
from dataprep.sources.exclusion import Exclusion
from dataprep.sources.file_names import advice_for
from dataprep.sources.files import (
    disk_paths,
    list_files,
    reads_in_flight,
    split_uri,
    translated_read_error,
)
from dataprep.sources.label_classes import (
    Classes,
    class_numbers,
    classes_from_numbers,
    classes_of_records,
    refuse_detection,
)
from dataprep.sources.options import RecordsOptions
from dataprep.sources.protocol import Listing, Located, Problem
from dataprep.sources.records_scan import (
    TOTAL,
    ScannedRecord,
    content_of,
    fields_of,
    is_shard_name,
    may_have_format,
    sample_names,
    scan,
    shards_of,
)
from dataprep.sources.stored_file import StoredFile
from dataprep.stores import ObjectInfo, StoreOptions, open_store
from dataprep.threaded_map import in_order

_EXTRA_BYTES = 3584
"""The usual maximum of the bytes of a record besides its image: framing, labels and names."""

_SHARDS_AT_ONCE = 8
_MANIFEST = re.compile(r"([^/]*)\.manifest\.json")
_IDENTITY = "identity record without an image: its values are record numbers, no labels"
_BOXES_NOTE = (
    "its records have bounding boxes, which are not carried over: make the shards from the images "
    "to have boxes in them"
)


class RecordsSource:
    """The images in a folder or prefix of shards, or in a single shard."""

    only_images = True

    def __init__(
        self, uri: str, options: StoreOptions | None = None, section: RecordsOptions | None = None
    ) -> None:
        self._options = options
        self._section = section or RecordsOptions()
        layout = self._section.layout
        self._fields = None if layout == "auto" else fields_of(layout)
        name = uri.rstrip("/").rpartition("/")[2]
        # The name of a single shard, or the common beginning of the names of several shards.
        self._prefix = name if is_shard_name(name) else ""
        folder = split_uri(uri.rstrip("/"))[0] if self._prefix else uri
        self._store = open_store(folder, options)
        self.concurrency = reads_in_flight(self._store)
        self._snapshot: Snapshot | None = None
        # For an output of this program: the format to read, and the options of its records.
        self._own_format: tuple[str, RecordOptions] | None = None
        # For other shards: the format of each shard by its key.
        self._formats: dict[str, str] = {}
        self._exclusion = Exclusion()

    @property
    def uri(self) -> str:
        """The address of the shards."""
        return f"{self._store.uri}/{self._prefix}" if self._prefix else self._store.uri

    def disk_paths(self) -> Sequence[str]:
        """The folder that every worker must be able to read, if it is on a disk."""
        return disk_paths(self._store)

    def leave_out(self, globs: tuple[str, ...]) -> None:
        """Let ``list`` skip shards of other programs that these globs match, by file or folder."""
        self._exclusion = Exclusion(globs)

    def read(self, item: Located) -> bytes:
        """Return the image of one record.

        Raises:
            CorruptImage: the record is damaged.
            UnreadableImage: the shard is on a disk and may not be read.
            SourceChanged: the shard was removed, or its output was made again, since it was listed.
            StoreError: the store failed. Reading the record again may succeed.
        """
        try:
            return self._read_image(item)
        except DatasetChanged as error:
            raise SourceChanged(str(error)) from None
        except RecordError as error:
            record = f"record at byte {item.offset} of {item.container}"
            raise CorruptImage(f"{record}: {without_location(str(error))}") from None
        except (ObjectNotFound, PermissionRefused) as error:
            raise translated_read_error(error, self._store, item.container, self.uri) from None

    def _read_image(self, item: Located) -> bytes:
        """Read the image of one record. More bytes are read until the record is complete."""
        store = self._snapshot or self._store
        length = item.bytes + _EXTRA_BYTES
        while True:
            data = store.get_range(item.container, item.offset, length)
            try:
                return bytes(self._decoded_image(data, item.container))
            except TruncatedRecord:
                is_end_of_shard = len(data) < length
                if is_end_of_shard:
                    raise
            length *= 16

    def _decoded_image(self, data: bytes, container: str) -> Buffer:
        """Decode the record at the beginning of ``data``, and return its image.

        Raises:
            TruncatedRecord: ``data`` ends before the record does.
            CorruptRecord: the record is damaged.
        """
        if self._own_format is not None:
            name, options = self._own_format
            record_format = get_format(name)
            return record_format.image(_first_payload(data, record_format), options)
        record_format = get_format(self._format_of(data[:HEAD_BYTES], container))
        payload = _first_payload(data, record_format)
        return content_of(payload, record_format, self._fields).image

    def _format_of(self, head: Buffer, container: str) -> str:
        """The format of a shard. It is remembered for later records.

        Args:
            head: the first bytes of one of its records, which show the format. If several formats
                fit, the setting ``records.format`` decides.
            container: the key of the shard.

        Raises:
            CorruptRecord: no format has records that begin with these bytes.
        """
        if container not in self._formats:
            candidates = formats_like(head)
            if not candidates:
                raise CorruptRecord("no record begins here")
            setting = self._section.format
            self._formats[container] = setting if setting in candidates else candidates[0]
        return self._formats[container]

    def list(self) -> Listing:
        """List every record.

        The records of an output of this program are in its table of samples. Shards of other
        programs are read completely.

        Raises:
            SourceNotFound: there are no shards.
            SourceError: it is not clear which shards to read, or they cannot be read.
        """
        tree = list_files(self._store, self._prefix, self._exclusion.reason)
        listing = self._list_files({info.key: info for info in tree.files})
        return replace(listing, notes=(*listing.notes, *tree.notes()), unread=tuple(tree.unread))

    def _list_files(self, files: Mapping[str, ObjectInfo]) -> Listing:
        """List all records of the shards among these files.

        Args:
            files: all files at the address, by their keys.

        Raises:
            SourceNotFound: there are no shards.
            SourceError: it is not clear which shards to read, or they cannot be read.
        """
        split = self._section.split or "train"
        complete_splits = []
        incomplete_splits = []
        for key in sorted(files):
            manifest_match = _MANIFEST.fullmatch(key)
            if manifest_match:
                complete_splits.append(manifest_match[1])
            split_of_job = keys.split_of_job(key)
            if split_of_job:
                incomplete_splits.append(split_of_job)
        if split in complete_splits:
            try:
                return self._list_own_output(files, split)
            except (DatasetError, ObjectNotFound, LookupError, ValueError) as error:
                raise SourceError(
                    f"{self.uri}: the tables of split {split!r} cannot be read ({error}): repair "
                    "them (dataprep verify), or name the folder of its shards as the source"
                ) from None
        if complete_splits:
            raise SourceError(
                f"{self.uri} has no split {split!r}: it has {', '.join(complete_splits)}; say "
                "which with --set records.split=NAME"
            )
        if incomplete_splits:
            raise SourceError(
                f"{self.uri} is not complete: split {incomplete_splits[0]!r} has no manifest: run "
                "the job that makes it again to resume it"
            )
        left_out = []
        remaining = {}
        for key, info in files.items():
            if self._exclusion.by_glob(key):
                left_out.append(key)
            else:
                remaining[key] = info
        listing = self._list_by_scan(self._shards(remaining, split))
        return replace(listing, left_out=tuple(left_out))

    def _list_own_output(self, files: Mapping[str, ObjectInfo], split: str) -> Listing:
        """List the samples of a complete split of this program, from its tables.

        Raises:
            SourceError: the split does not have the requested format, or lacks a shard.
            DatasetError, ObjectNotFound, LookupError, ValueError: its tables cannot be read.
        """
        manifest, snapshot = Snapshot.open(self._store, split)
        format_name = self._section.format
        if format_name == "auto":
            format_name = preferred_format(manifest.formats)
        if format_name not in manifest.formats:
            raise SourceError(
                f"{self.uri} was made as {', '.join(manifest.formats)}, not {format_name}"
            )
        shards = manifest.formats[format_name].shards
        shard_keys = {keys.shard_number(shard.key): shard.key for shard in shards}
        missing = sorted({*shard_keys.values()} - files.keys())
        if missing:
            raise SourceError(
                f"{self.uri} lacks {missing[0]}, which its manifest names: put it back, or run the "
                "job that made it again"
            )
        samples = stored_table(self._store, manifest)
        # Tables of earlier versions have no image_bytes. The size of the record is slightly larger.
        has_image_bytes = "image_bytes" in samples.columns().column_names
        size_column = "image_bytes" if has_image_bytes else f"{format_name}_length"
        offset_column = f"{format_name}_offset"
        columns = ["source", "synset", "label", "shard", offset_column, size_column]
        table = samples.columns(columns).to_pydict()
        plan = read_table(self._store.get(keys.plan(split)))
        has_boxes = manifest.config.get("boxes") is not None
        synsets = [synset or "" for synset in table["synset"]]
        listing = Listing.sorted(
            unescape_all(table["source"]),
            table[size_column],
            unescape_all(synsets),
            {},
            containers=[shard_keys[number] for number in table["shard"]],
            offsets=table[offset_column],
            values=_planned_values(plan, table["source"], table["label"]),
            label_space=LabelSpace.from_json(self._store.get(keys.LABELS)),
            notes=(_BOXES_NOTE,) if has_boxes else (),
            form="shards of this program",
            file_versions={shard.key: shard.sha256 for shard in shards},
        )
        snapshot.check()
        self._snapshot = snapshot
        self._own_format = format_name, manifest.record_options(format_name)
        return listing

    def _shards(self, files: Mapping[str, ObjectInfo], split: str) -> Sequence[ObjectInfo]:
        """Choose the shards to read by their names. Empty files are left out.

        Args:
            files: all files that are not excluded, by their keys.
            split: the split to read, if there are several sets of shards.

        Raises:
            SourceNotFound: no file has the name of a shard and is not empty.
            SourceError: as ``shards_of``.
        """
        format_name = self._section.format
        names = [key for key in files if is_shard_name(key) and may_have_format(key, format_name)]
        # If the address is a single shard, the other shards of its set are not required.
        is_single = bool(TOTAL.search(self._prefix))
        shards = []
        if names:
            incomplete = self._section.incomplete or is_single
            shard_names = shards_of(names, split, self.uri, incomplete=incomplete)
            shards = [files[key] for key in shard_names if files[key].bytes]
        if not shards:
            raise SourceNotFound(
                f"no shards in {self.uri!r}: names such as train-00000-of-00128, NAME.tfrecord "
                "or NAME.rec are expected" + advice_for(files)
            )
        return shards

    def _version(self, shard: ObjectInfo) -> str:
        """The version of a shard: its ETag in the listing, else the current version of the file."""
        return shard.etag or StoredFile.now(self._store, shard.key).version

    def _list_by_scan(self, shards: Sequence[ObjectInfo]) -> Listing:
        """List the records of these shards by reading them completely.

        Raises:
            SourceError: a shard is damaged, or no record can be read.
        """
        scan_shard = partial(
            scan, self._store, fields=self._fields, format_name=self._section.format
        )
        # Read the versions before the scan. If a shard is replaced during the scan, its new version
        # then differs from the recorded version.
        versions = {shard.key: self._version(shard) for shard in shards}
        records_by_shard = in_order(scan_shard, shards, _SHARDS_AT_ONCE)
        records = [*chain.from_iterable(records_by_shard)]
        problems: dict[int, str] = {}
        identity_rows = set()
        for row, record in enumerate(records):
            if record.is_identity:
                identity_rows.add(row)
            elif record.problem:
                problems[row] = record.problem
        if len(problems) == len(records):
            raise SourceError(f"{shards[0].key}: no record can be read: {problems[0]}")
        for row in identity_rows:
            problems[row] = _IDENTITY
        labels: list[Sequence[float]] = []
        for row, record in enumerate(records):
            labels.append(() if row in problems else record.labels)
        refuse_detection(labels, shards[0].key)
        numbers, values = class_numbers(labels, problems)
        offset, offset_notes = self._label_offset(records, numbers)
        if offset:
            numbers = {row: number - offset for row, number in numbers.items()}
            if values is not None:
                values[:, 0] -= offset
        classes = self._classes(records, numbers, problems, has_values=values is not None)
        has_boxes = any(record.has_boxes for record in records)
        boxes_notes = [_BOXES_NOTE] if has_boxes else []
        listing_problems = {}
        for row, reason in problems.items():
            is_identity = row in identity_rows
            listing_problems[row] = Problem("skipped" if is_identity else "failed", reason)
        return Listing.sorted(
            sample_names(records, classes.names),
            [record.bytes for record in records],
            classes.names,
            listing_problems,
            containers=[record.shard for record in records],
            offsets=[record.offset for record in records],
            values=values,
            label_space=classes.space,
            notes=(*offset_notes, *classes.notes, *boxes_notes),
            form="shards",
            file_versions=versions,
        )

    def _label_offset(
        self, records: Sequence[ScannedRecord], numbers: Mapping[int, int]
    ) -> tuple[int, Sequence[str]]:
        """The number to subtract from the labels in records, and notes about it.

        Args:
            records: the records.
            numbers: the class number of each record that has one, as in the record.
        """
        setting = self._section.label_offset
        if setting is not None:
            return setting, []
        from_background = any(record.from_background for record in records)
        min_label = min(numbers.values(), default=0)
        if not from_background or min_label <= 0:
            return 0, []
        note = (
            f"labels in the records are {min_label} to {max(numbers.values())}: 0 "
            "is taken for the background, so that 1 is the first class; "
            "records.label_offset=0 changes that"
        )
        return 1, [note]

    def _classes(
        self,
        records: Sequence[ScannedRecord],
        numbers: Mapping[int, int],
        problems: dict[int, str],
        *,
        has_values: bool,
    ) -> Classes:
        """The class of each record. Records that are not samples are added to ``problems``.

        Args:
            records: the records.
            numbers: the class number of each record that has one, after subtracting the offset.
            problems: why records are not samples, by their row.
            has_values: whether records have several labels, the first of which is the number.

        Raises:
            SourceNotFound, SourceError: the names of the classes cannot be read, or the first of
                several labels is too high.
        """
        if self._section.class_names:
            label_space = read_class_names(self._section.class_names, self._options)
            return classes_from_numbers(numbers, len(records), label_space, problems, "records")
        if not any(record.labels or record.synset or record.text for record in records):
            return Classes([""] * len(records))
        synsets = [record.synset for record in records]
        texts = [record.text for record in records]
        return classes_of_records(synsets, texts, numbers, problems, keep_numbers=has_values)


def _first_payload(data: bytes, record_format: RecordFormat) -> Buffer:
    """The payload of the record at the beginning of ``data``.

    Raises:
        TruncatedRecord: ``data`` ends before the record does.
        CorruptRecord: the record is damaged.
    """
    for record in record_format.read(data, "record"):
        return record.payload
    raise TruncatedRecord("the file ends before it")


def _planned_values(
    plan: pa.Table, names: Sequence[str], labels: Sequence[int]
) -> NDArray[np.float32] | None:
    """All labels of each sample; None if the samples of the split have only one label.

    Args:
        plan: the plan of the split.
        names: the escaped names of the samples.
        labels: the label of the class of each sample. It is the first of all labels.
    """
    if "values" not in plan.column_names:
        return None
    planned = plan.select(["source", "values"]).to_pydict()
    values_by_name = dict(zip(planned["source"], planned["values"], strict=True))
    values = np.array([values_by_name[name] for name in names], dtype=np.float32)
    values[:, 0] = labels
    return values
