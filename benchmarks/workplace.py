"""The input of contests: photographs, and data that are made from them once."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import dataprep


@dataclass(frozen=True, slots=True)
class Workplace:
    """A folder with the input of contests.

    Attributes:
        root: the folder to work in.
        photos: class folders of photographs.
        images: the number of images in a whole job.
    """

    root: Path
    photos: Path
    images: int

    def repeated(self, images: int | None = None) -> Path:
        """Return class folders with this number of images.

        They are hard links to the photographs, under new names. None means ``self.images``.
        """
        images = images or self.images
        folder = self.root / f"repeated-{images}"
        if not folder.exists():
            _repeat(self.photos, folder, images)
        return folder

    def sharded(self, images: int, size: int = 256, shard_size: str = "16MiB") -> Path:
        """Return a data set with this number of images, in both formats.

        Args:
            images: the number of images.
            size: the short side of its images, in pixels.
            shard_size: the size of its shards.
        """
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


def files_below(folder: Path) -> list[Path]:
    """Return all files below a folder, sorted by their paths."""
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _repeat(photos: Path, folder: Path, images: int) -> None:
    """Fill a folder with links to photographs, or with copies if links are not possible."""
    files = files_below(photos)
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
