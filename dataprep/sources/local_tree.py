"""List the files of a source on a disk. Links are followed, as torchvision's ``ImageFolder`` does.

Outputs are listed by ``LocalStore.list`` instead, which does not follow links out of the output.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from dataprep.message_text import counted, listed
from dataprep.name_encoding import by_bytes, to_bytes
from dataprep.sources.protocol import Problem
from dataprep.stores import ObjectInfo
from dataprep.stores.local import PARTIAL, LocalStore, translate_os_errors
from dataprep.stores.protocol import BROKEN

LOOP = "symlink to a folder that contains it"
"""The problem of a link that is not followed, because following it would never end."""

_Identity = tuple[int, int]
"""The device and the inode of a folder."""


@dataclass(frozen=True)
class Tree:
    """The files and folders below a folder.

    Attributes:
        files: all files, in the byte order of their keys. They include broken links, and links to a
            folder that contains the link.
        folders: the keys of all folders, and of links to folders.
        unread: the keys of folders that cannot be read, which is no error because the job leaves
            them out.
    """

    files: list[ObjectInfo] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    def notes(self) -> Iterator[str]:
        """Yield messages for the user about folders that were not listed."""
        if self.unread:
            folders = counted(len(self.unread), "folder")
            yield f"{folders} left out that cannot be read either: {listed(self.unread)}"
        loops = [entry.key for entry in self.files if entry.problem == LOOP]
        if loops:
            links = counted(len(loops), "link")
            yield f"{links} to a folder that contains the link, not followed: {listed(loops)}"


def problem_of(entry: ObjectInfo) -> Problem | None:
    """Why a file is not a sample, according to its entry in the listing; None for a plain file.

    A link that is not followed (``LOOP``) leads to a folder, and cannot be an image. Therefore it
    is skipped, and is not a failure.
    """
    if not entry.problem:
        return None
    return Problem("skipped" if entry.problem == LOOP else "failed", entry.problem)


def list_tree(  # noqa: C901  one function, because calls for millions of files would take longer
    store: LocalStore, prefix: str, is_left_out: Callable[[str], object]
) -> Tree:
    """List the files whose keys begin with ``prefix``. Temporary files of writers are left out.

    Args:
        store: the store that contains the files.
        prefix: the beginning of the keys.
        is_left_out: whether a folder, given by its key, is not part of the source. It is no error
            if a folder that is left out cannot be read.

    Raises:
        StoreError: a folder that is not left out cannot be read.
    """
    tree = Tree()
    # A link is a loop if its target is a folder above it, which can also be above the source.
    root = Path(os.path.realpath(store.uri))
    with translate_os_errors(store.uri, reading=True):
        statuses = [folder.stat() for folder in (*reversed(root.parents), root)]
    above: tuple[_Identity, ...] = tuple((status.st_dev, status.st_ino) for status in statuses)
    files: dict[str, ObjectInfo] = {}
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
            may_match = key.startswith(prefix) or prefix.startswith(f"{key}/")
            if not may_match or key.startswith(PARTIAL):
                continue
            try:
                is_folder = entry.is_dir()
            except OSError:  # a circle of links, or a link into a folder that cannot be read
                is_folder = False
            if is_folder:
                try:
                    status = entry.stat()
                except OSError:
                    with translate_os_errors(entry.path, reading=True):
                        raise
                identity = status.st_dev, status.st_ino
                if identity not in above:
                    tree.folders.append(key)
                    pending.append((entry.path, f"{key}/", (*above, identity)))
                elif key.startswith(prefix):
                    files[key] = ObjectInfo(key, 0, problem=LOOP)
            elif key.startswith(prefix):
                problem = "" if entry.is_file(follow_symlinks=False) else _problem(entry)
                try:
                    size_bytes = 0 if problem else entry.stat().st_size
                except FileNotFoundError:
                    continue  # The file was removed in the meantime.
                files[key] = ObjectInfo(key, size_bytes, problem=problem)
    tree.files.extend([files[key] for key in by_bytes(files)])
    tree.folders.sort(key=to_bytes)
    tree.unread.sort(key=to_bytes)
    return tree


def _require_left_out(
    folder: str, parent: str, is_left_out: Callable[[str], object], error: OSError
) -> None:
    """Raise ``error``, which happened when a folder was listed, unless the folder is left out.

    Args:
        folder: the path of the folder.
        parent: the key of the folder with a slash at the end; empty for the root.
        is_left_out: as for ``list_tree``.
        error: the error.
    """
    if not parent or not is_left_out(parent.rstrip("/")):
        with translate_os_errors(folder, reading=True):
            raise error


def _problem(entry: os.DirEntry[str]) -> str:
    """Why an entry that is not a plain file cannot be an image; empty for a link to a file."""
    if entry.is_symlink() and not os.path.exists(entry.path):  # noqa: PTH110  never raises
        return BROKEN
    return "" if entry.is_file() else "not a regular file"
