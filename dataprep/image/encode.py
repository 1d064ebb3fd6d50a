"""Pixels to JPEG, PNG or WebP.

JPEG by OpenCV, whose libjpeg-turbo then has the accurate DCT at every quality: through simplejpeg
it takes the fast one below 96, which costs some 0.3 dB and saves 3 % of the time. (Pillow's encoder
has a buffer of fixed size, which noise at quality 100 overruns.) PNG and WebP are Pillow's. None of
them uses a thread of its own, and each gives the same bytes for the same pixels.
"""

from __future__ import annotations

import io

import cv2
import numpy as np
from PIL import Image

from dataprep.image.geometry import Pixels
from dataprep.image.jpeg import with_profile
from dataprep.image.policy import ImagePolicy
from dataprep.image.resize import bgrx

_SAMPLING = {
    "411": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_411,
    "420": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_420,
    "422": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_422,
    "440": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_440,
    "444": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444,
}
_DEFAULT_SUBSAMPLING = "420"


def encode(
    pixels: Pixels, policy: ImagePolicy, *, subsampling: str = "", profile: bytes | None = None
) -> bytes:
    """Encode as the policy says.

    Args:
        pixels: uint8 (height, width, channels): grey, RGB, or RGBA where the encoding has alpha,
            of a size that it has.
        policy: encoding, quality and the like.
        subsampling: the source's, for a policy that keeps it; empty where it has none.
        profile: an ICC profile to embed.
    """
    if policy.encoding != "jpeg":
        return _by_pillow(pixels, policy, profile)
    if policy.subsampling != "keep":
        subsampling = policy.subsampling
    options = [
        *(cv2.IMWRITE_JPEG_QUALITY, policy.quality),
        *(cv2.IMWRITE_JPEG_PROGRESSIVE, int(policy.progressive)),
        *(cv2.IMWRITE_JPEG_OPTIMIZE, int(policy.optimize)),
    ]
    if pixels.shape[2] == 1:
        memory = np.ascontiguousarray(pixels)
    else:
        memory = bgrx(pixels)
        sampling = _SAMPLING[subsampling or _DEFAULT_SUBSAMPLING]
        options += [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, sampling]
    done, encoded = cv2.imencode(".jpg", memory, options)
    if not done:  # of valid pixels, which these are, there is no other reason
        raise MemoryError("OpenCV could not encode the pixels")
    data: bytes = encoded.tobytes()
    return with_profile(data, profile) if profile else data


def _by_pillow(pixels: Pixels, policy: ImagePolicy, profile: bytes | None) -> bytes:
    image = Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
    sink = io.BytesIO()
    if policy.encoding == "png":
        image.save(sink, "PNG", compress_level=policy.png_compression, icc_profile=profile)
    else:
        image.save(
            sink,
            "WEBP",
            quality=policy.quality,
            lossless=policy.webp_lossless,
            icc_profile=profile or b"",
        )
    return sink.getvalue()
