"""ILSVRC2012's devkit for drawn images: ``meta.mat`` and the validation ground truth.

Fields and their order are those of the real ``meta.mat`` (devkit, ``readme.txt``): synsets without
children are the classes, numbered from 1 in no alphabetical order; those above them in WordNet
follow.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

FIELDS = (
    *("ILSVRC2012_ID", "WNID", "words", "gloss", "num_children", "children"),
    *("wordnet_height", "num_train_images"),
)
_HEADER_BYTES = 116
_HEADER = b"MATLAB 5.0 MAT-file, drawn by dataprep sample"
_CHILDREN = 4


def ilsvrc_ids(synsets: Sequence[str], rng: np.random.Generator) -> dict[str, int]:
    """A number from 1 for each synset, in no order, as the devkit gives them."""
    numbers = rng.permutation(len(synsets)) + 1
    return dict(zip(synsets, numbers.tolist(), strict=True))


def meta_mat(ids: Mapping[str, int], train_images: Mapping[str, int]) -> bytes:
    """``meta.mat``: the struct array ``synsets``, classes first, then what stands above them.

    Args:
        ids: the ILSVRC2012_ID of each class.
        train_images: how many training images each has.
    """
    from scipy.io import savemat  # takes a third of a second to import

    rows = [
        _row(number, synset, f"drawn {synset[1:]}, class {number}", [], 0, train_images[synset])
        for synset, number in sorted(ids.items(), key=lambda item: item[1])
    ]
    below = list(range(1, len(rows) + 1))
    height = 1
    while len(below) > 1 or height == 1:
        above = []
        for i in range(0, len(below), _CHILDREN):
            number = len(rows) + 1
            children = below[i : i + _CHILDREN]
            rows.append(_row(number, f"n{number:08}", f"group {number}", children, height, 0))
            above.append(number)
        below, height = above, height + 1
    synsets = np.empty((len(rows), 1), [(field, object) for field in FIELDS])
    synsets[:, 0] = rows
    sink = io.BytesIO()
    savemat(sink, {"synsets": synsets}, do_compression=True)
    # SciPy puts the time there.
    return _HEADER.ljust(_HEADER_BYTES) + sink.getvalue()[_HEADER_BYTES:]


def _row(
    number: int, synset: str, words: str, children: Sequence[int], height: int, images: int
) -> tuple[Any, ...]:
    gloss = "one of the classes that were drawn" if not children else "what lies below it"
    return (
        *(float(number), synset, words, gloss, float(len(children))),
        *(np.array(children, dtype=np.float64), float(height), float(images)),
    )
