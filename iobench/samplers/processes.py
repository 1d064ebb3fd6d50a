"""Processes as the kernel tells them: whose child each is, what it took (proc(5))."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_STOPPED = (b"T", b"t")  # by a signal, by a debugger
_LONGEST_BYTES = 4096  # a line of 52 numbers and a name


class Process(NamedTuple):
    """Its parent, its time in ticks, that of its reaped children (cutime, cstime) included, its
    resident set size in pages, and whether a signal has stopped it.
    """

    parent: int
    user_ticks: int
    system_ticks: int
    rss_pages: int
    stopped: bool = False


def descendants(root: int, proc: Path) -> set[int]:
    """``root`` and everything below it, by each process's parent."""
    children: dict[int, list[int]] = {}
    for pid in _all(proc):
        if (found := read_process(pid, proc)) is not None:
            children.setdefault(found.parent, []).append(pid)
    known, fresh = {root}, [root]
    while fresh:
        below = [pid for pid in children.get(fresh.pop(), ()) if pid not in known]
        known.update(below)
        fresh.extend(below)
    return known


def read_process(pid: int, proc: Path) -> Process | None:
    """One process; None if it is gone."""
    try:
        descriptor = os.open(f"{proc}/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        data = os.read(descriptor, _LONGEST_BYTES)
    except OSError:  # it went just now
        return None
    finally:
        os.close(descriptor)
    # A name may hold anything, brackets too: what follows the last one is numbers.
    words = data[data.rfind(b")") + 2 :].split()
    if len(words) < 22:
        return None
    user, system, user_reaped, system_reaped = map(int, words[11:15])
    return Process(
        parent=int(words[1]),
        user_ticks=user + user_reaped,
        system_ticks=system + system_reaped,
        rss_pages=int(words[21]),
        stopped=words[0] in _STOPPED,
    )


def _all(proc: Path) -> Iterator[int]:
    with os.scandir(proc) as entries:
        yield from (int(entry.name) for entry in entries if entry.name.isdigit())
