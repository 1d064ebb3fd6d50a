"""Tests of the defects, in a tree that holds them all."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import pytest
from PIL import Image

from dataprep.sample import SampleTree
from dataprep.sample.defects import Defect, recipes

pytestmark = pytest.mark.slow

RECIPES = tuple(recipes())
# What Pillow finds in the files that are not JPEG of three channels, by the end of the name.
OPENED = {
    "cmyk-adobe.JPEG": ("JPEG", "CMYK"),
    "cmyk.JPEG": ("JPEG", "CMYK"),
    "ycck.JPEG": ("JPEG", "CMYK"),
    "grey.JPEG": ("JPEG", "L"),
    "palette.png": ("PNG", "P"),
    "rgba.png": ("PNG", "RGBA"),
    "grey16.png": ("PNG", "I;16"),
    "rgb16.png": ("PNG", "RGB"),
    "bits.png": ("PNG", "1"),
    "png.JPEG": ("PNG", "RGB"),
    "gif.JPEG": ("GIF", "P"),
    "webp.jpg": ("WEBP", "RGB"),
    "bmp.bmp": ("BMP", "RGB"),
    "tiff.tiff": ("TIFF", "RGB"),
}
SIZES = {
    "dot.JPEG": (1, 1),
    "wide.JPEG": (3000, 8),
    "turned.JPEG": (640, 420),
    "turned-small.JPEG": (64, 40),
    "arithmetic.JPEG": (32, 24),
}


def _expecting(tree: SampleTree, expected: str) -> dict[Path, Defect]:
    return {
        tree.root / path: defect
        for path, defect in tree.defects.items()
        if defect.expected == expected
    }


def test_every_recipe_is_in_the_tree(tree: SampleTree) -> None:
    """Each recipe is one path in the tree, or left out in the file system's words."""
    assert len(tree.defects) + len(tree.left_out) == len(RECIPES)
    for path in tree.defects:
        assert os.path.lexists(tree.root / path), path


def test_every_recipe_is_told_apart_and_explained() -> None:
    """No two recipes share a name, and each says what it is and why it ends as it does."""
    assert len({recipe.name for recipe in RECIPES}) == len(RECIPES)
    for recipe in RECIPES:
        assert recipe.defect.what
        assert recipe.defect.reason


def test_quirks_open_as_described(tree: SampleTree) -> None:
    """Pillow opens each file to be written, and finds the format, mode and size of its name."""
    quirks = _expecting(tree, "written")
    seen = set()
    for path in quirks:
        end = path.name.rpartition("_")[2]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            with Image.open(path) as opened:
                opened.load()
        assert (opened.format, opened.mode) == OPENED.get(end, ("JPEG", "RGB")), path
        assert opened.size == SIZES.get(end, (360, 270)), path
        seen.add(end)
    assert seen >= OPENED.keys() | SIZES.keys()


def test_turned_images_carry_the_tag(tree: SampleTree) -> None:
    """Exactly the images called turned have EXIF orientation 6."""
    turned = [path for path in _expecting(tree, "written") if "turned" in path.name]
    assert len(turned) == 4
    for path in turned:
        with Image.open(path) as opened:
            assert opened.getexif()[0x0112] == 6


def test_progressive_and_trailing(tree: SampleTree) -> None:
    """The progressive JPEG says so, and rubbish follows an end marker."""
    by_end = {path.name.rpartition("_")[2]: path for path in tree.root.glob("*/*")}
    with Image.open(by_end["progressive.JPEG"]) as opened:
        assert opened.info["progressive"] == 1
    assert b"\xff\xd9rubbish" in by_end["trailing.JPEG"].read_bytes()


def test_broken_files_are_rejected(tree: SampleTree) -> None:
    """Pillow rejects each file that is to fail."""
    broken = _expecting(tree, "failed")
    assert len(broken) == 11
    for path in broken:
        with (
            pytest.raises((OSError, Image.DecompressionBombError)),
            Image.open(path) as opened,
        ):
            opened.load()


def test_names_are_as_hard_as_they_claim(tree: SampleTree) -> None:
    """The names hold spaces, accents, ideographs, control characters, HTML and odd bytes."""
    names = " ".join(path for path in (*tree.defects, *tree.left_out))
    for part in ("with some spaces", "é", "漢字", "\n", "\t", "\\", "<script>", ".jpeg", ".jpg"):
        assert part in names
    assert b"\xff\xfe" in os.fsencode(names)


def test_clutter_is_skipped(tree: SampleTree) -> None:
    """Files that do not promise an image are to be skipped."""
    names = {path.name for path in _expecting(tree, "skipped")}
    assert names == {".DS_Store", "Thumbs.db", "README.txt"}


def test_links_lead_astray(tree: SampleTree) -> None:
    """One link leaves the tree, one points at nothing, one at the folder above it."""
    root = tree.root.resolve()
    targets = [path.resolve() for path in _expecting(tree, "failed") if path.is_symlink()]
    assert len(targets) == 3
    assert sum(not target.is_relative_to(root) for target in targets) == 1
    assert sum(not target.exists() for target in targets) == 1
    assert sum(target == root for target in targets) == 1
