"""Layouts: which there are, and which mappings are refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.errors import ConfigError
from dataprep.formats.layout import FIELDS, IMAGENET, Layout

OWN = {"x": "encoded", "y": "label"}


def test_the_customary_layout() -> None:
    """``imagenet`` has the customary keys, in their byte order, and counts from background."""
    assert Layout.of("imagenet") == IMAGENET
    assert IMAGENET.counts_from_background
    assert IMAGENET.keeps_boxes
    assert [feature for feature, _ in IMAGENET.features] == [
        *("image/channels", "image/class/label", "image/class/synset", "image/class/text"),
        *("image/colorspace", "image/encoded", "image/filename", "image/format", "image/height"),
        *(f"image/object/bbox/{side}" for side in ("label", "xmax", "xmin", "ymax", "ymin")),
        "image/width",
    ]


def test_that_of_tensorflow_datasets() -> None:
    """``tfds`` has image, label and base name, and counts from 0."""
    layout = Layout.of("tfds")
    assert dict(layout.features) == {"image": "encoded", "label": "label", "file_name": "filename"}
    assert not layout.counts_from_background
    assert not layout.keeps_boxes


@given(
    st.dictionaries(st.text(min_size=1), st.sampled_from(FIELDS)).map(lambda own: {**own, **OWN})
)
def test_features_stand_in_the_order_of_their_bytes(features: dict[str, str]) -> None:
    """Whatever a mapping's order, features are sorted as UTF-8; what is refused says why."""
    try:
        layout = Layout.of(features)
    except ConfigError:
        fields = list(features.values())
        sides = {field for field in fields if field.startswith("bbox/")} - {"bbox/label"}
        boxes = any(field.startswith("bbox/") for field in fields)
        assert len(set(fields)) < len(fields) or (boxes and len(sides) < 4)
        return
    keys = [feature.encode() for feature, _ in layout.features]
    assert keys == sorted(keys)
    assert all(layout.feature(field) == feature for feature, field in features.items())


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("imagnet", "no layout 'imagnet': use one of imagenet, tfds, or a mapping"),
        ({**OWN, "w": "widht"}, "feature 'w': no field 'widht': use one of encoded, label, "),
        ({"y": "label"}, "no feature holds 'encoded'.*such as image: encoded"),
        ({"x": "encoded"}, "no feature holds 'label'.*such as label: label"),
        ({**OWN, "z": "label"}, "field 'label' is in two features"),
        (["encoded"], "no layout .*: use one of"),
        ({**OWN, "a": "bbox/xmin"}, "boxes without bbox/xmax, bbox/ymax, bbox/ymin"),
        ({**OWN, "a": "bbox/label"}, "boxes without bbox/xmax, bbox/xmin, bbox/ymax, bbox/ymin"),
    ],
)
def test_a_layout_that_cannot_be(value: Any, message: str) -> None:
    """What could not be written or read again is refused by name, with the known ones."""
    with pytest.raises(ConfigError, match=message):
        Layout.of(value)
