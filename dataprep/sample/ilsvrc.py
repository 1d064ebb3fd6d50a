"""The drawn images as ILSVRC2012 is downloaded: two tars and the devkit."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from dataprep.names import to_bytes
from dataprep.sample.devkit import ilsvrc_ids, meta_mat
from dataprep.sample.tree import (
    SampleTree,
    claim,
    class_styles,
    draw_tree,
    held_out_jpeg,
    synset_ids,
    writing,
)

TRAIN = "ILSVRC2012_img_train.tar"
VALIDATION = "ILSVRC2012_img_val.tar"
DEVKIT = "ILSVRC2012_devkit_t12.tar.gz"

_KIT = "ILSVRC2012_devkit_t12"
_SHUFFLES = 99
_MTIME = 1_339_000_000
"""June 2012, for every member: the same seed makes the same bytes."""


def draw_ilsvrc(
    dest: Path,
    *,
    images: int = 200,
    classes: int = 10,
    seed: int = 0,
    defects: bool = False,
    on_image: Callable[[int], None] | None = None,
) -> SampleTree:
    """Draw what ``draw_tree`` does, and pack it as the training tar of tars.

    Beside it lie a flat validation tar of a tenth as many images, at least one a class, in no
    order, and the devkit with their classes. Arguments and errors are those of ``draw_tree``.
    """
    with writing(dest):
        claim(dest)
    work = dest / ".drawing"
    try:
        tree = draw_tree(
            work, images=images, classes=classes, seed=seed, defects=defects, on_image=on_image
        )
        with writing(dest):
            _pack_train(work, dest / TRAIN)
            counts = {folder.name: len(list(folder.iterdir())) for folder in work.iterdir()}
    finally:
        shutil.rmtree(work, ignore_errors=True)
    _draw_validation(dest, classes, max(classes, images // 10), seed, counts)
    return replace(tree, root=dest)


def _pack_train(tree: Path, archive: Path) -> None:
    with tarfile.open(archive, "w", format=tarfile.GNU_FORMAT) as outer:
        for folder in sorted(tree.iterdir()):
            sink = io.BytesIO()
            with tarfile.open(fileobj=sink, mode="w", format=tarfile.GNU_FORMAT) as inner:
                for path in sorted(folder.iterdir(), key=lambda path: to_bytes(path.name)):
                    _add_path(inner, path)
            _add(outer, f"{folder.name}.tar", sink.getvalue())


def _draw_validation(
    dest: Path, classes: int, images: int, seed: int, train_images: Mapping[str, int]
) -> None:
    synsets, styles = synset_ids(classes), class_styles(seed, classes)
    rng = np.random.default_rng((seed, _SHUFFLES))
    ids = ilsvrc_ids(synsets, rng)
    labels = rng.permutation(np.arange(images) % classes).tolist()
    with writing(dest), tarfile.open(dest / VALIDATION, "w", format=tarfile.GNU_FORMAT) as tar:
        for number in rng.permutation(images).tolist():
            data = held_out_jpeg(seed, number, styles[labels[number]])
            _add(tar, f"ILSVRC2012_val_{number + 1:08}.JPEG", data)
    truth = "".join(f"{ids[synsets[label]]}\n" for label in labels)
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w", format=tarfile.GNU_FORMAT) as tar:
        _add(tar, f"{_KIT}/data/ILSVRC2012_validation_ground_truth.txt", truth.encode())
        _add(tar, f"{_KIT}/data/meta.mat", meta_mat(ids, train_images))
    with writing(dest):
        (dest / DEVKIT).write_bytes(gzip.compress(sink.getvalue(), mtime=0))


def _add_path(tar: tarfile.TarFile, path: Path) -> None:
    """Add a file, or a link as a link, under its own name."""
    if path.is_symlink():
        info = _member(path.name)
        info.type, info.linkname = tarfile.SYMTYPE, os.fspath(path.readlink())
        tar.addfile(info)
    else:
        _add(tar, path.name, path.read_bytes())


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    info = _member(name)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))


def _member(name: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.mtime = _MTIME
    return info
