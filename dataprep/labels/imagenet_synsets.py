"""The 1,000 synsets of ILSVRC2012, and how the classes of a job differ from them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.resources import files

from dataprep.counted import counted
from dataprep.labels.space import is_synset

ILSVRC2012 = "ilsvrc2012"
"""The value of ``labels.classes`` that stands for these synsets."""


@cache
def imagenet_synsets() -> tuple[str, ...]:
    """The 1,000 synsets of ILSVRC2012's classification task, sorted."""
    return tuple(files("dataprep.labels").joinpath("ilsvrc2012.txt").read_text("ascii").split())


def difference(classes: Iterable[str]) -> str | None:
    """Say how synsets differ from the 1,000; None where they do not or are no synsets."""
    found, known = set(classes), set(imagenet_synsets())
    if found in (set(), known) or not all(map(is_synset, found)):
        return None
    said = f"{len(found & known):,} of ImageNet's 1,000 classes"
    advice = f" (--set labels.classes={ILSVRC2012} keeps the 1,000 indices)"
    if strange := sorted(found - known):
        said += f" and {counted(len(strange), 'other')}, such as {strange[0]}"
        advice = ""
    return f"{said}: labels differ from models trained on all of them{advice}"
