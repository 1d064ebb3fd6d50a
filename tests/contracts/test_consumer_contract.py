"""Every consumer takes batches, says when it is done and how long it computed."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from iobench.clock import SystemClock
from iobench.consumers import CONSUMERS, Consumer, ConsumerSettings
from iobench.errors import TrialFailed, Unavailable
from iobench.loaders import Batch

# Options that a consumer needs in addition to the defaults.
OPTIONS: dict[str, dict[str, Any]] = {"paced": {"images_per_s": 1e5}}
IDLE = {"null"}
SIZE, SAMPLES, CLASSES = 32, 8, 5


def _names() -> list[Any]:
    """The registered consumers, with marks for the frameworks."""
    heavy = {"tensorflow", "mxnet"}
    # These frameworks emit warnings of their own on import.
    marks = (pytest.mark.frameworks, pytest.mark.filterwarnings("default"))
    return [pytest.param(name, marks=marks if name in heavy else ()) for name in CONSUMERS.names()]


@pytest.fixture(params=_names())
def consumer(request: pytest.FixtureRequest) -> Consumer:
    """A small consumer of each kind, on the CPU."""
    return built(request.param)


def built(name: str, **options: Any) -> Consumer:
    """A consumer that trains LeNet on small images. The test is skipped without its framework."""
    settings: dict[str, Any] = {
        "model": "lenet",
        "batch_size": SAMPLES,
        "classes": CLASSES,
        "image_size": SIZE,
        "device": "cpu",
        **OPTIONS.get(name, {}),
        **options,
    }
    if name == "torch":
        pytest.importorskip("torch")
    return CONSUMERS.load(name)(ConsumerSettings(**settings), SystemClock())


def batch_for(consumer: Consumer, images: Any, labels: Any) -> Batch:
    """NumPy images (N, H, W, 3) and labels in the consumer's framework and layout."""
    samples = len(labels)
    if consumer.framework == "tensorflow":
        import tensorflow as tf

        return Batch(tf.constant(images), tf.constant(labels, tf.int64), samples)
    planes = np.ascontiguousarray(np.moveaxis(images, -1, 1))
    if consumer.framework == "torch":
        import torch

        return Batch(torch.from_numpy(planes), torch.tensor(labels), samples)
    if consumer.framework == "mxnet":
        import mxnet as mx

        array = mx.nd.array(planes, dtype=planes.dtype)
        return Batch(array, mx.nd.array(labels, dtype="float32"), samples)
    return Batch(images, labels, samples)


def drawn(dtype: str, samples: int = SAMPLES, size: int = SIZE) -> tuple[Any, Any]:
    """Images (N, H, W, 3) in which each class has its own brightness, and their labels (N)."""
    rng = np.random.default_rng(3)
    labels = np.arange(samples) % CLASSES
    images = rng.uniform(0, 50, (samples, size, size, 3)) + 40 * labels[:, None, None, None]
    pixels = images.astype(np.uint8)
    return (pixels if dtype == "uint8" else (pixels / np.float32(128) - 1)), labels


def trains(consumer: Consumer) -> Any:
    """Return the consumer if it is a training loop. Otherwise the test is skipped."""
    if consumer.framework == "none":
        pytest.skip("the consumer trains nothing")
    return consumer


def test_it_says_what_its_figures_are_of(consumer: Consumer) -> None:
    """A consumer reports its device and precision, and an emulated device is always named so."""
    assert consumer.device
    assert consumer.precision
    assert all(consumer.notes)
    if consumer.emulated:
        assert consumer.device.startswith("emulated ")
        assert consumer.precision == "emulated"
        assert any("emulated" in note for note in consumer.notes)


def test_a_synthetic_batch_is_as_large_as_asked(consumer: Consumer) -> None:
    """A synthetic batch has the batch size, and images in the framework's layout."""
    batch = consumer.synthetic()
    assert batch.samples == SAMPLES
    if consumer.framework != "none":
        last = consumer.framework == "tensorflow"
        shape = (SAMPLES, SIZE, SIZE, 3) if last else (SAMPLES, 3, SIZE, SIZE)
        assert tuple(batch.images.shape) == shape
        assert tuple(batch.labels.shape) == (SAMPLES,)


@pytest.mark.parametrize(("normalise", "dtype"), [(True, "float32"), (False, "uint8")])
def test_a_device_that_normalises_does_so_to_synthetic_images(
    request: pytest.FixtureRequest, consumer: Consumer, normalise: bool, dtype: str
) -> None:
    """Synthetic images are uint8 if the device normalises, so that its rate includes this work."""
    trains(consumer)
    trainer: Any = built(request.node.callspec.params["consumer"], normalise=normalise)
    batch = trainer.synthetic()
    assert _number(batch.images).dtype == dtype
    trainer.step(batch)
    trainer.finish()
    assert np.isfinite(_number(trainer.last_loss)).all()


def test_each_step_after_warm_up_has_its_compute_time(
    consumer: Consumer, request: pytest.FixtureRequest
) -> None:
    """Each step after warm-up has one compute time, which is positive unless the device is none."""
    consumer.warm_up()
    consumer.finish()
    assert list(consumer.compute_s()) == []
    batch = consumer.synthetic()
    for _ in range(3):
        consumer.step(batch)
    consumer.finish()
    seconds = list(consumer.compute_s())
    assert len(seconds) == 3
    idle = request.node.callspec.params["consumer"] in IDLE
    assert all(value == 0 if idle else value > 0 for value in seconds)


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_it_takes_decoded_batches(consumer: Consumer, dtype: str) -> None:
    """Decoded and normalised images are taken, also in a smaller last batch, and are timed."""
    for samples in (SAMPLES, SAMPLES - 3):
        consumer.step(batch_for(consumer, *drawn(dtype, samples)))
        consumer.finish()
    assert len(consumer.compute_s()) == 2


def test_it_learns_a_batch_that_is_repeated(consumer: Consumer) -> None:
    """The forward pass, the backward pass and the optimiser step are real: the loss falls."""
    trainer = trains(consumer)
    batch = batch_for(consumer, *drawn("uint8"))
    losses = []
    for _ in range(40):
        trainer.step(batch)
        trainer.finish()
        losses.append(float(np.mean(_number(trainer.last_loss))))
    # The minimum counts, because without a falling learning rate the loss jumps now and then.
    assert min(losses) < 0.8 * losses[0]


def test_what_it_cannot_train_on_is_refused(consumer: Consumer) -> None:
    """A wrong batch is refused with a message that names it, before the framework raises its error.

    Images of another size or type would need another time than the synthetic images.
    """
    trains(consumer)
    images, labels = drawn("uint8")
    refused = [
        (
            batch_for(consumer, images, np.where(labels == 2, label, labels)),
            f"label {label} is outside 0 to {CLASSES - 1}",
        )
        for label in (CLASSES, -1)
    ]
    refused += [
        (Batch(images, labels, SAMPLES), r"images are numpy\.ndarray"),
        (Batch([b"\xff\xd8"], [0], 1), "images are list: its loader must decode"),
        (Batch((b"\xff\xd8",), images, 1), "images are tuple: its loader must decode"),
        (batch_for(consumer, *drawn("uint8", size=SIZE + 4)), "the same image_size"),
        (batch_for(consumer, images.astype(np.float64), labels), "images are float64"),
    ]
    for batch, message in refused:
        with pytest.raises(TrialFailed, match=message):
            consumer.step(batch)


@pytest.mark.parametrize("name", _names())
def test_a_gpu_that_is_not_there_is_unavailable(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a GPU is requested and missing, the consumer fails instead of using the CPU silently."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    trains(built(name))
    with pytest.raises(Unavailable, match="finds no GPU"):
        built(name, device="gpu")


@pytest.mark.parametrize("name", ["torch", "tensorflow", "mxnet"])
def test_a_missing_framework_is_named_with_its_extra(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trial is skipped with the command that installs the missing framework."""
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(Unavailable, match=rf"pip install 'dataprep-iobench\[{name}\]'"):
        CONSUMERS.load(name)(ConsumerSettings(), SystemClock())


def _number(loss: Any) -> Any:
    """The loss as a NumPy number."""
    return loss.asnumpy() if hasattr(loss, "asnumpy") else loss.numpy()
