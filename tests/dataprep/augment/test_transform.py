"""Tests of dataprep.augment.transform."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
import simplejpeg

from dataprep.augment import Augmentation, sample_rng
from dataprep.augment.transform import array_transform
from dataprep.errors import ConfigError

PIXELS = np.random.default_rng(5).integers(0, 256, (80, 120, 3)).astype(np.uint8)
IMAGE: bytes = simplejpeg.encode_jpeg(PIXELS, quality=95)


@pytest.mark.parametrize("random", [True, False])
@pytest.mark.parametrize(
    ("layout", "shape"), [("CHW", (3, 48, 48)), ("HWC", (48, 48, 3))], ids=["CHW", "HWC"]
)
@pytest.mark.parametrize("normalise", [True, False])
def test_shapes(random: bool, layout: str, shape: tuple[int, ...], normalise: bool) -> None:
    """What comes out is of the layout and type asked for."""
    augmentation = Augmentation(
        size=48,
        random=random,
        normalise=normalise,
        layout=layout,  # type: ignore[arg-type]
    )
    made = augmentation(IMAGE, sample_rng(0, 0, 0))
    assert made.shape == shape
    assert made.dtype == (np.float32 if normalise else np.uint8)
    assert made.flags.c_contiguous


def test_layouts_agree() -> None:
    """Both layouts hold the same values."""
    first, last = (
        Augmentation(size=32, jitter=0.4, noise=0.1, layout=layout)(IMAGE, sample_rng(1, 2, 3))
        for layout in ("CHW", "HWC")
    )
    assert np.allclose(first, last.transpose(2, 0, 1), atol=1e-5)


def test_randomness_is_the_generators() -> None:
    """Seed, epoch and index each change the result; the same three repeat it."""
    augmentation = Augmentation(size=32, jitter=0.4, noise=0.1)
    made = [
        augmentation(IMAGE, sample_rng(*key)).tobytes()
        for key in [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, 0)]
    ]
    assert len(set(made)) == 4
    assert made[0] == made[-1]


def test_half_are_flipped() -> None:
    """A flip mirrors the same crop, in about half of all cases."""
    rows = np.tile(np.arange(0, 240, 2, dtype=np.uint8)[None, :, None], (80, 1, 3))
    image = simplejpeg.encode_jpeg(np.ascontiguousarray(rows), quality=98)
    augmentation = Augmentation(size=32, normalise=False)
    made = [augmentation(image, sample_rng(0, 0, index)).astype(int) for index in range(400)]
    mirrored = sum(bool(one[0, 0, 0] > one[0, 0, -1]) for one in made)
    assert 150 < mirrored < 250


def test_evaluation_is_the_same_every_time() -> None:
    """Without randomness the generator is not drawn from, nor colours changed."""
    plain = Augmentation(size=32, random=False)
    noisy = Augmentation(size=32, random=False, jitter=0.4, noise=0.1)
    assert np.array_equal(plain(IMAGE, sample_rng(0, 0, 0)), noisy(IMAGE, sample_rng(1, 1, 1)))


def test_pickle() -> None:
    """An augmentation goes to worker processes."""
    augmentation = Augmentation(size=32, jitter=0.4)
    assert pickle.loads(pickle.dumps(augmentation)) == augmentation


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"size": 0}, "size is a whole number"),
        ({"size": 2.5}, "size is a whole number"),
        ({"noise": math.nan}, "noise at least 0"),
        ({"jitter": 1.5}, "jitter 0 to 1"),
        ({"noise": -1}, "noise at least 0"),
        ({"layout": "NHWC"}, "use CHW or HWC"),
    ],
    ids=str,
)
def test_wrong_settings(options: dict[str, float], said: str) -> None:
    """What cannot be is refused when it is asked for."""
    with pytest.raises(ConfigError, match=said):
        Augmentation(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize("random", [True, False])
@pytest.mark.parametrize("layout", ["CHW", "HWC"])
@pytest.mark.parametrize("normalise", [True, False])
def test_written_into_a_batch(random: bool, layout: str, normalise: bool) -> None:
    """A slot holds what a call gives; its neighbours stay as they were."""
    augmentation = Augmentation(
        size=40,
        random=random,
        jitter=0.4,
        noise=0.1,
        normalise=normalise,
        layout=layout,  # type: ignore[arg-type]
    )
    batch = np.full((3, *augmentation.shape), 7, augmentation.dtype)
    for index in range(8):
        augmentation.write(IMAGE, sample_rng(0, 0, index), batch[1])
        assert np.array_equal(batch[1], augmentation(IMAGE, sample_rng(0, 0, index)))
        assert (batch[::2] == 7).all()


class Counting(Augmentation):
    """One that does more when it is called, and says nothing of writing."""

    def __call__(self, data: Any, rng: np.random.Generator) -> Any:
        return super().__call__(data, rng) + 1


class Brighter(Augmentation):
    """One that says both."""

    def __call__(self, data: Any, rng: np.random.Generator) -> Any:
        return super().__call__(data, rng)

    def write(self, data: Any, rng: np.random.Generator, out: Any) -> None:
        super().write(data, rng, out)
        out += 1


def test_which_write() -> None:
    """Only what writes as it is called is asked to write."""
    for transform in (Augmentation(), Brighter()):
        assert array_transform(transform) is transform
    for other in (Counting(), lambda data, rng: None, None):
        assert array_transform(other) is None
