"""PURE. Samples of equal content, within a split and between two: by SHA-256 of their sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd

from dataprep.counted import counted

COLUMNS = ("source", "label", "status", "source_sha256")
"""What of the table of samples is looked at."""

_SHOWN = 3


class Named(NamedTuple):
    """A sample: its source name, escaped, and its 0-based label."""

    source: str
    label: int


@dataclass(frozen=True, slots=True)
class Group:
    """Samples of one content. ``others`` are those of the split that is compared with."""

    sha256: str
    samples: tuple[Named, ...]
    others: tuple[Named, ...] = ()

    @property
    def pairs(self) -> int:
        """How many pairs of them are equal: within, or across where others are."""
        count = len(self.samples)
        return count * len(self.others) if self.others else count * (count - 1) // 2

    @property
    def labels_differ(self) -> bool:
        """Whether one content has two labels."""
        return len({named.label for named in (*self.samples, *self.others)}) > 1

    def __str__(self) -> str:
        both = (*self.samples, *self.others)
        shown = " = ".join(named.source for named in both[:_SHOWN])
        return shown + (f" = {len(both) - _SHOWN} more" if len(both) > _SHOWN else "")


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Groups of equal samples, in the order of their first one.

    ``against`` is empty where they were looked for within ``split``.
    """

    split: str
    against: str
    groups: tuple[Group, ...]

    @property
    def pairs(self) -> int:
        """How many pairs of samples are equal."""
        return sum(group.pairs for group in self.groups)

    @property
    def samples(self) -> int:
        """How many samples of ``split`` are in a group."""
        return sum(len(group.samples) for group in self.groups)

    def __bool__(self) -> bool:
        return bool(self.groups)

    def __str__(self) -> str:
        if self.against and not self.groups:
            return f"{self.split} against {self.against}: no sample of one is in the other"
        return "\n  ".join(self.lines())

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``: every group."""
        return {
            "split": self.split,
            "against": self.against or None,
            "pairs": self.pairs,
            "samples": self.samples,
            "groups": [
                {
                    "sha256": group.sha256,
                    "labels_differ": group.labels_differ,
                    "samples": [named._asdict() for named in group.samples],
                    "others": [named._asdict() for named in group.others],
                }
                for group in self.groups
            ],
        }

    def lines(self) -> list[str]:
        """In words: how many, and some names."""
        if not self.groups:
            return []
        shown = "; ".join(str(group) for group in self.groups[:_SHOWN])
        lines = [f"{self._head()}, such as {shown}"]
        conflicts = [group for group in self.groups if group.labels_differ]
        if conflicts:
            lines.append(
                f"{counted(len(conflicts), 'content')} with more than one label, such as "
                + " = ".join(f"{n.source} ({n.label})" for n in _both(conflicts[0])[:_SHOWN])
            )
        return lines

    def _head(self) -> str:
        if self.against:
            others = len({named for group in self.groups for named in group.others})
            are = "is" if self.samples == 1 else "are"
            return (
                f"leakage: {counted(self.samples, 'sample')} of {self.split} {are} in "
                f"{self.against} too ({counted(others, 'sample')} there, "
                f"{counted(self.pairs, 'pair')})"
            )
        return (
            f"{counted(self.samples, 'sample')} of equal content in "
            f"{counted(len(self.groups), 'group')}, {counted(self.pairs, 'pair')}"
        )


def within(split: str, table: pd.DataFrame) -> Duplicates:
    """Equal samples of one split."""
    written = _written(table)
    equal = written[written["source_sha256"].duplicated(keep=False)]
    groups = [Group(sha256, names) for sha256, names in _grouped(equal).items()]
    return Duplicates(split, "", tuple(groups))


def between(split: str, table: pd.DataFrame, against: str, other_table: pd.DataFrame) -> Duplicates:
    """Samples of ``split`` whose content stands in another split too."""
    one, other = _written(table), _written(other_table)
    mine = _grouped(one[one["source_sha256"].isin(other["source_sha256"])])
    theirs = _grouped(other[other["source_sha256"].isin(mine)])
    groups = [Group(sha256, names, theirs[sha256]) for sha256, names in mine.items()]
    return Duplicates(split, against, tuple(groups))


def _written(table: pd.DataFrame) -> pd.DataFrame:
    return table[(table["status"] == "written") & table["source_sha256"].notna()]


def _grouped(table: pd.DataFrame) -> dict[str, tuple[Named, ...]]:
    groups: dict[str, list[Named]] = {}
    for sha256, source, label in zip(
        table["source_sha256"], table["source"], table["label"], strict=True
    ):
        groups.setdefault(sha256, []).append(Named(source, int(label)))
    return {sha256: tuple(names) for sha256, names in groups.items()}


def _both(group: Group) -> Sequence[Named]:
    return (*group.samples, *group.others)
