"""PURE. Choose the columns of a Parquet file that contain the images, their paths and classes.

Hubs of data sets store an image as a struct of ``bytes`` and ``path``. Hugging Face's library
describes the columns as *features*, in the metadata of the schema under the key ``huggingface``. A
feature of the type ``ClassLabel`` has the names of the classes in the order of their numbers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from dataprep.errors import SourceError
from dataprep.message_text import listed
from dataprep.name_encoding import escape
from dataprep.sources.options import ParquetOptions

# The names that hubs of data sets usually give to the columns of images and of classes.
IMAGE_COLUMNS = (
    *("image", "images", "img", "jpg", "jpeg", "png", "webp", "picture", "photo"),
    *("image_bytes", "encoded"),
)
LABEL_COLUMNS = (
    *("label", "labels", "class", "classes", "cls", "category", "target", "synset"),
    *("class_id", "class_label", "class_name", "label_id", "label_name"),
)

_MAX_SHOWN = 12


@dataclass(frozen=True)
class Columns:
    """The columns to read. A column in a struct has a name with dots.

    Attributes:
        image: the column of encoded images.
        path: the column of the file names of the images; empty if there is none.
        label: the column of classes; empty if there is none.
        has_numbers: whether the classes are numbers or booleans.
        class_names: the names of the classes in the schema, by number; empty if it has none.
        advice: how to choose a column of classes, if no column was recognised.
    """

    image: str
    path: str = ""
    label: str = ""
    has_numbers: bool = False
    class_names: tuple[str, ...] = ()
    advice: str = ""


def choose_columns(schema: pa.Schema, section: ParquetOptions, title: str) -> Columns:
    """Choose the columns to read.

    Args:
        schema: the schema of the file.
        section: the columns that the user has named.
        title: the file, as errors call it.

    Raises:
        SourceError: a named column does not exist, or has a type that cannot be read; or the
            columns to read are not clear.
    """
    types: dict[str, pa.DataType] = {}
    for name, data_type in _columns(schema):
        if name in types:
            raise SourceError(f"{title}: several columns are called {name!r}")
        types[name] = data_type
    features = _features(schema)
    image = _image_column(types, features, section.image, title)
    image_data, path = image, ""
    if pa.types.is_struct(types[image]):
        image_data = f"{image}.bytes"
        if _is_text(types.get(f"{image}.path")):
            path = f"{image}.path"
    if section.label is False:
        return Columns(image_data, path)
    other_types = {
        name: data_type
        for name, data_type in types.items()
        if name != image and not name.startswith(f"{image}.")
    }
    label = _label_column(other_types, features, section.label, title)
    if not label:
        columns = _shown(other_types) if other_types else "no other columns"
        advice = f"it has {columns}: --set parquet.label=NAME takes the class from a column"
        return Columns(image_data, path, advice=advice)
    return Columns(
        image=image_data,
        path=path,
        label=label,
        has_numbers=not _is_text(types[label]),
        class_names=_class_names(features, label),
    )


def _class_names(features: Mapping[str, Any], column: str) -> tuple[str, ...]:
    """The names of the classes in the schema, by number; empty if it has none."""
    names = _feature(features, column).get("names")
    if not isinstance(names, list):
        return ()
    if not all(isinstance(name, str) for name in names):
        return ()
    return tuple(names)


def _columns(schema: pa.Schema) -> Iterator[tuple[str, pa.DataType]]:
    """Yield the name and the type of every column, and of every column in a struct."""
    pending = [(field.name, field.type) for field in reversed(schema)]
    while pending:
        name, data_type = pending.pop()
        yield name, data_type
        if pa.types.is_struct(data_type):
            fields = reversed([*data_type])
            pending.extend((f"{name}.{field.name}", field.type) for field in fields)


def _image_column(
    types: Mapping[str, pa.DataType], features: Mapping[str, Any], column: str | None, title: str
) -> str:
    """The column of images: the column that the user has named, or a column that is recognised.

    Raises:
        SourceError: the named column has no images; or no column, or several, are recognised.
    """
    if column is not None:
        _require(types, column, title, "parquet.image")
        if not _has_images(types, column):
            raise SourceError(
                f"{title}: its column {column!r} (parquet.image) is "
                f"{_type_description(types[column])}: give a column of binary values, or of "
                "structs with binary 'bytes'"
            )
        return column
    candidates: list[str] = []
    for name in types:
        is_inside = any(name.startswith(f"{candidate}.") for candidate in candidates)
        if not is_inside and _has_images(types, name):
            candidates.append(name)
    if not candidates:
        raise SourceError(
            f"{title}: no column of images, which has binary values or structs with binary "
            f"'bytes'; its columns are {_shown(types)}. Tables of paths are read with --kind "
            "listing"
        )
    image = _single_candidate(candidates, features, "Image", IMAGE_COLUMNS)
    if image is None:
        raise SourceError(
            f"{title}: which column has the images is not clear: {_shown(candidates)} could; name "
            "it with --set parquet.image=NAME"
        )
    return image


def _label_column(
    types: Mapping[str, pa.DataType],
    features: Mapping[str, Any],
    column: str | None,
    title: str,
) -> str:
    """The column of classes that the user has named, or that is recognised; empty if there is none.

    Args:
        types: the type of each column, except the column of images.
        features: the descriptions of all columns by Hugging Face's library.
        column: the column that the user has named; None if the user has named none.
        title: the file, as errors call it.

    Raises:
        SourceError: the column does not exist or cannot contain classes, or several columns are
            recognised.
    """
    if column is not None:
        _require(types, column, title, "parquet.label")
    else:
        likely = []
        for name in types:
            has_feature = _feature(features, name).get("_type") == "ClassLabel"
            if has_feature or _last_name(name) in LABEL_COLUMNS:
                likely.append(name)
        if not likely:
            return ""
        candidates = [name for name in likely if _can_be_classes(types[name])] or likely
        column = _single_candidate(candidates, features, "ClassLabel", LABEL_COLUMNS)
        if column is None:
            raise SourceError(
                f"{title}: which column has the classes is not clear: "
                f"{_shown(candidates)} could; name it with --set parquet.label=NAME"
            )
    if not _can_be_classes(types[column]):
        others = [name for name in types if name != column and _can_be_classes(types[name])]
        advice = ""
        if others:
            advice = (
                f"name another of its columns, {_shown(others)}, with --set parquet.label=NAME, or "
            )
        raise SourceError(
            f"{title}: its column {column!r} is {_type_description(types[column])}, but a class "
            f"is a whole number or a text: {advice}read no classes with --set parquet.label=false"
        )
    return column


def _single_candidate(
    candidates: Sequence[str],
    features: Mapping[str, Any],
    feature_type: str,
    usual_names: Sequence[str],
) -> str | None:
    """Choose one of several candidates. None if the choice is not clear.

    The choice is the only candidate, else the only candidate with the feature type, else the only
    one with a usual name. If several candidates have the feature type, only their names are
    compared.

    Args:
        candidates: the names of columns.
        features: the descriptions of all columns by Hugging Face's library.
        feature_type: the type in the description of the wanted column.
        usual_names: the usual names of the wanted column, in lower case.
    """
    with_feature = [
        name for name in candidates if _feature(features, name).get("_type") == feature_type
    ]
    with_name = [name for name in with_feature or candidates if _last_name(name) in usual_names]
    for names in (candidates, with_feature, with_name):
        if len(names) == 1:
            return names[0]
    return None


def _require(types: Mapping[str, object], column: str, title: str, key: str) -> None:
    """Raise SourceError if there is no such column."""
    if column not in types:
        raise SourceError(f"{title}: no column {column!r} ({key}): it has {_shown(types)}")


def _has_images(types: Mapping[str, pa.DataType], name: str) -> bool:
    """Whether a column has binary values, or structs with binary ``bytes``."""
    data_type = types[name]
    return _is_binary(types.get(f"{name}.bytes") if pa.types.is_struct(data_type) else data_type)


def _can_be_classes(data_type: pa.DataType) -> bool:
    """Whether values of this type can be classes."""
    value = _value_type(data_type)
    return bool(pa.types.is_integer(value) or pa.types.is_boolean(value)) or _is_text(data_type)


def _is_binary(data_type: pa.DataType | None) -> bool:
    """Whether values of this type are bytes. False for None, which means no column."""
    if data_type is None:
        return False
    value = _value_type(data_type)
    checks = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    return any(check(value) for check in (*checks, pa.types.is_binary_view))


def _is_text(data_type: pa.DataType | None) -> bool:
    """Whether values of this type are texts. False for None, which means no column."""
    if data_type is None:
        return False
    value = _value_type(data_type)
    checks = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(check(value) for check in checks)


def _value_type(data_type: pa.DataType) -> pa.DataType:
    """The type of the values of a dictionary, or the type itself."""
    return data_type.value_type if pa.types.is_dictionary(data_type) else data_type


def _features(schema: pa.Schema) -> Mapping[str, Any]:
    """The descriptions of all columns by Hugging Face's library; empty if there are none."""
    try:
        content = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
        features = content["info"]["features"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return {}
    return features if isinstance(features, dict) else {}


def _feature(features: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The description of one column by Hugging Face's library; empty if there is none."""
    # The name of a column can contain dots itself. Otherwise, dots separate the names of structs.
    feature: Any = features.get(name)
    if feature is None:
        feature = features
        for part in name.split("."):
            feature = feature.get(part) if isinstance(feature, dict) else None
    return feature if isinstance(feature, dict) else {}


def _last_name(name: str) -> str:
    """The name after the last dot, in lower case."""
    return name.rpartition(".")[2].lower()


def _type_description(data_type: pa.DataType) -> str:
    """Describe a type for a message, shortened."""
    text = " ".join(str(data_type).split())
    return f"of type {text if len(text) < 60 else text[:60] + '...'}"


def _shown(names: Mapping[str, object] | Sequence[str]) -> str:
    """The names of columns for a message, at most ``_MAX_SHOWN``."""
    return listed([escape(name) for name in names], _MAX_SHOWN)
