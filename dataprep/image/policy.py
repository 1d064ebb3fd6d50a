"""What is to be made of an image: every choice, with its default."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Mode = Literal["short", "long", "exact", "crop", "none"]
Side = Annotated[int, Field(ge=1, le=16_384)]

# Pillow's own threshold: 2**30 bytes / 4 / 3 pixels, a quarter of a GiB of RGB.
DEFAULT_MAX_PIXELS = 89_478_485
PILLOW_HARD_LIMIT = 2 * DEFAULT_MAX_PIXELS


class ImagePolicy(BaseModel):
    """How one image is resized and stored.

    Modes: ``short`` and ``long`` scale so that this side becomes ``size``, ``exact`` scales to
    ``size`` by ``size`` (or width x height) without keeping the aspect, ``crop`` scales the
    image to cover that box and keeps its centre, ``none`` leaves the size alone. Without
    ``upscale`` no side ever grows; ``exact`` and ``crop`` then give less than ``size`` where
    the source has less.

    ``check`` is for images that are stored as they are: ``decode`` makes sure that they can be
    decoded, ``header`` only that they begin and end as a JPEG does, at the speed of the disk.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    mode: Mode = "none"
    size: Side | tuple[Side, Side] | None = None
    upscale: bool = False
    quality: Annotated[int, Field(ge=1, le=100)] = 95
    subsampling: Literal["420", "422", "444"] = "420"
    orientation: Literal["ignore", "apply"] = "ignore"
    check: Literal["decode", "header"] = "decode"
    max_pixels: Annotated[int, Field(ge=1, le=PILLOW_HARD_LIMIT)] = DEFAULT_MAX_PIXELS
    max_source_bytes: Annotated[int, Field(ge=1)] = 256 * 2**20

    @model_validator(mode="before")
    @classmethod
    def _size_implies_a_mode(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("mode") is None:
            values = {key: value for key, value in values.items() if key != "mode"}
            if values.get("size") is not None:
                values["mode"] = "short"
        return values

    @model_validator(mode="after")
    def _size_fits_the_mode(self) -> ImagePolicy:
        if self.mode == "none" and self.size is not None:
            raise ValueError("mode 'none' keeps the size as it is: leave 'size' out")
        if self.mode != "none" and self.size is None:
            raise ValueError(f"mode {self.mode!r} needs a 'size' in pixels")
        if self.mode in ("short", "long") and isinstance(self.size, tuple):
            raise ValueError(f"mode {self.mode!r} takes one number as 'size', not two")
        return self

    @property
    def box(self) -> tuple[int, int]:
        """``size`` as (width, height); (0, 0) for mode ``none``."""
        if self.size is None:
            return 0, 0
        return self.size if isinstance(self.size, tuple) else (self.size, self.size)
