"""The files of a source on disk, with links followed as torchvision's ``ImageFolder`` does.

Outputs are listed by ``LocalStore.list``, which follows no link that leaves them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dataprep.counted import counted
from dataprep.names import by_bytes, to_bytes
from dataprep.sources.protocol import Problem
from dataprep.stores import ObjectInfo
from dataprep.stores.local import PARTIAL, LocalStore, translated
from dataprep.stores.protocol import BROKEN

LOOP = "symlink to a folder that contains it"
"""The problem of a link that is not followed, since it would lead to no end."""

_MOST_SHOWN = 10
_Identity = tuple[int, int]
"""Device and inode of a folder."""


@dataclass(frozen=True)
class Tree:
    """What is below a folder.

    Attributes:
        files: every file, and every link that leads to none or in a circle, in the order of their
            bytes.
        folders: keys of all folders below the root, links to folders included.
        unread: keys of folders that are left out and cannot be read.
    """

    files: list[ObjectInfo] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    def notes(self) -> Iterator[str]:
        """What a person should know of folders that were not listed."""
        if self.unread:
            folders = counted(len(self.unread), "folder")
            yield f"{folders} left out that cannot be read either: {shown(self.unread)}"
        loops = [entry.key for entry in self.files if entry.problem == LOOP]
        if loops:
            links = counted(len(loops), "link")
            yield f"{links} to a folder that contains the link, not followed: {shown(loops)}"


def problem_of(entry: ObjectInfo) -> Problem | None:
    """Why a listed file is no sample, as far as the listing shows.

    A link to a folder stands for no image, so that it is skipped and does not fail.
    """
    if not entry.problem:
        return None
    return Problem("skipped" if entry.problem == LOOP else "failed", entry.problem)


def shown(names: Sequence[str]) -> str:
    """A few names, for a message."""
    more = ", ..." if len(names) > _MOST_SHOWN else ""
    return ", ".join(map(repr, names[:_MOST_SHOWN])) + more


def list_tree(  # noqa: C901  a call for each of millions of files would take longer
    store: LocalStore, prefix: str, is_left_out: Callable[[str], object]
) -> Tree:
    """List the files whose keys begin with ``prefix``.

    ``is_left_out`` says by the key of a folder whether its files are no samples: such a folder
    need not be readable.

    Raises:
        StoreError: another folder cannot be read.
    """
    tree = Tree()
    root = Path(os.path.realpath(store.uri))
    with translated(store.uri, reading=True):
        statuses = [folder.stat() for folder in (*reversed(root.parents), root)]
    above = tuple((status.st_dev, status.st_ino) for status in statuses)
    found: dict[str, ObjectInfo] = {}
    pending = [(store.uri, "", above)]
    while pending:
        folder, parent, above = pending.pop()
        try:
            with os.scandir(folder) as scanned:
                entries = [*scanned]
        except OSError as error:
            _require_left_out(folder, parent, is_left_out, error)
            tree.unread.append(parent.rstrip("/"))
            continue
        for entry in entries:
            key = parent + entry.name
            is_wanted = key.startswith(prefix) or prefix.startswith(f"{key}/")
            if not is_wanted or key.startswith(PARTIAL):
                continue
            try:
                is_folder = entry.is_dir()
            except OSError:  # a link in a circle, or to where nobody may look
                is_folder = False
            if is_folder:
                try:
                    status = entry.stat()
                except OSError:
                    with translated(entry.path, reading=True):
                        raise
                identity = status.st_dev, status.st_ino
                if identity not in above:
                    tree.folders.append(key)
                    pending.append((entry.path, f"{key}/", (*above, identity)))
                elif key.startswith(prefix):
                    found[key] = ObjectInfo(key, 0, problem=LOOP)
            elif key.startswith(prefix):
                problem = "" if entry.is_file(follow_symlinks=False) else _problem(entry)
                try:
                    size = 0 if problem else entry.stat().st_size
                except FileNotFoundError:
                    continue  # it vanished meanwhile
                found[key] = ObjectInfo(key, size, problem=problem)
    tree.files.extend([found[key] for key in by_bytes(found)])
    tree.folders.sort(key=to_bytes)
    tree.unread.sort(key=to_bytes)
    return tree


def _require_left_out(
    folder: str, parent: str, is_left_out: Callable[[str], object], error: OSError
) -> None:
    """Raise ``error``, which is that of listing ``folder``, unless the folder is left out."""
    if not parent or not is_left_out(parent.rstrip("/")):
        with translated(folder, reading=True):
            raise error


def _problem(entry: os.DirEntry[str]) -> str:
    """Why what is no plain file is no image; empty for a link to a file."""
    if entry.is_symlink() and not os.path.exists(entry.path):  # noqa: PTH110  never raises
        return BROKEN
    return "" if entry.is_file() else "not a regular file"
