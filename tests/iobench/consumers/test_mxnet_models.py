"""Gluon's networks are torch's."""

from __future__ import annotations

import numpy as np
import pytest

from iobench.consumers.protocol import Model

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("default")]


@pytest.mark.parametrize(
    ("model", "parameters"),
    [("resnet50", 25_557_032), ("resnet18", 11_689_512), ("lenet", 146_156)],
)
def test_a_network_has_torchs_number_of_parameters(model: Model, parameters: int) -> None:
    """With 1,000 classes, counted over what is trained."""
    from iobench.consumers.mxnet_models import build

    weights = build(model, 1000).collect_params().values()
    trained = [weight for weight in weights if weight.grad_req != "null"]
    assert sum(int(np.prod(weight.shape)) for weight in trained) == parameters


@pytest.mark.parametrize("model", ["resnet50", "resnet18", "lenet"])
@pytest.mark.parametrize("size", [28, 33])
def test_any_image_size_from_28_on_is_taken(model: Model, size: int) -> None:
    """Logits come out, one a class."""
    from dataprep.adapters.mxnet_compat import import_mxnet
    from iobench.consumers.mxnet_models import build

    net = build(model, 7)
    net.initialize()
    assert net(import_mxnet().nd.zeros((2, 3, size, size))).shape == (2, 7)
