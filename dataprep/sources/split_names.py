"""PURE. Recognise the names of splits, and names that describe the kind of the files in a folder.

Such folders are not classes. Examples are ``train`` and ``val``, or ``images`` and ``masks``.
"""

from __future__ import annotations

import re
from collections.abc import Collection

_SPLIT_BY_WORD = {
    "train": "train",
    "training": "train",
    "trainval": "train",
    "val": "validation",
    "valid": "validation",
    "validation": "validation",
    "test": "test",
    "testing": "test",
    "dev": "dev",
    "eval": "eval",
    "evaluation": "eval",
    "holdout": "holdout",
    "trn": "train",
    "tst": "test",
}
"""The split that each word stands for, with the name for ``--split``."""

_split_into_words = re.compile(r"[_\-.\s]+|(?<=[a-z])(?=[A-Z])").split
_split_word = re.compile(
    rf"({'|'.join(_SPLIT_BY_WORD)})(?:set|data|images|imgs)?\d*", re.IGNORECASE
)

_FILE_KINDS = frozenset(
    {
        *("data", "dataset", "file", "files", "image", "images", "img", "imgs", "jpegimages"),
        *("jpg", "jpgs", "jpeg", "jpegs", "png", "pngs", "photo", "photos", "pic", "pics"),
        *("picture", "pictures", "annotation", "annotations", "label", "labels", "mask", "masks"),
        *("segmentation", "segmentations", "segmentationclass", "segmentationobject", "trimaps"),
        *("groundtruth", "gt", "bboxes", "boundingboxes"),
    }
)
"""Names of folders that describe the files, not what the images show, as lower-case letters."""

_is_revision = re.compile(r"[0-9a-f]{40}").fullmatch
"""Whether a folder is named by the revision of a repository, as in a download cache."""


def split_of(name: str) -> str:
    """Return the split that a name looks like, with the name for ``--split``; empty if none.

    The first word of the name that means a split decides, such as ``train``, ``Validation`` or
    ``test2017``.
    """
    for word in _split_into_words(name):
        match = _split_word.fullmatch(word)
        if match:
            return _SPLIT_BY_WORD[match[1].lower()]
    return ""


def is_one_split_word(name: str) -> bool:
    """Whether the whole name is one word for a split, such as ``train`` or ``test2017``."""
    return _split_word.fullmatch(name) is not None


def names_of_splits(names: Collection[str]) -> list[str]:
    """Return the names that look like splits."""
    # There may be a million names. One search often shows that no name contains a word for a split.
    if not _split_word.search("\n".join(names)):
        return []
    return [name for name in names if split_of(name)]


def is_named_after_files(name: str) -> bool:
    """Whether a folder is named after the kind of its files, such as ``images``, ``JPEGImages``.

    The name of a revision counts, too, because it says nothing about the images.
    """
    letters = re.sub("[^a-z]+", "", name.lower())
    return letters in _FILE_KINDS or bool(_is_revision(name))


def is_not_a_class(name: str) -> bool:
    """Whether a folder has the name of a split, or is named after the kind of its files."""
    return bool(split_of(name)) or is_named_after_files(name)
