"""A policy determines which notes and refusals an image causes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from PIL import Image
from pydantic import ValidationError

from dataprep import errors
from dataprep.drawn.drawing import draw_image
from dataprep.image import ImagePolicy, convert
from dataprep.image.output_size import PILLOW_HARD_LIMIT
from dataprep.image.policy import Note, Refusal
from tests import encodings as enc
from tests.dataprep.image import odd_jpegs, profiles
from tests.strategies import image_policies, trait_policies

ROOT = Path(__file__).parents[3]
IMAGE = draw_image(7, 160, 120, detail=0.2)
PLAIN = enc.jpeg(IMAGE)
DEEP = enc.deep_png(IMAGE, grey=False)
TAGGED = enc.pillow(IMAGE, "JPEG", icc_profile=profiles.rgb_profile())
BROKEN = enc.pillow(IMAGE, "JPEG", icc_profile=b"rubbish" * 40)

# Each note has bytes and a policy that cause it. The default policy does not cause it.
EMITTED: Mapping[Note, tuple[bytes, dict[str, Any]]] = {
    "alpha_flattened": (enc.rgba_png(IMAGE), {}),
    "alpha_kept": (enc.rgba_png(IMAGE), {"encoding": "png", "alpha": "keep"}),
    "cmyk_converted": (enc.ycck_jpeg(IMAGE), {}),
    "depth_reduced": (DEEP, {"encoding": "png"}),
    "first_frame_kept": (enc.animated_gif(IMAGE), {}),
    "greyscale_kept": (enc.grey_jpeg(IMAGE), {}),
    "greyscale_to_rgb": (enc.grey_jpeg(IMAGE), {"greyscale": "rgb"}),
    "icc_broken": (BROKEN, {"icc": "srgb"}),
    "icc_converted": (TAGGED, {"icc": "srgb"}),
    "icc_dropped": (TAGGED, {"size": 60}),
    "icc_kept": (TAGGED, {"size": 60, "icc": "keep"}),
    "orientation_applied": (enc.oriented_jpeg(IMAGE, 6), {"orientation": "apply"}),
    "orientation_ignored": (enc.oriented_jpeg(IMAGE, 6), {}),
    "orientation_reset": (enc.oriented_jpeg(IMAGE, 6), {}),
    "palette_converted": (enc.palette_png(IMAGE), {}),
    "recovered": (PLAIN[:-2] + b"\x11" * 40 + PLAIN[-2:], {}),
    "subsampling_converted": (odd_jpegs.unusual(draw_image(7, 160, 128, detail=0.2)), {}),
    "smaller_than_target": (PLAIN, {"size": 300}),
    "truncated_kept": (PLAIN[: len(PLAIN) // 2], {"truncated": "keep"}),
    "upscaled": (PLAIN, {"size": 300, "upscale": True}),
    "wrong_container": (enc.pillow(IMAGE, "PNG"), {}),
}
REFUSED: Mapping[Refusal, tuple[bytes, dict[str, Any]]] = {
    "alpha": (enc.rgba_png(IMAGE), {"alpha": "fail"}),
    "animation": (enc.animated_gif(IMAGE), {"animation": "fail"}),
    "cmyk": (enc.adobe_cmyk_jpeg(IMAGE), {"cmyk": "fail"}),
    "depth": (DEEP, {"depth": "fail"}),
    "palette": (enc.palette_png(IMAGE), {"palette": "fail"}),
    "wrong_container": (enc.pillow(IMAGE, "PNG"), {"wrong_container": "fail"}),
}


def documented() -> dict[str, set[str]]:
    """The counts that the table in docs/images.md lists, by key."""
    text = (ROOT / "docs/images.md").read_text()
    block = text.partition("<!-- policies -->\n")[2].partition("\n\n")[0]
    counts_by_key: dict[str, set[str]] = {}
    for line in block.splitlines()[2:]:
        keys, counted = line.strip("|").split("|")
        for key in re.findall(r"`(\w+)`", keys):
            counts_by_key[key] = set(re.findall(r"`(\w+)`", counted))
    return counts_by_key


@pytest.mark.parametrize("note", sorted(EMITTED))
def test_each_note_is_emitted(note: Note) -> None:
    """Each note comes from an image with the trait, and not from a plain image."""
    data, keys = EMITTED[note]
    policy = ImagePolicy.model_validate(keys)
    assert note in convert(data, policy, name="n01/a.JPEG").notes
    if note not in ("smaller_than_target", "upscaled"):
        assert note not in convert(PLAIN, policy, name="n01/a.JPEG").notes


@pytest.mark.parametrize("kind", sorted(REFUSED))
def test_each_refusal_has_its_kind(kind: Refusal) -> None:
    """A refused image fails under the name of the key, and is accepted by default."""
    data, keys = REFUSED[kind]
    with pytest.raises(errors.RefusedImage, match=rf"image\.{kind} is 'fail'") as caught:
        convert(data, ImagePolicy.model_validate(keys), name="a.jpg")
    assert caught.value.kind == kind
    convert(data, ImagePolicy(), name="a.jpg")
    convert(PLAIN, ImagePolicy.model_validate(keys), name="a.jpg")


def test_a_skipped_image_is_counted_by_its_error() -> None:
    """A skipped image is counted by its error, which is the one note that no conversion has."""
    assert set(get_args(Note)) - set(EMITTED) == {errors.ImageTooSmall.kind}
    assert set(REFUSED) == set(get_args(Refusal)) <= set(ImagePolicy.model_fields)


def test_the_table_lists_keys_of_the_policy() -> None:
    """docs/images.md has no key that the policy lacks, and docs/shard-config.md has all keys."""
    assert set(documented()) <= set(ImagePolicy.model_fields)


def test_the_table_lists_every_count() -> None:
    """docs/images.md has each note and each kind of failure, and no other."""
    counted = set[str]().union(*documented().values())
    kinds = {
        error.kind
        for error in vars(errors).values()
        if isinstance(error, type) and issubclass(error, errors.ImageError)
    }
    of_policies = {f"failed_{kind}" for kind in get_args(Refusal)}
    of_policies |= {"failed_too_large", "failed_corrupt"}
    assert counted == set(get_args(Note)) | of_policies
    assert {"too_large", "corrupt"} < kinds


def test_a_resize_counts_more_than_one_trait() -> None:
    """An image with several traits has a note for each."""
    grey = np.asarray(Image.fromarray(IMAGE).convert("L"))
    data = enc.pillow(np.repeat(grey[..., None], 3, axis=2), "PNG", "LA")
    policy = ImagePolicy(size=60, greyscale="rgb")
    notes = convert(data, policy, name="a.JPEG").notes
    assert set(notes) == {"wrong_container", "alpha_flattened", "greyscale_to_rgb"}


def test_a_size_alone_is_the_short_side() -> None:
    """A size without a mode is that of the short side. Without both, images keep their size."""
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
    """A background is three numbers or six digits, and is returned as numbers."""
    for value in ("#102030", "102030", [16, 32, 48], (16, 32, 48)):
        assert ImagePolicy.model_validate({"background": value}).background == (16, 32, 48)


@pytest.mark.parametrize("value", [420, 422, 444])
def test_subsampling_as_a_number(value: int) -> None:
    """A subsampling that YAML or --set reads as a number equals the quoted one."""
    assert ImagePolicy.model_validate({"subsampling": value}).subsampling == str(value)


def test_where_bytes_are_the_same_everywhere() -> None:
    """Only JPEGs without converted colours have the same bytes on every processor."""
    assert ImagePolicy().same_everywhere
    assert ImagePolicy(icc="keep", progressive=True, filter="lanczos").same_everywhere
    assert not ImagePolicy(icc="srgb").same_everywhere
    assert not ImagePolicy(encoding="png").same_everywhere
    assert not ImagePolicy(encoding="webp").same_everywhere


def test_every_key_has_a_meaning() -> None:
    """Each key has a docstring for the documentation."""
    assert all(field.description for field in ImagePolicy.model_fields.values())


@given(policy=image_policies() | trait_policies())
def test_policies_survive_json(policy: ImagePolicy) -> None:
    """A policy is read back from its own JSON, and is immutable."""
    assert ImagePolicy.model_validate_json(policy.model_dump_json()) == policy
    with pytest.raises(ValidationError, match="frozen"):
        policy.quality = 3
