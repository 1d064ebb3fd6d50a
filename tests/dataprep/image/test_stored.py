"""Stored images keep or lose traits of their source as documented, and pass their check."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import simplejpeg
from PIL import Image

from dataprep.drawn.drawing import draw_image
from dataprep.errors import CorruptImage, ImageTooSmall, NotAnImage
from dataprep.image import Converted, ImagePolicy, check, convert
from dataprep.image.output_size import Geometry, Pixels
from tests import encodings as enc
from tests.dataprep.image import profiles
from tests.dataprep.image.pictures import apart, pillow_image, saved, turned

IMAGE = draw_image(11, 160, 120, detail=0.2)
PLAIN = enc.jpeg(IMAGE)
OTHER = profiles.swapped_profile()
FIRST = enc.pillow(IMAGE, "JPEG", "L", icc_profile=profiles.grey_profile(1.0))
LOSSLESS = {"PNG": {}, "WEBP": {"lossless": True}}


def converted(data: bytes, **keys: Any) -> Converted:
    """Convert by a policy of these keys. The result passes the check of stored images."""
    converted_image = convert(data, ImagePolicy.model_validate(keys))
    assert check(converted_image.data) == (
        converted_image.width,
        converted_image.height,
        converted_image.channels,
    )
    return converted_image


@pytest.mark.parametrize("kind", ["PNG", "WEBP"])
@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA"])
def test_other_encodings_pass_through(kind: str, mode: str) -> None:
    """With their own encoding PNG and WebP are stored byte for byte, and otherwise encoded."""
    data = enc.pillow(IMAGE, kind, mode, **LOSSLESS[kind])
    keys = {"encoding": kind.lower(), "alpha": "keep"}
    converted_image = converted(data, **keys)
    assert (converted_image.data, converted_image.action, converted_image.encoding) == (
        data,
        "passthrough",
        kind,
    )
    assert apart(pillow_image(converted_image.data), pillow_image(data)) == 0
    resized = converted(data, **keys, size=60)
    assert (resized.action, resized.encoding) == ("reencoded", kind)
    assert (resized.width, resized.height) == (80, 60)
    assert (converted(data).action, converted(data).encoding) == ("reencoded", "JPEG")


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        (enc.palette_png(IMAGE), {}),
        (enc.deep_png(IMAGE, grey=True), {}),
        (enc.deep_png(IMAGE, grey=False), {}),
        (enc.pillow(IMAGE, "PNG", "1"), {}),
        (enc.rgba_png(IMAGE), {}),
        (enc.pillow(IMAGE, "PNG", "L"), {"greyscale": "rgb"}),
        (enc.pillow(IMAGE, "PNG", "LA"), {"alpha": "keep"}),
        (enc.pillow(IMAGE, "PNG", icc_profile=OTHER), {"icc": "srgb"}),
        (enc.pillow(IMAGE, "PNG", save_all=True, append_images=[Image.new("RGB", (160, 120))]), {}),
        (PLAIN, {}),
    ],
    ids=["palette", "grey16", "rgb16", "1bit", "alpha", "grey", "la", "icc", "frames", "jpeg"],
)
def test_pngs_that_need_a_change_are_encoded(data: bytes, keys: dict[str, Any]) -> None:
    """A PNG with a trait that is not stored, or that the policy changes, is encoded again."""
    converted_image = converted(data, encoding="png", **keys)
    assert (converted_image.action, converted_image.encoding) == ("reencoded", "PNG")
    assert pillow_image(converted_image.data).mode in ("L", "RGB", "RGBA")


def test_pngs_that_strict_readers_do_not_take_are_encoded() -> None:
    """No stored file has an orientation, or a wrong checksum of its pixels."""
    data = enc.pillow(IMAGE, "PNG", exif=turned(6))
    for orientation, size in (("ignore", (160, 120)), ("apply", (120, 160))):
        converted_image = converted(data, encoding="png", orientation=orientation)
        assert (converted_image.action, pillow_image(converted_image.data).size) == (
            "reencoded",
            size,
        )
        assert pillow_image(converted_image.data).getexif().get(0x0112, 1) == 1
    damaged = bytearray(enc.pillow(IMAGE, "PNG"))
    damaged[damaged.index(b"IEND") - 8] ^= 1  # within the checksum before it
    converted_image = converted(bytes(damaged), encoding="png")
    assert converted_image.action == "reencoded"
    assert apart(pillow_image(converted_image.data), IMAGE) == 0


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF"])
@pytest.mark.parametrize("encoding", ["jpeg", "png", "webp"])
def test_a_profile_is_kept(kind: str, encoding: str) -> None:
    """``keep`` writes the source's profile into the encoded image, resized or not."""
    data = enc.pillow(IMAGE, kind, icc_profile=OTHER)
    for keys in ({}, {"size": 60}):
        converted_image = converted(data, encoding=encoding, icc="keep", **keys)
        assert "icc_kept" in converted_image.notes
        assert pillow_image(converted_image.data).info["icc_profile"] == OTHER
        dropped = converted(data, encoding=encoding, size=60)
        assert "icc_dropped" in dropped.notes
        assert "icc_profile" not in pillow_image(dropped.data).info


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF"])
@pytest.mark.parametrize("size", [None, 60])
def test_a_profile_is_applied(kind: str, size: int | None) -> None:
    """``srgb`` applies a profile that swaps red and green and removes it, resized or not."""
    vivid = (IMAGE * [1.0, 0.4, 0.6]).astype(np.uint8)
    swapped = np.ascontiguousarray(vivid[..., [1, 0, 2]])
    converted_image = converted(enc.pillow(swapped, kind, icc_profile=OTHER), icc="srgb", size=size)
    truth = Image.fromarray(vivid).resize(
        (converted_image.width, converted_image.height), Image.Resampling.BOX
    )
    assert converted_image.action == "reencoded"
    assert "icc_converted" in converted_image.notes
    assert "icc_profile" not in pillow_image(converted_image.data).info
    assert apart(pillow_image(converted_image.data), truth) < 9
    assert apart(pillow_image(converted_image.data), np.asarray(truth)[..., [1, 0, 2]]) > 15


def test_srgb_passes_through_srgb() -> None:
    """With ``srgb`` a file in sRGB keeps its bytes, and a broken profile is ignored."""
    converted_image = converted(enc.icc_jpeg(IMAGE), icc="srgb")
    assert (converted_image.action, converted_image.notes) == ("passthrough", ("icc_kept",))
    broken = enc.pillow(IMAGE, "JPEG", icc_profile=OTHER[:150] + b"\xff" * 100)
    assert converted(broken, icc="srgb").notes == ("icc_broken",)
    assert converted(broken, icc="srgb", size=60).notes == ("icc_broken",)


def test_a_profile_in_many_segments() -> None:
    """A profile of several segments is joined, and is broken if a segment is missing."""
    profile = profiles.rgb_profile(padding=150_000)
    data = enc.pillow(IMAGE, "JPEG", icc_profile=profile)
    kept = converted(data, icc="keep", size=60)
    assert pillow_image(kept.data).info["icc_profile"] == profile
    first = data.index(b"\xff\xe2")
    length = int.from_bytes(data[first + 2 : first + 4], "big")
    missing = data[:first] + data[first + 2 + length :]
    for icc in ("keep", "srgb"):
        assert "icc_broken" in converted(missing, icc=icc, size=60).notes


@pytest.mark.parametrize(("kind", "options"), [("JPEG", {"quality": 95}), ("TIFF", {})])
def test_inks_by_their_profile(kind: str, options: dict[str, int]) -> None:
    """Under ``srgb``, CMYK is converted by its profile, which is never embedded."""
    cyan = Image.new("CMYK", (32, 32), (255, 0, 0, 0))
    data = saved(cyan, kind, icc_profile=profiles.ink_profile(), **options)
    managed = converted(data, icc="srgb")
    assert {"icc_converted", "cmyk_converted"} <= set(managed.notes)
    assert apart(pillow_image(managed.data), [255, 0, 0]) < 8
    for icc in ("drop", "keep"):
        plain = converted(data, icc=icc)
        assert {"icc_dropped", "cmyk_converted"} <= set(plain.notes)
        assert apart(pillow_image(plain.data), [0, 255, 255]) < 8
        assert "icc_profile" not in pillow_image(plain.data).info
    foreign = saved(cyan, kind, icc_profile=OTHER, **options)
    assert "icc_broken" in converted(foreign, icc="keep").notes


def test_profiles_of_grey() -> None:
    """A grey profile is applied, kept with one channel, and dropped with three or four."""
    applied = converted(FIRST, icc="srgb")
    assert (applied.channels, applied.action) == (1, "reencoded")
    light = np.asarray(Image.fromarray(IMAGE).convert("L"), float) / 255
    curve = np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)
    assert apart(pillow_image(applied.data), 255 * curve) < 6
    assert "icc_kept" in converted(FIRST, icc="keep", size=60).notes
    assert "icc_dropped" in converted(FIRST, icc="keep", greyscale="rgb").notes
    data = enc.pillow(IMAGE, "PNG", "LA", icc_profile=profiles.grey_profile())
    converted_image = converted(data, icc="keep", encoding="png", alpha="keep")
    assert (converted_image.channels, "icc_dropped" in converted_image.notes) == (4, True)


@pytest.mark.parametrize("size", [None, 60])
@pytest.mark.parametrize("encoding", ["jpeg", "png", "webp"])
def test_grey_becomes_three_channels(size: int | None, encoding: str) -> None:
    """``rgb`` encodes a grey JPEG with three equal channels, even if its size is right."""
    converted_image = converted(enc.grey_jpeg(IMAGE), greyscale="rgb", size=size, encoding=encoding)
    assert (converted_image.action, converted_image.channels, converted_image.colorspace) == (
        "reencoded",
        3,
        "RGB",
    )
    assert "greyscale_to_rgb" in converted_image.notes
    array = np.asarray(pillow_image(converted_image.data), int)
    assert array.shape == (converted_image.height, converted_image.width, 3)
    assert np.ptp(array, axis=-1).max() <= 3


FOREIGN = {
    "cut": OTHER[:200],
    "of grey": profiles.grey_profile(),
    "of inks": profiles.ink_profile(),
    "rubbish": b"rubbish" * 40,
}


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
@pytest.mark.parametrize("size", [None, 60])
def test_profiles_that_cannot_be_the_images(name: str, kind: str, size: int | None) -> None:
    """A profile that does not fit is ignored and counted as broken. Unchanged files keep it."""
    data = enc.pillow(IMAGE, kind, icc_profile=FOREIGN[name])
    converted_image = converted(data, icc="keep", encoding=kind.lower(), size=size)
    assert converted_image.notes == ("icc_broken",)
    assert ("icc_profile" in pillow_image(converted_image.data).info) == (size is None)


@pytest.mark.parametrize(
    ("background", "channels"), [([0, 0, 255], 3), ("#804020", 3), ([7, 7, 7], 1)]
)
def test_backgrounds(background: object, channels: int) -> None:
    """Transparent pixels get the background. Grey stays grey only on a grey background."""
    data = saved(Image.new("LA", (40, 40), (90, 0)), "PNG")
    converted_image = converted(data, background=background)
    expected = {"#804020": [128, 64, 32]}.get(str(background), background)
    assert converted_image.channels == channels
    assert apart(pillow_image(converted_image.data).convert("RGB"), expected) < 3


@pytest.mark.parametrize("encoding", ["png", "webp"])
@pytest.mark.parametrize("filter", ["bicubic", "bilinear", "area", "lanczos"])
@pytest.mark.parametrize("size", [70, 30])
def test_what_is_transparent_gives_no_colour(encoding: str, filter: str, size: int) -> None:
    """Transparent pixels do not colour their neighbours when scaled, as in Pillow's own resize."""
    pixels = np.zeros((100, 100, 4), np.uint8)
    pixels[:, :47] = [255, 0, 0, 255]
    pixels[:, 47:] = [0, 255, 0, 0]
    converted_image = converted(
        saved(Image.fromarray(pixels), "PNG"),
        encoding=encoding,
        alpha="keep",
        filter=filter,
        size=size,
        **({"webp_lossless": True} if encoding == "webp" else {}),
    )
    array = np.asarray(pillow_image(converted_image.data), int)
    assert (converted_image.channels, converted_image.colorspace, converted_image.notes) == (
        4,
        "RGBA",
        ("alpha_kept",),
    )
    assert array[array[..., 3] > 8][:, 1].max() == 0
    assert {0, 255} <= set(np.unique(array[..., 3]).tolist())


@pytest.mark.parametrize("data", [PLAIN, enc.pillow(IMAGE, "PNG"), enc.adobe_cmyk_jpeg(IMAGE)])
def test_small_images(data: bytes) -> None:
    """An image whose short side is below the minimum has an error of its own."""
    converted(data, min_size=120)
    with pytest.raises(ImageTooSmall, match=r"160 x 120 pixels.*below min_size \(121\)"):
        convert(data, ImagePolicy(min_size=121))


@pytest.mark.parametrize(
    "data",
    [
        PLAIN[: len(PLAIN) * 2 // 3],
        enc.grey_jpeg(IMAGE)[:-2],
        enc.ycck_jpeg(IMAGE)[: len(enc.ycck_jpeg(IMAGE)) * 2 // 3],
        enc.pillow(IMAGE, "PNG")[: len(enc.pillow(IMAGE, "PNG")) * 2 // 3],
        enc.rgba_png(IMAGE)[:-2000],
        enc.pillow(IMAGE, "GIF", "P")[:-3000],
        enc.pillow(IMAGE, "BMP")[:-9000],
        enc.pillow(IMAGE, "TIFF")[:-9000],
    ],
    ids=["jpeg", "grey", "ycck", "png", "rgba", "gif", "bmp", "tiff"],
)
@pytest.mark.parametrize("keys", [{}, {"size": 60}, {"check": "header"}, {"encoding": "png"}])
def test_truncated_files_are_kept(data: bytes, keys: dict[str, Any]) -> None:
    """The pixels that decode are encoded again, so that strict readers accept the result."""
    with pytest.raises(CorruptImage, match=r"truncated|premature end"):
        convert(data, ImagePolicy.model_validate(keys))
    converted_image = converted(data, truncated="keep", **keys)
    assert converted_image.action == "reencoded"
    assert "truncated_kept" in converted_image.notes
    mode = "L" if converted_image.channels == 1 else "RGB"
    kept = np.asarray(pillow_image(converted_image.data).convert(mode).resize((160, 120)), float)
    truth = np.asarray(Image.fromarray(IMAGE).convert(mode), float)
    # A BMP's first row is its lowest one. Transparency begins at the left.
    part = np.s_[80:] if data.startswith(b"BM") else np.s_[:40, :40]
    assert apart(kept[part], truth[part]) < 30


@pytest.mark.parametrize("orientation", range(1, 9))
def test_where_boxes_go(orientation: int) -> None:
    """A conversion reports the turn of the image, the size after scaling, and the crop."""
    data = enc.oriented_jpeg(IMAGE, orientation)
    turned = orientation >= 5
    converted_image = converted(data, orientation="apply", mode="crop", size=90)
    assert converted_image.orientation_applied == orientation
    assert converted_image.geometry == (
        Geometry(90, 120, 90, 90) if turned else Geometry(120, 90, 90, 90)
    )
    ignored = converted(data)
    assert (ignored.orientation_applied, ignored.geometry) == (1, Geometry(160, 120, 160, 120))


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("how", ["ignore", "apply"])
def test_the_orientation_of_tiff_is_always_applied(orientation: int, how: str) -> None:
    """A TIFF's orientation is applied once under each policy, and is counted as applied."""
    data = enc.pillow(IMAGE, "TIFF", exif=turned(orientation))
    converted_image = converted(data, orientation=how, encoding="png")
    assert apart(pillow_image(converted_image.data), pillow_image(data)) == 0
    assert (pillow_image(converted_image.data).size == (120, 160)) == (orientation >= 5)
    assert converted_image.exif_orientation == orientation
    assert ("orientation_applied" in converted_image.notes) == (orientation != 1)
    assert converted_image.orientation_applied == orientation
    assert (converted_image.source_width, converted_image.source_height) == (160, 120)
    small = converted(data, orientation=how, encoding="png", mode="exact", size=(30, 50))
    assert (small.geometry, pillow_image(small.data).size) == (Geometry(30, 50, 30, 50), (30, 50))


def test_nothing_of_exif_survives_an_encoding() -> None:
    """Encoded images have no Exif, thumbnail or comment."""
    data = enc.oriented_jpeg(IMAGE, 3, note_bytes=500)
    for encoding in ("jpeg", "png", "webp"):
        encoded_image = pillow_image(converted(data, size=60, encoding=encoding).data)
        assert len(encoded_image.getexif()) == 0
        assert "exif" not in encoded_image.info


@pytest.mark.parametrize("encoding", ["jpeg", "png", "webp"])
@pytest.mark.parametrize(
    ("data", "channels"), [(enc.rgba_png(IMAGE), 4), (PLAIN, 3), (enc.grey_jpeg(IMAGE), 1)]
)
def test_what_is_stored_is_found_sound(encoding: str, data: bytes, channels: int) -> None:
    """The check returns width, height and channels. A file that is cut anywhere does not decode."""
    alpha = "flatten" if encoding == "jpeg" else "keep"
    policy = ImagePolicy.model_validate({"encoding": encoding, "alpha": alpha})
    converted_image = convert(data, policy)
    expected = {("jpeg", 4): 3, ("webp", 1): 3}.get((encoding, channels), channels)
    assert check(converted_image.data) == (160, 120, expected)
    assert converted_image.channels == expected
    for size in (40, len(converted_image.data) // 2, len(converted_image.data) - 20):
        with pytest.raises((CorruptImage, NotAnImage)):
            check(converted_image.data[:size])


def test_damage_within() -> None:
    """A JPEG damaged in its middle, and a PNG with one wrong byte, do not pass the check."""
    with pytest.raises(CorruptImage, match="corrupt JPEG"):
        check(enc.with_garbage(PLAIN, np.random.default_rng(0)))
    png = bytearray(enc.pillow(IMAGE, "PNG"))
    png[len(png) // 2] ^= 1
    with pytest.raises(CorruptImage):
        check(bytes(png))


@pytest.mark.parametrize("kind", ["GIF", "TIFF", "BMP"])
def test_what_is_never_stored(kind: str) -> None:
    """Containers that are never stored are refused."""
    with pytest.raises(CorruptImage, match="not a JPEG, PNG or WebP: it begins with"):
        check(enc.pillow(IMAGE, kind, "P" if kind == "GIF" else "RGB"))


@pytest.mark.parametrize("data", [enc.deep_png(IMAGE, grey=True), enc.palette_png(IMAGE)])
def test_pngs_that_were_not_stored_here(data: bytes) -> None:
    """A PNG of 16 bits or with a palette is refused, because this package does not store it."""
    with pytest.raises(CorruptImage, match="does not store such images"):
        check(data)


PHOTO = draw_image(5, 160, 120, detail=0.3)
GREY = PHOTO[:, :, :1]
NOISE = np.random.default_rng(0).integers(0, 256, (600, 600, 3), dtype=np.uint8)


def encoded(pixels: Pixels, **keys: Any) -> bytes:
    """The pixels encoded by a policy of these keys."""
    image = Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
    return convert(saved(image, "TIFF"), ImagePolicy.model_validate(keys)).data


@pytest.mark.parametrize("quality", [30, 75, 95, 96, 100])
@pytest.mark.parametrize(("subsampling", "native"), [("420", "4:2:0"), ("444", "4:4:4")])
def test_the_dct_is_accurate(quality: int, subsampling: str, native: str) -> None:
    """Another library's encoder with libjpeg's integer DCT gives the same picture."""
    expected = saved(Image.fromarray(PHOTO), "JPEG", quality=quality, subsampling=native)
    encoded_image = encoded(PHOTO, quality=quality, subsampling=subsampling)
    assert np.array_equal(
        np.asarray(pillow_image(encoded_image)), np.asarray(pillow_image(expected))
    )


def test_the_default_is_baseline() -> None:
    """JPEGs have one scan, 4:2:0 and quality 95 by default."""
    encoded_image = encoded(PHOTO)
    assert encoded_image == encoded(PHOTO, quality=95, subsampling="420")
    assert simplejpeg.decode_jpeg_header(encoded_image)[3] == "420"
    assert "progressive" not in pillow_image(encoded_image).info


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("subsampling", ["420", "422", "444"])
@pytest.mark.parametrize("keys", [{"progressive": True}, {"optimize": True}])
def test_progressive_and_optimised(channels: int, subsampling: str, keys: dict[str, Any]) -> None:
    """Progressive and optimised files are smaller than plain ones, with the same picture."""
    pixels = PHOTO[:, :, :channels]
    plain = encoded(pixels, subsampling=subsampling)
    encoded_image = encoded(pixels, subsampling=subsampling, **keys)
    assert ("progressive" in pillow_image(encoded_image).info) == ("progressive" in keys)
    assert len(encoded_image) < len(plain)
    assert simplejpeg.decode_jpeg_header(encoded_image)[3] == (
        "Gray" if channels == 1 else subsampling
    )
    assert np.array_equal(np.asarray(pillow_image(encoded_image)), np.asarray(pillow_image(plain)))


@pytest.mark.parametrize("keys", [{"progressive": True}, {"optimize": True}])
def test_noise_at_quality_100(keys: dict[str, Any]) -> None:
    """The encoder's buffer is large enough for noise at quality 100."""
    data = encoded(NOISE, quality=100, subsampling="444", **keys)
    assert pillow_image(data).size == (600, 600)


@pytest.mark.parametrize("source", ["444", "422", "420", "440", "411"])
@pytest.mark.parametrize("progressive", [False, True])
def test_subsampling_is_kept(source: str, progressive: bool) -> None:
    """``keep`` uses the source's subsampling, or 420 if the source has none."""
    keep = ImagePolicy(subsampling="keep", progressive=progressive, size=60)
    converted_image = convert(enc.jpeg(PHOTO, source), keep)
    assert simplejpeg.decode_jpeg_header(converted_image.data)[3] == source
    assert simplejpeg.decode_jpeg_header(encoded(PHOTO, subsampling="keep"))[3] == "420"


def test_png_keeps_every_pixel() -> None:
    """PNG keeps every pixel of grey, RGB and RGBA, and level 0 does not compress."""
    rgba = np.dstack([PHOTO, GREY])
    for pixels in (GREY, PHOTO, rgba):
        array = np.asarray(pillow_image(encoded(pixels, encoding="png", alpha="keep")))
        assert np.array_equal(array.reshape(pixels.shape), pixels)
    sizes = [len(encoded(PHOTO, encoding="png", png_compression=n)) for n in (0, 9)]
    assert sizes[0] > PHOTO.size > sizes[1]


def test_webp() -> None:
    """Lossless WebP keeps every pixel, and lossy WebP is smaller at a lower quality."""
    lossless = encoded(PHOTO, encoding="webp", webp_lossless=True)
    assert np.array_equal(np.asarray(pillow_image(lossless)), PHOTO)
    sizes = []
    for quality in (30, 95):
        data = encoded(PHOTO, encoding="webp", quality=quality)
        sizes.append(len(data))
        assert np.abs(np.asarray(pillow_image(data), float) - PHOTO).mean() < 12
    assert sizes[0] < sizes[1] < len(lossless)


@pytest.mark.parametrize(("encoding", "most"), [("jpeg", 65_500), ("webp", 16_383)])
@pytest.mark.parametrize("wide", [True, False])
def test_the_largest_sides(encoding: str, most: int, wide: bool) -> None:
    """A side that the geometry accepts can be encoded."""
    pixels = np.zeros((1, most, 3) if wide else (most, 1, 3), np.uint8)
    assert max(pillow_image(encoded(pixels, encoding=encoding)).size) == most
