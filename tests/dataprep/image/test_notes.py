"""Tests of an image's notes: what is documented, what can be emitted, and what a policy has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from PIL import Image

from dataprep import errors
from dataprep.image import ImagePolicy, convert
from dataprep.image.policy import Note, Refusal
from dataprep.sample.drawing import draw_image
from tests import encodings as enc
from tests.dataprep.image import odd_jpegs, profiles

ROOT = Path(__file__).parents[3]
IMAGE = draw_image(7, 160, 120, detail=0.2)
PLAIN = enc.jpeg(IMAGE)
DEEP = enc.deep_png(IMAGE, grey=False)
TAGGED = enc.pillow(IMAGE, "JPEG", icc_profile=profiles.rgb_profile())
BROKEN = enc.pillow(IMAGE, "JPEG", icc_profile=b"rubbish" * 40)

# Bytes and policy that give each note, and none of them the note without that policy.
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
    """What is counted, by key: the table in docs/images.md."""
    text = (ROOT / "docs/images.md").read_text()
    block = text.partition("<!-- policies -->\n")[2].partition("\n\n")[0]
    found: dict[str, set[str]] = {}
    for line in block.splitlines()[2:]:
        keys, counted = line.strip("|").split("|")
        for key in re.findall(r"`(\w+)`", keys):
            found[key] = set(re.findall(r"`(\w+)`", counted))
    return found


@pytest.mark.parametrize("note", sorted(EMITTED))
def test_each_note_is_emitted(note: Note) -> None:
    """Each note comes from an image that has the trait, and not from a plain one."""
    data, keys = EMITTED[note]
    policy = ImagePolicy.model_validate(keys)
    assert note in convert(data, policy, name="n01/a.JPEG").notes
    if note not in ("smaller_than_target", "upscaled"):
        assert note not in convert(PLAIN, policy, name="n01/a.JPEG").notes


@pytest.mark.parametrize("kind", sorted(REFUSED))
def test_each_refusal_has_its_kind(kind: Refusal) -> None:
    """An image that the policy refuses fails under the key's name; by default it does not."""
    data, keys = REFUSED[kind]
    with pytest.raises(errors.RefusedImage, match=rf"image\.{kind} says 'fail'") as caught:
        convert(data, ImagePolicy.model_validate(keys), name="a.jpg")
    assert caught.value.kind == kind
    convert(data, ImagePolicy(), name="a.jpg")
    convert(PLAIN, ImagePolicy.model_validate(keys), name="a.jpg")


def test_a_skipped_image_is_counted_by_its_error() -> None:
    """The one note that no conversion has is the kind of the error for small images."""
    assert set(get_args(Note)) - set(EMITTED) == {errors.ImageTooSmall.kind}
    assert set(REFUSED) == set(get_args(Refusal)) <= set(ImagePolicy.model_fields)


def test_the_table_lists_keys_of_the_policy() -> None:
    """docs/images.md has no key that the policy lacks; docs/shard-config.md has them all."""
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
    """An image with several traits has a note of each."""
    grey = np.asarray(Image.fromarray(IMAGE).convert("L"))
    data = enc.pillow(np.repeat(grey[..., None], 3, axis=2), "PNG", "LA")
    policy = ImagePolicy(size=60, greyscale="rgb")
    found = convert(data, policy, name="a.JPEG").notes
    assert set(found) == {"wrong_container", "alpha_flattened", "greyscale_to_rgb"}
