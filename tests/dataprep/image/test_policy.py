"""Tests of dataprep.image.policy."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from pydantic import ValidationError

from dataprep.image.policy import PILLOW_HARD_LIMIT, ImagePolicy
from tests.strategies import image_policies, trait_policies


def test_a_size_alone_is_the_short_side() -> None:
    """A size without a mode is that of the short side; neither leaves images as they are."""
    assert ImagePolicy(size=256).mode == "short"
    assert ImagePolicy.model_validate({"size": 256, "mode": None}).mode == "short"
    assert ImagePolicy().mode == "none"
    assert ImagePolicy.model_validate({"mode": None}).mode == "none"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"mode": "none", "size": 256}, "leave 'size' out"),
        ({"mode": "short"}, "mode 'short' needs a 'size'"),
        ({"mode": "crop"}, "mode 'crop' needs a 'size'"),
        ({"mode": "long", "size": (256, 256)}, "takes one number"),
        ({"mode": "short", "size": (256, 256)}, "takes one number"),
        ({"mode": "square", "size": 256}, "'short', 'long', 'exact', 'crop' or 'none'"),
        ({"size": 0}, "greater than or equal to 1"),
        ({"size": 16_385}, "less than or equal to 16384"),
        ({"mode": "crop", "size": (1, 2, 3)}, "at most 2 items"),
        ({"quality": 0}, "greater than or equal to 1"),
        ({"quality": 101}, "less than or equal to 100"),
        ({"subsampling": "411"}, "'420', '422', '444' or 'keep'"),
        ({"orientation": "keep"}, "'ignore' or 'apply'"),
        ({"background": "white"}, "begins a comment in YAML"),
        ({"background": None}, "begins a comment in YAML"),
        ({"background": [1, 2]}, "begins a comment in YAML"),
        ({"background": [1, 2, 256]}, "less than or equal to 255"),
        ({"alpha": "keep"}, "a JPEG has no alpha"),
        ({"encoding": "gif"}, "'jpeg', 'png' or 'webp'"),
        ({"filter": "nearest"}, "'bicubic', 'bilinear', 'area' or 'lanczos'"),
        ({"min_size": -1}, "greater than or equal to 0"),
        ({"check": "none"}, "'decode' or 'header'"),
        ({"max_pixels": 0}, "greater than or equal to 1"),
        ({"max_pixels": PILLOW_HARD_LIMIT + 1}, "less than or equal to 178956970"),
        ({"subsampling": 440}, "'420', '422', '444' or 'keep'"),
        ({"subsampling": True}, "'420', '422', '444' or 'keep'"),
        ({"max_source_bytes": 0}, "greater than or equal to 1"),
        ({"sise": 256}, "Extra inputs"),
    ],
)
def test_what_cannot_be_is_refused(values: dict[str, Any], message: str) -> None:
    """Values out of range, unknown keys and sizes that do not fit the mode are refused."""
    with pytest.raises(ValidationError, match=message):
        ImagePolicy.model_validate(values)


def test_colours() -> None:
    """A background is three numbers or six digits, and comes back as numbers."""
    for value in ("#102030", "102030", [16, 32, 48], (16, 32, 48)):
        assert ImagePolicy.model_validate({"background": value}).background == (16, 32, 48)


@pytest.mark.parametrize("value", [420, 422, 444])
def test_subsampling_as_a_number(value: int) -> None:
    """What YAML and --set take for a number is the same choice as in quotes."""
    assert ImagePolicy.model_validate({"subsampling": value}).subsampling == str(value)


def test_where_bytes_are_the_same_everywhere() -> None:
    """JPEGs are the same on every processor unless colours are converted; the others are not."""
    assert ImagePolicy().same_everywhere
    assert ImagePolicy(icc="keep", progressive=True, filter="lanczos").same_everywhere
    assert not ImagePolicy(icc="srgb").same_everywhere
    assert not ImagePolicy(encoding="png").same_everywhere
    assert not ImagePolicy(encoding="webp").same_everywhere


def test_every_key_has_a_meaning() -> None:
    """Each key has a docstring, of which a page can be made."""
    assert all(field.description for field in ImagePolicy.model_fields.values())


@given(policy=image_policies() | trait_policies())
def test_policies_survive_json(policy: ImagePolicy) -> None:
    """A policy comes back from its own JSON, and cannot be changed."""
    assert ImagePolicy.model_validate_json(policy.model_dump_json()) == policy
    with pytest.raises(ValidationError, match="frozen"):
        policy.quality = 3
