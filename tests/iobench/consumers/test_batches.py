"""A batch that does not fit is refused in words."""

from __future__ import annotations

import pytest

from dataprep.adapters.augment import IMAGENET_MEAN, IMAGENET_STD
from iobench.consumers import batches
from iobench.errors import TrialFailed


def test_pixels_are_normalised_as_the_loaders_do_it() -> None:
    """The device's mean and deviation are those of dataprep's own augmentation."""
    assert (batches.MEAN, batches.STD) == (IMAGENET_MEAN, IMAGENET_STD)


@pytest.mark.parametrize(
    ("images", "hint"),
    [([b"jpeg"], "are list: its loader must decode"), (b"", "bytes"), (None, "take its own")],
)
def test_what_is_no_array_is_called_by_its_type(images: object, hint: str) -> None:
    """Encoded bytes lead to the loader's ``decode``, everything else to another loader."""
    with pytest.raises(TrialFailed, match=f"takes sets, but images .*{hint}"):
        batches.check_arrays(images, {1}, set, "sets")
    with pytest.raises(TrialFailed, match="labels are"):
        batches.check_arrays({1}, images, set, "sets")


@pytest.mark.parametrize("last", [True, False])
def test_images_have_the_layout_and_size_that_was_set_up(last: bool) -> None:
    """Any number of samples is taken, another side or layout is not."""
    right, wrong = ((9, 32, 32, 3), (9, 3, 32, 32)) if last else ((9, 3, 32, 32), (9, 32, 32, 3))
    batches.check_images(right, "uint8", 32, channels_last=last)
    for shape, size in ((wrong, 32), (right, 28), (right[1:], 32)):
        with pytest.raises(TrialFailed, match="image_size"):
            batches.check_images(shape, "uint8", size, channels_last=last)


@pytest.mark.parametrize("dtype", ["float64", "int32", "float16"])
def test_other_numbers_than_pixels_and_float32_are_refused(dtype: str) -> None:
    """They would cost another copy."""
    with pytest.raises(TrialFailed, match=f"images are {dtype}"):
        batches.check_images((1, 3, 32, 32), dtype, 32, channels_last=False)


def test_labels_fill_the_classes() -> None:
    """The least and the greatest class are inside; one further is not, and is named."""
    batches.check_labels(0, 9, 10)
    with pytest.raises(TrialFailed, match="label 10 is outside 0 to 9"):
        batches.check_labels(0, 10, 10)
    with pytest.raises(TrialFailed, match="label -1 is outside 0 to 9"):
        batches.check_labels(-1, 10, 10)
