"""Compare loading with tf.data, MXNet and a DataLoader over folders, on two cores.

Each contender returns batches of 64 images from the page cache. Each epoch draws new random resized
crops to 224 pixels and new flips. The measurement begins after a warm-up. It covers several epochs,
with the pauses between them.
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
    "A random crop of tf.data has 0.38 of an image on average, and a crop of the others has 0.44. "
    "tf.data decodes by the faster and less exact inverse DCT, which is its default.",
    "DataLoader has two workers. It uses Pillow, which scales with antialiasing, as torchvision "
    "does.",
)


def contests(workplace: Workplace) -> Iterator[Contest]:
    """Yield a contest for pixels as they are after resizing, and a contest for normalised ones."""
    images = min(workplace.images, _IMAGES)
    shards, files = str(workplace.sharded(images)), str(workplace.repeated(images))
    for normalise in (False, True):

        def contender(name: str, run: str, path: str, *needs: str) -> Contender:
            arguments = {"path": path, "normalise": normalise, "images": 4 * images}  # noqa: B023
            return Contender(name, run, arguments, needs)

        pixels = "normalised" if normalise else "pixels"
        yield Contest(
            name="loading-normalised" if normalise else "loading",
            title=f"Loading, 2 cores: random resized crop and flip, {pixels}",
            unit="img",
            contenders=(
                contender("dataprep.to_torch", f"{__name__}:ours", shards, "torch"),
                contender(TF, f"{_PEERS}:tf_data", shards, "tensorflow"),
                contender(FOLDER, f"{_PEERS}:folder", files, "torch", "PIL"),
                contender("MXNet ImageRecordIter", f"{_PEERS}:mxnet", shards, "mxnet"),
            ),
            cores=CORES,
            notes=(_batch_note(normalise), *_NOTES),
        )


def ours(path: str, normalise: bool, images: int) -> Measured:
    """Measure ``dataprep.to_torch``, with threads of this process."""
    batches = _batches(path, normalise)

    def epoch(number: int) -> Iterator[int]:
        batches.set_epoch(number)
        yield from (len(labels) for _, labels in batches)

    return steady(epoch, images)


def _batches(path: str, normalise: bool) -> Any:
    return dataprep.to_torch(
        dataprep.open(path),
        transform=_augmentation(normalise),
        iterable=True,
        batch_size=BATCH,
    )


def _augmentation(normalise: bool) -> dataprep.Augmentation:
    return dataprep.Augmentation(size=SIZE, normalise=normalise)


def _batch_note(normalise: bool) -> str:
    """Return the note below the table about the contents of the batches."""
    if normalise:
        return "Batches are float32 with mean 0 and standard deviation 1."
    return "Batches are uint8. Those of tf.data and MXNet are float32, since they resize to it."
