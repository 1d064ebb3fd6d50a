"""A devkit of three classes with the files of ILSVRC2012."""

from __future__ import annotations

import io
import tarfile
from functools import cache

import numpy as np

_ROWS = [
    (1, "n02119789", "kit fox, Vulpes macrotis", 0),
    (2, "n02100735", "English setter", 0),
    (3, "n02110185", "Siberian husky", 0),
    (1001, "n00001740", "entity", 2),
]


@cache
def meta_mat() -> bytes:
    """``meta.mat``: a struct array ``synsets``, as MATLAB writes it."""
    from scipy.io import savemat

    fields = ["ILSVRC2012_ID", "WNID", "words", "gloss", "num_children", "children"]
    rows = np.empty((len(_ROWS), 1), [(field, object) for field in fields])
    for position, (number, synset, text, children) in enumerate(_ROWS):
        rows[position, 0] = (number, synset, text, "a gloss", children, np.arange(children))
    buffer = io.BytesIO()
    savemat(buffer, {"synsets": rows})
    return buffer.getvalue()


def tarball(members: dict[str, bytes]) -> bytes:
    """A gzipped tar of these files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()
