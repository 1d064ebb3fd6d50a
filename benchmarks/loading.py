"""Loading: shards to training batches on two cores, beside tf.data and DataLoader over folders.

Each contender gives batches of 64 images, drawn anew in each epoch: a random resized crop to 224
pixels and a flip, from the page cache. What is counted begins when batches come steadily and goes
over several epochs, the pause between two of them included.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dataprep
from benchmarks.contest import Contender, Contest, Measured
from benchmarks.loading_peers import BATCH, CORES, SIZE, steady
from benchmarks.workplace import Workplace

_IMAGES = 2_000
_PEERS = "benchmarks.loading_peers"
TF = "tf.data"
FOLDER = "DataLoader over photographs"
_NOTES = (
    "tf.data's random crops have 0.38 of an image on average, the others' 0.44, and it decodes "
    "by the faster, less exact inverse DCT, which is its default.",
    "DataLoader has two workers and Pillow, which scales with antialiasing, as torchvision does.",
)


def contests(workplace: Workplace) -> Iterator[Contest]:
    """Once pixels as each has them after resizing, once normalised."""
    images = min(workplace.images, _IMAGES)
    shards, files = str(workplace.sharded(images)), str(workplace.repeated(images))
    for normalise in (False, True):

        def contender(name: str, run: str, where: str, *needs: str) -> Contender:
            arguments = {"place": where, "normalise": normalise, "images": 4 * images}  # noqa: B023
            return Contender(name, run, arguments, needs)

        yield Contest(
            name="loading-normalised" if normalise else "loading",
            title="Loading, 2 cores: random resized crop and flip, "
            + ("normalised" if normalise else "pixels"),
            unit="img",
            contenders=(
                contender("dataprep.to_torch", f"{__name__}:ours", shards, "torch"),
                contender(TF, f"{_PEERS}:tf_data", shards, "tensorflow"),
                contender(FOLDER, f"{_PEERS}:folder", files, "torch", "PIL"),
                contender("MXNet ImageRecordIter", f"{_PEERS}:mxnet", shards, "mxnet"),
            ),
            cores=CORES,
            notes=(_given(normalise), *_NOTES),
        )


def ours(folder: str, normalise: bool, images: int) -> Measured:
    """Batches of ``to_torch``, by threads of this process."""
    batches = _batches(folder, normalise)

    def epoch(number: int) -> Iterator[int]:
        batches.set_epoch(number)
        yield from (len(labels) for _, labels in batches)

    return steady(epoch, images)


def _batches(folder: str, normalise: bool) -> Any:
    return dataprep.to_torch(
        dataprep.open(folder),
        transform=_augmentation(normalise),
        iterable=True,
        batch_size=BATCH,
    )


def _augmentation(normalise: bool) -> dataprep.Augmentation:
    return dataprep.Augmentation(size=SIZE, normalise=normalise)


def _given(normalise: bool) -> str:
    if normalise:
        return "Batches are float32 of mean 0 and deviation 1."
    return "Batches are uint8; of tf.data and MXNet float32, which is what they resize to."
