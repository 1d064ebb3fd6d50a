"""Tests of dataprep.image.geometry."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.errors import ImageTooLarge
from dataprep.image.geometry import (
    Geometry,
    falls_short,
    plan_geometry,
    require_feasible,
)
from dataprep.image.policy import ImagePolicy, Mode
from tests.strategies import image_policies, sides


@pytest.mark.parametrize(
    ("mode", "size", "upscale", "source", "result"),
    [
        ("none", None, False, (500, 375), (500, 375, 500, 375)),
        ("short", 256, False, (500, 375), (341, 256, 341, 256)),
        ("short", 256, False, (375, 500), (256, 341, 256, 341)),
        ("short", 256, False, (200, 100), (200, 100, 200, 100)),
        ("short", 256, True, (200, 100), (512, 256, 512, 256)),
        ("long", 250, False, (500, 375), (250, 188, 250, 188)),
        ("long", 1000, True, (500, 375), (1000, 750, 1000, 750)),
        ("long", 1000, False, (500, 375), (500, 375, 500, 375)),
        ("exact", (224, 100), False, (500, 375), (224, 100, 224, 100)),
        ("exact", 400, False, (500, 375), (400, 375, 400, 375)),
        ("exact", 400, True, (500, 375), (400, 400, 400, 400)),
        ("crop", 224, False, (500, 375), (299, 224, 224, 224)),
        ("crop", (100, 300), False, (500, 375), (400, 300, 100, 300)),
        ("crop", 400, False, (500, 375), (500, 375, 400, 375)),
        ("crop", 400, True, (500, 375), (533, 400, 400, 400)),
        ("short", 1, False, (3000, 2), (1500, 1, 1500, 1)),
        ("long", 2, False, (3000, 1), (2, 1, 2, 1)),
    ],
)
def test_known_sizes(
    mode: Mode,
    size: int | tuple[int, int] | None,
    upscale: bool,
    source: tuple[int, int],
    result: tuple[int, int, int, int],
) -> None:
    """Each mode gives the documented size, with and without upscaling."""
    policy = ImagePolicy(mode=mode, size=size, upscale=upscale)
    assert plan_geometry(*source, policy) == Geometry(*result)


@given(width=sides, height=sides, size=st.integers(1, 16_384))
def test_scaling_rounds_halves_up(width: int, height: int, size: int) -> None:
    """A scaled side is the nearest whole number, the upper one of two, and never 0."""
    found = plan_geometry(width, height, ImagePolicy(size=size, upscale=True))
    for side, scaled in ((width, found.width), (height, found.height)):
        exact = Fraction(side * size, min(width, height))
        assert scaled == max(1, math.floor(exact + Fraction(1, 2)))


@given(width=sides, height=sides, policy=image_policies())
def test_nothing_grows_unless_told(width: int, height: int, policy: ImagePolicy) -> None:
    """Without upscaling no side grows, and the cut never leaves the scaled image."""
    geometry = plan_geometry(width, height, policy)
    assert 1 <= geometry.crop_width <= geometry.width
    assert 1 <= geometry.crop_height <= geometry.height
    if not policy.upscale:
        assert geometry.width <= width
        assert geometry.height <= height


@given(
    width=sides,
    height=sides,
    policy=image_policies("short") | image_policies("long") | image_policies("crop"),
)
def test_the_aspect_is_kept(width: int, height: int, policy: ImagePolicy) -> None:
    """Modes that keep the aspect change a side by less than a pixel against its exact length."""
    geometry = plan_geometry(width, height, policy)
    long, short = sorted([(width, geometry.width), (height, geometry.height)], reverse=True)
    assert abs(Fraction(short[0] * long[1], long[0]) - short[1]) <= 1


@given(width=sides, height=sides, policy=image_policies())
def test_the_asked_side_is_met(width: int, height: int, policy: ImagePolicy) -> None:
    """With upscaling the asked side is met to the pixel, and nothing falls short."""
    policy = policy.model_copy(update={"upscale": True})
    geometry = plan_geometry(width, height, policy)
    cut = (geometry.crop_width, geometry.crop_height)
    size = policy.size or 0
    box = size if isinstance(size, tuple) else (size, size)
    asked = {
        "none": cut == (width, height),
        "short": min(cut) == box[0],
        "long": max(cut) == box[0],
        "exact": cut == box,
        "crop": cut == box,
    }
    assert asked[policy.mode]
    assert not falls_short(geometry, policy)


@given(width=sides, height=sides, policy=image_policies())
def test_falling_short_is_what_upscaling_would_change(
    width: int, height: int, policy: ImagePolicy
) -> None:
    """A result falls short exactly where upscaling would have given another one."""
    policy = policy.model_copy(update={"upscale": False})
    grown = policy.model_copy(update={"upscale": True})
    geometry = plan_geometry(width, height, policy)
    assert falls_short(geometry, policy) == (
        geometry[2:] != plan_geometry(width, height, grown)[2:]
    )


@pytest.mark.parametrize(("encoding", "most"), [("jpeg", 65_500), ("webp", 16_383)])
def test_sides_that_an_encoding_does_not_have(encoding: str, most: int) -> None:
    """The largest side may be, a larger one not; what is cut off is not stored."""
    policy = ImagePolicy.model_validate({"encoding": encoding})
    for width, height in ((most, 1), (1, most)):
        require_feasible(width, height, Geometry(width, height, width, height), policy)
    with pytest.raises(ImageTooLarge, match=f"{encoding} holds at most {most:,} a side"):
        require_feasible(1, 1, Geometry(1, most + 1, 1, most + 1), policy)
    require_feasible(1, 1, Geometry(1, most + 1, 1, most), policy)


@pytest.mark.parametrize(
    ("width", "height", "geometry", "fits"),
    [
        (10, 10, Geometry(9_459, 9_459, 10, 10), True),
        (10, 10, Geometry(9_460, 9_460, 10, 10), False),
        (1, 400_000, Geometry(256, 256, 256, 256), False),
        (1, 300_000, Geometry(256, 256, 256, 256), True),
    ],
)
def test_pixels_that_cannot_be_stored(
    width: int, height: int, geometry: Geometry, fits: bool
) -> None:
    """No more on the way than readers take by default, or than are allowed of a source."""
    if not fits:
        with pytest.raises(ImageTooLarge, match="would be scaled to"):
            require_feasible(width, height, geometry, ImagePolicy(max_pixels=1))
    require_feasible(width, height, geometry, ImagePolicy(max_pixels=150_000_000))
