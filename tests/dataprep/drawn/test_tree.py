"""The drawn image folder has odd and broken files."""

from __future__ import annotations

import errno
import os
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import simplejpeg
from PIL import Image

from dataprep.drawn import SampleTree, draw_tree
from dataprep.errors import ConfigError

pytestmark = pytest.mark.slow

# The format and mode that Pillow finds in files that are not JPEG of three channels, by suffix.
OPENED = {
    "cmyk.JPEG": ("JPEG", "CMYK"),
    "grey.JPEG": ("JPEG", "L"),
    "palette.png": ("PNG", "P"),
    "rgba.png": ("PNG", "RGBA"),
    "16-bits.png": ("PNG", "RGB"),
    "1-bit.png": ("PNG", "1"),
    "png.JPEG": ("PNG", "RGB"),
    "animated-gif.JPEG": ("GIF", "P"),
    "webp.jpg": ("WEBP", "RGB"),
    "bmp.bmp": ("BMP", "RGB"),
    "tiff.tiff": ("TIFF", "RGB"),
}
SIZES = {"1x1.JPEG": (1, 1), "8-pixels-high.JPEG": (2880, 8)}


def contents(root: Path) -> dict[str, bytes | str]:
    """The content of every file by its path, and the target of every link."""
    return {
        str(path.relative_to(root)): str(path.readlink())
        if path.is_symlink()
        else path.read_bytes()
        for path in root.glob("*/*")
    }


def expecting(tree: SampleTree, expected: str) -> list[Path]:
    """The odd files that a job writes, fails or skips."""
    return [tree.root / path for path, outcome in tree.defects.items() if outcome == expected]


def test_one_seed_gives_one_tree(tmp_path: Path) -> None:
    """One seed gives the same names and bytes, including defects, and another seed gives others."""
    for name, seed in (("first", 7), ("second", 7), ("other", 8)):
        draw_tree(tmp_path / name, images=12, classes=3, seed=seed, defects=True)
    first = contents(tmp_path / "first")
    assert contents(tmp_path / "second") == first
    draw_tree(tmp_path / "plain", images=12, classes=3, seed=7)
    plain = contents(tmp_path / "plain")
    assert len(plain) == 12
    assert plain.items() <= first.items()
    assert not {*plain.values()} & {*contents(tmp_path / "other").values()}


def test_layout_is_an_image_folder(tree: SampleTree, sound: list[Path]) -> None:
    """Each image is in the folder of its synset and named after it, evenly spread."""
    assert tree.images == len(sound) == 300
    assert tree.bytes == sum(path.stat().st_size for path in sound)
    assert tree.classes == len(list(tree.root.iterdir())) == 10
    for path in sound:
        synset, number = path.stem.split("_")
        assert (path.parent.name, path.suffix) == (synset, ".JPEG")
        assert number.isdigit()
    assert set(Counter(path.parent for path in sound).values()) == {30}


def test_photos_are_as_in_imagenet(sound: list[Path]) -> None:
    """Sizes, bytes for each pixel and encoder settings are distributed as in ImageNet."""
    headers = [simplejpeg.decode_jpeg_header(path.read_bytes()) for path in sound]
    height, width = np.array([header[:2] for header in headers]).T
    sizes = np.array([path.stat().st_size for path in sound])
    ratios = sizes / (width * height)
    assert (np.median(width), np.median(height)) == (500, 375)
    assert width.mean() == pytest.approx(468, rel=0.08)
    assert height.mean() == pytest.approx(401, rel=0.08)
    assert (height > width).mean() == pytest.approx(0.255, abs=0.1)
    assert (np.minimum(width, height) < 256).mean() == pytest.approx(0.097, abs=0.06)
    assert ratios.mean() == pytest.approx(0.58, abs=0.06)
    assert 0.33 < ratios.std() / ratios.mean() < 0.47
    assert sizes.mean() == pytest.approx(109_600, rel=0.15)
    full_colour = [header[3] for header in headers].count("444")
    assert full_colour / len(headers) == pytest.approx(0.26, abs=0.1)


@pytest.mark.parametrize(
    "request_", [{"images": 0}, {"classes": 0}, {"images": 3, "classes": 4}, {"seed": -1}]
)
def test_impossible_requests_are_refused(tmp_path: Path, request_: dict[str, int]) -> None:
    """A request out of range is refused with the range, and nothing is written."""
    with pytest.raises(ConfigError, match="expected 1 to 1,000 classes"):
        draw_tree(tmp_path / "new", **request_)  # type: ignore[arg-type]
    assert not (tmp_path / "new").exists()


def test_a_used_destination_is_refused(tmp_path: Path) -> None:
    """A used folder or a file is refused and left as it is."""
    (tmp_path / "mine.txt").write_text("mine")
    for dest in (tmp_path, tmp_path / "mine.txt"):
        with pytest.raises(ConfigError, match="is not an empty folder: use a new"):
            draw_tree(dest, images=2, classes=1)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_quirks_open_as_described(tree: SampleTree) -> None:
    """Pillow opens each file that can be written, with the format, mode and size in its name."""
    suffixes = set()
    for path in expecting(tree, "written"):
        suffix = path.name.rpartition("_")[2]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            with Image.open(path) as opened:
                opened.load()
        assert (opened.format, opened.mode) == OPENED.get(suffix, ("JPEG", "RGB")), path
        assert opened.size == SIZES.get(suffix, (360, 270)), path
        assert opened.getexif().get(0x0112) == (6 if suffix == "turned.JPEG" else None)
        assert ("progressive" in opened.info) == (suffix == "progressive.JPEG")
        assert ("icc_profile" in opened.info) == (suffix == "icc.JPEG")
        suffixes.add(suffix)
    assert suffixes >= OPENED.keys() | SIZES.keys()


def test_broken_files_cannot_be_opened(tree: SampleTree) -> None:
    """Pillow refuses each file that fails. Two of them are links that lead to no image."""
    broken = expecting(tree, "failed")
    for path in broken:
        with pytest.raises((OSError, Image.DecompressionBombError)), Image.open(path) as opened:
            opened.load()
    links = {os.fspath(path.readlink()) for path in broken if path.is_symlink()}
    assert (len(broken), links) == (9, {"/etc/passwd", "missing.JPEG"})
    loop, *clutter = expecting(tree, "skipped")
    assert os.fspath(loop.readlink()) == ".."
    assert {path.name for path in clutter} == {".DS_Store", "Thumbs.db", "README.txt"}


def test_names_are_hard_to_handle(tree: SampleTree) -> None:
    """Names have spaces, accents, ideographs, control characters, HTML and odd bytes."""
    names = " ".join(tree.defects)
    for part in ("with some spaces", "é", "漢字", "\n", "\t", "\\", "<script>", ".jpeg", ".jpg"):
        assert part in names
    assert b"\xff\xfe" in os.fsencode(names)


def test_names_that_the_file_system_refuses_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that a file system refuses is left out, and other errors are raised."""
    write = Path.write_bytes

    def refuse(path: Path, data: bytes) -> int:
        if b"\xff" in os.fsencode(path):
            raise OSError(errno.EILSEQ, "Illegal byte sequence")
        return write(path, data)

    monkeypatch.setattr(Path, "write_bytes", refuse)
    tree = draw_tree(tmp_path / "picky", images=1, classes=1, defects=True)
    assert not any("\udcff" in path for path in tree.defects)

    def fill(path: Path, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fill)
    with pytest.raises(OSError, match="No space left"):
        draw_tree(tmp_path / "full", images=1, classes=1, defects=True)
