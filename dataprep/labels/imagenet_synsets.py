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
    strange, missing = sorted(found - known), sorted(known - found)
    parts = [f"these are not the 1,000 known synsets: {counted(len(found), 'class')}"]
    if strange:
        parts.append(f"{len(strange):,} that ILSVRC2012 does not have, such as {strange[0]}")
    if missing:
        parts.append(
            f"{len(missing):,} of the 1,000 missing, such as {missing[0]}: labels are not those of "
            f"models trained on all (labels.classes={ILSVRC2012} keeps those)"
        )
    return "; ".join(parts)
