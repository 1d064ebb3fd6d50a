"""What lies below a directory, in the order of the names' bytes."""

from __future__ import annotations

import os
from collections.abc import Iterator

from dataprep.names import to_bytes
from dataprep.stores.local_errors import translated
from dataprep.stores.protocol import LEAVES, ObjectInfo


def files_below(root: str, prefix: str, hidden: str) -> Iterator[ObjectInfo]:
    """Files below ``root`` whose keys begin with ``prefix``, but for those below ``hidden``.

    Symlinks are followed only within the root, and never in a circle.
    """
    return _walk(root, "", prefix, hidden, (os.path.realpath(root),))


def _walk(
    folder: str, parent: str, prefix: str, hidden: str, above: tuple[str, ...]
) -> Iterator[ObjectInfo]:
    """Files below ``folder``, whose own key is ``parent``, directories in name order.

    ``above`` are the real paths of the root and of every directory down to this one.
    """
    with translated(folder), os.scandir(folder) as entries:
        found = sorted(entries, key=lambda entry: to_bytes(entry.name))
    for entry in found:
        key = parent + entry.name
        if not (key.startswith(prefix) or prefix.startswith(key + "/")) or key == hidden:
            continue
        problem = _link_problem(entry, above) if entry.is_symlink() else None
        if problem is None and entry.is_dir():
            inside = (*above, _real_path(entry, above[-1]))
            yield from _walk(entry.path, key + "/", prefix, hidden, inside)
        elif key.startswith(prefix) and (info := _listed(entry, key, problem)):
            yield info


def _real_path(entry: os.DirEntry[str], parent: str) -> str:
    """What is no link lies where its parent really lies: a call for each folder saved."""
    if entry.is_symlink():
        return os.path.realpath(entry.path)
    return os.path.join(parent, entry.name)  # noqa: PTH118


def _listed(entry: os.DirEntry[str], key: str, problem: str | None) -> ObjectInfo | None:
    """None where it vanished meanwhile."""
    if problem is None and not entry.is_file():
        problem = "not a regular file"
    if problem:
        return ObjectInfo(key, 0, problem=problem)
    try:
        return ObjectInfo(key, entry.stat().st_size)
    except FileNotFoundError:
        return None
    except OSError:
        with translated(key):
            raise


def _link_problem(entry: os.DirEntry[str], above: tuple[str, ...]) -> str | None:
    target = os.path.realpath(entry.path)
    if not _is_within(target, above[0]):
        return LEAVES
    # Links in a circle end nowhere too; Path.exists would raise where it may not look.
    if not os.path.exists(entry.path):  # noqa: PTH110
        return "broken symlink"
    if any(_is_within(folder, target) for folder in above):
        return "symlink to a folder that contains it"
    return None


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
