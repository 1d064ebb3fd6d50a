"""Train LeNet on shards of scikit-learn's handwritten digits, and print its accuracy.

    pip install scikit-learn 'dataprep-iobench[torch]'    # or [tensorflow], or [mxnet]
    python examples/train_digits.py digits --framework torch

The program writes the images and their shards, in TFRecord and RecordIO, into the folder
``digits``. torch and TensorFlow read TFRecord, and MXNet reads RecordIO. Every fifth digit is held
out to measure the accuracy. The program takes half a minute on two cores.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from PIL import Image

import dataprep

try:
    from sklearn.datasets import load_digits
except ModuleNotFoundError:
    raise SystemExit("scikit-learn is not installed: pip install scikit-learn") from None

EPOCHS = 15
# Crop the centre of each image to 28 x 28 pixels, without random crops and flips.
CENTRE = dataprep.Augmentation(size=28, random=False)


def write_images(folder: Path) -> None:
    """Enlarge each digit from 8 x 8 to 64 x 64 pixels and save it, as ``train/7/0017.jpg``."""
    digits = load_digits()
    for number, (pixels, digit) in enumerate(zip(digits.images, digits.target, strict=True)):
        split = "train" if number % 5 else "validation"
        path = folder / split / str(digit) / f"{number:04}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        image = Image.fromarray((pixels * 255 / 16).astype("uint8"))
        image.resize((64, 64)).save(path, quality=95)


def write_shards(images: Path, output: Path) -> None:
    """Pack the images of both splits into shards, in both formats."""
    for split in ("train", "validation"):
        dataprep.shard(
            dataprep.ShardConfig(
                source=str(images / split),
                output=str(output),
                split=split,
                format=("tfrecord", "recordio"),
                shard_size="1MB",
                dask={"processes": False},  # 1,797 small images need no worker processes
            )
        )


def batches(framework: str, output: Path, split: str) -> Any:
    """Return batches of images and labels. Each epoch has another order."""
    dataset = dataprep.open(output, split, format="recordio" if framework == "mxnet" else None)
    if framework == "torch":
        return dataprep.to_torch(dataset, iterable=True, transform=CENTRE, batch_size=64)
    if framework == "tensorflow":
        return dataprep.to_tf(dataset, augmentation=CENTRE, batch_size=64)
    return dataprep.to_mxnet(dataset, augmentation=CENTRE, batch_size=64)


def train_torch(train: Any, held_out: Any) -> float:
    """Train LeNet in torch, and return its accuracy on ``held_out``."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    torch.set_num_threads(1)  # more threads do not make such a small network faster
    model = nn.Sequential(
        *(nn.Conv2d(3, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
        *(nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)),
    )
    optimiser = torch.optim.Adam(model.parameters())
    for _ in range(EPOCHS):
        for images, labels in train:  # each loop over the batches reads the next epoch
            loss = nn.functional.cross_entropy(model(images), labels)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    with torch.no_grad():
        hits = [(model(images).argmax(1) == labels).float() for images, labels in held_out]
    return torch.cat(hits).mean().item()


def train_tensorflow(train: Any, held_out: Any) -> float:
    """Train LeNet in Keras, and return its accuracy on ``held_out``."""
    from tensorflow import keras
    from tensorflow.keras.layers import Conv2D, Dense, Flatten, MaxPool2D

    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            *(Conv2D(6, 5, padding="same", activation="relu"), MaxPool2D()),
            *(Conv2D(16, 5, activation="relu"), MaxPool2D(), Flatten()),
            *(Dense(120, activation="relu"), Dense(84, activation="relu")),
            Dense(10, activation="softmax"),
        ]
    )
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(train, epochs=EPOCHS, shuffle=False, verbose=0)  # dataprep has shuffled the samples
    return model.evaluate(held_out, verbose=0)[1]


def train_mxnet(train: Any, held_out: Any) -> float:
    """Train LeNet in Gluon, and return its accuracy on ``held_out``."""
    import mxnet as mx
    from mxnet.gluon import Trainer, loss, nn

    mx.random.seed(0)
    model = nn.HybridSequential()
    model.add(
        *(nn.Conv2D(6, 5, padding=2, activation="relu"), nn.MaxPool2D()),
        *(nn.Conv2D(16, 5, activation="relu"), nn.MaxPool2D(), nn.Flatten()),
        *(nn.Dense(120, activation="relu"), nn.Dense(84, activation="relu"), nn.Dense(10)),
    )
    model.initialize(mx.init.Xavier())
    cross_entropy = loss.SoftmaxCrossEntropyLoss()
    trainer = Trainer(model.collect_params(), "adam")
    for _ in range(EPOCHS):
        for batch in train:  # each loop over the batches reads the next epoch
            with mx.autograd.record():
                losses = cross_entropy(model(batch.data[0]), batch.label[0])
            losses.backward()
            trainer.step(len(losses))
    accuracy = mx.metric.Accuracy()
    for batch in held_out:
        accuracy.update(batch.label, [model(batch.data[0])])
    return accuracy.get()[1]


TRAIN = {"torch": train_torch, "tensorflow": train_tensorflow, "mxnet": train_mxnet}


def main() -> None:
    """Make images and shards, train, and print the accuracy."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--framework", choices=TRAIN, default="torch")
    options = parser.parse_args()
    images, shards = options.folder / "images", options.folder / "shards"
    # The manifest of the last split is written when all of its shards are complete.
    if not (shards / "validation.manifest.json").exists():
        write_images(images)
        write_shards(images, shards)
    train = batches(options.framework, shards, "train")
    held_out = batches(options.framework, shards, "validation")
    accuracy = TRAIN[options.framework](train, held_out)
    print(f"accuracy on held-out digits: {accuracy:.3f}")


if __name__ == "__main__":
    main()
