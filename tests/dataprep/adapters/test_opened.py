"""What every adapter takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dataprep


@pytest.mark.parametrize(
    ("adapter", "more"),
    [
        (lambda dataset: dataprep.to_torch(dataset), ""),
        (lambda dataset: dataprep.to_tf(dataset), ", format='tfrecord'"),
        (lambda dataset: dataprep.to_mxnet(dataset, batch_size=8), ", format='recordio'"),
    ],
    ids=["torch", "tf", "mxnet"],
)
@pytest.mark.parametrize("given", ["some/where", Path("some/where"), None], ids=str)
def test_what_is_not_open(adapter: Callable[[Any], object], more: str, given: object) -> None:
    """A path is a TypeError that says how to open it, whichever framework is there."""
    with pytest.raises(TypeError) as caught:
        adapter(given)
    shown = "'some/where'" if isinstance(given, str) else "path"
    assert f"dataprep.open({shown}, 'train'{more})" in str(caught.value)
    assert type(given).__name__ in str(caught.value)
