"""torch's networks are the ones that everybody means by their names."""

from __future__ import annotations

import pytest

from iobench.consumers.protocol import Model

torch = pytest.importorskip("torch")


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
    """As published with 1,000 classes; LeNet-5 as with 10, and two more input channels."""
    from iobench.consumers.torch_models import build

    net = build(model, classes)
    assert sum(weight.numel() for weight in net.parameters()) == parameters


@pytest.mark.parametrize("model", ["resnet50", "resnet18", "lenet"])
@pytest.mark.parametrize("size", [28, 33, 64])
def test_any_image_size_from_28_on_is_taken(model: Model, size: int) -> None:
    """Logits come out, one a class."""
    from iobench.consumers.torch_models import build

    net = build(model, 7).eval()
    with torch.no_grad():
        assert tuple(net(torch.zeros(2, 3, size, size)).shape) == (2, 7)


def test_the_bottleneck_has_its_stride_in_the_middle() -> None:
    """v1.5: three 3x3 convolutions halve the size, no 1x1 of a body does."""
    from iobench.consumers.torch_models import build

    strided = [
        (name, module.kernel_size[0])
        for name, module in build("resnet50", 10).named_modules()
        if isinstance(module, torch.nn.Conv2d) and module.stride[0] == 2
    ]
    assert [kernel for name, kernel in strided if "body" in name] == [3, 3, 3]
    assert [kernel for name, kernel in strided if "shortcut" in name] == [1, 1, 1]


def test_a_fresh_block_is_the_identity() -> None:
    """The last batch norm of a block is zero, so that only the shortcut passes."""
    from iobench.consumers.torch_models import build

    block = build("resnet18", 10)[4]
    images = torch.rand(2, 64, 8, 8)
    assert torch.equal(block(images), images)
