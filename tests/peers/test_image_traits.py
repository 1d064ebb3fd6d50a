"""Images with each trait are read as ImageMagick, cjpeg, exiftool and cwebp write them."""

from __future__ import annotations

import io
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps

from dataprep.drawn.drawing import draw_image
from dataprep.errors import CorruptImage
from dataprep.image import Converted, ImagePolicy, check, convert
from tests.dataprep.image import profiles
from tests.programs import required_program

PICTURE = draw_image(20, 240, 180, detail=0.15)
MAGICK = "magick"

Run = Callable[..., bytes]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A function that calls a program on the picture's file; ``IN`` and ``OUT`` are file names."""

    def call(
        program: str, *arguments: str, source: bytes | None = None, kind: str = "ppm"
    ) -> bytes:
        path = (
            required_program("magick", "convert")
            if program == MAGICK
            else required_program(program)
        )
        before, after = tmp_path / f"in.{kind}", tmp_path / "out"
        after.unlink(missing_ok=True)
        if source is None:
            Image.fromarray(PICTURE).save(before, "PPM")
        else:
            before.write_bytes(source)
        names = {"IN": str(before), "OUT": str(after)}
        filled = [re.sub(r"\b(IN|OUT)\b", lambda m: names[m[0]], part) for part in arguments]
        done = subprocess.run([path, *filled], capture_output=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr.decode()
        return after.read_bytes() if after.exists() else before.read_bytes()

    return call


def pillow_image(data: bytes) -> Image.Image:
    """The pixels as Pillow decodes them."""
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


def psnr(left: object, right: object) -> float:
    """The peak signal-to-noise ratio of 8-bit images, in dB."""
    error = np.mean((np.asarray(left, float) - np.asarray(right, float)) ** 2)
    return float(10 * np.log10(255**2 / error)) if error else float("inf")


def converted(data: bytes, **keys: Any) -> Converted:
    """Convert by a policy of these keys, and check that the result decodes to the reported size."""
    converted_image = convert(data, ImagePolicy.model_validate(keys))
    assert check(converted_image.data) == (
        converted_image.width,
        converted_image.height,
        converted_image.channels,
    )
    return converted_image


@pytest.mark.parametrize(
    ("arguments", "notes", "least_db"),
    [
        (["-quality", "95", "jpeg:OUT"], (), 30),
        (["-quality", "95", "-interlace", "JPEG", "jpeg:OUT"], (), 30),
        (["-quality", "95", "-sampling-factor", "4:1:1", "jpeg:OUT"], (), 28),
        (["-colorspace", "CMYK", "-quality", "95", "jpeg:OUT"], ("cmyk_converted",), 26),
        (["-colorspace", "CMYK", "tiff:OUT"], ("cmyk_converted",), 35),
        (["-depth", "8", "png:OUT"], (), 38),
        (["-depth", "16", "-evaluate", "multiply", "0.999", "png48:OUT"], ("depth_reduced",), 37),
        (["-depth", "16", "tiff:OUT"], ("depth_reduced",), 37),
        (["-depth", "16", "ppm:OUT"], ("depth_reduced",), 37),
        (["-dither", "None", "-colors", "200", "png8:OUT"], ("palette_converted",), 26),
        (["-dither", "None", "gif:OUT"], ("palette_converted",), 26),
        (["bmp3:OUT"], (), 38),
        (["tiff:OUT"], (), 38),
        (["-compress", "LZW", "tiff:OUT"], (), 38),
        (["-compress", "JPEG", "-quality", "95", "tiff:OUT"], (), 28),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_imagemagick(run: Run, arguments: list[str], notes: tuple[str, ...], least_db: int) -> None:
    """An image of ImageMagick is the same picture, with only the note of its trait."""
    converted_image = converted(run(MAGICK, "IN", *arguments), quality=98, subsampling="444")
    assert converted_image.notes == notes
    assert psnr(pillow_image(converted_image.data), PICTURE) >= least_db
    small = converted(run(MAGICK, "IN", *arguments), size=90, quality=98, subsampling="444")
    truth = Image.fromarray(PICTURE).resize((120, 90), Image.Resampling.BICUBIC)
    assert psnr(pillow_image(small.data), truth) >= min(least_db, 30)


@pytest.mark.parametrize("kind", ["png", "gif", "webp", "tiff"])
def test_transparency_by_imagemagick(run: Run, kind: str) -> None:
    """A transparent corner shows the background, or stays transparent."""
    data = run(
        *(MAGICK, "IN", "-alpha", "set", "-region", "60x60+0+0", "-alpha", "transparent"),
        *("+region", "-define", "webp:lossless=true", f"{kind}:OUT"),
    )
    flat = converted(data, background=[0, 0, 255], quality=98, subsampling="444")
    assert "alpha_flattened" in flat.notes
    corner = np.asarray(pillow_image(flat.data), int)[8:52, 8:52]
    assert np.abs(corner - [0, 0, 255]).max() < 12
    with_alpha = converted(data, encoding="png", alpha="keep")
    assert "alpha_kept" in with_alpha.notes
    alpha = np.asarray(pillow_image(with_alpha.data).getchannel("A"))
    assert (alpha[:60, :60] == 0).all()
    assert (alpha[60:] == 255).all()


@pytest.mark.parametrize("kind", ["gif", "webp", "tiff"])
def test_frames_by_imagemagick(run: Run, kind: str) -> None:
    """The first of several frames is taken, and a note counts it."""
    data = run(MAGICK, "IN", "(", "-clone", "0", "-negate", ")", "-dither", "None", f"{kind}:OUT")
    converted_image = converted(data)
    assert "first_frame_kept" in converted_image.notes
    assert psnr(pillow_image(converted_image.data), PICTURE) > 24


@pytest.mark.parametrize("depth", ["1", "2", "4", "8", "16"])
def test_grey_of_every_depth(run: Run, depth: str) -> None:
    """Greyscale PNGs of every depth become one channel with the values that ImageMagick shows."""
    data = run(
        MAGICK, "IN", "-colorspace", "Gray", "-depth", depth, "-type", "Grayscale", "png:OUT"
    )
    converted_image = converted(data, encoding="png")
    assert converted_image.channels == 1
    assert ("depth_reduced" in converted_image.notes) == (depth == "16")
    truth = run(MAGICK, "IN", "-depth", "8", "pgm:OUT", source=data, kind="png")
    assert (
        np.abs(
            np.asarray(pillow_image(converted_image.data), int)
            - np.asarray(pillow_image(truth), int)
        ).max()
        <= 1
    )


@pytest.mark.parametrize(
    ("arguments", "colorspace", "channels"),
    [
        (["-quality", "95"], "YCbCr", 3),
        (["-quality", "95", "-progressive"], "YCbCr", 3),
        (["-quality", "95", "-arithmetic"], "YCbCr", 3),
        (["-quality", "95", "-optimize", "-restart", "1"], "YCbCr", 3),
        (["-quality", "95", "-sample", "4x1"], "YCbCr", 3),
        (["-quality", "95", "-rgb"], "RGB", 3),
        (["-quality", "95", "-grayscale"], "Grayscale", 1),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_cjpeg(run: Run, arguments: list[str], colorspace: str, channels: int) -> None:
    """JPEGs of every coding pass through, and resized ones are close to Pillow's resize."""
    data = run("cjpeg", *arguments, "-outfile", "OUT", "IN")
    converted_image = converted(data)
    assert (converted_image.data, converted_image.action) == (data, "passthrough")
    assert (converted_image.source_colorspace, converted_image.channels) == (colorspace, channels)
    for name in ("bicubic", "bilinear", "area", "lanczos"):
        small = converted(data, size=100, filter=name, quality=100, subsampling="444")
        truth = pillow_image(data).resize((small.width, small.height), Image.Resampling.BICUBIC)
        assert psnr(pillow_image(small.data), truth) > 28, name


@pytest.mark.parametrize(("name", "least"), [("lanczos", 90), ("bicubic", 45), ("bilinear", 45)])
def test_named_filters_against_pillow(run: Run, name: str, least: float) -> None:
    """From the same pixels, Lanczos equals Pillow's to the bit, and other filters are close."""
    data = run("cjpeg", "-quality", "95", "-sample", "1x1", "-outfile", "OUT", "IN")
    converted_image = converted(data, size=101, filter=name, encoding="png")
    expected = pillow_image(data).resize(
        (converted_image.width, converted_image.height), Image.Resampling[name.upper()]
    )
    assert psnr(pillow_image(converted_image.data), expected) > least


def test_a_profile_by_cjpeg(run: Run, tmp_path: Path) -> None:
    """A profile that cjpeg embeds in several segments is applied, or kept byte for byte."""
    profile = profiles.rgb_profile(1.0, padding=100_000)
    (tmp_path / "linear.icc").write_bytes(profile)
    data = run("cjpeg", "-icc", str(tmp_path / "linear.icc"), "-outfile", "OUT", "IN")
    assert pillow_image(converted(data, icc="keep", size=90).data).info["icc_profile"] == profile
    converted_image = converted(data, icc="srgb")
    assert converted_image.notes == ("icc_converted",)
    light = np.asarray(pillow_image(data), float) / 255
    curve = np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)
    assert psnr(pillow_image(converted_image.data), 255 * curve) > 32


@pytest.mark.parametrize("share", [0.3, 0.7])
@pytest.mark.parametrize("progressive", [False, True])
def test_truncated_files_that_were_kept_are_sound(
    run: Run, share: float, progressive: bool
) -> None:
    """jpegtran reads a repaired file without a complaint."""
    data = run("cjpeg", *(["-progressive"] if progressive else []), "-outfile", "OUT", "IN")
    cut = data[: int(len(data) * share)]
    with pytest.raises(CorruptImage):
        convert(cut)
    repaired = converted(cut, truncated="keep")
    assert repaired.notes == ("truncated_kept",)
    run("jpegtran", "-strict", "-outfile", "OUT", "IN", source=repaired.data, kind="jpg")


@pytest.mark.parametrize("progressive", [False, True])
@pytest.mark.parametrize("icc", ["drop", "keep"])
def test_what_is_stored_is_strictly_a_jpeg(run: Run, progressive: bool, icc: str) -> None:
    """jpegtran reads a stored file without a complaint."""
    source = io.BytesIO()
    Image.fromarray(PICTURE).save(source, "JPEG", icc_profile=profiles.rgb_profile(padding=80_000))
    converted_image = converted(source.getvalue(), size=100, progressive=progressive, icc=icc)
    run("jpegtran", "-strict", "-outfile", "OUT", "IN", source=converted_image.data, kind="jpg")


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF", "WEBP"])
@pytest.mark.parametrize("orientation", [1, 3, 6, 8])
def test_orientations_by_exiftool(run: Run, kind: str, orientation: int) -> None:
    """An orientation of exiftool is read, applied like exif_transpose, and not stored."""
    sink = io.BytesIO()
    Image.fromarray(PICTURE).save(sink, kind, **({"lossless": True} if kind == "WEBP" else {}))
    tag = f"-Orientation#={orientation}"
    data = run(
        "exiftool", tag, "-overwrite_original", "IN", source=sink.getvalue(), kind=kind.lower()
    )
    converted_image = converted(data, orientation="apply", quality=98, subsampling="444")
    assert converted_image.exif_orientation == orientation
    with Image.open(io.BytesIO(data)) as image:
        truth = ImageOps.exif_transpose(image)
    assert psnr(pillow_image(converted_image.data), truth) > 30
    ignored = converted(data)
    assert pillow_image(ignored.data).getexif().get(0x0112, 1) == 1
    if kind == "JPEG":
        assert ignored.action == ("passthrough" if orientation == 1 else "retagged")


@pytest.mark.parametrize("arguments", [["-q", "90"], ["-lossless"]], ids=["lossy", "lossless"])
def test_cwebp(run: Run, arguments: list[str]) -> None:
    """An image of cwebp passes through as WebP, and shows the same picture as a JPEG."""
    data = run("cwebp", "-quiet", *arguments, "IN", "-o", "OUT")
    assert converted(data, encoding="webp").data == data
    converted_image = converted(data, quality=98, subsampling="444")
    assert (converted_image.container, converted_image.action) == ("WEBP", "reencoded")
    assert psnr(pillow_image(converted_image.data), PICTURE) > 28
    png = converted(data, encoding="png")
    assert np.array_equal(np.asarray(pillow_image(png.data)), np.asarray(pillow_image(data)))
