"""What can be told of an image: the kinds that receipts hold and manifests count.

``docs/images.md`` says of each which key of ``ImagePolicy`` it belongs to.
"""

from __future__ import annotations

from typing import Literal

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
    "scans_missing",
    "smaller_than_target",
    "subsampling_converted",
    "too_small",
    "truncated_kept",
    "upscaled",
    "wrong_container",
]
"""Of a sample that was written; ``too_small`` alone is of one that was skipped."""

Refusal = Literal["alpha", "animation", "cmyk", "depth", "palette", "wrong_container"]
"""What a policy can refuse: the kind of a ``RefusedImage``, counted as ``failed_`` and it."""
