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
    """``short`` and ``long`` scale so that this side becomes ``size``, ``exact`` scales to ``size``
    by ``size`` (or width x height) without keeping the aspect, ``crop`` scales the image to cover
    that box and keeps its centre, ``none`` leaves the size alone. A ``size`` without a mode is
    ``short``."""
    size: Side | tuple[Side, Side] | None = None
    """Pixels; for ``exact`` and ``crop`` also width and height."""
    upscale: bool = False
    """Whether sides may grow; without it ``exact`` and ``crop`` give less than ``size`` where the
    source has less."""
    filter: Filter = "bicubic"
    """What scales, always antialiased; ``area`` and ``lanczos`` start from the full image."""
    min_size: Annotated[int, Field(ge=0, le=65_535)] = 0
    """Images with a side of fewer pixels are skipped."""
    encoding: Encoding = "jpeg"
    """What images are stored as. Files that are so already and need no change are stored byte for
    byte, whatever the next six keys say."""
    quality: Annotated[int, Field(ge=1, le=100)] = 95
    """Of JPEG and of lossy WebP."""
    subsampling: Literal["420", "422", "444", "keep"] = "420"
    """Of JPEG's colours; ``keep`` takes the source's, and 420 where it has none."""
    progressive: bool = False
    """Whether JPEGs that are encoded become progressive."""
    optimize: bool = False
    """Whether JPEGs that are encoded get Huffman tables of their own."""
    png_compression: Annotated[int, Field(ge=0, le=9)] = 6
    """Zlib's level."""
    webp_lossless: bool = False
    """Whether WebP keeps every pixel."""
    orientation: Literal["ignore", "apply"] = "ignore"
    """Exif's: left alone, as the decoders of training code do, or applied. No stored file has
    another Exif orientation than 1."""
    icc: Literal["drop", "keep", "srgb"] = "drop"
    """Colour profiles: left out of what is encoded, embedded in it, or applied so that all pixels
    are sRGB."""
    cmyk: Literal["convert", "fail"] = "convert"
    """CMYK and YCCK: to RGB, or refused."""
    palette: Literal["convert", "fail"] = "convert"
    """Palettes: looked up, or refused."""
    depth: Literal["reduce", "fail"] = "reduce"
    """More than 8 bits a sample: scaled to 8, also in PNG, or refused."""
    greyscale: Literal["keep", "rgb"] = "keep"
    """Greyscale: one channel, or three."""
    alpha: Literal["flatten", "keep", "fail"] = "flatten"
    """Transparency: laid on ``background``, kept (in PNG and WebP), or refused."""
    background: tuple[Byte, Byte, Byte] = (255, 255, 255)
    """Red, green and blue behind what is transparent; also ``"#rrggbb"``."""
    animation: Literal["first", "fail"] = "first"
    """More than one frame or page: the first is taken, or the file refused."""
    wrong_container: Literal["convert", "fail"] = "convert"
    """A content that the name's extension does not promise: taken for what it is, or refused."""
    truncated: Literal["fail", "keep"] = "fail"
    """Files that end early: fail, or are kept as far as they decode."""
    check: Literal["decode", "header"] = "decode"
    """JPEGs that are stored as they are: ``decode`` makes sure that they can be decoded,
    ``header`` only that they begin and end as a JPEG does, at the speed of the disk."""
    max_pixels: Annotated[int, Field(ge=1, le=PILLOW_HARD_LIMIT)] = DEFAULT_MAX_PIXELS
    """Images with more fail before they are decoded. At most 178,956,970, since Pillow opens
    nothing larger."""
    max_source_bytes: Annotated[int, Field(ge=1)] = 256 * 2**20
    """Files with more fail without being read."""

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
