"""Samples as pixels."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

import dataprep
from dataprep.dataset import Images
from dataprep.errors import ImageError
from dataprep.formats import Sample


def encoded(mode: str, form: str = "JPEG") -> bytes:
    """A gradient, 30 x 20, losslessly or nearly so."""
    pixels = np.add.outer(np.arange(20) * 5, np.arange(30) * 3).astype(np.uint8)
    sink = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(sink, form, quality=100)
    return sink.getvalue()


def view(*images: bytes) -> Images:
    """Images of samples."""
    samples = [Sample(image, 0) for image in images]
    return Images(samples, lambda number: f"sample {number} (x at byte 7)")


@pytest.mark.parametrize("form", ["tfrecord", "recordio"])
def test_those_of_a_data_set(uri_of_dataset: str, form: str) -> None:
    """Each sample's image as Pillow decodes it, but for rounding, by number and in order."""
    dataset = dataprep.open(uri_of_dataset, format=form)
    assert len(dataset.images) == 120
    for number, pixels in enumerate(dataset.images):
        assert pixels.dtype == np.uint8
        wanted = np.asarray(Image.open(io.BytesIO(dataset[number].image)).convert("RGB"))
        assert pixels.shape == wanted.shape
        assert np.abs(pixels.astype(np.int16) - wanted).mean() < 1.0
        if number % 40 == 0:
            assert (dataset.images[number] == pixels).all()


def test_indices() -> None:
    """Numbers of NumPy's, negative ones and slices, as for any sequence."""
    images = view(encoded("RGB"), encoded("L"), encoded("CMYK"))
    assert (images[np.int64(2)] == images[-1]).all()
    assert [pixels.shape for pixels in images[1:]] == [(20, 30, 3)] * 2
    with pytest.raises(IndexError):
        images[3]


@pytest.mark.parametrize("index", [120, -121])
def test_out_of_range(uri_of_dataset: str, index: int) -> None:
    """What is not there is answered as by the data set itself."""
    with pytest.raises(IndexError, match=f"sample {index} of 120"):
        dataprep.open(uri_of_dataset).images[index]


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP"])
def test_greyscale_is_repeated(form: str) -> None:
    """Greyscale has three equal channels."""
    (pixels,) = view(encoded("L", form))
    assert pixels.shape == (20, 30, 3)
    assert (pixels[:, :, 0] == pixels[:, :, 2]).all()
    assert abs(int(pixels[10, 10, 0]) - 80) <= 3


def test_cmyk() -> None:
    """CMYK is shown as RGB."""
    (pixels,) = view(encoded("CMYK"))
    assert pixels.shape == (20, 30, 3)


@pytest.mark.parametrize("image", [b"", b"hello", encoded("RGB")[:300], b"\xff\xd8\xff"])
def test_what_cannot_be_decoded(image: bytes) -> None:
    """An image that cannot be decoded is an error that says where it lies."""
    images = view(encoded("RGB"), image)
    assert images[0].shape == (20, 30, 3)
    with pytest.raises(ImageError, match=r"sample 1 \(x at byte 7\): "):
        images[1]


def test_where_it_lies(uri_of_dataset: str) -> None:
    """Of a data set that is shard and offset."""
    dataset = dataprep.open(uri_of_dataset)
    place = dataset.place(3)
    broken = [replace(sample, image=b"\xff\xd8") for sample in dataset[:4]]
    with pytest.raises(
        ImageError, match=f"sample 3 .{uri_of_dataset}/{place.key} at byte {place.offset:,}"
    ):
        Images(broken, dataset.images._name)[3]
