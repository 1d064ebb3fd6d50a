"""Writes the data sets of this folder with whatever version of dataprep is imported.

From the root of a checkout of that version, this file being of a later one::

    PYTHONPATH=. python PATH/make_datasets.py DEST [folders|listing|tars ...]

The sources are kept here as code, so that a later version resumes what an earlier one made.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
from PIL import Image

CLASSES = ("n01440764", "n01443537", "n01484850")
FORMATS = ("--format", "tfrecord", "--format", "recordio")
CONFIGS = {
    "folders": (*FORMATS, "--size", "12", "--validation", "25%", "--max-failures", "50%"),
    "listing": (
        *FORMATS,
        *("--kind", "listing", "--size", "12", "--set", "listing.labels=[class, x, y]"),
        *("--set", "layout={my/image: encoded, my/label: label, my/all: values, my/name: source}"),
    ),
    "tars": (*FORMATS, "--kind", "ilsvrc", "--boxes", "boxes.csv", "--set", "boxes.units=pixels"),
}
"""Arguments of dataprep shard, by data set."""


def image(number: int, kind: str = "JPEG", mode: str = "RGB") -> bytes:
    """A small image of three stripes."""
    rng = np.random.default_rng(number)
    pixels = np.repeat(rng.integers(0, 256, (3, 1, 3), dtype=np.uint8), (5, 6, 7), axis=0)
    pixels = np.repeat(pixels, 24 - number % 3, axis=1)
    buffer = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(buffer, kind, quality=80)
    return buffer.getvalue()


def files() -> dict[bytes, bytes]:
    """Name to content of 15 images, a broken one and a text; the names are of all kinds."""
    content_of_name = {}
    for number in range(12):
        folder = CLASSES[number % 3]
        content_of_name[f"{folder}/{folder}_{number}.JPEG".encode()] = image(number)
    content_of_name[b"n01440764/tab\there.JPEG"] = image(20)
    content_of_name[b"n01443537/caf\xe9.png"] = image(21, "PNG")
    content_of_name[b"n01484850/grey.JPEG"] = image(22, mode="L")
    content_of_name[b"n01440764/broken.JPEG"] = image(23)[:200]
    content_of_name[b"n01440764/notes.txt"] = b"no image\n"
    return content_of_name


def tar_of(members: dict[bytes, bytes]) -> bytes:
    """A tar of these members with reproducible bytes."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(os.fsdecode(name))
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def source(name: str) -> dict[bytes, bytes]:
    """The files from which a data set is made, by name."""
    if name == "folders":
        return files()
    images = {key: content for key, content in files().items() if b"_" in key}
    if name == "listing":
        rows = [f"{key.decode()},{number % 3},0.5,-{number}" for number, key in enumerate(images)]
        return {**images, b"list.csv": "\n".join(["path,class,x,y", *rows, ""]).encode()}
    inner = {}
    for folder in CLASSES:
        of_class = {key: data for key, data in images.items() if folder in key.decode()}
        members = {key.partition(b"/")[2]: data for key, data in of_class.items()}
        inner[f"{folder}.tar".encode()] = tar_of(members)
    lines = [f"{Path(key.decode()).name},1,2,{9 + n % 5},8" for n, key in enumerate(images)]
    return {b"train.tar": tar_of(inner), b"boxes.csv": "\n".join([*lines[:9], ""]).encode()}


def unpack(content: dict[bytes, bytes], folder: Path) -> None:
    """Write the files of a source below a folder."""
    for name, data in content.items():
        path = folder / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def main(location: Path, names: list[str]) -> None:
    """Write each of the data sets."""
    paths = {"folders": ".", "listing": "list.csv", "tars": "train.tar"}
    for name in names or list(CONFIGS):
        images = location / name / "source"
        unpack(source(name), images)
        command = [sys.executable, "-m", "dataprep", "shard", "--source", paths[name]]
        command += ["--output", "../output", *CONFIGS[name]]
        environment = {**os.environ, "PYTHONPATH": os.fspath(Path.cwd())}
        subprocess.run([*command, "--workers", "1"], cwd=images, env=environment, check=True)
        shutil.rmtree(images)


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute(), sys.argv[2:])
