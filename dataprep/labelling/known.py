"""The 1,000 synsets of ILSVRC2012, as a check that says and does not refuse."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.resources import files

from dataprep.counted import counted
from dataprep.labels import is_synset

ILSVRC2012 = "ilsvrc2012"


@cache
def known_synsets() -> tuple[str, ...]:
    """The synsets of ILSVRC2012's classification task, 1,000, sorted."""
    text = files("dataprep.labelling").joinpath("ilsvrc2012.txt").read_text("ascii")
    return tuple(text.split())


def remark(classes: Iterable[str]) -> str | None:
    """How synsets differ from the 1,000 known ones; nothing where they do not, or are none."""
    found = set(classes)
    if not found or not all(map(is_synset, found)):
        return None
    known = set(known_synsets())
    strange, missing = sorted(found - known), sorted(known - found)
    if not strange and not missing:
        return None
    parts = [f"these are not the 1,000 known synsets: {counted(len(found), 'class')}"]
    if strange:
        parts.append(f"{len(strange):,} that ILSVRC2012 does not have, such as {strange[0]}")
    if missing:
        parts.append(
            f"{len(missing):,} of the 1,000 missing, such as {missing[0]}: labels are not those of "
            f"models trained on all (labels.classes={ILSVRC2012} keeps those)"
        )
    return "; ".join(parts)
