"""Tests of dataprep.image.containers."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageFile, PngImagePlugin

from dataprep.errors import CorruptImage, ImageError, ImageTooLarge, NotAnImage, UnsupportedImage
from dataprep.image import containers
from dataprep.image.containers import Opened, contradicts, open_image
from dataprep.image.policy import ImagePolicy
from dataprep.sample.drawing import draw_image
from tests import encodings as enc

IMAGE = draw_image(2, 120, 90, detail=0.2)
GREY, RGB, GREY_ALPHA, RGBA = 0, 2, 4, 6


def opened(data: bytes) -> Opened:
    """Open by the defaults."""
    return open_image(data, ImagePolicy())


def png(depth: int, kind: int, row: bytes, width: int, transparent: tuple[int, ...] = ()) -> bytes:
    """A PNG of one row, written by hand, so that every depth and colour type is had."""
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, 1, depth, kind, 0, 0, 0)),
        *([(b"tRNS", struct.pack(f">{len(transparent)}H", *transparent))] if transparent else []),
        (b"IDAT", zlib.compress(b"\0" + row)),
        (b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content))
        + name
        + content
        + struct.pack(">I", zlib.crc32(name + content))
        for name, content in chunks
    )


def sixteen(*samples: int) -> bytes:
    """Samples of 16 bits as PNG has them."""
    return struct.pack(f">{len(samples)}H", *samples)


def saved(image: Image.Image, kind: str) -> bytes:
    """The image in a format of Pillow's."""
    buffer = io.BytesIO()
    image.save(buffer, kind)
    return buffer.getvalue()


def difference(left: np.ndarray[tuple[int, ...], np.dtype[np.uint8]], right: object) -> float:
    """Mean absolute difference of two images."""
    return float(np.abs(left.astype(float) - np.asarray(right, dtype=float)).mean())


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF", "PPM"])
def test_lossless_containers_give_the_very_pixels(kind: str) -> None:
    """RGB and greyscale in lossless formats come back to the bit, greyscale as one channel."""
    found = opened(enc.pillow(IMAGE, kind))
    assert (found.container, found.orientation, found.notes) == (kind, 1, ())
    assert np.array_equal(found.pixels, IMAGE)
    grey = opened(enc.pillow(IMAGE, kind, "L"))
    truth = np.asarray(Image.fromarray(IMAGE).convert("L"))
    assert np.array_equal(grey.pixels, truth[:, :, np.newaxis])


def test_bilevel_is_black_and_white() -> None:
    """One bit a pixel becomes 0 and 255 in one channel."""
    found = opened(enc.pillow(IMAGE, "PNG", "1"))
    assert found.mode == "1"
    assert found.pixels.shape == (90, 120, 1)
    assert set(np.unique(found.pixels).tolist()) == {0, 255}


@pytest.mark.parametrize("encode", [enc.adobe_cmyk_jpeg, enc.plain_cmyk_jpeg, enc.ycck_jpeg])
def test_four_colours_show_the_picture(encode: object) -> None:
    """CMYK and YCCK, with Adobe's inversion and without a marker, give the true colours."""
    assert callable(encode)
    found = opened(encode(IMAGE))
    assert found.notes == ("cmyk_converted",)
    assert difference(found.pixels, IMAGE) < 8


def test_four_colours_in_other_containers_are_ink() -> None:
    """CMYK in TIFF is not inverted."""
    ink = enc._cmyk(IMAGE)
    found = opened(saved(ink, "TIFF"))
    assert found.notes == ("cmyk_converted",)
    assert difference(found.pixels, IMAGE) < 3


def test_palettes_become_colours_over_white() -> None:
    """A palette is looked up, and its transparent colour becomes white."""
    data = enc.palette_png(IMAGE)
    found = opened(data)
    index = np.asarray(Image.open(io.BytesIO(data)))
    assert found.notes == ("palette_converted", "alpha_flattened")
    assert (found.pixels[index == 0] == 255).all()
    assert difference(found.pixels[index != 0], IMAGE[index != 0]) < 12


def test_alpha_is_composed_over_white() -> None:
    """Full alpha keeps a colour, none gives white, and half lies half way."""
    row = bytes([10, 20, 30, 255, 10, 20, 30, 0, 10, 20, 30, 128])
    found = opened(png(8, RGBA, row, 3))
    assert found.notes == ("alpha_flattened",)
    assert found.pixels[0, :2].tolist() == [[10, 20, 30], [255, 255, 255]]
    assert np.abs(found.pixels[0, 2] - np.array([132, 137, 142])).max() <= 1


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
    """A PNG's transparent colour becomes white at every depth, and no other colour does."""
    found = opened(data)
    assert "alpha_flattened" in found.notes
    assert found.pixels[0].tolist() == expected


def test_16_bits_are_scaled_and_not_clipped() -> None:
    """Grey of 16 bits is scaled with rounding: 65535 is 255, 257 is 1, a half is 128."""
    samples = (0, 128, 129, 257, 0x8000, 65406, 65407, 65535)
    found = opened(png(16, GREY, sixteen(*samples), len(samples)))
    assert found.pixels[0, :, 0].tolist() == [0, 0, 1, 1, 128, 254, 255, 255]
    assert (found.mode, found.notes) == ("I;16", ("depth_reduced",))


def test_16_bit_colours_are_within_one() -> None:
    """RGB of 16 bits is scaled to within one of the exact value, and the ends are exact."""
    samples = (0, 65535, 0x8000, 257, 12345, 54321)
    found = opened(png(16, RGB, sixteen(*samples), 2))
    exact = np.array(samples).reshape(2, 3) / 257
    assert np.abs(found.pixels[0] - exact).max() <= 1
    assert found.pixels[0, 0, :2].tolist() == [0, 255]
    assert found.notes == ("depth_reduced",)


@pytest.mark.parametrize("grey", [True, False])
def test_deep_png_shows_the_picture(grey: bool) -> None:
    """A photograph of 16 bits looks as the one of 8 bits it was made of."""
    found = opened(enc.deep_png(IMAGE, grey=grey))
    truth = np.asarray(Image.fromarray(IMAGE).convert("L"))[..., None] if grey else IMAGE
    assert found.pixels.shape == truth.shape
    assert difference(found.pixels, truth) < 1


@pytest.mark.parametrize("order", ["<u2", ">u2"])
def test_16_bit_tiff_of_both_byte_orders(order: str) -> None:
    """16 bits are scaled whichever byte comes first."""
    ramp = np.arange(0, 65536, 257, dtype=np.uint16).reshape(16, 16)
    mode = "I;16" if order == "<u2" else "I;16B"
    image = Image.frombytes(mode, (16, 16), ramp.astype(order).tobytes())
    assert np.array_equal(opened(saved(image, "TIFF")).pixels.ravel(), np.arange(256))


def test_samples_without_a_range_are_unsupported() -> None:
    """Floating-point and 32-bit samples are refused, since nothing says what is white."""
    floats = saved(Image.fromarray(np.ones((8, 8), np.float32)), "TIFF")
    with pytest.raises(UnsupportedImage, match="floating-point"):
        opened(floats)
    for value in (-1, 65_536):
        wide = saved(Image.fromarray(np.full((8, 8), value, np.int32)), "TIFF")
        with pytest.raises(UnsupportedImage, match="signed"):
            opened(wide)


def test_the_first_frame_of_an_animation() -> None:
    """An animated GIF gives its first frame, and a note; a still one gives none."""
    moving, still = opened(enc.animated_gif(IMAGE)), opened(enc.animated_gif(IMAGE, frames=1))
    assert np.array_equal(moving.pixels, still.pixels)
    assert difference(moving.pixels, IMAGE) < 12
    assert "first_frame_kept" in moving.notes
    assert "first_frame_kept" not in still.notes


def test_a_profile_is_handed_on() -> None:
    """An ICC profile stands beside the pixels that it describes."""
    assert opened(enc.icc_jpeg(IMAGE)).profile == Image.open(
        io.BytesIO(enc.icc_jpeg(IMAGE))
    ).info.get("icc_profile")
    assert opened(enc.pillow(IMAGE, "PNG")).profile is None


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "WEBP"])
@pytest.mark.parametrize("orientation", [3, 6])
def test_orientation_is_a_plain_number(kind: str, orientation: int) -> None:
    """The orientation of other containers is read, as an int even where it is a fraction."""
    image, buffer = Image.fromarray(IMAGE), io.BytesIO()
    exif = image.getexif()
    exif[0x0112] = orientation
    image.save(buffer, kind, exif=exif)
    assert opened(buffer.getvalue()).orientation == orientation


def test_an_orientation_of_another_type() -> None:
    """An orientation written as a RATIONAL comes out as an int, ready for JSON."""
    tiff = b"MM\0*" + struct.pack(">IHHHIII", 8, 1, 0x0112, 5, 1, 26, 0) + struct.pack(">II", 6, 1)
    buffer = io.BytesIO()
    Image.fromarray(IMAGE).save(buffer, "PNG", exif=b"Exif\0\0" + tiff)
    found = opened(buffer.getvalue())
    assert (found.orientation, type(found.orientation)) == (6, int)


@pytest.mark.parametrize(
    "data", [b"text, no image\n", b"%PDF-1.7", b"\0" * 64, b"%!PS-Adobe-3.0 EPSF-3.0\n"]
)
def test_other_files_are_no_images(data: bytes) -> None:
    """Text, PDF, zeros and PostScript are no images; the error shows how they begin."""
    with pytest.raises(NotAnImage, match="not an image: begins with"):
        opened(data)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\0\0\0\x18ftypheic" + bytes(40), "HEIC is not read: convert it"),
        (b"\0\0\0\x18ftypmif1" + bytes(40), "HEIC is not read"),
        (b"\xff\x0a" + bytes(40), "JPEG XL is not read"),
        (b"\0\0\0\x0cJXL \r\n\x87\n" + bytes(40), "JPEG XL is not read"),
        (b"II*\0\x10\0\0\0CR\x02\0" + bytes(40), "a camera's raw file is not read: convert it"),
        (b"\0\0\0\x18ftypcrx " + bytes(40), "a camera's raw file is not read"),
        (b"FUJIFILMCCD-RAW 0201" + bytes(40), "a camera's raw file is not read"),
    ],
)
def test_images_that_are_not_read(data: bytes, said: str) -> None:
    """Known kinds that are not read are called by name, with what to do about them."""
    with pytest.raises(NotAnImage, match=f"^{said}"):
        opened(data)


def test_a_tiff_that_may_be_a_raw_file() -> None:
    """A TIFF that cannot be read says what else begins so."""
    with pytest.raises(CorruptImage, match="raw files of cameras, such as NEF"):
        opened(b"II*\0\x08\0\0\0" + bytes(40))


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
    """Images over the limit are refused by their headers, without decoding a pixel."""

    def decoded(self: object) -> None:
        raise AssertionError

    monkeypatch.setattr(ImageFile.ImageFile, "load", decoded)
    with pytest.raises(
        ImageTooLarge,
        match=r"^4,290,250,000 pixels are more than max_pixels allows \(89,478,485\)$",
    ):
        opened(enc.bomb_png(65500))
    with pytest.raises(ImageTooLarge, match=r"120 x 90 pixels .* max_pixels allows \(10,799\)"):
        open_image(enc.pillow(IMAGE, "PNG"), ImagePolicy(max_pixels=10_799))
    with pytest.raises(CorruptImage):
        open_image(enc.pillow(IMAGE, "PNG"), ImagePolicy(max_pixels=10_800))


def tiff(pixels: bytes, bits: int, photometric: int, form: int = 1) -> bytes:
    """A little-endian TIFF of one row of four samples, written by hand."""
    entries = [
        *((256, 4), (257, 1), (258, bits), (259, 1), (262, photometric), (273, 8)),
        *((277, 1), (278, 1), (279, len(pixels)), (339, form)),
    ]
    directory = b"".join(struct.pack("<HHII", tag, 3, 1, value) for tag, value in entries)
    head = b"II*\0" + struct.pack("<I", 8 + len(pixels))
    return head + pixels + struct.pack("<H", len(entries)) + directory + bytes(4)


TWELVE = bytes.fromhex("000800fff001")  # 0, 2048, 4095, 1
SIXTEEN = struct.pack("<4H", 0, 32_768, 65_535, 1)


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (tiff(TWELVE, 12, 1), [0, 128, 255, 0]),
        (tiff(SIXTEEN, 16, 1), [0, 128, 255, 0]),
        (tiff(SIXTEEN, 16, 0), [255, 127, 0, 255]),
        (tiff(bytes([0, 128, 255, 1]), 8, 0), [255, 127, 0, 254]),
    ],
    ids=["12", "16", "16 from white", "8 from white"],
)
def test_deep_grey_tiffs(data: bytes, wanted: list[int]) -> None:
    """Scaled by their own depth, and counted from white where the file says so."""
    assert opened(data).pixels.ravel().tolist() == wanted


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (tiff(bytes(5), 10, 1), "does not read"),
        (tiff(bytes(7), 14, 1), "does not read"),
        (tiff(SIXTEEN, 16, 1, form=2), "signed samples"),
    ],
)
def test_tiffs_of_other_samples(data: bytes, message: str) -> None:
    """A sound file that cannot be read is not called broken."""
    with pytest.raises(UnsupportedImage, match=message):
        opened(data)
    with pytest.raises(CorruptImage):
        opened(data[:60])


XMP = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:Description tiff:Orientation="6"/></x:xmpmeta>'


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "TIFF", "AVIF"])
def test_xmp_is_not_followed(kind: str) -> None:
    """The orientation is Exif's, in every container."""
    buffer = io.BytesIO()
    options: dict[str, object] = {"xmp": XMP}
    if kind == "PNG":
        text = PngImagePlugin.PngInfo()
        text.add_itxt("XML:com.adobe.xmp", XMP.decode())
        options = {"pnginfo": text}
    if kind == "TIFF":
        options = {"tiffinfo": {700: XMP}}
    Image.fromarray(IMAGE).save(buffer, kind, **options)
    assert Image.open(io.BytesIO(buffer.getvalue())).getexif()[0x0112] == 6
    found = opened(buffer.getvalue())
    assert (found.orientation, found.pixels.shape) == (1, IMAGE.shape)


def test_texts_that_inflate_without_end() -> None:
    """Texts beyond Pillow's limit cost no image; the file is not stored as it is."""
    info = PngImagePlugin.PngInfo()
    info.add_text("a", "b" * 2_000_000, zip=True)
    data = enc.pillow(IMAGE, "PNG", pnginfo=info)
    found = opened(data)
    assert np.array_equal(found.pixels, IMAGE)
    assert not found.as_stored
    assert opened(enc.pillow(IMAGE, "PNG")).as_stored
    with pytest.raises(CorruptImage, match="its colour profile is larger than 1 MB"):
        opened(enc.pillow(IMAGE, "PNG", icc_profile=bytes(2_000_000)))


def test_pages_are_not_counted() -> None:
    """A second page that cannot be read costs nothing: the first is the image."""
    data = bytearray(saved(Image.fromarray(IMAGE), "TIFF"))
    start = int.from_bytes(data[4:8], "little")
    following = start + 2 + 12 * int.from_bytes(data[start : start + 2], "little")
    data += b"\0" * (len(data) % 2)
    data[following : following + 4] = len(data).to_bytes(4, "little")
    data += bytes(2 + 4)  # a directory of nothing
    found = opened(bytes(data))
    assert found.notes == ("first_frame_kept",)
    assert np.array_equal(found.pixels, IMAGE)


def test_a_webp_lets_go_of_its_canvases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pillow's decoder holds two images more; it is gone before colours are converted."""
    seen = []

    def look(image: Image.Image) -> object:
        seen.append(hasattr(image, "_decoder"))
        return as_array(image)

    as_array = containers._as_array
    monkeypatch.setattr(containers, "_as_array", look)
    opened(saved(Image.fromarray(IMAGE), "WEBP"))
    assert seen == [False]


def test_jpeg_2000_has_a_lower_limit() -> None:
    """Its decoder takes more memory a pixel than any other, so that it gets two thirds of them."""
    data = enc.pillow(IMAGE, "JPEG2000")
    count = IMAGE.shape[0] * IMAGE.shape[1]
    open_image(data, ImagePolicy(max_pixels=-(-count * 3 // 2)))
    with pytest.raises(ImageTooLarge, match="more than two thirds of max_pixels"):
        open_image(data, ImagePolicy(max_pixels=-(-count * 3 // 2) - 1))


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
    """Only an extension that stands for another container contradicts, in upper case too."""
    assert contradicts(name, container) == wrong


@pytest.mark.parametrize("rows", [1, 50])
def test_a_few_rows_at_a_time_give_what_all_give(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Grey, colours, transparency and 16 bits do not depend on how many rows are worked on."""
    files = [enc.pillow(IMAGE, "PNG", mode) for mode in ("L", "RGB", "LA")]
    files += [enc.rgba_png(IMAGE), enc.deep_png(IMAGE, grey=True), enc.pillow(IMAGE, "TIFF")]
    policies = [ImagePolicy(), ImagePolicy(background=(9, 200, 30))]
    policies += [ImagePolicy(encoding="png", alpha="keep")]
    whole = [open_image(data, policy).pixels for data in files for policy in policies]
    monkeypatch.setattr(containers, "_STRIP_PIXELS", rows)
    parts = [open_image(data, policy).pixels for data in files for policy in policies]
    assert all(map(np.array_equal, whole, parts))


def test_16_bits_are_rounded() -> None:
    """Every level of 16 bits becomes the nearest of 255."""
    samples = np.arange(2**16, dtype=np.uint16).reshape(256, 256)
    found = open_image(saved(Image.fromarray(samples), "PNG"), ImagePolicy()).pixels
    assert np.array_equal(found[:, :, 0], np.floor(samples / 65_535 * 255 + 0.5))


@given(st.binary(max_size=40))
def test_no_bytes_are_taken_for_an_image(data: bytes) -> None:
    """Whatever a file begins with, the error is one of an image."""
    with pytest.raises(ImageError):
        open_image(data, ImagePolicy())
