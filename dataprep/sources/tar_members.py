"""PURE. Members of archives as columns, and the tars of classes that give none."""

from __future__ import annotations

import os
from collections.abc import Container, Sequence

from dataprep.archives.tar_index import TarIndex
from dataprep.sources.classes import is_clutter
from dataprep.sources.protocol import Problem
from dataprep.sources.tar_names import is_called_tar, without_ending


class TarMembers:
    """Members of archives as columns, in any order.

    ``tars`` is the tar of a class that each lies in, empty for what lies beside such tars.
    ``unread`` are those called as tars of which nothing was read, each with the reason.
    """

    def __init__(self) -> None:
        self.names: list[bytes] = []
        self.sizes: list[int] = []
        self.containers: list[str] = []
        self.offsets: list[int] = []
        self.tars: list[str] = []
        self.problems: dict[int, Problem] = {}
        self.unread: dict[str, str] = {}

    def add(
        self, names: Sequence[bytes], index: TarIndex, rows: slice, container: str, tar: str = ""
    ) -> None:
        """Add consecutive members of an index under these names."""
        shift = len(self.names) - rows.start
        for row in range(rows.start, rows.stop) if index.refused else ():
            if row in index.refused:
                self.problems[row + shift] = Problem("failed", index.refused[row])
        if not tar:
            self._add_unread(names, index, rows)
        elif not names:
            self.unread[tar] = "holds no files"
        self.names.extend(names)
        self.sizes.extend(index.sizes[rows].tolist())
        self.offsets.extend(index.offsets[rows].tolist())
        self.containers.extend([container] * len(names))
        self.tars.extend([tar] * len(names))

    def _add_unread(self, names: Sequence[bytes], index: TarIndex, rows: slice) -> None:
        for row, name in enumerate(names, rows.start):
            if is_called_tar(name):
                place = int(index.offsets[row]), int(index.sizes[row])
                self.unread[os.fsdecode(name)] = index.refused.get(row) or _instead(*place)

    def add_stray(self, key: str, problem: Problem) -> None:
        """Add a file of which nothing was read; one that is called a tar fails."""
        if is_called_tar(os.fsencode(key)):
            self.unread[key] = problem.reason
            problem = Problem("failed", problem.reason)
        self.problems[len(self.names)] = problem
        self.names.append(os.fsencode(key))
        self.sizes.append(0)
        self.offsets.append(0)
        self.containers.append("")
        self.tars.append("")

    def below(self, folder: bytes) -> TarMembers:
        """Those in ``folder``, as if that were the source."""
        kept = [row for row, name in enumerate(self.names) if name.startswith(folder)]
        part = TarMembers()
        part.problems = {
            place: self.problems[row] for place, row in enumerate(kept) if row in self.problems
        }
        part.names = [self.names[row][len(folder) :] for row in kept]
        part.sizes = [self.sizes[row] for row in kept]
        part.containers = [self.containers[row] for row in kept]
        part.offsets = [self.offsets[row] for row in kept]
        part.tars = [self.tars[row] for row in kept]
        part.unread = {
            tar: why for tar, why in self.unread.items() if os.fsencode(tar).startswith(folder)
        }
        return part

    def lost(self, skipped: Container[int]) -> dict[str, str]:
        """Tars without a sample, each with the reason, where other tars are classes.

        One that lies there again, compressed otherwise, is not lost. ``skipped`` are the rows
        that are passed over.
        """
        giving = {tar for row, tar in enumerate(self.tars) if tar and row not in skipped}
        if not giving:
            return {}
        classes = {_class_of(tar) for tar in giving}
        found = {**dict.fromkeys(sorted({*self.tars} - {""}), "holds no images"), **self.unread}
        return {
            tar: why
            for tar, why in found.items()
            if _class_of(tar) not in classes and not is_clutter(tar)
        }


def _class_of(tar: str) -> bytes:
    return without_ending(os.fsencode(tar))


def _instead(offset: int, size: int) -> str:
    """What a member is that is called a tar and is none."""
    if size == 0:
        return "is empty"
    return f"no tar archive: its content, from byte {offset:,} on, begins otherwise"
