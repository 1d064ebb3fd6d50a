"""The 1,000 synsets of ILSVRC2012, and a comparison of other classes with them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.resources import files

from dataprep.counted import counted
from dataprep.labels.class_files import class_list
from dataprep.labels.space import is_synset

ILSVRC2012 = "ilsvrc2012"
"""The value of ``labels.classes`` that stands for these synsets."""


@cache
def imagenet_synsets() -> tuple[str, ...]:
    """The 1,000 synsets of ILSVRC2012's classification task, sorted."""
    name = "ilsvrc2012.txt"
    data = files("dataprep.labels").joinpath(name).read_bytes()
    return tuple(class_list(data, name).index)


def difference(classes: Iterable[str]) -> str | None:
    """A sentence on how synsets differ from the 1,000 synsets of ILSVRC2012.

    Returns:
        None if they do not differ, or if the classes are no synsets.
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
