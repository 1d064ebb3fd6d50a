"""torch's training loop; the contract suite has the tests that all consumers share."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from dataprep.reading.normalisation import IMAGENET_MEAN, IMAGENET_STD
from iobench.clock import SystemClock
from iobench.consumers import ConsumerSettings, Model, requirements
from iobench.consumers.torch_train import TorchConsumer, TorchGroup, network
from iobench.loaders import Batch

torch = pytest.importorskip("torch")


def consumer(group: TorchGroup | None = None, **options: Any) -> TorchConsumer:
    """Return a consumer that trains a small LeNet on the CPU, as a rank of ``group`` if given."""
    small = {"model": "lenet", "batch_size": 4, "image_size": 32, "classes": 3, "device": "cpu"}
    return TorchConsumer(ConsumerSettings(**{**small, **options}), SystemClock(), group)


def test_it_needs_no_more_than_torch_numpy_and_pydantic() -> None:
    """The consumer imports no other package, so that a bare GPU machine can run it."""
    code = (
        "import sys\n"
        "for name in ('pandas', 'cv2', 'PIL', 'boto3', 'dask', 'pyarrow', 'yaml', 'bokeh',\n"
        "             'simplejpeg', 'crc32c', 'psutil', 'typer', 'rich', 'torchvision'):\n"
        "    sys.modules[name] = None\n"
        "from iobench.clock import SystemClock\n"
        "from iobench.consumers.protocol import ConsumerSettings\n"
        "from iobench.consumers.torch_train import TorchConsumer\n"
        "settings = ConsumerSettings(model='lenet', batch_size=2, image_size=28, device='cpu')\n"
        "consumer = TorchConsumer(settings, SystemClock())\n"
        "consumer.warm_up()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_pixels_train_as_their_normalised_images_do() -> None:
    """uint8 is normalised on the device to what a loader would have sent."""
    pixels = torch.randint(0, 256, (4, 3, 32, 32), dtype=torch.uint8)
    mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in (IMAGENET_MEAN, IMAGENET_STD))
    labels = torch.tensor([0, 1, 2, 0])
    losses = []
    for images in (pixels, (pixels / 255 - mean) / std):
        trainer = consumer()
        trainer.step(Batch(images, labels, 4))
        losses.append(float(trainer.last_loss))
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


@pytest.mark.parametrize(("precision", "dtype"), [("float32", "float32"), ("mixed", "bfloat16")])
def test_pixels_become_what_convolutions_take(
    monkeypatch: pytest.MonkeyPatch, precision: str, dtype: str
) -> None:
    """The network gets images of the type and the memory format in which it computes."""
    monkeypatch.setattr(requirements, "has_bfloat16", lambda: True)
    trainer = consumer(precision=precision)
    seen = []
    trainer._net.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    pixels = torch.randint(0, 256, (4, 3, 32, 32), dtype=torch.uint8)
    trainer.step(Batch(pixels, torch.tensor([0, 1, 2, 0]), 4))
    assert [images.dtype for images in seen] == [getattr(torch, dtype)]
    assert seen[0].is_contiguous(memory_format=torch.channels_last)


def test_the_same_seed_draws_the_same_network_and_batch() -> None:
    """Two consumers with one seed have equal losses, and another seed has another loss."""

    def first_loss(seed: int) -> float:
        trainer = consumer(seed=seed)
        trainer.step(trainer.synthetic())
        return float(trainer.last_loss)

    assert first_loss(1) == first_loss(1) != first_loss(2)


def test_mixed_precision_on_a_cpu_is_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CPU with bfloat16 computes in it, and the weights stay float32."""
    monkeypatch.setattr(requirements, "has_bfloat16", lambda: True)
    trainer = consumer(precision="mixed")
    assert trainer.precision == "bfloat16"
    seen = []
    trainer._net[0].register_forward_hook(lambda module, inputs, output: seen.append(output.dtype))
    trainer.step(trainer.synthetic())
    assert seen == [torch.bfloat16]
    assert {weight.dtype for weight in trainer._net.parameters()} == {torch.float32}


def test_the_name_of_a_cpu_has_its_threads() -> None:
    """The device is the CPU's model with torch's number of intra-op threads."""
    assert consumer().device == requirements.describe_cpu(torch.get_num_threads())
    assert consumer().precision == "float32"


def test_float16_is_scaled_and_learns(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU without bfloat16 the scaler lets steps through, and the loss falls."""
    monkeypatch.setattr(requirements, "cpu_precision", lambda requested: "float16")
    trainer = consumer(precision="mixed")
    batch = trainer.synthetic()
    losses = []
    for _ in range(60):
        trainer.step(batch)
        losses.append(float(trainer.last_loss))
    assert trainer._scaler.is_enabled()
    assert min(losses) < 0.8 * losses[0]


class Event:
    """A GPU's event, recorded at a given millisecond, which notes when it is waited for."""

    def __init__(self, at_ms: float, waited: list[float]) -> None:
        self._at_ms, self._waited = at_ms, waited

    def elapsed_time(self, other: Event) -> float:
        return other._at_ms - self._at_ms

    def synchronize(self) -> None:
        self._waited.append(self._at_ms)


def test_on_a_gpu_two_steps_are_queued_and_events_tell_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Step 3 waits for the end of step 1, and so on; the events are read at the end only."""
    waited: list[float] = []
    trainer, marks = consumer(), iter(range(0, 1000, 40))
    monkeypatch.setattr(trainer, "_on_gpu", True)
    monkeypatch.setattr(trainer, "_mark", lambda: Event(next(marks), waited))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: waited.append(-1))
    batch = trainer.synthetic()
    for _ in range(4):
        trainer.step(batch)
    assert waited == [40, 120]
    assert list(trainer.compute_s()) == []
    trainer.finish()
    assert waited[-1] == -1
    assert list(trainer.compute_s()) == pytest.approx([0.04] * 4)


def test_a_fingerprint_is_of_the_parameters() -> None:
    """Networks have equal fingerprints if they were trained on equal samples."""
    trainer, two = consumer(), consumer()
    assert trainer.fingerprint() == two.fingerprint()
    trainer.step(trainer.synthetic())
    assert trainer.fingerprint() != two.fingerprint()
    two.step(trainer.synthetic())
    assert trainer.fingerprint() == two.fingerprint()


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> Iterator[TorchGroup]:
    """Yield a group of one rank, which meets in a file without a name."""
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    descriptor = os.memfd_create("meeting")
    try:
        torch_group = TorchGroup(0, 1, f"/proc/self/fd/{descriptor}", on_gpu=False)
        try:
            yield torch_group
        finally:
            torch_group.leave()
    finally:
        os.close(descriptor)
    assert not torch.distributed.is_initialized()


def test_a_rank_trains_as_one_alone_does(group: TorchGroup) -> None:
    """A group of one rank trains as a process without a group."""
    alone, rank = consumer(), consumer(group)
    before = rank.fingerprint()
    assert alone.fingerprint() == before
    batch = alone.synthetic()
    for trainer in (alone, rank):
        trainer.step(batch)
        trainer.finish()
    assert rank.fingerprint() == alone.fingerprint() != before
    assert any("1 ranks, a process each" in note and "gloo" in note for note in rank.notes)
    assert not any("ranks" in note for note in alone.notes)


def test_ranks_warm_up_by_the_same_number_of_steps(group: TorchGroup) -> None:
    """Warm-up takes a fixed number of steps: a rank with one more step would wait for ever."""
    rank = consumer(group)
    steps = []
    rank._net.register_forward_hook(lambda *_: steps.append(1))
    rank.warm_up()
    assert len(steps) == 3
    assert list(rank.compute_s()) == []


@pytest.mark.parametrize(
    ("model", "classes", "parameters"),
    [
        ("resnet50", 1000, 25_557_032),
        ("resnet18", 1000, 11_689_512),
        ("lenet", 10, 61_706 + 2 * 6 * 25),
    ],
)
def test_a_network_has_the_known_number_of_parameters(
    model: Model, classes: int, parameters: int
) -> None:
    """Parameters are the published ones for 1,000 classes; our LeNet-5 has two more channels."""
    net = network(torch, model, classes)
    assert sum(weight.numel() for weight in net.parameters()) == parameters


@pytest.mark.parametrize("model", ["resnet50", "resnet18", "lenet"])
@pytest.mark.parametrize("size", [28, 33, 64])
def test_any_image_size_from_28_on_is_taken(model: Model, size: int) -> None:
    """The network returns one logit for each class."""
    net = network(torch, model, 7).eval()
    with torch.no_grad():
        assert tuple(net(torch.zeros(2, 3, size, size)).shape) == (2, 7)


def test_the_bottleneck_has_its_stride_in_the_middle() -> None:
    """As in ResNet v1.5, the 3x3 convolutions of a body halve the size, not the 1x1 ones."""
    body_kernels, shortcut_kernels = [], []
    for name, module in network(torch, "resnet50", 10).named_modules():
        if isinstance(module, torch.nn.Conv2d) and module.stride[0] == 2:
            if "body" in name:
                body_kernels.append(module.kernel_size[0])
            elif "shortcut" in name:
                shortcut_kernels.append(module.kernel_size[0])
    assert body_kernels == [3, 3, 3]
    assert shortcut_kernels == [1, 1, 1]


def test_a_fresh_block_is_the_identity() -> None:
    """The last batch norm of a block is zero, so that only the shortcut passes."""
    block = network(torch, "resnet18", 10)[4]
    images = torch.rand(2, 64, 8, 8)
    assert torch.equal(block(images), images)
