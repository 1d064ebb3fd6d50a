"""Write the input of the parts of the kit: shards, and a config for each run of iobench.

``python -m benchmarks.gpu.prepare PHOTOS WORK`` repeats the photographs under new names, shards
them, and writes ``WORK/photos``, ``WORK/shards`` (a link) and ``WORK/*.yaml``.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from benchmarks.workplace import Workplace, files_below

HERE = Path(__file__).parent
RUNS = ("device", "training", "ladder")
"""The parts that are a run of iobench. The config of each is in the folder of this file."""

QUICK: Mapping[str, Any] = {
    "model": "lenet",
    "image_size": 64,
    "batch_size": 8,
    "workers": 1,
    "steps": 4,
    "precision": "auto",
}
"""Settings of loops for a quick check that everything works."""


def config(name: str, shards: Path, work: Path, *, device: str, quick: bool) -> dict[str, Any]:
    """Return the config of a run of iobench, as the content of its YAML file.

    Args:
        name: the name of the part.
        shards: the shards to read.
        work: the folder for copies of the data.
        device: the device of the training loops, ``gpu`` or ``cpu``.
        quick: whether to train small networks for a few steps.
    """
    content: dict[str, Any] = yaml.safe_load((HERE / f"{name}.yaml").read_text())
    content["data"] = {"shards": str(shards), "folder": str(work / "data")}
    for loop in content["training"]:
        loop["device"] = device
        if device == "cpu":
            loop["pin_memory"] = False  # Pinned memory is for copies to a GPU.
        if quick:
            loop.update(QUICK)
    return content


def main() -> None:
    """Write shards and configs, and print the number of images."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu.prepare")
    parser.add_argument("photos", type=Path, help="class folders of photographs")
    parser.add_argument("work", type=Path, help="a folder for shards, copies and configs")
    parser.add_argument("--copies", type=int, default=200, help="names for each photograph")
    parser.add_argument("--device", choices=["gpu", "cpu"], default="gpu")
    parser.add_argument("--quick", action="store_true", help="a small network and few steps")
    options = parser.parse_args()
    # Links to the photographs need the same file system.
    photos = Path(shutil.copytree(options.photos, options.work / "photos", dirs_exist_ok=True))
    images = len(files_below(photos)) * options.copies
    workplace = Workplace(options.work, photos, images)
    shards = workplace.sharded(images)
    (options.work / "shards").symlink_to(shards, target_is_directory=True)
    for name in RUNS:
        content = config(name, shards, options.work, device=options.device, quick=options.quick)
        (options.work / f"{name}.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    print(f"{images:,} images, each photograph {options.copies} times")


if __name__ == "__main__":
    main()
