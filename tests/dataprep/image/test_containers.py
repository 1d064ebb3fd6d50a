"""PNG, TIFF, GIF and other containers are read with their traits and limits, or refused."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image, ImageFile, PngImagePlugin

from dataprep.drawn.drawing import draw_image
from dataprep.errors import (
    CorruptImage,
    ImageError,
    ImageTooLarge,
    NotAnImage,
    RefusedImage,
    UnsupportedImage,
)
from dataprep.image import convert
from dataprep.image.containers import DecodedImage, decode_by_pillow, extension_notes
from dataprep.image.policy import ImagePolicy
from tests import encodings as enc
from tests.dataprep.image.pictures import apart, saved, turned

IMAGE = draw_image(2, 120, 90, detail=0.2)
GREY, RGB, GREY_ALPHA, RGBA = 0, 2, 4, 6


def opened(data: bytes) -> DecodedImage:
    """An image that is opened with the default policy."""
    return decode_by_pillow(data, ImagePolicy())


def png(depth: int, kind: int, row: bytes, width: int, transparent: tuple[int, ...] = ()) -> bytes:
    """A PNG of one row for any depth and colour type, written by hand."""
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", width, 1, depth, kind, 0, 0, 0))]
    if transparent:
        chunks.append((b"tRNS", struct.pack(f">{len(transparent)}H", *transparent)))
    chunks += [(b"IDAT", zlib.compress(b"\0" + row)), (b"IEND", b"")]
    return enc.png_of_chunks(chunks)


def sixteen(*samples: int) -> bytes:
    """16-bit samples in the byte order of PNG."""
    return struct.pack(f">{len(samples)}H", *samples)


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF", "PPM"])
def test_lossless_containers_give_the_very_pixels(kind: str) -> None:
    """RGB and greyscale in lossless formats have exactly their pixels, greyscale in one channel."""
    opened_image = opened(enc.pillow(IMAGE, kind))
    source = opened_image.source
    assert (source.container, source.orientation, source.notes) == (kind, 1, ())
    assert np.array_equal(opened_image.pixels, IMAGE)
    grey = opened(enc.pillow(IMAGE, kind, "L"))
    truth = np.asarray(Image.fromarray(IMAGE).convert("L"))
    assert np.array_equal(grey.pixels, truth[:, :, np.newaxis])
    if kind in ("PNG", "TIFF", "PPM"):
        bilevel = opened(enc.pillow(IMAGE, kind, "1"))
        assert (bilevel.source.colorspace, bilevel.pixels.shape) == ("1", (90, 120, 1))
        assert set(np.unique(bilevel.pixels).tolist()) == {0, 255}


def test_four_colours_in_other_containers_are_ink() -> None:
    """CMYK in TIFF is not inverted."""
    ink = enc._cmyk(IMAGE)
    opened_image = opened(saved(ink, "TIFF"))
    assert opened_image.source.notes == ("cmyk_converted",)
    assert apart(opened_image.pixels, IMAGE) < 3


def test_palettes_become_colours_over_white() -> None:
    """A palette is looked up, and its transparent colour becomes white."""
    data = enc.palette_png(IMAGE)
    opened_image = opened(data)
    index = np.asarray(Image.open(io.BytesIO(data)))
    assert opened_image.source.notes == ("palette_converted", "alpha_flattened")
    assert (opened_image.pixels[index == 0] == 255).all()
    assert apart(opened_image.pixels[index != 0], IMAGE[index != 0]) < 12


def test_alpha_is_composed_over_white() -> None:
    """A pixel with full alpha keeps its colour, one without alpha is white, half is half way."""
    row = bytes([10, 20, 30, 255, 10, 20, 30, 0, 10, 20, 30, 128])
    opened_image = opened(png(8, RGBA, row, 3))
    assert opened_image.source.notes == ("alpha_flattened",)
    assert opened_image.pixels[0, :2].tolist() == [[10, 20, 30], [255, 255, 255]]
    assert np.abs(opened_image.pixels[0, 2] - np.array([132, 137, 142])).max() <= 1


@pytest.mark.parametrize(
    ("depth", "row"), [(8, bytes([10, 255, 10, 0])), (16, sixteen(2570, 65535, 2570, 0))]
)
def test_grey_with_alpha_stays_grey(depth: int, row: bytes) -> None:
    """Grey with alpha, of 8 or 16 bits, becomes one channel over white."""
    assert opened(png(depth, GREY_ALPHA, row, 2)).pixels.tolist() == [[[10], [255]]]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (png(1, GREY, b"\x50", 4, (1,)), [[0], [255], [0], [255]]),
        (png(2, GREY, b"\x1b", 4, (2,)), [[0], [85], [255], [255]]),
        (png(4, GREY, b"\x07\x9f", 4, (7,)), [[0], [255], [153], [255]]),
        (png(8, GREY, b"\x07\x09", 2, (7,)), [[255], [9]]),
        (png(16, GREY, sixteen(0x1234, 0x8080), 2, (0x1234,)), [[255], [128]]),
        (png(8, RGB, b"\1\2\3\3\2\1", 2, (1, 2, 3)), [[255, 255, 255], [3, 2, 1]]),
        (
            png(
                16,
                RGB,
                sixteen(0x1234, 0x2345, 0x3456, 0x3412, 0x4523, 0x5634),
                2,
                (0x1234, 0x2345, 0x3456),
            ),
            [[255, 255, 255], [0x34, 0x45, 0x56]],
        ),
    ],
    ids=["grey1", "grey2", "grey4", "grey8", "grey16", "rgb8", "rgb16"],
)
def test_the_transparent_colour_is_white(data: bytes, expected: list[list[int]]) -> None:
    """A PNG's transparent colour becomes white at every depth, and other colours do not."""
    opened_image = opened(data)
    assert "alpha_flattened" in opened_image.source.notes
    assert opened_image.pixels[0].tolist() == expected


def test_16_bit_colours_are_within_one() -> None:
    """RGB of 16 bits is scaled to within one of the exact value, and exactly at both ends."""
    samples = (0, 65535, 0x8000, 257, 12345, 54321)
    opened_image = opened(png(16, RGB, sixteen(*samples), 2))
    exact = np.array(samples).reshape(2, 3) / 257
    assert np.abs(opened_image.pixels[0] - exact).max() <= 1
    assert opened_image.pixels[0, 0, :2].tolist() == [0, 255]
    assert opened_image.source.notes == ("depth_reduced",)


@pytest.mark.parametrize("order", ["<u2", ">u2"])
def test_16_bit_tiff_of_both_byte_orders(order: str) -> None:
    """16-bit samples are scaled correctly in either byte order."""
    ramp = np.arange(0, 65536, 257, dtype=np.uint16).reshape(16, 16)
    mode = "I;16" if order == "<u2" else "I;16B"
    image = Image.frombytes(mode, (16, 16), ramp.astype(order).tobytes())
    assert np.array_equal(opened(saved(image, "TIFF")).pixels.ravel(), np.arange(256))


@pytest.mark.parametrize(
    "samples",
    [np.ones((8, 8), np.float32), *(np.full((8, 8), n, np.int32) for n in (-1, 65_536))],
    ids=["float", "negative", "wide"],
)
def test_samples_without_a_range_are_unsupported(samples: NDArray[Any]) -> None:
    """Floating-point and 32-bit samples are refused, because their white level is unknown."""
    with pytest.raises(UnsupportedImage, match="floating-point or signed"):
        opened(saved(Image.fromarray(samples), "TIFF"))


def test_the_first_frame_of_an_animation() -> None:
    """An animated GIF gives its first frame and a note, and a still GIF has no note."""
    moving, still = opened(enc.animated_gif(IMAGE)), opened(enc.animated_gif(IMAGE, frames=1))
    assert np.array_equal(moving.pixels, still.pixels)
    assert apart(moving.pixels, IMAGE) < 12
    assert "first_frame_kept" in moving.source.notes
    assert "first_frame_kept" not in still.source.notes


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "WEBP"])
@pytest.mark.parametrize("orientation", [3, 6])
def test_orientation_is_a_plain_number(kind: str, orientation: int) -> None:
    """The orientation of other containers is an int, even if it is stored as a fraction."""
    data = enc.pillow(IMAGE, kind, exif=turned(orientation))
    assert opened(data).source.orientation == orientation


@pytest.mark.parametrize(
    ("data", "message"),
    [
        *(
            (data, "not an image: begins with")
            for data in (b"text, no image\n", b"%PDF-1.7", b"\0" * 64, b"%!PS-Adobe-3.0 EPSF-3.0\n")
        ),
        (b"\0\0\0\x18ftypheic" + bytes(40), "HEIC is not read: convert it"),
        (b"\0\0\0\x18ftypmif1" + bytes(40), "HEIC is not read"),
        (b"\xff\x0a" + bytes(40), "JPEG XL is not read"),
        (b"\0\0\0\x0cJXL \r\n\x87\n" + bytes(40), "JPEG XL is not read"),
        (b"II*\0\x10\0\0\0CR\x02\0" + bytes(40), "raw files of cameras are not read: convert them"),
        (b"\0\0\0\x18ftypcrx " + bytes(40), "raw files of cameras are not read"),
        (b"FUJIFILMCCD-RAW 0201" + bytes(40), "raw files of cameras are not read"),
    ],
)
def test_images_that_are_not_read(data: bytes, message: str) -> None:
    """The error names a known kind and a remedy, or shows the first bytes of an unknown one."""
    with pytest.raises(NotAnImage, match=f"^{message}"):
        opened(data)


@pytest.mark.parametrize("kind", ["PNG", "GIF", "TIFF"])
def test_an_image_cut_anywhere_is_corrupt(kind: str) -> None:
    """An image cut after its signature is corrupt, never "not an image"."""
    data = enc.pillow(IMAGE, kind, "P" if kind == "GIF" else "RGB")
    for size in (8, 12, 20, 33, 40, 60, len(data) // 2):
        with pytest.raises(CorruptImage, match=r"broken image: ."):
            opened(data[:size])


def test_too_many_pixels_are_refused_before_they_are_decoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Images above the limit are refused by their headers, without decoding."""

    def decoded(self: object) -> None:
        raise AssertionError

    monkeypatch.setattr(ImageFile.ImageFile, "load", decoded)
    with pytest.raises(
        ImageTooLarge, match=r"^the image has more pixels than max_pixels allows \(89,478,485\)$"
    ):
        opened(enc.bomb_png(65500))
    with pytest.raises(ImageTooLarge, match=r"120 x 90 pixels .* max_pixels allows \(10,799\)"):
        decode_by_pillow(enc.pillow(IMAGE, "PNG"), ImagePolicy(max_pixels=10_799))
    with pytest.raises(CorruptImage):
        decode_by_pillow(enc.pillow(IMAGE, "PNG"), ImagePolicy(max_pixels=10_800))


def tiff(pixels: bytes, bits: int, photometric: int, form: int = 1) -> bytes:
    """A little-endian TIFF of one row of four samples, written by hand."""
    entries = [
        *((256, 4), (257, 1), (258, bits), (259, 1), (262, photometric), (273, 8)),
        *((277, 1), (278, 1), (279, len(pixels)), (339, form)),
    ]
    directory = b"".join(struct.pack("<HHII", tag, 3, 1, value) for tag, value in entries)
    head = b"II*\0" + struct.pack("<I", 8 + len(pixels))
    return head + pixels + struct.pack("<H", len(entries)) + directory + bytes(4)


TWELVE = bytes.fromhex("000800fff001")  # samples are 0, 2048, 4095, 1
SIXTEEN = struct.pack("<4H", 0, 32_768, 65_535, 1)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (tiff(TWELVE, 12, 1), [0, 128, 255, 0]),
        (tiff(SIXTEEN, 16, 1), [0, 128, 255, 0]),
        (tiff(SIXTEEN, 16, 0), [255, 127, 0, 255]),
        (tiff(bytes([0, 128, 255, 1]), 8, 0), [255, 127, 0, 254]),
    ],
    ids=["12", "16", "16 from white", "8 from white"],
)
def test_deep_grey_tiffs(data: bytes, expected: list[int]) -> None:
    """Grey samples are scaled by their own depth, and inverted if 0 is white in the file."""
    assert opened(data).pixels.ravel().tolist() == expected


@pytest.mark.parametrize(
    "data",
    [tiff(bytes(5), 10, 1), tiff(bytes(7), 14, 1), b"II*\0\x08\0\0\0" + bytes(40)],
    ids=["10 bits", "14 bits", "no directory"],
)
def test_tiffs_that_cannot_be_read(data: bytes) -> None:
    """The error names other formats that begin as a TIFF does."""
    with pytest.raises(CorruptImage, match="raw files of cameras, such as NEF"):
        opened(data)


DEEP = IMAGE.astype(np.uint16) * 257


def by_opencv(kind: str, pixels: NDArray[np.uint16], *options: int) -> bytes:
    """An image of more than 8 bits a sample by OpenCV, or None without its encoder."""
    try:
        return bytes(cv2.imencode(kind, pixels, options)[1].tobytes())
    except cv2.error:
        return b""


@pytest.mark.parametrize(
    "data",
    [
        *(by_opencv(kind, DEEP) for kind in (".png", ".tiff", ".ppm")),
        *(by_opencv(kind, DEEP[..., 1]) for kind in (".png", ".tiff", ".pgm")),
        saved(Image.fromarray(DEEP[..., 1].copy()), "JPEG2000"),
        by_opencv(".avif", (DEEP >> 6).astype(np.uint16), cv2.IMWRITE_AVIF_DEPTH, 10),
        b"P5\n# drawn\n2 # two\n1\n# and\n1023\n" + sixteen(0, 1023),
    ],
    ids=["png", "tiff", "ppm", "grey png", "grey tiff", "pgm", "jpeg 2000", "avif", "comments"],
)
def test_more_than_eight_bits_are_noticed(data: bytes) -> None:
    """The depth is noted even if Pillow opens the file with 8 bits. The policy can refuse it."""
    if not data:
        pytest.skip("this OpenCV has no encoder of AVIF")
    assert "depth_reduced" in opened(data).source.notes
    with pytest.raises(RefusedImage, match="more than 8 bits"):
        decode_by_pillow(data, ImagePolicy(depth="fail"))


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "PPM", "JPEG2000", "AVIF", "BMP", "GIF", "WEBP"])
def test_eight_bits_are_not_deep(kind: str) -> None:
    """Eight bits a sample, or one bit, cause no note."""
    policy = ImagePolicy(depth="fail")
    decode_by_pillow(enc.pillow(IMAGE, kind, "P" if kind == "GIF" else "RGB"), policy)
    if kind in ("PNG", "TIFF", "PPM"):
        decode_by_pillow(enc.pillow(IMAGE, kind, "1"), policy)


@pytest.mark.parametrize(
    "data", [b"P1\n# c\n8 2\n10101010\n01010101\n", b"P4\n32 1\n 999", b"P4 8 2\n\n3000"]
)
def test_pixels_of_a_bitmap_are_no_depth(data: bytes) -> None:
    """A PBM has one bit a sample, also if its pixels look like a largest sample of more."""
    decoded = decode_by_pillow(data, ImagePolicy(depth="fail"))
    assert decoded.source.notes == ()


SOUND_PNG = enc.pillow(draw_image(10, 40, 30, detail=0.2), "PNG")


@given(at=st.integers(8, len(SOUND_PNG) - 13), bit=st.integers(0, 7))
def test_no_png_with_a_flipped_bit_is_stored_as_it_is(at: int, bit: int) -> None:
    """A valid PNG is stored as it is. With any bit changed, it is encoded again, or fails."""
    policy = ImagePolicy(encoding="png")
    assert convert(SOUND_PNG, policy).data == SOUND_PNG
    flipped = bytearray(SOUND_PNG)
    flipped[at] ^= 1 << bit
    try:
        converted_image = convert(bytes(flipped), policy)
    except ImageError:
        return
    assert converted_image.action == "reencoded"


XMP = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:Description tiff:Orientation="6"/></x:xmpmeta>'


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "TIFF", "AVIF"])
def test_xmp_is_not_followed(kind: str) -> None:
    """The orientation is that of Exif in every container, and not that of XMP."""
    options: dict[str, object] = {"xmp": XMP}
    if kind == "PNG":
        text = PngImagePlugin.PngInfo()
        text.add_itxt("XML:com.adobe.xmp", XMP.decode())
        options = {"pnginfo": text}
    if kind == "TIFF":
        options = {"tiffinfo": {700: XMP}}
    data = saved(Image.fromarray(IMAGE), kind, **options)
    assert Image.open(io.BytesIO(data)).getexif()[0x0112] == 6
    opened_image = opened(data)
    assert (opened_image.source.orientation, opened_image.pixels.shape) == (1, IMAGE.shape)


def test_pages_are_not_counted() -> None:
    """A second page that cannot be read causes no error, because the first one is the image."""
    data = bytearray(saved(Image.fromarray(IMAGE), "TIFF"))
    start = int.from_bytes(data[4:8], "little")
    following = start + 2 + 12 * int.from_bytes(data[start : start + 2], "little")
    data += b"\0" * (len(data) % 2)
    data[following : following + 4] = len(data).to_bytes(4, "little")
    data += bytes(2 + 4)  # an empty directory
    opened_image = opened(bytes(data))
    assert opened_image.source.notes == ("first_frame_kept",)
    assert np.array_equal(opened_image.pixels, IMAGE)


def test_16_bits_are_rounded() -> None:
    """Every level of 16 bits becomes the nearest of 255 levels."""
    samples = np.arange(2**16, dtype=np.uint16).reshape(256, 256)
    opened_image = opened(saved(Image.fromarray(samples), "PNG"))
    assert np.array_equal(opened_image.pixels[:, :, 0], np.floor(samples / 65_535 * 255 + 0.5))
    assert (opened_image.source.colorspace, opened_image.source.notes) == (
        "I;16",
        ("depth_reduced",),
    )


@pytest.mark.parametrize(
    ("name", "container", "wrong"),
    [
        ("n01/a.JPEG", "JPEG", False),
        ("n01/a.jpg", "MPO", False),
        ("n01/a.JPEG", "PNG", True),
        ("n01/a.png", "JPEG", True),
        ("a.dib", "BMP", False),
        ("a.pgm", "PPM", False),
        ("a.webp", "WEBP", False),
        ("a.tif", "WEBP", True),
        ("photos.png/a", "JPEG", False),
        (".png", "JPEG", False),
        ("a", "JPEG", False),
        ("a.dat", "JPEG", False),
        ("", "JPEG", False),
    ],
)
def test_names_promise_containers(name: str, container: str, wrong: bool) -> None:
    """Only an extension of another container contradicts the content, in upper case too."""
    assert extension_notes(name, container, ImagePolicy()) == ("wrong_container",) * wrong
