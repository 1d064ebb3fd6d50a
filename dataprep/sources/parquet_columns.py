"""PURE. Choose the columns of a Parquet file that have the images, their paths and classes.

Hubs store an image as a struct of ``bytes`` and ``path``. Hugging Face's library describes columns
in the metadata of the schema, under the key ``huggingface``. There, a ``ClassLabel`` has the names
of the classes in the order of their numbers.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from dataprep.errors import SourceError
from dataprep.names import escape
from dataprep.sources.options import ParquetOptions

IMAGE_COLUMNS = (
    *("image", "images", "img", "jpg", "jpeg", "png", "webp", "picture", "photo"),
    *("image_bytes", "encoded"),
)
LABEL_COLUMNS = (
    *("label", "labels", "class", "classes", "cls", "category", "target", "synset"),
    *("class_id", "class_label", "class_name", "label_id", "label_name"),
)

_MOST_SHOWN = 12


@dataclass(frozen=True)
class Columns:
    """The columns to read. A column in a struct has a name with dots.

    Attributes:
        image: the column of encoded images.
        path: the column of the file names of the images; empty if there is none.
        label: the column of classes; empty if there is none.
        has_numbers: whether the classes are numbers.
        class_names: the names of the classes in the schema, by number; empty if it has none.
        advice: how to choose a column of classes, if none was recognised.
    """

    image: str
    path: str = ""
    label: str = ""
    has_numbers: bool = False
    class_names: tuple[str, ...] = ()
    advice: str = ""


def columns_of(schema: pa.Schema, section: ParquetOptions, title: str) -> Columns:
    """Choose the columns to read.

    Args:
        schema: the schema of the file.
        section: the columns that the user has named.
        title: what errors call the file.

    Raises:
        SourceError: a named column does not exist or has a type that cannot be read; or it is not
            clear which columns to read.
    """
    columns = [*_columns(schema)]
    names = Counter(name for name, _ in columns)
    if repeated := [name for name, count in names.items() if count > 1]:
        raise SourceError(f"{title}: several columns are called {repeated[0]!r}")
    types = dict(columns)
    features = _features(schema)
    image = _image_column(types, features, section.image, title)
    data, path = image, ""
    if pa.types.is_struct(types[image]):
        data = f"{image}.bytes"
        path = f"{image}.path" if _is_text(types.get(f"{image}.path")) else ""
    if section.label is False:
        return Columns(data, path)
    rest = {
        name: kind
        for name, kind in types.items()
        if name != image and not name.startswith(f"{image}.")
    }
    label = _label_column(rest, features, section.label, title)
    if not label:
        shown = _shown(rest) if rest else "no other columns"
        advice = f"it has {shown}: --set parquet.label=NAME takes the class from a column"
        return Columns(data, path, advice=advice)
    class_names = _feature(features, label).get("names")
    if not isinstance(class_names, list) or not all(isinstance(n, str) for n in class_names):
        class_names = []
    return Columns(data, path, label, not _is_text(types[label]), tuple(class_names))


def _columns(schema: pa.Schema) -> Iterator[tuple[str, pa.DataType]]:
    """Yield the name and the type of every column, and of every column in a struct."""
    pending = [(field.name, field.type) for field in reversed(schema)]
    while pending:
        name, kind = pending.pop()
        yield name, kind
        if pa.types.is_struct(kind):
            pending.extend((f"{name}.{field.name}", field.type) for field in reversed([*kind]))


def _image_column(
    types: Mapping[str, pa.DataType], features: Mapping[str, Any], column: str | None, title: str
) -> str:
    """The column of images: the one that the user has named, or the one that is recognised.

    Raises:
        SourceError: the named column has no images, or not exactly one column is recognised.
    """
    if column is not None:
        _require(types, column, title, "parquet.image")
        if not _holds_images(types, column):
            raise SourceError(
                f"{title}: its column {column!r} (parquet.image) is "
                f"{_type_description(types[column])}: give a column of binary values, or of "
                "structs with binary 'bytes'"
            )
        return column
    candidates: list[str] = []
    for name in types:
        is_inside = any(name.startswith(f"{candidate}.") for candidate in candidates)
        if not is_inside and _holds_images(types, name):
            candidates.append(name)
    if not candidates:
        raise SourceError(
            f"{title}: no column of images, which has binary values or structs with binary "
            f"'bytes'; its columns are {_shown(types)}. Tables of paths are read with --kind "
            "listing"
        )
    chosen = _single_candidate(candidates, features, "Image", IMAGE_COLUMNS)
    if chosen is None:
        raise SourceError(
            f"{title}: which column has the images is not clear: {_shown(candidates)} could; name "
            "it with --set parquet.image=NAME"
        )
    return chosen


def _label_column(
    types: Mapping[str, pa.DataType],
    features: Mapping[str, Any],
    column: str | None,
    title: str,
) -> str:
    """The column of classes that the user has named or that is recognised; empty if there is none.

    Raises:
        SourceError: the column cannot have classes, or several columns are recognised.
    """
    if column is not None:
        _require(types, column, title, "parquet.label")
    else:
        likely = [
            name
            for name in types
            if _feature(features, name).get("_type") == "ClassLabel"
            or _last_part(name) in LABEL_COLUMNS
        ]
        if not likely:
            return ""
        readable = [name for name in likely if _holds_classes(types[name])]
        column = _single_candidate(readable or likely, features, "ClassLabel", LABEL_COLUMNS)
        if column is None:
            raise SourceError(
                f"{title}: which column has the classes is not clear: "
                f"{_shown(readable or likely)} could; name it with --set parquet.label=NAME"
            )
    if not _holds_classes(types[column]):
        others = [name for name in types if name != column and _holds_classes(types[name])]
        another = ""
        if others:
            another = (
                f"name another of its columns, {_shown(others)}, with --set parquet.label=NAME, or "
            )
        raise SourceError(
            f"{title}: its column {column!r} is {_type_description(types[column])}, but a class "
            f"is a whole number or a text: {another}read no classes with --set parquet.label=false"
        )
    return column


def _single_candidate(
    candidates: Sequence[str],
    features: Mapping[str, Any],
    feature_type: str,
    usual_names: Sequence[str],
) -> str | None:
    """The only candidate, or else the only one with the feature type or a usual name; else None."""
    with_feature = [
        name for name in candidates if _feature(features, name).get("_type") == feature_type
    ]
    with_name = [name for name in with_feature or candidates if _last_part(name) in usual_names]
    for group in (candidates, with_feature, with_name):
        if len(group) == 1:
            return group[0]
    return None


def _require(types: Mapping[str, object], column: str, title: str, key: str) -> None:
    """Raise SourceError if there is no such column."""
    if column not in types:
        raise SourceError(f"{title}: no column {column!r} ({key}): it has {_shown(types)}")


def _holds_images(types: Mapping[str, pa.DataType], name: str) -> bool:
    """Whether a column has binary values, or structs with binary ``bytes``."""
    kind = types[name]
    return _is_binary(types.get(f"{name}.bytes") if pa.types.is_struct(kind) else kind)


def _holds_classes(kind: pa.DataType) -> bool:
    """Whether values of this type can be classes."""
    value = _value_type(kind)
    return bool(pa.types.is_integer(value) or pa.types.is_boolean(value)) or _is_text(kind)


def _is_binary(kind: pa.DataType | None) -> bool:
    if kind is None:
        return False
    value = _value_type(kind)
    checks = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    return any(check(value) for check in (*checks, pa.types.is_binary_view))


def _is_text(kind: pa.DataType | None) -> bool:
    if kind is None:
        return False
    value = _value_type(kind)
    checks = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(check(value) for check in checks)


def _value_type(kind: pa.DataType) -> pa.DataType:
    """The type of the values of a dictionary, or the type itself."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _features(schema: pa.Schema) -> Mapping[str, Any]:
    """How Hugging Face's library describes the columns; empty if it does not."""
    try:
        content = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
        features = content["info"]["features"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return {}
    return features if isinstance(features, dict) else {}


def _feature(features: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """How Hugging Face's library describes one column; empty if it does not."""
    feature: Any = features.get(name)
    if feature is None:
        feature = features
        for part in name.split("."):
            feature = feature.get(part) if isinstance(feature, dict) else None
    return feature if isinstance(feature, dict) else {}


def _last_part(name: str) -> str:
    """The last part of a name with dots, in lower case."""
    return name.rpartition(".")[2].lower()


def _type_description(kind: pa.DataType) -> str:
    """Describe a type for a message, shortened."""
    text = " ".join(str(kind).split())
    return f"of type {text if len(text) < 60 else text[:60] + '...'}"


def _shown(names: Mapping[str, object] | Sequence[str]) -> str:
    """The names of columns for a message, at most ``_MOST_SHOWN``."""
    columns = [*names]
    more = ", ..." if len(columns) > _MOST_SHOWN else ""
    return ", ".join(repr(escape(column)) for column in columns[:_MOST_SHOWN]) + more
