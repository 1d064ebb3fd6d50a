"""Where contests find their input: photographs, and what is made of them once."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import dataprep


@dataclass(frozen=True, slots=True)
class Workplace:
    """A folder to work in, the photographs (class folders), and how many a whole job takes."""

    root: Path
    photos: Path
    images: int

    def repeated(self, images: int | None = None) -> Path:
        """Class folders with so many images: hard links to the photographs under new names."""
        images = images or self.images
        folder = self.root / f"repeated-{images}"
        if not folder.exists():
            _repeat(self.photos, folder, images)
        return folder

    def sharded(self, images: int, size: int = 256, shard_size: str = "16MiB") -> Path:
        """A data set of so many images in both formats."""
        folder = self.root / f"sharded-{images}-{size}-{shard_size}"
        if not folder.exists():
            config = {
                "source": str(self.repeated(images)),
                "output": str(folder),
                "format": ["tfrecord", "recordio"],
                "image": {"size": size},
                "shard_size": shard_size,
            }
            dataprep.shard(dataprep.ShardConfig.model_validate(config))
        return folder


def photographs(folder: Path) -> list[Path]:
    """Every file of a folder, in the order of names."""
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _repeat(photos: Path, folder: Path, images: int) -> None:
    files = photographs(photos)
    if not files:
        raise SystemExit(f"no files in {photos}")
    for number in range(images):
        path = files[number % len(files)]
        target = folder / path.parent.name / f"{path.stem}_{number // len(files)}{path.suffix}"
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(path, target)
        except OSError:
            shutil.copyfile(path, target)
