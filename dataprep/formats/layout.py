"""PURE. Which features a tf.train.Example has, and which field of a sample each of them holds.

``imagenet`` has the keys of TensorFlow's ``build_imagenet_data.py`` (models/research/slim).
``tfds`` has those of TensorFlow Datasets' ``imagenet2012``, whose ``file_name`` is the base name
("Eg: 'n15075141_54.JPEG'") and whose labels count from 0. A mapping names features of one's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dataprep.errors import ConfigError

BOX_SIDES = ("bbox/xmin", "bbox/ymin", "bbox/xmax", "bbox/ymax")
LISTS = (*BOX_SIDES, "bbox/label", "values")
"""Fields of which a sample has any number of values; of all others it has one."""

OF_CLASS = ("label", "synset", "text", "bbox/label", "values")
"""Fields that images without a class lack."""

FIELDS = (
    *("encoded", "label", "synset", "text", "filename", "source", "number", "height", "width"),
    *("channels", "colorspace", "format", *LISTS),
)
"""What a feature can hold; docs/layouts.md describes each."""

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
    """Features and their fields, in the order in which they are written.

    Attributes:
        features: pairs of feature and field, sorted by the bytes of the feature's name.
        counts_from_background: whether 0 is background, so that synsets count from 1.
    """

    features: tuple[tuple[str, str], ...]
    counts_from_background: bool = False

    @classmethod
    def of(cls, value: str | Mapping[str, str]) -> Layout:
        """The layout that a config names or spells out.

        Raises:
            ConfigError: no such layout or field, or one that could not be read again.
        """
        if isinstance(value, Mapping):
            _require_readable(value)
            return cls(_sorted(value))
        if value not in [*_PREDEFINED]:
            raise ConfigError(
                f"no layout {value!r}: use one of {', '.join(_PREDEFINED)}, or a mapping of "
                "features to fields"
            )
        return cls(_sorted(_PREDEFINED[value]), value == "imagenet")

    def without_classes(self) -> Layout:
        """The same layout for images that have no class."""
        features = [pair for pair in self.features if pair[1] not in OF_CLASS]
        return Layout(tuple(features), self.counts_from_background)

    def feature(self, field: str) -> str | None:
        """The feature that holds ``field``, if there is one."""
        return {found: feature for feature, found in self.features}.get(field)

    @property
    def keeps_boxes(self) -> bool:
        """Whether records have bounding boxes."""
        return self.feature("bbox/xmin") is not None


def _sorted(features: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    # By code point, which is the order of the UTF-8 bytes.
    return tuple(sorted(features.items()))


def _require_readable(features: Mapping[str, str]) -> None:
    fields = list(features.values())
    for feature, field in features.items():
        if field not in FIELDS:
            known = ", ".join(FIELDS)
            raise ConfigError(f"feature {feature!r}: no field {field!r}: use one of {known}")
        if fields.count(field) > 1:
            raise ConfigError(f"field {field!r} is in two features: leave one of them out")
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
