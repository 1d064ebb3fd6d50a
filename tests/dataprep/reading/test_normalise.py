"""``dataprep.normalise`` normalises uint8 batches of torch on their device."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from typing import Any, Literal

import numpy as np
import pytest
import simplejpeg

import dataprep
from dataprep.reading.augment import sample_rng

torch = pytest.importorskip("torch")

# These are the values that torchvision documents for its models.
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
PIXELS = np.random.default_rng(5).integers(0, 256, (60, 90, 3)).astype(np.uint8)
IMAGE: bytes = simplejpeg.encode_jpeg(PIXELS, quality=95)
DTYPES = (torch.float32, torch.float16, torch.bfloat16)
DEVICES = [
    "cpu",
    pytest.param(
        "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no GPU")
    ),
]


def batch(layout: Literal["CHW", "HWC"], *, normalised: bool) -> Any:
    """Five images of ``Augmentation`` as a tensor (5, ...)."""
    augmentation = dataprep.Augmentation(size=32, normalise=normalised, layout=layout)
    images = [augmentation(IMAGE, sample_rng(0, 0, index)) for index in range(5)]
    return torch.from_numpy(np.stack(images))


def every_value() -> Any:
    """uint8 (1, 3, 16, 16) with each value once in each colour."""
    return torch.arange(256, dtype=torch.uint8).view(1, 1, 16, 16).repeat(1, 3, 1, 1)


def exact(images: Any) -> Any:
    """(x / 255 - mean) / deviation of uint8 (N, 3, H, W), in float64."""
    mean, std = (
        torch.tensor(values, dtype=torch.float64).view(1, 3, 1, 1) for values in (MEAN, STD)
    )
    return (images.double() / 255 - mean) / std


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("layout", ["CHW", "HWC"])
@pytest.mark.parametrize("device", DEVICES)
def test_it_gives_what_the_augmentation_gives(
    device: str, layout: Literal["CHW", "HWC"], channels_last: bool
) -> None:
    """Values equal those of ``Augmentation(normalise=True)`` within float32 rounding."""
    pixels = batch(layout, normalised=False).to(device)
    before = pixels.clone()
    normalised = dataprep.normalise(pixels, channels_last=channels_last)
    assert normalised.dtype == torch.float32
    assert normalised.device == pixels.device
    assert torch.equal(pixels, before)
    torch.testing.assert_close(
        normalised.cpu(), batch("CHW", normalised=True), rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("device", DEVICES)
def test_every_value_is_rounded_once(device: str, dtype: Any) -> None:
    """No result has a larger error than rounding to float32 and then to ``dtype``."""
    pixels = every_value()
    normalised = dataprep.normalise(pixels.to(device), dtype=dtype).cpu()
    assert normalised.dtype == dtype
    expected = exact(pixels)
    half_step = torch.finfo(dtype).eps / 2
    assert ((normalised.double() - expected).abs() <= half_step * expected.abs() + 5e-7).all()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("device", [*DEVICES, "meta"])
def test_memory_has_the_format_that_was_asked_for(
    device: str, channels_last: bool, dtype: Any
) -> None:
    """The format of the result does not depend on the input. ``meta`` stands for other devices."""
    memory_format = torch.channels_last if channels_last else torch.contiguous_format
    first = torch.zeros((2, 3, 8, 6), dtype=torch.uint8, device=device)
    as_last = first.contiguous(memory_format=torch.channels_last)
    last = torch.zeros((2, 8, 6, 3), dtype=torch.uint8, device=device)
    for pixels in (first, as_last, last, first[:0], first[::2, :, ::2]):
        normalised = dataprep.normalise(pixels, dtype=dtype, channels_last=channels_last)
        assert normalised.is_contiguous(memory_format=memory_format)
        assert normalised.device.type == device
        assert normalised.dtype == dtype
        assert len(normalised) == len(pixels)
        assert normalised.shape[1] == 3


def test_a_cpu_needs_no_memory_beside_the_result() -> None:
    """The result in float32 is the only allocation of its size."""
    pixels = torch.zeros((4, 3, 64, 64), dtype=torch.uint8)
    dataprep.normalise(pixels)  # creates the constants
    tracemalloc.start()
    try:
        with torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
        ) as profile:
            tracemalloc.reset_peak()
            before_bytes = tracemalloc.get_traced_memory()[0]
            dataprep.normalise(pixels, channels_last=True)
            numpy_bytes = tracemalloc.get_traced_memory()[1] - before_bytes
    finally:
        tracemalloc.stop()
    torch_bytes = sum(max(0, event.self_cpu_memory_usage) for event in profile.key_averages())
    assert torch_bytes + numpy_bytes == pytest.approx(4 * pixels.numel(), rel=0.05)


def test_the_first_call_may_be_in_inference_mode() -> None:
    """Training works after an evaluation in this process."""
    code = (
        "import torch, dataprep\n"
        "images = torch.zeros((2, 3, 8, 8), dtype=torch.uint8)\n"
        "with torch.inference_mode():\n"
        "    dataprep.normalise(images)\n"
        "layer = torch.nn.Conv2d(3, 1, 3)\n"
        "layer(dataprep.normalise(images)).sum().backward()\n"
        "assert layer.weight.grad is not None\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("images", "named"),
    [
        (np.zeros((2, 3, 8, 8), np.uint8), "ndarray: give a torch tensor"),
        (torch.zeros((2, 3, 8, 8)), "float32: give torch.uint8, as dataprep.Augmentation"),
        (torch.zeros((2, 3, 8, 8), dtype=torch.int64), "int64: give torch.uint8"),
    ],
    ids=["array", "float32", "int64"],
)
def test_other_images_are_refused(images: Any, named: str) -> None:
    """The error names the type and the remedy."""
    with pytest.raises(TypeError, match=named):
        dataprep.normalise(images)


@pytest.mark.parametrize(
    ("shape", "named"),
    [
        ((2, 1, 8, 8), r"\(2, 1, 8, 8\), not \(N, 3, H, W\) or \(N, H, W, 3\)$"),
        ((2, 8, 3, 8), r"\(2, 8, 3, 8\), not"),
        ((3, 8, 8), r"give images\[None\] for a single image"),
        ((5, 3, 3, 3), "could be the channels: give images that are not 3 pixels wide"),
        ((), r"\(\), not"),
    ],
    ids=str,
)
def test_other_shapes_are_refused(shape: tuple[int, ...], named: str) -> None:
    """The error names the shape and the accepted shapes."""
    with pytest.raises(dataprep.ConfigError, match=named):
        dataprep.normalise(torch.zeros(shape, dtype=torch.uint8))


@pytest.mark.parametrize("dtype", [torch.float64, torch.uint8, "float16"], ids=str)
def test_other_results_are_refused(dtype: Any) -> None:
    """The error names the types that it can make."""
    with pytest.raises(dataprep.ConfigError, match=f"{dtype}: give torch.float32, torch.float16"):
        dataprep.normalise(every_value(), dtype=dtype)


@pytest.mark.parametrize("channels_last", [False, True])
def test_memory_is_used_again_when_nothing_refers_to_a_result(channels_last: bool) -> None:
    """While a view of a result exists, no other result is written into its memory."""
    pixels = torch.randint(0, 256, (2, 3, 31, 37), dtype=torch.uint8)
    first = dataprep.normalise(pixels, channels_last=channels_last)
    address, view = first.data_ptr(), first[1, 0]
    values = view.clone()
    first_shape = tuple(first.shape)
    del first
    second = dataprep.normalise(255 - pixels, channels_last=channels_last)
    assert second.data_ptr() != address
    assert torch.equal(view, values)
    del view
    # These would use memory that was freed.
    others = [np.empty(first_shape, np.float32) for _ in range(8)]
    third = dataprep.normalise(pixels, channels_last=channels_last)
    assert third.data_ptr() == address
    assert address not in {other.ctypes.data for other in others}


@pytest.mark.parametrize("channels_last", [False, True])
def test_results_that_are_held_stay_as_they_are(channels_last: bool) -> None:
    """Each held result keeps its values, for any number of results and after others are dropped."""
    images = torch.randint(0, 256, (12, 2, 3, 23, 29), dtype=torch.uint8)
    results: dict[int, Any] = {}
    for number, pixels in enumerate([*images, *images]):
        results[number] = dataprep.normalise(pixels, channels_last=channels_last)
        results.pop(number - 1 if number % 3 == 0 else number - 7, None)
    assert len(results) >= 5
    for number, result in results.items():
        torch.testing.assert_close(
            result.double(), exact(images[number % len(images)]), rtol=1e-6, atol=1e-6
        )
