"""The odd, the broken and the out of place, as found in collections of JPEGs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from dataprep.sample import encodings as enc
from dataprep.sample.drawing import Pixels

Expected = Literal["written", "failed", "skipped"]
Size = tuple[int, int]

_SIZE: Size = (360, 270)
_BOMB_SIDE = 65500


@dataclass(frozen=True, slots=True)
class Defect:
    """What is odd about one path, and what a converter is to make of it."""

    what: str
    expected: Expected
    reason: str


@dataclass(frozen=True, slots=True)
class Link:
    """A symbolic link, in place of a file's content."""

    target: str


Make = Callable[[Pixels, np.random.Generator], bytes | Link]


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to make one defect.

    ``name`` is a file name with ``{synset}`` in it; bytes that are not UTF-8 stand in it as
    surrogates, as `os.fsdecode` has them. ``make`` turns an image of ``size`` (width, height)
    into a content.
    """

    name: str
    defect: Defect
    make: Make
    size: Size = _SIZE


def recipes() -> Iterator[Recipe]:
    """Yield every defect, in an order that stays: quirks, names, broken files, clutter, links."""
    yield from _colour_quirks()
    yield from _other_quirks()
    yield from _names()
    yield from _broken()
    yield from _clutter()
    yield from _links()


def _quirk(
    name: str, what: str, reason: str, make: Callable[[Pixels], bytes], size: Size = _SIZE
) -> Recipe:
    defect = Defect(what, "written", reason)
    return Recipe("{synset}_" + name, defect, lambda image, rng: make(image), size)


def _colour_quirks() -> Iterator[Recipe]:
    to_rgb = "converted to RGB"
    yield _quirk("cmyk-adobe.JPEG", "CMYK JPEG, inverted by Adobe", to_rgb, enc.adobe_cmyk_jpeg)
    yield _quirk(
        "cmyk.JPEG",
        "CMYK JPEG, not inverted, no Adobe marker",
        "converted to RGB; Pillow alone takes it for inverted",
        enc.plain_cmyk_jpeg,
    )
    yield _quirk("ycck.JPEG", "YCCK JPEG, inverted by Adobe", to_rgb, enc.ycck_jpeg)
    yield _quirk("rgb.JPEG", "JPEG that holds RGB, Adobe transform 0", to_rgb, enc.adobe_rgb_jpeg)
    yield _quirk("grey.JPEG", "greyscale JPEG", "greyscale is an image", enc.grey_jpeg)
    yield _quirk("icc.JPEG", "JPEG with an ICC profile", "profiles do no harm", enc.icc_jpeg)
    yield _quirk(
        "palette.png",
        "PNG with a palette, one colour transparent",
        "laid on a background",
        enc.palette_png,
    )
    yield _quirk("rgba.png", "PNG with alpha", "laid on a background", enc.rgba_png)
    yield _quirk(
        "grey16.png",
        "greyscale PNG of 16 bits",
        "scaled to 8 bits",
        lambda image: enc.deep_png(image, grey=True),
    )
    yield _quirk(
        "rgb16.png",
        "RGB PNG of 16 bits a channel",
        "scaled to 8 bits",
        lambda image: enc.deep_png(image, grey=False),
    )
    yield _quirk(
        "bits.png",
        "PNG of 1 bit a pixel",
        "widened to 8 bits",
        lambda image: enc.pillow(image, "PNG", "1"),
    )


def _other_quirks() -> Iterator[Recipe]:
    by_content = "told by its content, not by its name"
    yield _quirk("png.JPEG", "PNG named .JPEG", by_content, lambda im: enc.pillow(im, "PNG"))
    yield _quirk("gif.JPEG", "animated GIF named .JPEG", "its first frame", enc.animated_gif)
    yield _quirk("webp.jpg", "WebP named .jpg", by_content, lambda im: enc.pillow(im, "WEBP"))
    yield _quirk("bmp.bmp", "BMP", "decoded like any image", lambda im: enc.pillow(im, "BMP"))
    yield _quirk("tiff.tiff", "TIFF", "decoded like any image", lambda im: enc.pillow(im, "TIFF"))
    turned = partial(enc.oriented_jpeg, orientation=6)
    for name, what, make, size in (
        ("turned", "EXIF orientation 6", turned, (640, 420)),
        ("turned-small", "EXIF orientation 6, small", turned, (64, 40)),
        ("turned-long", "EXIF orientation 6 of type LONG", partial(turned, as_long=True), _SIZE),
        (
            "turned-note",
            "EXIF orientation 6 before 20 kB of note",
            partial(turned, note_bytes=20_000),
            _SIZE,
        ),
    ):
        yield _quirk(f"{name}.JPEG", what, "upright or not, as the policy says", make, size)
    yield _quirk("exif.JPEG", "EXIF that strict readers reject", "pixels sound", enc.bad_exif_jpeg)
    yield _quirk(
        "progressive.JPEG",
        "progressive JPEG",
        "decoded like any image",
        lambda im: enc.pillow(im, "JPEG", quality=90, progressive=True),
    )
    yield _quirk(
        "arithmetic.JPEG",
        "arithmetic-coded JPEG",
        "libjpeg-turbo decodes it",
        lambda im: enc.arithmetic_jpeg(),
    )
    yield _quirk("411.JPEG", "JPEG 4:1:1", "decoded like any image", lambda im: enc.jpeg(im, "411"))
    yield _quirk("440.JPEG", "JPEG 4:4:0", "decoded like any image", lambda im: enc.jpeg(im, "440"))
    yield _quirk(
        "trailing.JPEG",
        "JPEG followed by rubbish",
        "whole up to its end marker",
        lambda im: enc.jpeg(im) + b"rubbish \xff\x00\xff\xd8" * 40,
    )
    yield _quirk("dot.JPEG", "1 x 1 pixel", "small is no fault", enc.jpeg, (1, 1))
    yield _quirk("wide.JPEG", "3000 x 8 pixels", "wide is no fault", enc.jpeg, (3000, 8))


def _names() -> Iterator[Recipe]:
    for name, what in (
        ("lower.jpeg", "extension .jpeg"),
        ("lower.jpg", "extension .jpg"),
        ("with some spaces.JPEG", "spaces in the name"),
        ("café.JPEG", "an accented letter in the name"),
        ("漢字.JPEG", "Chinese characters in the name"),
        ("new\nline.JPEG", "a line feed in the name"),
        ("tab\tulator.JPEG", "a tab in the name"),
        ("back\\slash.JPEG", "a backslash in the name"),
        ("<script>alert('x')<script>.JPEG", "HTML in the name"),
        ("bytes-\udcff\udcfe.JPEG", "bytes in the name that are not UTF-8"),
    ):
        yield _quirk(name, what, "a name is only a name", enc.jpeg)


def _broken() -> Iterator[Recipe]:
    def failed(name: str, what: str, reason: str, make: Make) -> Recipe:
        return Recipe("{synset}_" + name, Defect(what, "failed", reason), make)

    yield failed("empty.JPEG", "0 bytes", "empty", lambda im, rng: b"")
    yield failed(
        "text.JPEG",
        "text named .JPEG",
        "no image",
        lambda im, rng: b"<html><body>404 Not Found</body></html>\n",
    )
    yield failed("random.JPEG", "random bytes", "no image", lambda im, rng: rng.bytes(5000))
    yield failed(
        "half.JPEG",
        "JPEG cut at half its length",
        "truncated",
        lambda im, rng: (data := enc.jpeg(im))[: len(data) // 2],
    )
    yield failed(
        "header.JPEG",
        "JPEG cut within its header",
        "truncated",
        lambda im, rng: enc.jpeg(im)[:100],
    )
    yield failed(
        "garbage.JPEG",
        "JPEG with garbage in its middle",
        "corrupt, as soon as its pixels are decoded",
        lambda im, rng: enc.with_garbage(enc.jpeg(im), rng),
    )
    yield failed(
        "bomb.JPEG",
        f"JPEG that claims {_BOMB_SIDE} x {_BOMB_SIDE} pixels",
        "too large",
        lambda im, rng: enc.bomb_jpeg(im, _BOMB_SIDE),
    )
    yield failed(
        "bomb.png",
        f"PNG that claims {_BOMB_SIDE} x {_BOMB_SIDE} pixels",
        "too large",
        lambda im, rng: enc.bomb_png(_BOMB_SIDE),
    )


def _fixed(content: bytes | Link) -> Make:
    return lambda image, rng: content


def _clutter() -> Iterator[Recipe]:
    for name, content in (
        (".DS_Store", b"\x00\x00\x00\x01Bud1" + bytes(64)),
        ("Thumbs.db", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(64)),
        ("README.txt", b"Pictures of one kind of thing.\n"),
    ):
        defect = Defect(f"{name}, no image", "skipped", "no extension of an image")
        yield Recipe(name, defect, _fixed(content), (1, 1))


def _links() -> Iterator[Recipe]:
    for name, target, what, reason in (
        ("{synset}_outside.JPEG", "/etc/passwd", "link out of the tree", "leaves the tree"),
        ("{synset}_nowhere.JPEG", "missing.JPEG", "link to nothing", "points at nothing"),
        ("cycle", "..", "link to the folder above", "would be walked without end"),
    ):
        defect = Defect(what, "failed", reason)
        yield Recipe(name, defect, _fixed(Link(target)), (1, 1))
