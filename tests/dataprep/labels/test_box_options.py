"""What can be said about boxes."""

from __future__ import annotations

from pathlib import Path

import pytest

from dataprep.config import ShardConfig, load
from dataprep.errors import ConfigError

PLACES = {"source": "in", "output": "out"}


@pytest.mark.parametrize("boxes", ["b.csv", Path("b.csv"), {"source": "b.csv"}])
def test_a_path_alone_is_the_source(boxes: object) -> None:
    """The short form and the long one mean the same."""
    config = ShardConfig.model_validate({**PLACES, "boxes": boxes})
    assert config.boxes is not None
    assert config.boxes.source == "b.csv"
    assert config.boxes.least_visible == 0.1


def test_the_place_is_no_content() -> None:
    """Annotations may move; how they are read determines bytes."""
    here, there = (
        ShardConfig.model_validate({**PLACES, "boxes": {"source": s}}).content() for s in "ab"
    )
    assert here == there
    other = load(None, {**PLACES, "boxes.source": "a", "boxes.least_visible": 0.5}).content()
    assert other != here
    assert ShardConfig.model_validate(PLACES).content()["boxes"] is None


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("boxes.least_visible", 1.5, "boxes.least_visible"),
        ("boxes.sourse", "x", "unknown key boxes.sourse: did you mean boxes.source"),
        ("boxes.columns.lable", "x", "did you mean boxes.columns.label"),
    ],
)
def test_what_is_refused(key: str, value: object, message: str) -> None:
    """Wrong keys and values are named."""
    with pytest.raises(ConfigError, match=message):
        load(None, {**PLACES, "boxes.source": "b.csv", key: value})


def test_an_empty_path_is_refused() -> None:
    """The error says what a path is."""
    with pytest.raises(ConfigError, match="give a path or an address"):
        load(None, {**PLACES, "boxes": " "})
