"""PURE. Annotations to the images that they are of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dataprep.boxes.annotations import SIDES, without_extension
from dataprep.boxes.columns import BoxColumns
from dataprep.boxes.options import BoxOptions
from dataprep.errors import ConfigError
from dataprep.names import escape, to_bytes

_INHERITED = -2


def boxes_of(
    annotations: pa.Table,
    names: Sequence[str],
    labels: NDArray[np.int32],
    classes: Mapping[str, int],
    options: BoxOptions,
) -> BoxColumns:
    """The boxes of images, a row for each.

    A box without a class of its own has the label of its image; one of a class that is not in
    ``classes`` has -1.

    Args:
        annotations: as ``read_annotations`` gives them.
        names: of the images, relative to their source.
        labels: int32, of the images.
        classes: name to label.
        options: how an annotation finds its image.

    Raises:
        ConfigError: no image has an annotation, or an annotation is of two images.
    """
    keys = _keys(annotations["key"].to_pylist(), options.key)
    wanted = _keys([to_bytes(without_extension(name)) for name in names], options.key)
    _require_unique(keys.filter(pc.is_in(keys, value_set=wanted)), "annotations", options)
    found = pc.index_in(wanted, value_set=keys)
    rows = found.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    _require_unique(wanted.filter(found.is_valid()), "images", options)
    if len(names) and not (rows >= 0).any():
        raise ConfigError(
            f"no image has boxes at {options.source!r}: its annotations are called such as "
            f"{_shown(keys[0])}, images such as {_shown(wanted[0])} (boxes.key is {options.key!r})"
        )
    columns = _columns(annotations, classes).take(rows)
    own = np.repeat(labels, np.diff(columns.starts))
    inherits = columns.labels == _INHERITED if options.labels == "own" else np.True_
    return BoxColumns(
        columns.starts,
        columns.sides,
        np.where(inherits, own, columns.labels).astype(np.int32),
        columns.widths,
        columns.heights,
    )


def _keys(paths: Sequence[bytes], key: str) -> pa.Array:
    if key == "name":
        paths = [path.rpartition(b"/")[2] for path in paths]
    return pa.array(paths, pa.binary())


def _require_unique(keys: pa.Array, noun: str, options: BoxOptions) -> None:
    counts = pc.value_counts(keys)
    repeated = counts.filter(pc.greater(counts.field("counts"), 1))
    if len(repeated):
        hint = "" if options.key == "path" else ": give boxes.key=path, to tell them apart"
        first = repeated.field("values")[0]
        raise ConfigError(f"several {noun} are called {_shown(first)}{hint}")


def _shown(key: pa.Scalar) -> str:
    return repr(escape(key.as_py().decode("utf-8", "surrogateescape")))


def _columns(annotations: pa.Table, classes: Mapping[str, int]) -> BoxColumns:
    """All annotations, with labels for the names of classes."""
    counts = pc.list_value_length(annotations["xmin"]).to_numpy()
    encoded = pc.list_flatten(annotations["name"]).combine_chunks().dictionary_encode()
    by_name = [_INHERITED if not n else classes.get(n, -1) for n in encoded.dictionary.to_pylist()]
    codes = encoded.indices.to_numpy()
    sides = [pc.list_flatten(annotations[side]).to_numpy() for side in SIDES]
    return BoxColumns(
        np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]),
        np.stack(sides, axis=1),
        np.array(by_name, np.int32)[codes] if len(codes) else np.empty(0, np.int32),
        annotations["width"].to_numpy(),
        annotations["height"].to_numpy(),
    )
