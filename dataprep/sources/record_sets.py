"""PURE. Whether shards that are numbered are all there, and of one run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from typing import NamedTuple

from dataprep.counted import counted
from dataprep.errors import SourceError
from dataprep.sources.record_files import NUMBERED


class _Number(NamedTuple):
    """Which shard of how many, in a set whose names are the same but for that."""

    alike: str
    shard: int
    total: int


def is_numbered(key: str) -> bool:
    """Whether a name tells the number of a shard and how many there are."""
    return _number(key) is not None


def require_one_set(chosen: Iterable[str], where: str) -> None:
    """Refuse shards of several sets under one name, such as one of 1 and six of 6.

    Raises:
        SourceError: it names one of each set.
    """
    first: dict[str, tuple[str, int]] = {}
    for key, number in _numbers(chosen):
        before, total = first.setdefault(number.alike, (key, number.total))
        if total != number.total:
            raise SourceError(
                f"{where} holds shards of several sets, as {before!r} and {key!r} tell, in which "
                "the same samples may be: move one set elsewhere"
            )


def require_whole(chosen: Iterable[str], present: Iterable[str], where: str) -> None:
    """Refuse numbered shards of which some are missing; they count from 0 or from 1.

    Args:
        chosen: those that are to be read, of one set under each name.
        present: all files, among them empty shards.
        where: where they lie, for the error.

    Raises:
        SourceError: it counts those that are missing and names the first.
    """
    there: dict[tuple[str, int], set[int]] = {}
    for _, number in _numbers(present):
        there.setdefault((number.alike, number.total), set()).add(number.shard)
    for key, number in _numbers(chosen):
        total, shards = number.total, there[number.alike, number.total]
        if len(shards) < total:
            begin = 1 if total in shards else 0
            lost = next(each for each in count(begin) if each not in shards)
            raise SourceError(
                f"{where} lacks {total - len(shards):,} of {counted(total, 'shard')}, such as "
                f"{_renumbered(key, lost)!r}: put what is missing there, or read what there is "
                "with --set records.incomplete=true"
            )


def _numbers(keys: Iterable[str]) -> Iterator[tuple[str, _Number]]:
    for key in keys:
        if (number := _number(key)) is not None:
            yield key, number


def _number(key: str) -> _Number | None:
    found = NUMBERED.search(key)
    if found is None:
        return None
    return _Number(key[: found.start()] + key[found.end() :], int(found[1]), int(found[2]))


def _renumbered(key: str, shard: int) -> str:
    return NUMBERED.sub(lambda found: f"{found[0][0]}{shard:05}-of-{found[2]}", key)
