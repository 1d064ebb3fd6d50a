"""Draw images, and pack them like the download of ILSVRC2012: two tars and the devkit."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from dataprep.drawn.drawing import draw_photo
from dataprep.drawn.tree import HELD_OUT, SampleTree, class_styles, draw_tree, new_folder
from dataprep.labels.class_files import GROUND_TRUTH, META

TRAIN = "ILSVRC2012_img_train.tar"
VALIDATION = "ILSVRC2012_img_val.tar"
DEVKIT = "ILSVRC2012_devkit_t12.tar.gz"

_MAT_HEADER = b"MATLAB 5.0 MAT-file, drawn by dataprep sample".ljust(116)


def draw_ilsvrc(
    dest: Path, *, images: int = 200, classes: int = 10, seed: int = 0, defects: bool = False
) -> SampleTree:
    """Draw a training tar, a validation tar, and the devkit.

    The training tar contains an inner tar for each class, with the images of ``draw_tree``. The
    validation tar contains a tenth as many images, at least one of each class, in random order. The
    devkit contains the classes of the validation images. The arguments and the errors are the same
    as in ``draw_tree``.
    """
    with new_folder(dest, images, classes, seed):
        with TemporaryDirectory(dir=dest) as work:
            tree = draw_tree(
                Path(work, "tree"), images=images, classes=classes, seed=seed, defects=defects
            )
            _pack_training_images(dest / TRAIN, tree.root, Path(work))
        styles = class_styles(seed, classes)
        rng = np.random.default_rng((seed, HELD_OUT))
        ids = rng.permutation(classes) + 1
        labels = rng.permutation(np.arange(max(classes, images // 10)) % classes)
        order = rng.permutation(len(labels)).tolist()
        style_of_label = list(styles.values())
        with tarfile.open(dest / VALIDATION, "w") as tar:
            for number in order:
                data = draw_photo((seed, HELD_OUT, number), style_of_label[labels[number]])
                _add(tar, f"ILSVRC2012_val_{number + 1:08}.JPEG", data)
        id_of_image = [int(ids[label]) for label in labels]
        (dest / DEVKIT).write_bytes(_devkit(list(styles), ids.tolist(), id_of_image))
        return tree._replace(root=dest)


def _pack_training_images(path: Path, root: Path, work: Path) -> None:
    """Write the training tar, which contains an inner tar for each class folder.

    Args:
        path: the tar to write.
        root: the folder with the class folders.
        work: a folder for temporary files.
    """
    with tarfile.open(path, "w") as train:
        for folder in sorted(root.iterdir()):
            class_tar = work / f"{folder.name}.tar"
            with tarfile.open(class_tar, "w") as tar:
                for image in sorted(folder.iterdir()):
                    tar.add(image, image.name, filter=_without_owner)
            train.add(class_tar, class_tar.name, filter=_without_owner)


def _devkit(synsets: Sequence[str], ids: Sequence[int], id_of_image: Sequence[int]) -> bytes:
    """The content of the devkit, a compressed tar.

    Args:
        synsets: the classes.
        ids: the ID of each class.
        id_of_image: the ID of the class of each validation image, in the order of their numbers.
    """
    ground_truth = "".join(f"{class_id}\n" for class_id in id_of_image)
    devkit = io.BytesIO()
    with tarfile.open(fileobj=devkit, mode="w") as tar:
        _add(tar, f"ILSVRC2012_devkit_t12/data/{GROUND_TRUTH}", ground_truth.encode())
        _add(tar, f"ILSVRC2012_devkit_t12/data/{META}", _meta_mat(synsets, ids))
    return gzip.compress(devkit.getvalue(), mtime=0)


def _meta_mat(synsets: Sequence[str], ids: Sequence[int]) -> bytes:
    """The content of ``meta.mat``: the classes, in the order of their IDs.

    Only the fields that ``class_files`` reads are written.
    """
    from scipy.io import savemat  # imported here, because the import takes a third of a second

    rows = [(number, name, f"drawn {name}", 0) for number, name in zip(ids, synsets, strict=True)]
    fields = [(name, object) for name in ("ILSVRC2012_ID", "WNID", "words", "num_children")]
    content = io.BytesIO()
    savemat(content, {"synsets": np.array(sorted(rows), fields)}, do_compression=True)
    # SciPy's header contains the time. It is replaced, so that the same seed gives the same bytes.
    return _MAT_HEADER + content.getvalue()[len(_MAT_HEADER) :]


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))


def _without_owner(info: tarfile.TarInfo) -> tarfile.TarInfo:
    """Remove the time and the owner, so that the same seed gives the same bytes."""
    info.uid = info.gid = info.mtime = 0
    info.uname = info.gname = ""
    info.mode = 0o644
    return info
