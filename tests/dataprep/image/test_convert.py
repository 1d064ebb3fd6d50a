"""Images are converted by a policy, and decoded as RGB pixels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import cv2
import numpy as np
import pytest
import simplejpeg
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image, ImageFile, ImageOps

from dataprep.drawn.drawing import Pixels, draw_image
from dataprep.errors import CorruptImage, ImageError, ImageTooLarge, NotAnImage, UnsupportedImage
from dataprep.image import Converted, ImagePolicy, Mode, check, convert
from dataprep.image.policy import Filter, Note
from dataprep.image.rgb import decode_rgb
from tests import encodings as enc
from tests.dataprep.image.odd_jpegs import unusual
from tests.dataprep.image.pictures import apart, pillow_image, saved, turned
from tests.dataprep.image.profiles import ink_profile, swapped_profile
from tests.strategies import cut, mutated, trait_policies

IMAGE = draw_image(5, 160, 120, detail=0.3)
PLAIN = enc.jpeg(IMAGE)
SHARP = {"quality": 100, "subsampling": "444"}


def show(data: bytes) -> Pixels:
    """The pixels as RGB."""
    return np.asarray(pillow_image(data).convert("RGB"))


def psnr(left: NDArray[Any], right: NDArray[Any]) -> float:
    """The peak signal-to-noise ratio of 8-bit images, in dB."""
    error = np.mean((left.astype(float) - right) ** 2)
    return float(10 * np.log10(255**2 / error)) if error else float("inf")


def damaged(data: bytes) -> bytes:
    """A JPEG that ends in the middle of its pixels with an end marker, followed by junk."""
    middle = len(data) // 2
    return data[:middle] + b"\xff\xd9" + data[middle + 50 :]


@pytest.mark.parametrize("check_by", ["decode", "header"])
@pytest.mark.parametrize(
    ("data", "colorspace"),
    [
        (PLAIN, "YCbCr"),
        (enc.grey_jpeg(IMAGE), "Grayscale"),
        (enc.icc_jpeg(IMAGE), "YCbCr"),
        (enc.bad_exif_jpeg(IMAGE), "YCbCr"),
        (enc.adobe_rgb_jpeg(IMAGE), "RGB"),
        (enc.oriented_jpeg(IMAGE, 1), "YCbCr"),
        (PLAIN + b"trailer", "YCbCr"),
    ],
    ids=["plain", "grey", "icc", "bad exif", "rgb", "upright", "trailer"],
)
def test_jpegs_of_the_right_size_pass_through(data: bytes, colorspace: str, check_by: str) -> None:
    """A valid JPEG that needs no change is stored byte for byte, with its profile and Exif."""
    for policy in ({}, {"mode": "short", "size": 120}, {"mode": "exact", "size": (160, 120)}):
        converted_image = convert(data, ImagePolicy.model_validate({**policy, "check": check_by}))
        assert converted_image.data == data
        assert (converted_image.action, converted_image.container) == ("passthrough", "JPEG")
        assert (converted_image.width, converted_image.height) == (
            converted_image.source_width,
            converted_image.source_height,
        )
        assert converted_image.source_colorspace == colorspace
        assert "icc_dropped" not in converted_image.notes


@pytest.mark.parametrize("check_by", ["decode", "header"])
def test_a_jpeg_that_others_do_not_take_for_one_is_encoded_again(check_by: str) -> None:
    """A JPEG with a stray byte behind the first two, which libjpeg skips, is encoded again."""
    data = PLAIN[:2] + b"\0" + PLAIN[2:]
    converted_image = convert(data, ImagePolicy.model_validate({"check": check_by}))
    assert (converted_image.action, converted_image.notes) == ("reencoded", ("recovered",))
    assert converted_image.data.startswith(b"\xff\xd8\xff")


@pytest.mark.parametrize("mode", get_args(Mode))
@pytest.mark.parametrize("upscale", [False, True])
@pytest.mark.parametrize("size", [64, 140, 200])
@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_every_mode_gives_the_size_it_says(mode: Mode, upscale: bool, size: int, kind: str) -> None:
    """The stored JPEG has exactly the size of each mode, from JPEG and from PNG."""
    policy = ImagePolicy(mode=mode, size=None if mode == "none" else size, upscale=upscale)
    converted_image = convert(enc.pillow(IMAGE, kind), policy)
    long, short = max(size, 0), size
    expected = {
        "none": (160, 120),
        "short": ((short * 4 + 1) // 3, short),
        "long": (long, long * 3 // 4),
        "exact": (size, size),
        "crop": (size, size),
    }[mode]
    if not upscale and mode in ("short", "long"):
        expected = min(expected, (160, 120))
    if not upscale and mode in ("exact", "crop"):
        expected = (min(expected[0], 160), min(expected[1], 120))
    assert abs(show(converted_image.data).shape[1] - expected[0]) <= 1
    assert show(converted_image.data).shape[0] == expected[1]
    assert check(converted_image.data) == (converted_image.width, converted_image.height, 3)
    assert (converted_image.source_width, converted_image.source_height) == (160, 120)


def test_a_crop_keeps_the_centre() -> None:
    """A crop shows the middle of the scaled image."""
    image = np.zeros((100, 300, 3), np.uint8)
    image[:, 100:200] = 255
    cropped = show(convert(enc.pillow(image, "PNG"), ImagePolicy(mode="crop", size=100)).data)
    assert cropped[:, 2:-2].min() > 240


def test_orientation_is_ignored_and_reset() -> None:
    """By default only the orientation tag changes, to 1. Both facts are noted."""
    data = enc.oriented_jpeg(IMAGE, 6, note_bytes=100)
    converted_image = convert(data)
    assert converted_image.data == enc.oriented_jpeg(IMAGE, 1, note_bytes=100)
    assert (converted_image.action, converted_image.exif_orientation) == ("retagged", 6)
    assert converted_image.notes == ("orientation_ignored", "orientation_reset")


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("how", ["apply", "ignore"])
@pytest.mark.parametrize("size", [None, 60])
@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_orientations(orientation: int, how: str, size: int | None, kind: str) -> None:
    """An orientation is applied as Pillow's exif_transpose does it, or ignored."""
    data = enc.oriented_jpeg(IMAGE, orientation)
    if kind == "PNG":
        data = saved(Image.fromarray(IMAGE), "PNG", exif=turned(orientation))
    converted_image = convert(
        data, ImagePolicy.model_validate({**SHARP, "size": size, "orientation": how})
    )
    truth = ImageOps.exif_transpose(pillow_image(data)) if how == "apply" else pillow_image(data)
    truth = truth.convert("RGB").resize(
        (converted_image.width, converted_image.height), Image.Resampling.BICUBIC
    )
    assert pillow_image(converted_image.data).getexif().get(0x0112, 1) == 1
    assert psnr(show(converted_image.data), np.asarray(truth)) > 30
    assert converted_image.exif_orientation == orientation
    assert ("orientation_applied" in converted_image.notes) == (orientation != 1 and how == "apply")
    if how == "apply" and kind == "JPEG":
        assert converted_image.action == (
            "passthrough" if (orientation, size) == (1, None) else "reencoded"
        )


@pytest.mark.parametrize("encode", [enc.adobe_cmyk_jpeg, enc.plain_cmyk_jpeg, enc.ycck_jpeg])
@pytest.mark.parametrize("size", [None, 60])
def test_four_colours_become_rgb(encode: Callable[[Pixels], bytes], size: int | None) -> None:
    """CMYK and YCCK JPEGs are encoded again in their true colours, also without Adobe's marker."""
    converted_image = convert(encode(IMAGE), ImagePolicy(size=size))
    truth = Image.fromarray(IMAGE).resize(
        (converted_image.width, converted_image.height), Image.Resampling.BICUBIC
    )
    assert psnr(show(converted_image.data), np.asarray(truth)) > 26
    assert (converted_image.action, converted_image.colorspace, converted_image.channels) == (
        "reencoded",
        "RGB",
        3,
    )
    assert (converted_image.source_colorspace, converted_image.notes) == (
        "CMYK",
        ("cmyk_converted",),
    )


@pytest.mark.parametrize("encode", [enc.adobe_cmyk_jpeg, enc.plain_cmyk_jpeg, enc.ycck_jpeg])
def test_four_colours_that_lost_pixels_are_corrupt(encode: Callable[[Pixels], bytes]) -> None:
    """A CMYK JPEG with lost pixels is corrupt, although Pillow would fill them with grey."""
    with pytest.raises(CorruptImage, match=r"corrupt JPEG: .*premature end"):
        convert(damaged(encode(IMAGE)))


@pytest.mark.parametrize(
    "data",
    [enc.grey_jpeg(IMAGE), enc.pillow(IMAGE, "PNG", "L"), enc.deep_png(IMAGE, grey=True)],
    ids=["jpeg", "png", "png16"],
)
@pytest.mark.parametrize("size", [None, 60, 20])
def test_grey_stays_one_channel(data: bytes, size: int | None) -> None:
    """Greyscale is stored as a JPEG of one component, resized or not."""
    converted_image = convert(data, ImagePolicy(size=size))
    assert check(converted_image.data) == (converted_image.width, converted_image.height, 1)
    assert (converted_image.channels, converted_image.colorspace) == (1, "Grayscale")
    assert "greyscale_kept" in converted_image.notes
    assert pillow_image(converted_image.data).mode == "L"


@pytest.mark.parametrize("kind", ["PNG", "GIF", "BMP", "TIFF", "WEBP", "PPM", "JPEG2000", "AVIF"])
def test_the_content_decides_the_codec(kind: str) -> None:
    """Every container is recognised by its content, and becomes a JPEG of the same picture."""
    converted_image = convert(enc.pillow(IMAGE, kind, "P" if kind == "GIF" else "RGB"))
    assert (converted_image.container, converted_image.action) == (kind, "reencoded")
    assert converted_image.data.startswith(b"\xff\xd8\xff")
    assert psnr(show(converted_image.data), IMAGE) > 20


@pytest.mark.parametrize("subsampling", ["420", "422", "444"])
def test_encoder_settings_are_used(subsampling: str) -> None:
    """The subsampling is in the stored header, and a lower quality takes fewer bytes."""
    sizes = []
    for quality in (50, 95):
        policy = ImagePolicy.model_validate(
            {"size": 60, "subsampling": subsampling, "quality": quality}
        )
        data = convert(PLAIN, policy).data
        assert simplejpeg.decode_jpeg_header(data)[3] == subsampling
        sizes.append(len(data))
    assert sizes[0] < sizes[1]


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (b"", CorruptImage, "empty file"),
        (b"no image at all", NotAnImage, "not an image"),
        (PLAIN[:-2], CorruptImage, "truncated JPEG"),
        (PLAIN[: len(PLAIN) // 2], CorruptImage, "truncated JPEG"),
        (PLAIN[:30], CorruptImage, "truncated JPEG"),
        (enc.with_garbage(PLAIN, np.random.default_rng(0)), CorruptImage, "corrupt JPEG"),
        (damaged(PLAIN), CorruptImage, "corrupt JPEG"),
        (enc.pillow(IMAGE, "PNG")[:500], CorruptImage, "broken image"),
        (enc.bomb_jpeg(IMAGE, 65500), ImageTooLarge, "65500 x 65500 pixels are more than max_pix"),
        (enc.bomb_png(65500), ImageTooLarge, "more pixels than max_pixels"),
        (PLAIN.replace(b"\xff\xc0\0\x11\x08", b"\xff\xc1\0\x11\x0c"), UnsupportedImage, "8 bits"),
        (PLAIN.replace(b"\xff\xc0", b"\xff\xc3"), UnsupportedImage, "lossless"),
        (enc.pillow(IMAGE, "TIFF", "F"), UnsupportedImage, "floating-point"),
    ],
    ids=lambda value: getattr(value, "__name__", "") if not isinstance(value, bytes) else "",
)
@pytest.mark.parametrize("size", [None, 60])
def test_every_kind_of_error(
    data: bytes, error: type[ImageError], message: str, size: int | None
) -> None:
    """Each reason why bytes are no usable image has its own error, resized or not."""
    with pytest.raises(ImageError, match=message) as caught:
        convert(data, ImagePolicy(size=size))
    assert type(caught.value) is error


def test_limits() -> None:
    """Bytes and pixels may equal their limits but not exceed them."""
    convert(PLAIN, ImagePolicy(max_source_bytes=len(PLAIN), max_pixels=160 * 120))
    with pytest.raises(ImageTooLarge, match="max_source_bytes"):
        convert(PLAIN, ImagePolicy(max_source_bytes=len(PLAIN) - 1))
    for data in (PLAIN, enc.pillow(IMAGE, "PNG"), enc.adobe_cmyk_jpeg(IMAGE)):
        with pytest.raises(ImageTooLarge, match="max_pixels"):
            convert(data, ImagePolicy(max_pixels=160 * 120 - 1))


@pytest.mark.parametrize("filter", get_args(Filter))
@pytest.mark.parametrize("encoding", ["jpeg", "png"])
def test_what_would_become_too_large_is_not_scaled(filter: str, encoding: str) -> None:
    """A result above the limit is refused before scaling, with each filter."""
    data = enc.pillow(np.zeros((5000, 1, 3), np.uint8), "PNG")
    policy = {"size": 256, "upscale": True, "filter": filter, "encoding": encoding}
    with pytest.raises(ImageTooLarge, match="256 x 1280000"):
        convert(data, ImagePolicy.model_validate(policy))


@pytest.mark.parametrize("data", [enc.bomb_jpeg(IMAGE, 65500), enc.bomb_png(65500)])
def test_bombs_are_never_decoded(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """An image with a huge size in its header is refused without calling a decoder."""

    def decoded(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr(simplejpeg, "decode_jpeg", decoded)
    monkeypatch.setattr(ImageFile.ImageFile, "load", decoded)
    with pytest.raises(ImageTooLarge):
        convert(data)
    with pytest.raises((AssertionError, CorruptImage)):
        convert(PLAIN if data.startswith(b"\xff\xd8") else enc.bomb_png(9))


def test_the_header_check_reads_no_pixels() -> None:
    """Check "header" accepts a damaged file that ends like a JPEG, and no truncated file."""
    policy = ImagePolicy(check="header")
    assert convert(damaged(PLAIN), policy).data == damaged(PLAIN)
    with pytest.raises(CorruptImage, match="truncated JPEG"):
        convert(PLAIN[:-2], policy)


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("size", [64, 128, 200, 224, 256, 300])
def test_resizing_is_close_to_pillows(kind: str, seed: int, size: int) -> None:
    """Drawn photographs are within 30 dB of Pillow's antialiased bicubic resize.

    Pixels that no DCT has scaled are within 42 dB.
    """
    image = draw_image(seed, 500, 375, detail=0.1 + 0.15 * seed)
    data = enc.jpeg(image, "444", 95) if kind == "JPEG" else enc.pillow(image, "PNG")
    converted_image = convert(data, ImagePolicy.model_validate({**SHARP, "size": size}))
    box = (converted_image.width, converted_image.height)
    expected = Image.fromarray(show(data)).resize(box, Image.Resampling.BICUBIC)
    assert psnr(show(converted_image.data), np.asarray(expected)) >= (30 if kind == "JPEG" else 42)


def zone_plate(side: int) -> Pixels:
    """Rings whose frequency grows from 0 in the centre to Nyquist's at the middle of the edges."""
    across = np.arange(side) - (side - 1) / 2
    squares = across**2 + across[:, None] ** 2
    return np.rint(127.5 + 127.5 * np.cos(np.pi * squares / side)).astype(np.uint8)


def aliases(result: Pixels, source_side: int) -> float:
    """The remainder of rings that the result is too small to show. The correct value is 0."""
    side = len(result)
    across = np.arange(side) - (side - 1) / 2
    radius = np.hypot(across, across[:, None])
    limit = 1.1 * side**2 / (2 * source_side)
    return float(result[(radius > limit) & (radius < side / 2)].std())


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
@pytest.mark.parametrize("size", [400, 360, 300, 256, 241, 224, 200, 161, 128, 100, 61, 50, 31])
def test_no_more_aliases_than_an_area_average(kind: str, size: int) -> None:
    """A zone plate has at most 2 % more aliases than with OpenCV's INTER_AREA."""
    plate = zone_plate(480)
    data = (
        simplejpeg.encode_jpeg(plate[..., None], 100, "GRAY", "Gray")
        if kind == "JPEG"
        else enc.pillow(plate, "PNG")
    )
    converted_image = convert(data, ImagePolicy(size=size, quality=100))
    result = np.asarray(pillow_image(converted_image.data))
    area = cv2.resize(plate, (size, size), interpolation=cv2.INTER_AREA)
    assert aliases(result, 480) <= 1.02 * aliases(np.asarray(area, np.uint8), 480)


@pytest.mark.parametrize("size", [100, 20])
def test_conversion_is_repeatable(size: int) -> None:
    """The same bytes and policy give the same bytes, whatever was converted in between."""
    sources = [PLAIN, enc.pillow(IMAGE, "PNG"), enc.adobe_cmyk_jpeg(IMAGE), enc.palette_png(IMAGE)]
    policy = ImagePolicy(size=size)
    first = [convert(data, policy) for data in sources]
    assert [convert(data, policy) for data in reversed(sources)] == first[::-1]


SMALL = draw_image(3, 24, 16, detail=0.2)


SEEDS = st.sampled_from(
    [
        enc.jpeg(SMALL),
        enc.oriented_jpeg(SMALL, 6),
        enc.adobe_cmyk_jpeg(SMALL),
        enc.pillow(SMALL, "PNG"),
        enc.animated_gif(SMALL),
        enc.pillow(SMALL, "TIFF"),
        enc.pillow(SMALL, "WEBP"),
        enc.palette_png(SMALL),
        enc.grey_jpeg(SMALL),
        enc.icc_jpeg(SMALL),
        enc.ycck_jpeg(SMALL),
        enc.pillow(SMALL, "JPEG", icc_profile=swapped_profile(), progressive=True),
        enc.pillow(SMALL, "PNG", "LA", icc_profile=swapped_profile()),
        enc.pillow(SMALL, "TIFF", "CMYK", icc_profile=ink_profile()),
        enc.deep_png(SMALL, grey=True),
        enc.rgba_png(SMALL),
        enc.pillow(SMALL, "WEBP", "RGBA"),
        enc.pillow(SMALL, "BMP"),
        unusual(draw_image(3, 32, 32, detail=0.2)),
    ]
)


def attempt(data: bytes, policy: ImagePolicy) -> Converted | str:
    """The conversion, or its error."""
    try:
        return convert(data, policy, name="a.JPEG")
    except ImageError as error:
        return f"{error.kind}: {error}"


@pytest.mark.parametrize("lossless", [True, False])
@pytest.mark.parametrize(("alpha", "channels"), [(255, 3), (254, 4), (0, 4)])
def test_webp_has_no_alpha_that_is_opaque_everywhere(
    lossless: bool, alpha: int, channels: int
) -> None:
    """The reported channels are those of the stored WebP file."""
    image = Image.new("RGBA", (24, 16), (200, 100, 50, 255))
    image.putpixel((3, 3), (200, 100, 50, alpha))
    policy = ImagePolicy(encoding="webp", alpha="keep", webp_lossless=lossless)
    converted_image = convert(saved(image, "PNG"), policy)
    assert converted_image.channels == channels
    assert check(converted_image.data) == (24, 16, channels)


@settings(max_examples=300)
@given(
    data=st.one_of(
        mutated(SEEDS),
        mutated(mutated(SEEDS)),
        cut(SEEDS),
        SEEDS,
        st.binary(),
        st.binary().map(b"\xff\xd8\xff".__add__),
    ),
    policy=trait_policies(),
)
def test_every_policy_gives_an_image_or_an_image_error(data: bytes, policy: ImagePolicy) -> None:
    """Any bytes give the planned image, twice the same, or an ImageError."""
    converted_image = attempt(data, policy)
    assert attempt(data, policy) == converted_image
    if isinstance(converted_image, str):
        return
    assert set(converted_image.notes) <= set(get_args(Note))
    assert len(set(converted_image.notes)) == len(converted_image.notes)
    assert converted_image.encoding == policy.encoding.upper()
    assert (converted_image.width, converted_image.height) == (
        converted_image.geometry.crop_width,
        converted_image.geometry.crop_height,
    )
    # A check of the header alone never promised correct pixels.
    if policy.check == "decode" or converted_image.action == "reencoded":
        assert check(converted_image.data) == (
            converted_image.width,
            converted_image.height,
            converted_image.channels,
        )
    if policy.greyscale == "rgb":
        assert converted_image.channels != 1
    if policy.truncated == "keep" and "truncated_kept" in converted_image.notes:
        assert converted_image.action == "reencoded"
    assert min(converted_image.source_width, converted_image.source_height) >= policy.min_size
    assert type(converted_image.exif_orientation) is int
    assert 1 <= converted_image.exif_orientation <= 8


ACROSS, DOWN = np.meshgrid(np.linspace(0, 255, 301), np.linspace(0, 255, 203))
SCENE = Image.fromarray(np.dstack([ACROSS, DOWN, np.full_like(DOWN, 99)]).astype(np.uint8))


@pytest.mark.parametrize(
    ("format", "mode"),
    [("JPEG", "CMYK"), *((form, mode) for form in ("JPEG", "PNG", "GIF") for mode in ("RGB", "L"))],
)
def test_containers_and_colours(format: str, mode: str) -> None:
    """Every image is decoded at its own size as RGB."""
    image = SCENE.convert(mode)
    pixels = decode_rgb(saved(image, format))
    assert pixels.shape == (203, 301, 3)
    assert pixels.dtype == np.uint8
    assert apart(pixels, image.convert("RGB")) < (12 if format == "GIF" else 3)


@pytest.mark.parametrize("encoding", ["png", "webp"])
def test_stored_alpha(encoding: str) -> None:
    """Transparent pixels of a stored image are white."""
    image = SCENE.copy()
    image.putalpha(Image.fromarray(np.where(ACROSS < 128, 0, 255).astype(np.uint8)))
    policy = ImagePolicy.model_validate({"encoding": encoding, "alpha": "keep"})
    pixels = decode_rgb(convert(saved(image, "PNG"), policy).data)
    flat = Image.new("RGB", image.size, "white")
    flat.paste(image, None, image)
    assert apart(pixels, flat) < 4


def test_orientation_is_ignored() -> None:
    """An EXIF orientation does not turn the pixels."""
    assert decode_rgb(saved(SCENE, "JPEG", exif=turned(6))).shape == (203, 301, 3)


@pytest.mark.parametrize("data", [b"", b"\xff\xd8", b"text", saved(SCENE, "JPEG")[:200]])
def test_no_image(data: bytes) -> None:
    """Bytes that cannot be decoded raise an ImageError."""
    with pytest.raises(ImageError):
        decode_rgb(data)
