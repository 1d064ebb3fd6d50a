"""Inspect batches of any framework: count samples and bytes, and detect changes of arrays.

A batch is an array, or it has arrays in mappings, lists and tuples. No framework is imported to
inspect it. A batch of an unknown kind causes no error, because an error would stop the training.
"""

from __future__ import annotations

import copy
import math
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

_MAX_DEPTH = 4
"""The number of levels of nested containers that are inspected."""


def samples_in(batch: Any) -> int | None:
    """The number of samples in a batch; None if it is unknown.

    The number is the first dimension of the first array, or else the length of the list. A batch
    may have one of these forms:

    - ``(images, labels)`` or ``{"image": ..., "label": ...}``;
    - DALI's list of one mapping;
    - MXNet's ``DataBatch``, whose padding is not counted;
    - a list of samples that are no arrays, such as encoded images;
    - for detection, a tuple of images and a tuple of targets.

    A list of arrays is read like ``(images, labels)``.
    """
    try:
        return _size(batch, 0)
    except Exception:  # noqa: BLE001  torch's nested tensors have a shape that raises
        return None


def _size(value: Any, depth: int) -> int | None:
    """The number of samples in a batch or in a part of it; None if it is unknown.

    Args:
        value: the batch or the part.
        depth: the number of containers around it, 0 for the batch itself.
    """
    size = _first_dimension(value)
    if size is not None or depth > _MAX_DEPTH:
        return size
    fields = getattr(value, "data", ())  # MXNet's batches have their arrays there.
    if isinstance(value, Mapping):
        fields = list(value.values())
    elif isinstance(value, (list, tuple)):
        arrays = [item for item in value if _first_dimension(item) is not None]
        is_nested = not arrays and isinstance(next(iter(value), None), (Mapping, list, tuple))
        # A tuple of containers, and a list of one container, have the parts of the batch. A longer
        # list of containers has a container for each sample.
        if is_nested and (isinstance(value, tuple) or len(value) == 1):
            fields = value
        elif arrays and depth == 0:
            fields = arrays
        else:
            return len(value)  # The list has an entry for each sample.
    for field in fields:
        size = _size(field, depth + 1)
        if size is not None:
            break
    padding = getattr(value, "pad", 0)
    return size - padding if size and isinstance(padding, int) else size


def _first_dimension(value: Any) -> int | None:
    """The first dimension of an array or tensor of any library; None for other values."""
    shape = getattr(value, "shape", None)
    return int(shape[0]) if shape is not None and len(shape) else None


def leaves(batch: Any, depth: int = 0) -> Iterator[Any]:
    """Yield the values in the containers of a batch: arrays, numbers, strings and others."""
    if isinstance(batch, Mapping) and depth <= _MAX_DEPTH:
        for item in batch.values():
            yield from leaves(item, depth + 1)
    elif isinstance(batch, (list, tuple)) and depth <= _MAX_DEPTH:
        for item in batch:
            yield from leaves(item, depth + 1)
    else:
        yield batch


def bytes_in(batch: Any) -> int:
    """Bytes of the arrays and byte strings in a batch. A value of unknown size counts as 0."""
    return sum(map(_leaf_bytes, leaves(batch)))


def _leaf_bytes(leaf: Any) -> int:
    if isinstance(leaf, (bytes, bytearray)):
        return len(leaf)
    try:
        size = getattr(leaf, "nbytes", None)
        if size is None and hasattr(leaf, "shape"):  # TensorFlow's tensors
            size = leaf.dtype.size * math.prod(int(length) for length in leaf.shape)
    except Exception:  # noqa: BLE001  a framework's attribute may raise
        return 0
    return size if isinstance(size, int) else 0


def in_new_containers(batch: Any, depth: int = 0) -> Any:
    """Return the same arrays in new dictionaries, lists and tuples.

    If the loop removes or replaces entries of the result, ``batch`` does not change.
    """
    if depth > _MAX_DEPTH:
        return batch
    batch_class = type(batch)
    if batch_class is dict:
        return {key: in_new_containers(item, depth + 1) for key, item in batch.items()}
    if batch_class is list or batch_class is tuple:
        return batch_class(in_new_containers(item, depth + 1) for item in batch)
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):  # a named tuple
        items = [in_new_containers(item, depth + 1) for item in batch]
        return batch_class(*items)
    return copy.copy(batch) if isinstance(batch, Mapping) else batch


def content_marks(batch: Any) -> list[int | None]:
    """Return a mark for each array of a batch. It changes when the array is changed in place.

    The mark of a tensor of torch is torch's own count of changes. The mark of another array on the
    host is a checksum. An array without count and checksum has the mark None, and its changes are
    not noticed.
    """
    return [_content_mark(leaf) for leaf in leaves(batch)]


def _content_mark(leaf: Any) -> int | None:
    try:
        version = getattr(leaf, "_version", None)
        if isinstance(version, int):
            return version
        return zlib.crc32(memoryview(leaf).cast("B"))
    except Exception:  # noqa: BLE001  no buffer, not contiguous, or a tensor without a count
        return None
