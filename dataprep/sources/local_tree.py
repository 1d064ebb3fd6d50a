"""The files of a source on disk, with links followed as torchvision's ``ImageFolder`` does.

Outputs are listed by ``LocalStore.list``, which follows no link that leaves them.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dataprep.counted import counted
from dataprep.names import by_bytes
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


def list_tree(store: LocalStore, prefix: str, is_left_out: Callable[[str], object]) -> Tree:
    """List the files whose keys begin with ``prefix``.

    ``is_left_out`` says by the key of a folder whether its files are no samples: such a folder
    need not be readable.

    Raises:
        StoreError: another folder cannot be read.
    """
    tree = Tree()
    root = Path(os.path.realpath(store.uri))
    with translated(store.uri, reading=True):
        above = tuple(_identity(folder.stat()) for folder in (*reversed(root.parents), root))
    _walk(tree, store.uri, "", prefix, above, is_left_out)
    return tree


def _walk(
    tree: Tree,
    folder: str,
    parent: str,
    prefix: str,
    above: tuple[_Identity, ...],
    is_left_out: Callable[[str], object],
) -> None:
    """Add what is below ``folder``, whose own key is ``parent``; ``above`` are all above it."""
    try:
        with os.scandir(folder) as scanned:
            entries = {entry.name: entry for entry in scanned}
    except OSError:
        if parent and is_left_out(parent.rstrip("/")):
            tree.unread.append(parent.rstrip("/"))
            return
        with translated(folder, reading=True):
            raise
    for name in by_bytes(entries):
        entry, key = entries[name], parent + name
        is_wanted = key.startswith(prefix) or prefix.startswith(f"{key}/")
        if not is_wanted or key.startswith(PARTIAL):
            continue
        with translated(entry.path, reading=True):
            is_folder = _is_folder(entry)
        if is_folder:
            with translated(entry.path, reading=True):
                identity = _identity(entry.stat())
            if identity in above:
                if key.startswith(prefix):
                    tree.files.append(ObjectInfo(key, 0, problem=LOOP))
                continue
            tree.folders.append(key)
            _walk(tree, entry.path, f"{key}/", prefix, (*above, identity), is_left_out)
        elif key.startswith(prefix):
            with contextlib.suppress(FileNotFoundError):  # it vanished meanwhile
                tree.files.append(_file(entry, key))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link in a circle, or to where nobody may look
        return False


def _file(entry: os.DirEntry[str], key: str) -> ObjectInfo:
    """A file, or what stands where one could be. Raises FileNotFoundError if it vanished."""
    is_link = entry.is_symlink()
    if is_link and not os.path.exists(entry.path):  # noqa: PTH110  never raises
        return ObjectInfo(key, 0, problem=BROKEN)
    if not entry.is_file():
        return ObjectInfo(key, 0, problem="not a regular file")
    return ObjectInfo(key, entry.stat().st_size)


def _identity(status: os.stat_result) -> _Identity:
    return status.st_dev, status.st_ino
