"""Keras' networks are torch's."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.consumers.protocol import Model

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("default")]


@pytest.mark.parametrize(
    ("model", "parameters"),
    [("resnet50", 25_557_032), ("resnet18", 11_689_512), ("lenet", 146_156)],
)
def test_a_network_has_torchs_number_of_parameters(model: Model, parameters: int) -> None:
    """With 1,000 classes, counted over what is trained."""
    from iobench.consumers.tf_models import build

    net = build(model, 1000, 64, "float32")
    assert sum(int(np.prod(weight.shape)) for weight in net.trainable_variables) == parameters


def test_feature_maps_are_as_large_as_torchs() -> None:
    """Padding is on both sides, and strides are where v1.5 has them."""
    import torch

    from iobench.consumers import tf_models, torch_models

    sizes: list[int] = []
    net = torch_models.build("resnet50", 10).eval()
    for module in net.modules():
        if isinstance(module, torch.nn.Conv2d):
            module.register_forward_hook(lambda _, __, output: sizes.append(output.shape[-1]))
    with torch.no_grad():
        net(torch.zeros(1, 3, 97, 97))
    layers = tf_models.build("resnet50", 10, 97, "float32").layers
    ours = [layer.output.shape[1] for layer in layers if "Conv2D" in type(layer).__name__]
    assert sorted(ours) == sorted(sizes)


@given(st.integers(5, 300), st.integers(1, 5))
def test_adaptive_bins_cover_every_value_and_average(size: int, cells: int) -> None:
    """Each bin averages size / cells values, rounded outwards, and none is left out."""
    from iobench.consumers.tf_models import bins

    weights = bins(size, cells)
    assert weights.sum(axis=1) == pytest.approx(np.ones(cells), abs=1e-4)
    assert (weights > 0).any(axis=0).all()
    for cell, row in enumerate(weights):
        covered = np.flatnonzero(row)
        assert covered[0] <= Fraction(cell * size, cells) < covered[0] + 1
        assert covered[-1] < Fraction((cell + 1) * size, cells) <= covered[-1] + 1


@given(st.integers(5, 40))
def test_adaptive_pooling_is_torchs(size: int) -> None:
    """The two matrix products give what torch's layer gives."""
    import torch

    from iobench.consumers.tf_models import bins

    image = np.random.default_rng(size).random((size, size), np.float32)
    expected = torch.nn.functional.adaptive_avg_pool2d(torch.from_numpy(image)[None], 5)[0]
    assert bins(size, 5) @ image @ bins(size, 5).T == pytest.approx(expected.numpy(), abs=1e-5)


def test_a_mixed_network_ends_in_float32() -> None:
    """Layers compute in bfloat16, logits do not."""
    from iobench.consumers.tf_models import build

    net = build("lenet", 10, 32, "mixed_bfloat16")
    assert {layer.compute_dtype for layer in net.layers[1:-1]} >= {"bfloat16"}
    assert net.layers[-1].compute_dtype == "float32"
