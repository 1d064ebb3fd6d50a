"""PURE. Layouts: which features an Example has, and which field of a sample a feature holds.

There are two predefined layouts. ``imagenet`` has the keys of TensorFlow's
``build_imagenet_data.py`` (models/research/slim). ``tfds`` has the keys of ``imagenet2012`` in
TensorFlow Datasets. In this layout, ``file_name`` is the base name, such as ``n15075141_54.JPEG``,
and labels count from 0. A config can define any other layout as a mapping of features to fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dataprep.errors import ConfigError

BOX_SIDES = ("bbox/xmin", "bbox/ymin", "bbox/xmax", "bbox/ymax")
LIST_FIELDS = (*BOX_SIDES, "bbox/label", "values")
"""The fields that have any number of values. All other fields have exactly one value."""

CLASS_FIELDS = ("label", "synset", "text", "bbox/label", "values")
"""The fields that images without a class do not have."""

FIELDS = (
    "encoded",
    "label",
    "synset",
    "text",
    "filename",
    "source",
    "number",
    "height",
    "width",
    "channels",
    "colorspace",
    "format",
    *LIST_FIELDS,
)
"""All fields that a feature can hold. docs/layouts.md describes them."""

_IMAGENET = {
    "image/channels": "channels",
    "image/class/label": "label",
    "image/class/synset": "synset",
    "image/class/text": "text",
    "image/colorspace": "colorspace",
    "image/encoded": "encoded",
    "image/filename": "filename",
    "image/format": "format",
    "image/height": "height",
    "image/object/bbox/label": "bbox/label",
    "image/object/bbox/xmax": "bbox/xmax",
    "image/object/bbox/xmin": "bbox/xmin",
    "image/object/bbox/ymax": "bbox/ymax",
    "image/object/bbox/ymin": "bbox/ymin",
    "image/width": "width",
}
_TFDS = {"file_name": "filename", "image": "encoded", "label": "label"}
_PREDEFINED: Mapping[str, Mapping[str, str]] = {"imagenet": _IMAGENET, "tfds": _TFDS}


@dataclass(frozen=True, slots=True)
class Layout:
    """The features of an Example and their fields, in the order in which they are written.

    Attributes:
        features: pairs of feature and field, sorted by the bytes of the feature's name.
        counts_from_background: whether label 0 means the background. If the classes are synsets,
            their labels then begin at 1.
    """

    features: tuple[tuple[str, str], ...]
    counts_from_background: bool = False

    @classmethod
    def of(cls, value: str | Mapping[str, str]) -> Layout:
        """Return the layout that a config names or defines.

        Args:
            value: the name of a predefined layout, or a mapping of features to fields.

        Raises:
            ConfigError: there is no such layout or field, or records with this layout could not be
                read again.
        """
        if isinstance(value, Mapping):
            _require_readable(value)
            return cls(_sorted(value))
        # A search in a list also works for values that have no hash, which a config can contain.
        if value not in list(_PREDEFINED):
            raise ConfigError(
                f"no layout {value!r}: use one of {', '.join(_PREDEFINED)}, or a mapping of "
                "features to fields"
            )
        return cls(_sorted(_PREDEFINED[value]), value == "imagenet")

    def without_classes(self) -> Layout:
        """The same layout for images that have no class."""
        features = [pair for pair in self.features if pair[1] not in CLASS_FIELDS]
        return Layout(tuple(features), self.counts_from_background)

    def feature(self, field: str) -> str | None:
        """The name of the feature that holds ``field``; None if there is no such feature."""
        for feature, held_field in self.features:
            if held_field == field:
                return feature
        return None

    @property
    def keeps_boxes(self) -> bool:
        """Whether records have bounding boxes."""
        return self.feature("bbox/xmin") is not None


def _sorted(features: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Pairs of feature and field, sorted by code points. UTF-8 bytes have the same order."""
    return tuple(sorted(features.items()))


def _require_readable(features: Mapping[str, str]) -> None:
    """Raise ConfigError unless records with these features can be read again."""
    fields = list(features.values())
    for feature, field in features.items():
        if field not in FIELDS:
            raise ConfigError(
                f"feature {feature!r}: no field {field!r}: use one of {', '.join(FIELDS)}"
            )
        if fields.count(field) > 1:
            raise ConfigError(f"field {field!r} is in two features: remove one of them")
    for field, example in (("encoded", "image"), ("label", "label")):
        if field not in fields:
            raise ConfigError(
                f"no feature holds {field!r}, without which records cannot be read: add one, "
                f"such as {example}: {field}"
            )
    missing = sorted({*BOX_SIDES}.difference(fields))
    if missing and any(field.startswith("bbox/") for field in fields):
        raise ConfigError(f"boxes without {', '.join(missing)}: give all four sides, or none")


IMAGENET = Layout.of("imagenet")
"""The layout that is used unless a config names another one."""
