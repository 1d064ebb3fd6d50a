"""PURE. The policy of image conversion: all choices and their defaults."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)

from dataprep.image.output_size import DEFAULT_MAX_PIXELS, MAX_SIDE, PILLOW_HARD_LIMIT

Mode = Literal["short", "long", "exact", "crop", "none"]
Filter = Literal["bicubic", "bilinear", "area", "lanczos"]
Encoding = Literal["jpeg", "png", "webp"]
Note = Literal[
    "alpha_flattened",
    "alpha_kept",
    "cmyk_converted",
    "depth_reduced",
    "first_frame_kept",
    "greyscale_kept",
    "greyscale_to_rgb",
    "icc_broken",
    "icc_converted",
    "icc_dropped",
    "icc_kept",
    "orientation_applied",
    "orientation_ignored",
    "orientation_reset",
    "palette_converted",
    "recovered",
    "smaller_than_target",
    "subsampling_converted",
    "too_small",
    "truncated_kept",
    "upscaled",
    "wrong_container",
]
"""Remarks about a converted image. Only ``too_small`` is about an image that was skipped."""

Notes: TypeAlias = tuple[Note, ...]

Refusal = Literal["alpha", "animation", "cmyk", "depth", "palette", "wrong_container"]
"""The kinds of images that a policy can refuse.

The manifest counts them under ``failed_alpha``, ``failed_animation`` and so on.
"""

Side = Annotated[int, Field(ge=1, le=MAX_SIDE)]
Byte = Annotated[int, Field(ge=0, le=255)]

_HEX_COLOUR = re.compile("#?([0-9a-fA-F]{6})")


class ImagePolicy(BaseModel):
    """How images are resized and stored. ``docs/images.md`` describes the notes about them."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    mode: Mode = "none"
    """`short` or `long`: scale this side to `size`. `exact`: scale both sides. `crop`: scale so
    that the image covers `size`, and keep its centre. `none`: keep the size. With a `size`, the
    default is `short`."""
    size: Side | tuple[Side, Side] | None = None
    """Size in pixels: one number, or width and height for `exact` and `crop`."""
    upscale: bool = False
    """Allow sides to grow. Otherwise, `exact` and `crop` may give images smaller than `size`."""
    filter: Filter = "bicubic"
    """Filter for scaling. All filters are antialiased. Before `bicubic` and `bilinear`, the decoder
    may reduce a JPEG to 1/2, 1/4 or 1/8."""
    min_size: Annotated[int, Field(ge=0, le=65_535)] = 0
    """Skip images with a side below this many pixels."""
    encoding: Encoding = "jpeg"
    """Format of stored images. Files that have this format and need no change are stored byte for
    byte; the next six keys do not apply to them."""
    quality: Annotated[int, Field(ge=1, le=100)] = 95
    """Quality of JPEG and lossy WebP."""
    subsampling: Literal["420", "422", "444", "keep"] = "420"
    """Chroma subsampling of JPEGs. `keep`: as in the source, or 420 if the source has none."""
    progressive: bool = False
    """Encode progressive JPEGs."""
    optimize: bool = False
    """Compute Huffman tables for each JPEG."""
    png_compression: Annotated[int, Field(ge=0, le=9)] = 6
    """Compression level of PNG."""
    webp_lossless: bool = False
    """Encode lossless WebP."""
    orientation: Literal["ignore", "apply"] = "ignore"
    """Exif orientation: ignore it, as decoders for training do, or turn the pixels. The orientation
    in stored files is always 1."""
    icc: Literal["drop", "keep", "srgb"] = "drop"
    """Colour profiles of encoded images: drop or embed them, or convert the colours to sRGB."""
    cmyk: Literal["convert", "fail"] = "convert"
    """Images in CMYK and YCCK: convert them to RGB, or refuse them."""
    palette: Literal["convert", "fail"] = "convert"
    """Images with a palette: convert them to RGB, or refuse them."""
    depth: Literal["reduce", "fail"] = "reduce"
    """Images with more than 8 bits per sample: reduce them to 8 (also in PNG), or refuse them."""
    greyscale: Literal["keep", "rgb"] = "keep"
    """Greyscale images: keep one channel, or store three."""
    alpha: Literal["flatten", "keep", "fail"] = "flatten"
    """Transparent images: put them on `background`, keep the transparency (PNG and WebP), or refuse
    them."""
    background: tuple[Byte, Byte, Byte] = (255, 255, 255)
    """Colour behind transparent images: red, green and blue, or `"#rrggbb"`."""
    animation: Literal["first", "fail"] = "first"
    """Files with several frames or pages: store the first, or refuse them."""
    wrong_container: Literal["convert", "fail"] = "convert"
    """Files whose format does not match the extension: convert them, or refuse them."""
    truncated: Literal["fail", "keep"] = "fail"
    """Files that end early: refuse them, or keep the part that can be decoded."""
    check: Literal["decode", "header"] = "decode"
    """Check of JPEGs that are stored unchanged: decode them, or (faster) read only the header and
    the end."""
    max_pixels: Annotated[int, Field(ge=1, le=PILLOW_HARD_LIMIT)] = DEFAULT_MAX_PIXELS
    """Images with more pixels fail before they are decoded. At most 178,956,970."""
    max_source_bytes: Annotated[int, Field(ge=1)] = 256 * 2**20
    """Files with more bytes fail without being read."""

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, values: Any) -> Any:
        """Set the mode to ``short`` if only a size is given.

        YAML reads the subsampling 420 as a number. It is converted to a text.
        """
        if isinstance(values, dict):
            values = dict(values)
            if values.get("mode", "") is None:
                del values["mode"]
            if values.get("size") is not None:
                values.setdefault("mode", "short")
            if type(values.get("subsampling")) is int:
                values["subsampling"] = str(values["subsampling"])
        return values

    @field_validator("background", mode="before")
    @classmethod
    def _parse_colour(cls, value: Any) -> Any:
        """Accept three numbers, or a text such as ``#ffffff``."""
        if isinstance(value, str) and (match := _HEX_COLOUR.fullmatch(value)):
            return tuple(bytes.fromhex(match[1]))
        if isinstance(value, (list, tuple)) and len(value) == 3:
            return value
        raise ValueError(
            "give [255, 255, 255], or '#ffffff' in quotes, since # begins a comment in YAML"
        )

    @model_validator(mode="after")
    def _check_combinations(self) -> ImagePolicy:
        """Refuse values of several keys that contradict each other."""
        if self.mode == "none" and self.size is not None:
            raise ValueError("mode 'none' keeps the size as it is: leave 'size' out")
        if self.mode != "none" and self.size is None:
            raise ValueError(f"mode {self.mode!r} needs a 'size' in pixels")
        if self.mode in ("short", "long") and isinstance(self.size, tuple):
            raise ValueError(f"mode {self.mode!r} takes one number as 'size', not two")
        if self.alpha == "keep" and self.encoding == "jpeg":
            raise ValueError(
                "alpha 'keep' needs 'encoding' png or webp: a JPEG has no alpha; or 'flatten' it"
            )
        return self

    @property
    def same_everywhere(self) -> bool:
        """Whether the stored bytes are the same on every processor.

        The bytes that zlib-ng (PNG) and libwebp write depend on the instruction set of the
        processor. The colours of LittleCMS depend on it too, because LittleCMS computes its tables
        in floating point.
        """
        return self.encoding == "jpeg" and self.icc != "srgb"
