"""Tests of dataprep.image.resampling."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.image.kernels import convolve
from dataprep.image.pixels import Pixels
from dataprep.image.resampling import ByVectors, proved, resample
from dataprep.sample.drawing import draw_image

PHOTO = draw_image(4, 250, 190, detail=0.3)
SIDES = st.integers(1, 90)
WITH_VECTORS = pytest.mark.skipif(
    find_spec("cykooz_resizer") is None, reason="no wheel for this processor"
)


@WITH_VECTORS
@pytest.mark.parametrize("extensions", ["none", "sse4_1", "avx2", "neon"])
@pytest.mark.parametrize("filter", ["bilinear", "bicubic"])
@given(data=st.data())
def test_every_processor_gives_the_same_pixels(
    filter: str, extensions: str, data: st.DataObject
) -> None:
    """With each set of vector instructions that there is here, to the bit."""
    vectors = ByVectors()
    if extensions != "none" and not _has(extensions):
        pytest.skip(f"this processor has no {extensions}")
    wanted = vectors._module.CpuExtensions[extensions].value
    resizer = vectors._resizer()
    resizer.set_cpu_extensions(wanted)
    assert resizer.get_cpu_extensions() == wanted
    vectors._idle.append(resizer)
    height, width, high, wide = (data.draw(SIDES) for _ in range(4))
    channels = data.draw(st.sampled_from([1, 3, 4]))
    noise = np.random.default_rng(data.draw(st.integers(0, 9)))
    pixels = noise.integers(0, 256, (height, width, channels), dtype=np.uint8)
    found = vectors(pixels, wide, high, filter)
    assert np.array_equal(found, convolve(pixels, wide, high, filter))


def _has(extensions: str) -> bool:
    import cv2

    features = {"sse4_1": "SSE4.1", "avx2": "AVX2", "neon": "NEON"}
    known = cv2.getCPUFeaturesLine().replace("*", " ").replace("?", " ? ").split()
    name = features[extensions]
    return name in known and known[known.index(name) + 1 : known.index(name) + 2] != ["?"]


@WITH_VECTORS
def test_threads_do_not_meet() -> None:
    """Many at once give what one gives."""
    sizes = [(40 + n, 30 + n) for n in range(40)]
    start = threading.Barrier(4)

    def work(number: int) -> list[Pixels]:
        start.wait()
        return [resample(PHOTO, *size, "bicubic") for size in sizes[number::4]]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(work, range(4)))
    for number, images in enumerate(found):
        for size, image in zip(sizes[number::4], images, strict=True):
            assert np.array_equal(image, convolve(PHOTO, *size, "bicubic"))


def test_what_does_not_prove_itself_is_not_used() -> None:
    """One wrong pixel is enough; it is said, and the bytes are right."""

    def wrong(pixels: Pixels, width: int, height: int, filter: str) -> Pixels:
        found = convolve(pixels, width, height, filter).copy()
        found[-1, -1, -1] ^= 1
        return found

    with pytest.warns(RuntimeWarning, match="other pixels than it should"):
        assert proved(wrong) is convolve
    assert proved(convolve) is convolve


def test_without_the_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same pixels come from NumPy."""
    import sys

    from dataprep.image import resampling

    wanted = resample(PHOTO, 171, 130, "bicubic")
    monkeypatch.setitem(sys.modules, "cykooz_resizer", None)
    resampling._proved.cache_clear()
    try:
        assert resampling._proved() is convolve
        assert np.array_equal(resample(PHOTO, 171, 130, "bicubic"), wanted)
    finally:
        resampling._proved.cache_clear()
