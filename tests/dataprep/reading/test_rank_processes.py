"""TensorFlow and MXNet read in processes of their own, each with its rank."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, Literal

import pytest

import dataprep
from dataprep.reading.augment import Augmentation

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("default")]
GLOBAL_BATCH = 12


def read(framework: str, output: Path, steps: int | None, **ranks: Any) -> list[int]:
    """The labels of the first ``steps`` batches of one rank, or of all batches."""
    size = dataprep.per_rank_batch(GLOBAL_BATCH, ranks["rank"], ranks["world_size"])
    options = {"batch_size": size, "global_batch": GLOBAL_BATCH, "epoch": 1, **ranks}
    if framework == "tensorflow":
        dataset = dataprep.open(output, format="tfrecord")
        all_batches = dataprep.to_tf(dataset, decode=False, **options)
        batches: Iterator[Any] = (labels.numpy() for _, labels in all_batches)
    else:
        dataset = dataprep.open(output, format="recordio")
        small = Augmentation(size=16)
        batches_read = dataprep.to_mxnet(dataset, augmentation=small, threads=1, **options)
        batches = (batch.label[0].asnumpy() for batch in batches_read)
    labels: list[int] = []
    for number, batch in enumerate(batches):
        if number == steps:
            break
        labels += [int(label) for label in batch]
    return labels


@pytest.mark.parametrize("even", ["keep", "drop"])
@pytest.mark.parametrize("framework", ["tensorflow", "mxnet"])
def test_another_number_of_ranks_goes_on(
    request: pytest.FixtureRequest,
    output: Path,
    framework: Literal["tensorflow", "mxnet"],
    even: str,
) -> None:
    """Three steps of two processes and the rest on three read each sample once."""
    request.getfixturevalue({"tensorflow": "tf", "mxnet": "mx"}[framework])
    context = multiprocessing.get_context("spawn")
    labels_read: list[int] = []
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        for world_size, steps, start in ((2, 3, 0), (3, None, 3 * GLOBAL_BATCH)):
            ranks = [
                pool.submit(
                    read,
                    framework,
                    output,
                    steps,
                    rank=rank,
                    world_size=world_size,
                    start=start,
                    even=even,
                )
                for rank in range(world_size)
            ]
            labels_read += [label for rank in ranks for label in rank.result(timeout=120)]
    assert sorted(labels_read) == sorted(dataprep.open(output).labels.tolist())
