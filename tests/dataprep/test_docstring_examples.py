"""The examples in the docstrings of public names run."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

import dataprep
from dataprep.drawn import draw_tree


@pytest.fixture(scope="module")
def folder_with_output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an output ``out``, as the examples expect it."""
    folder = tmp_path_factory.mktemp("examples")
    draw_tree(folder / "photos", images=40, classes=4)
    config = dataprep.ShardConfig.model_validate(
        {
            "source": str(folder / "photos"),
            "output": str(folder / "out"),
            "image": {"size": 96},
            "dask": {"workers": 2, "processes": False},
        }
    )
    dataprep.shard(config)
    return folder


def examples_of(name: str) -> list[doctest.DocTest]:
    """The examples of a public name and of its methods."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    tests = finder.find(getattr(dataprep, name), name, globs={"dataprep": dataprep})
    return [test for test in tests if test.examples]


NAMES = [
    "Augmentation",
    "Dataset",
    "Images",
    "PillowTransform",
    "ReadCounter",
    "Shard",
    "StoreOptions",
    "normalise",
    "open",
    "per_rank_batch",
    "stage",
    "to_mxnet",
    "to_tf",
    "to_torch",
]


@pytest.mark.parametrize("name", NAMES)
def test_examples_run(name: str, folder_with_output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each example runs in a folder with an output, and prints what the docstring says."""
    pytest.importorskip("torch")
    monkeypatch.chdir(folder_with_output)
    tests = examples_of(name)
    assert tests
    for test in tests:
        result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test)
        assert result.failed == 0, test.name
