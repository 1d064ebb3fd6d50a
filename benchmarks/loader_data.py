"""The same JPEGs in the form that each loader of the contest reads.

``python -m benchmarks.loader_data FORM FILES TARGET`` writes one form. It is a process of its own,
since some of the libraries that write these forms leave threads and settings behind.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dataprep

SHARD_BYTES = 16 * 2**20
"""The size of shards in all forms, so that each loader has the same number of shards."""

SHARDS = "shards"
FILES = "files"
_SET = "set"


@dataclass(frozen=True, slots=True)
class LabelledFile:
    """A JPEG file and the number of its class, from 0."""

    path: Path
    label: int


@dataclass(frozen=True, slots=True)
class Forms:
    """The folders with the forms of the data set: one folder for each form, below ``root``.

    The folder of a form contains the folder ``set`` with the data set. If an object store is filled
    from the folder of a form, the data set is therefore below a prefix.
    """

    root: Path

    def folder(self, form: str) -> Path:
        """Return the folder of a form, from which an object store can be filled."""
        return self.root / form

    def path(self, form: str) -> Path:
        """Return the path of the data set of a form. The first call writes the data set.

        Raises:
            RuntimeError: the data set cannot be written.
        """
        target = self.folder(form) / _SET
        if form != SHARDS and not target.exists():
            files = self.files() if form != FILES else target
            command = [sys.executable, "-m", __name__, form, str(files), str(target)]
            environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
            done = subprocess.run(
                command, capture_output=True, text=True, env=environment, check=False
            )
            if done.returncode:
                shutil.rmtree(target, ignore_errors=True)
                raise RuntimeError(f"cannot write the form {form}: {done.stderr.strip()[-300:]}")
        return target

    def uri(self, form: str, bucket: str) -> str:
        """Return the address of the data set of a form in a bucket that its folder filled."""
        return f"{bucket}/{self.path(form).name}"

    def files(self) -> Path:
        """Return the folder with the JPEGs of the shards as files, in a folder for each class."""
        return self.path(FILES)

    def labels(self) -> Counter[int]:
        """Return the number of images of each class, by the number of the class."""
        counts = json.loads((self.root / "labels.json").read_text())
        return Counter({int(label): count for label, count in counts.items()})


def forms(root: Path, shards: Path) -> Forms:
    """Make the folders of forms below ``root``, for a data set that ``dataprep shard`` wrote."""
    result = Forms(root)
    target = result.folder(SHARDS) / _SET
    if not target.exists():
        target.parent.mkdir(parents=True)
        shutil.copytree(shards, target, copy_function=os.link)
        with dataprep.open(str(target)) as dataset:
            counts = Counter(sample.label for sample in dataset)
            (root / "labels.json").write_text(json.dumps(counts))
    return result


def labelled(files: Path) -> list[LabelledFile]:
    """Return the files of class folders. The name of a folder is the number of its class."""
    return [LabelledFile(path, int(path.parent.name)) for path in sorted(files.rglob("*.jpg"))]


def write_files(files: Path, target: Path) -> None:
    """Write the images of the shards into class folders."""
    # The path of this form, ``files``, is ROOT/files/set. The shards are in ROOT/shards/set.
    with dataprep.open(str(files.parents[1] / SHARDS / _SET)) as dataset:
        for number, sample in enumerate(dataset):
            folder = target / f"{sample.label:04d}"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{number:06d}.jpg").write_bytes(sample.image)


def write_webdataset(files: Path, target: Path) -> None:
    """Write tars of WebDataset, with the members ``.jpg`` and ``.cls`` for each sample."""
    target.mkdir(parents=True)
    for number, part in enumerate(_parts(labelled(files))):
        with tarfile.open(target / f"train-{number:06d}.tar", "w") as archive:
            for file in part:
                _add(archive, f"{file.path.stem}.jpg", file.path.read_bytes())
                _add(archive, f"{file.path.stem}.cls", str(file.label).encode())


def write_mds_bytes(files: Path, target: Path) -> None:
    """Write MosaicML's shards with images as bytes."""
    _write_mds(files, target, "bytes", lambda path: path.read_bytes())


def write_mds_jpeg(files: Path, target: Path) -> None:
    """Write MosaicML's shards with the encoding of its README, which stores the same bytes."""
    from PIL import Image

    _write_mds(files, target, "jpeg", Image.open)


def write_litdata(files: Path, target: Path) -> None:
    """Write LitData's chunks with the type of its README, ``litdata.Image``."""
    import litdata

    litdata.optimize(
        fn=litdata_sample,
        inputs=[(str(file.path), file.label) for file in labelled(files)],
        output_dir=str(target),
        chunk_bytes=SHARD_BYTES,
        num_workers=1,
    )


def litdata_sample(file: tuple[str, int]) -> dict[str, Any]:
    """Return a sample of LitData's chunks, given the path of the image and its label."""
    import litdata

    path, label = file
    return {"image": litdata.Image(path=path), "class": label}


WRITERS: dict[str, Callable[[Path, Path], None]] = {
    FILES: write_files,
    "webdataset": write_webdataset,
    "mds-bytes": write_mds_bytes,
    "mds-jpeg": write_mds_jpeg,
    "litdata": write_litdata,
}


def _write_mds(files: Path, target: Path, encoding: str, image: Callable[[Path], Any]) -> None:
    from streaming import MDSWriter

    columns = {"image": encoding, "class": "int"}
    with MDSWriter(out=str(target), columns=columns, size_limit=SHARD_BYTES) as writer:
        for file in labelled(files):
            writer.write({"image": image(file.path), "class": file.label})


def _parts(files: Sequence[LabelledFile]) -> list[list[LabelledFile]]:
    """Divide files into parts of ``SHARD_BYTES`` at most. The order of the files is kept.

    Small data sets have smaller parts: there are always at least four parts, because webdataset
    fails if there are fewer tars than workers.
    """
    sizes = [file.path.stat().st_size for file in files]
    limit_bytes = min(SHARD_BYTES, sum(sizes) // 4)
    parts: list[list[LabelledFile]] = [[]]
    part_bytes = 0
    for file, size in zip(files, sizes, strict=True):
        if part_bytes + size > limit_bytes:
            parts.append([])
            part_bytes = 0
        parts[-1].append(file)
        part_bytes += size
    return parts


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    archive.addfile(member, io.BytesIO(data))


def main() -> None:
    """Write the form that the command line names."""
    form, files, target = sys.argv[1:]
    WRITERS[form](Path(files), Path(target))


if __name__ == "__main__":
    main()
