"""Find existing shards by their names, and read every record in them.

This is for shards of other programs, which have no manifest. The first bytes of a shard show its
format. The names of the features in a record show their meaning.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from dataprep.errors import CorruptRecord, RecordError, SourceError
from dataprep.formats import (
    Buffer,
    BytesList,
    Feature,
    FloatList,
    Int64List,
    Layout,
    RecordFormat,
    get_format,
    usable_formats,
)
from dataprep.formats.protocol import without_location
from dataprep.formats.shard_reader import ShardReader
from dataprep.stores import ObjectInfo, Store

TOTAL = re.compile(r"[-_.](?:\d{5,}|\*)-of-(\d{5,})(?=$|\.)")
"""The total number of shards in the name of a shard, as in ``train-00000-of-00128``."""

# The number of a shard within its set, as 00003 in "train-00003-of-00128" and "train_00003.rec".
_SHARD_NUMBER = re.compile(
    r"(?<=[-_.])\d+(?=-of-\d{5,}(?:$|\.)|(?:\.(?:tfrecords?|tfrec|rec))?(?:\.gz)?$)"
)
_NUMBER_OF_TOTAL = re.compile(r"[-_.]\d{5,}-of-\d{5,}$")
_EXTENSION = re.compile(r"\.(tfrecords?|tfrec|rec)(?=$|[-_.]\d{5,}-of-\d{5,}$|\.gz$)")
_OTHER_EXTENSIONS = (".idx", ".lst", ".json", ".txt", ".index", ".parquet", ".tsv", ".csv")
_SPELLINGS = ({"train", "training"}, {"validation", "val", "valid", "eval"})
"""Words that mean the same split in the names of shards."""

_MAX_SETS_SHOWN = 8
_MAX_KEYS_SHOWN = 12

Fields = Mapping[str, str]
"""The name of the feature in a record, by the field of a sample (docs/layouts.md)."""


def fields_of(layout: str | Mapping[str, str]) -> Fields:
    """Return the name of the feature for each field of a layout.

    Raises:
        ConfigError: there is no such layout.
    """
    return {field: feature for feature, field in Layout.of(layout).features}


_IMAGENET = fields_of("imagenet")
_PLAIN = {**fields_of("tfds"), "synset": "synset", "bbox/xmin": "bbox/xmin"}
"""The features of TFDS. Formats without a layout have the same names."""


class ScannedRecord(NamedTuple):
    """A record of a shard. With a problem, only ``shard``, ``name`` and ``offset`` are also set.

    Attributes:
        image: the encoded image; empty in the result of ``scan``.
        labels: the labels as they are in the record, including a label offset.
        synset: the synset of the class; empty if it has none.
        text: the class in words; empty if it has none.
        filename: the file name of the image; empty if it has none.
        from_background: whether the label 0 usually means the background in the layout of the
            record, and is not a class.
        has_boxes: whether the record has bounding boxes.
        is_identity: whether the record has several values and no image. In data sets of faces, such
            a record lists the records of one person.
        shard: the key of the shard.
        name: the shard and the number of the record in it.
        offset: the first byte of the record in the shard.
        bytes: the size of the image in bytes.
        problem: why the record cannot be read; empty if it can be read.
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


def is_shard_name(key: str) -> bool:
    """Whether a file should be a shard of records according to its name.

    Such names are ``train-00000-of-00128`` (the usual form),
    ``imagenet2012-train.tfrecord-00000-of-01024`` (TFDS), ``train_0.rec`` (im2rec with
    ``--chunks``), ``val.rec``, and ``anything.tfrecord``.
    """
    name = key.rpartition("/")[2]
    if name.startswith(".") or name.endswith(_OTHER_EXTENSIONS):
        return False
    return bool(TOTAL.search(name) or _EXTENSION.search(name))


def may_have_format(key: str, format_name: str) -> bool:
    """Whether the name of a shard fits a format. Every name fits the format ``auto``."""
    if format_name == "auto":
        return True
    name = _NUMBER_OF_TOTAL.sub("", key.removesuffix(".gz"))
    extensions = {record_format.extension for record_format in usable_formats()} - {""}
    shard_extension = ""
    for extension in extensions:
        if name.endswith(extension):
            shard_extension = extension
    return shard_extension == get_format(format_name).extension


def shards_of(names: Iterable[str], split: str, uri: str, *, incomplete: bool) -> list[str]:
    """Choose one set of shards. The names of the shards in a set differ only in a number.

    If there are several sets, the set with the split in its name is chosen. The shards are sorted
    by name.

    Args:
        names: the names of all shards, including empty ones.
        split: a word in the name of the set, if there are several.
        uri: the address of the source, for errors.
        incomplete: whether to accept a set with missing shards.

    Raises:
        SourceError: not exactly one set fits, or a shard is missing.
    """
    names_by_set: dict[str, list[str]] = {}
    for name in sorted(names):
        pattern = _SHARD_NUMBER.sub("*", name, count=1)
        names_by_set.setdefault(pattern, []).append(name)
    patterns = [*names_by_set]
    if len(patterns) > 1:
        has_split = _split_pattern(split)
        patterns = [pattern for pattern in patterns if has_split.search(pattern.rpartition("/")[2])]
    if len(patterns) != 1:
        sets = ", ".join(map(repr, [*names_by_set][:_MAX_SETS_SHOWN]))
        raise SourceError(
            f"{uri} has several sets of shards, {sets}, and which of them is split {split!r} is "
            "not clear: choose with --set records.split=NAME or records.format=FORMAT, or move the "
            "others elsewhere"
        )
    (pattern,) = patterns
    shards = names_by_set[pattern]
    total = TOTAL.search(pattern)
    if total and len(shards) < int(total[1]) and not incomplete:
        raise SourceError(
            f"{uri} has {len(shards):,} of {int(total[1]):,} shards {pattern!r}: put the missing "
            "shards there, or read the others with --set records.incomplete=true"
        )
    return shards


def _split_pattern(split: str) -> re.Pattern[str]:
    """A pattern that finds the split as a word in a name, in all usual spellings."""
    spellings = {split}
    for same_split in _SPELLINGS:
        if split in same_split:
            spellings = same_split
    alternatives = "|".join(re.escape(spelling) for spelling in spellings)
    return re.compile(rf"(?:^|[-_.])(?:{alternatives})(?:[-_.]|$)", re.IGNORECASE)


def scan(
    store: Store, info: ObjectInfo, fields: Fields | None, format_name: str = "auto"
) -> list[ScannedRecord]:
    """Read all records of a shard in their order, including those without an image.

    Args:
        store: the store that contains the shard.
        info: the shard.
        fields: the features of the records; None to decide by the names of the features.
        format_name: the format to choose if several formats fit the first bytes of the shard.

    Raises:
        SourceError: the shard is damaged or truncated, or the object is not a shard.
    """

    def choose_format(names: Sequence[str]) -> str | None:
        return format_name if format_name in names else None

    records: list[ScannedRecord] = []
    end = 0
    try:
        shard = ShardReader(store, info, choose_format)
        record_format = get_format(shard.format)
        for offset, length in shard.extents():
            (raw,) = record_format.read(shard[offset : offset + length], "record")
            record = _without_image(raw.payload, end, record_format, fields)
            name = f"{info.key}/{len(records):08d}"
            records.append(record._replace(shard=info.key, name=name, offset=end))
            end = offset + length
        if shard.fault:
            raise shard.fault
    except ValueError as error:  # This also happens if the object has become shorter.
        raise SourceError(
            f"{info.key}: damaged at byte {end}: {without_location(str(error))}: copy the shard "
            "again, or move it out of the source and set records.incomplete=true. A shard "
            "that is compressed as a whole has to be decompressed first (gzip -d)"
        ) from None
    return records


def _without_image(
    payload: Buffer, offset: int, record_format: RecordFormat, fields: Fields | None
) -> ScannedRecord:
    """Decode a record, and replace the image by its size.

    If decoding fails, the result has only the problem, in which ``offset`` locates the record.
    """
    try:
        record = content_of(payload, record_format, fields)
    except RecordError as error:
        return ScannedRecord(problem=f"damaged at byte {offset}: {without_location(str(error))}")
    return record._replace(image=b"", bytes=memoryview(record.image).nbytes)


def content_of(
    payload: Buffer, record_format: RecordFormat, fields: Fields | None
) -> ScannedRecord:
    """Decode a record. All fields except the image are optional, because programs differ in them.

    Args:
        payload: the content of the record.
        record_format: the format of the record.
        fields: the features of the record; None to decide by the names of the features.

    Raises:
        RecordError: the record is malformed, or does not have exactly one image.
    """
    features = record_format.fields(payload)
    if fields is None:
        fields = _IMAGENET if _IMAGENET["encoded"] in features else _PLAIN
    images = _values(features, fields["encoded"], BytesList)
    if len(images) != 1:
        keys = ", ".join(map(repr, sorted(features)[:_MAX_KEYS_SHOWN])) or "none"
        raise CorruptRecord(
            f"it does not have one image under {fields['encoded']!r}, its keys are {keys}: name "
            "the keys with records.layout, as in {my/image: encoded, my/label: label}"
        )
    labels = _values(features, fields.get("values"), FloatList)
    # Values that are not several labels are left out: the label has its own feature.
    if len(labels) < 2:
        labels = _values(features, fields.get("label"), Int64List | FloatList)
    is_empty = not memoryview(images[0]).nbytes
    filename = _text(features, fields.get("filename")) or _text(features, fields.get("source"))
    return ScannedRecord(
        images[0],
        labels,
        synset=_text(features, fields.get("synset")),
        text=_text(features, fields.get("text")),
        filename=filename,
        from_background=fields == _IMAGENET,
        has_boxes=len(_values(features, fields.get("bbox/xmin"), FloatList)) > 0,
        is_identity=is_empty and len(labels) > 1,
    )


def _values(features: Mapping[str, Feature], key: str | None, feature_type: Any) -> Sequence[Any]:
    """The values of a feature; empty if the feature is missing or has another type."""
    feature = features.get(key or "")
    return feature.values if isinstance(feature, feature_type) else ()


def _text(features: Mapping[str, Feature], key: str | None) -> str:
    """The text of a feature; empty if the feature is missing or does not have exactly one value."""
    values = _values(features, key, BytesList)
    return os.fsdecode(bytes(values[0])) if len(values) == 1 else ""


def sample_names(records: Sequence[ScannedRecord], classes: Sequence[str]) -> list[str]:
    """Name each record ``CLASS/FILE``; or all ``SHARD/NUMBER``, if any name is missing or repeated.

    A file name that contains folders is used without the class. A record that has a problem and no
    file name is named ``SHARD/NUMBER``.

    Args:
        records: the records.
        classes: the class of each record; empty if it has none.
    """
    numbered = [record.name for record in records]
    names = list(numbered)
    for row, record in enumerate(records):
        filename, class_name = record.filename, classes[row]
        if filename:
            is_complete = "/" in filename or not class_name
            names[row] = filename if is_complete else f"{class_name}/{filename}"
        elif not record.problem:
            return numbered
    return names if len(set(names)) == len(names) else numbered
