"""What is to be made of an image: every choice, with its default."""

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
"""Of a sample that was written; ``too_small`` alone is of one that was skipped."""

Notes: TypeAlias = tuple[Note, ...]

Refusal = Literal["alpha", "animation", "cmyk", "depth", "palette", "wrong_container"]
"""What a policy can refuse: the kind of a ``RefusedImage``, counted as ``failed_`` and it."""

MAX_SIDE = 16_384
Side = Annotated[int, Field(ge=1, le=MAX_SIDE)]
Byte = Annotated[int, Field(ge=0, le=255)]

# Pillow's own threshold: 2**30 bytes / 4 / 3 pixels, a quarter of a GiB of RGB.
DEFAULT_MAX_PIXELS = 89_478_485
PILLOW_HARD_LIMIT = 2 * DEFAULT_MAX_PIXELS

_HEX_COLOUR = re.compile("#?([0-9a-fA-F]{6})")


class ImagePolicy(BaseModel):
    """How one image is resized and stored; ``docs/images.md`` says what is counted of it."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    mode: Mode = "none"
    """Scale the `short` or `long` side to `size`; `exact`: both sides; `crop`: cover `size` and
    keep its centre; `none`: keep the size. With a `size` the default is `short`."""
    size: Side | tuple[Side, Side] | None = None
    """Pixels; for `exact` and `crop` also width and height."""
    upscale: bool = False
    """Allow sides to grow; otherwise `exact` and `crop` may give less than `size`."""
    filter: Filter = "bicubic"
    """Antialiased; `area` and `lanczos` start from the full image."""
    min_size: Annotated[int, Field(ge=0, le=65_535)] = 0
    """Skip images with a side below this many pixels."""
    encoding: Encoding = "jpeg"
    """Stored format. Files that have it and need no change are stored byte for byte, whatever the
    next six keys say."""
    quality: Annotated[int, Field(ge=1, le=100)] = 95
    """Of JPEG and lossy WebP."""
    subsampling: Literal["420", "422", "444", "keep"] = "420"
    """Of JPEG's colours; `keep`: the source's, else 420."""
    progressive: bool = False
    """Encode progressive JPEGs."""
    optimize: bool = False
    """Encode JPEGs with their own Huffman tables."""
    png_compression: Annotated[int, Field(ge=0, le=9)] = 6
    """Zlib's level."""
    webp_lossless: bool = False
    """Encode lossless WebP."""
    orientation: Literal["ignore", "apply"] = "ignore"
    """Exif orientation: ignored, as training decoders do, or applied. Stored files have 1."""
    icc: Literal["drop", "keep", "srgb"] = "drop"
    """Colour profiles of encoded images: omitted, embedded, or converted to sRGB."""
    cmyk: Literal["convert", "fail"] = "convert"
    """CMYK and YCCK: to RGB, or refused."""
    palette: Literal["convert", "fail"] = "convert"
    """Palettes: to RGB, or refused."""
    depth: Literal["reduce", "fail"] = "reduce"
    """More than 8 bits per sample: reduced to 8, also in PNG, or refused."""
    greyscale: Literal["keep", "rgb"] = "keep"
    """Greyscale: one channel, or three."""
    alpha: Literal["flatten", "keep", "fail"] = "flatten"
    """Transparency: on `background`, kept (PNG and WebP), or refused."""
    background: tuple[Byte, Byte, Byte] = (255, 255, 255)
    """Colour behind transparency; also `"#rrggbb"`."""
    animation: Literal["first", "fail"] = "first"
    """Several frames or pages: the first, or refused."""
    wrong_container: Literal["convert", "fail"] = "convert"
    """Another format than the extension says: accepted, or refused."""
    truncated: Literal["fail", "keep"] = "fail"
    """Files that end early: refused, or what decodes is kept."""
    check: Literal["decode", "header"] = "decode"
    """Test of JPEGs that are stored unchanged: that they decode, or (faster) how they begin and
    end."""
    max_pixels: Annotated[int, Field(ge=1, le=PILLOW_HARD_LIMIT)] = DEFAULT_MAX_PIXELS
    """Images with more fail before decoding. At most 178,956,970."""
    max_source_bytes: Annotated[int, Field(ge=1)] = 256 * 2**20
    """Larger files fail without being read."""

    @model_validator(mode="before")
    @classmethod
    def _as_written(cls, values: Any) -> Any:
        """A size implies a mode, and YAML takes 420 for a number."""
        if isinstance(values, dict):
            values = {key: value for key, value in values.items() if (key, value) != ("mode", None)}
            if values.get("size") is not None:
                values.setdefault("mode", "short")
            if type(values.get("subsampling")) is int:
                values["subsampling"] = str(values["subsampling"])
        return values

    @field_validator("background", mode="before")
    @classmethod
    def _colour(cls, value: Any) -> Any:
        if isinstance(value, str) and (match := _HEX_COLOUR.fullmatch(value)):
            return tuple(bytes.fromhex(match[1]))
        if isinstance(value, (list, tuple)) and len(value) == 3:
            return value
        raise ValueError(
            "give [255, 255, 255], or '#ffffff' in quotes, since # begins a comment in YAML"
        )

    @model_validator(mode="after")
    def _keys_fit_each_other(self) -> ImagePolicy:
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
        """Whether the bytes are the same on every processor.

        Not those of zlib-ng and libwebp, which choose by the processor's instructions, nor
        those of LittleCMS, which computes its tables in floating point.
        """
        return self.encoding == "jpeg" and self.icc != "srgb"
