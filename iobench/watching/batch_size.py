"""PURE. How many samples a batch holds, whatever it is made of; no framework is imported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_DEEPEST = 4


def samples_in(batch: Any) -> int | None:
    """The first dimension of its first array, else the length of its list; None if it has neither.

    ``(images, labels)``, ``{"image": ..., "label": ...}``, DALI's list of one mapping, MXNet's
    ``DataBatch`` (without its padding), lists of images, lists of samples, and what detection
    makes of those: a tuple of images and a tuple of targets.
    """
    try:
        return _found(batch, 0)
    except Exception:  # noqa: BLE001  torch's nested tensors have a shape that raises
        return None


def _found(value: Any, depth: int) -> int | None:
    size = _first_dimension(value)
    if size is not None:
        return size
    if isinstance(value, Mapping):
        return _first(value.values(), depth)
    if isinstance(value, (list, tuple)):
        return _of_sequence(value, depth)
    data, padded = getattr(value, "data", None), getattr(value, "pad", None)
    if isinstance(data, (list, tuple)) and isinstance(padded, int):
        size = _first(data, depth)
        return None if size is None else size - padded
    return None


def _of_sequence(value: list[Any] | tuple[Any, ...], depth: int) -> int | None:
    if not value:
        return 0
    arrays = [size for item in value if (size := _first_dimension(item)) is not None]
    if depth == 0 and arrays:
        return arrays[0]  # fields of a batch: images, labels
    if depth and arrays:
        return len(value)  # images of different sizes, one a sample
    inner = isinstance(value[0], (Mapping, list, tuple))
    if inner and (isinstance(value, tuple) or len(value) == 1):
        return _first(value, depth)
    return len(value)  # a list of samples


def _first(values: Any, depth: int) -> int | None:
    if depth >= _DEEPEST:
        return None
    sizes = (_found(value, depth + 1) for value in values)
    return next((size for size in sizes if size is not None), None)


def _first_dimension(value: Any) -> int | None:
    """Of an array or tensor of any library; None for scalars and for what is neither."""
    shape = getattr(value, "shape", None)
    try:
        return int(shape[0]) if shape is not None and len(shape) else None
    except (TypeError, ValueError):
        return None
