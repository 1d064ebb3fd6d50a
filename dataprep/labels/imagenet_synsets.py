"""The 1,000 synsets of ILSVRC2012, and a comparison of the classes of a source with them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.resources import files

from dataprep.labels.class_files import read_class_list
from dataprep.labels.space import is_synset
from dataprep.message_text import counted

ILSVRC2012 = "ilsvrc2012"
"""The value of ``labels.classes`` that selects these synsets."""


@cache
def imagenet_synsets() -> tuple[str, ...]:
    """The 1,000 synsets of the classification task of ILSVRC2012, sorted."""
    name = "ilsvrc2012.txt"
    data = files("dataprep.labels").joinpath(name).read_bytes()
    return tuple(read_class_list(data, name).index)


def difference_from_imagenet(classes: Iterable[str]) -> str | None:
    """Describe how classes differ from the 1,000 synsets of ILSVRC2012.

    Returns:
        The text of a warning; None if there is no difference, or if a class is not a synset.
    """
    synsets = set(classes)
    imagenet = set(imagenet_synsets())
    if not synsets or synsets == imagenet or not all(map(is_synset, synsets)):
        return None
    text = f"{len(synsets & imagenet):,} of ImageNet's 1,000 classes"
    advice = f" (--set labels.classes={ILSVRC2012} keeps the 1,000 indices)"
    other_synsets = sorted(synsets - imagenet)
    if other_synsets:
        text += f" and {counted(len(other_synsets), 'other')}, such as {other_synsets[0]}"
        advice = ""
    return f"{text}: labels differ from models trained on all of them{advice}"
