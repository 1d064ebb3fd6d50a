"""Makes tar archives with Python and with the usual tar programs."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path

from tests.programs import required_program


def tar_of(
    files: Mapping[str, bytes],
    form: int = tarfile.GNU_FORMAT,
    links: Mapping[str, str] | None = None,
) -> bytes:
    """A tar of files in their order, made by Python. Symbolic links follow the files."""
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w", format=form) as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
        for name, target in (links or {}).items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            tar.addfile(info)
    return sink.getvalue()


def pack(program: str, folder: Path, archive: Path, *arguments: str) -> bytes:
    """The tar of a folder by GNU tar or bsdtar. Without the program the test is skipped."""
    command = required_program({"gnu": "tar", "bsd": "bsdtar"}[program])
    subprocess.run(
        [command, *arguments, "-cf", os.fspath(archive), "-C", os.fspath(folder), "."],
        check=True,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
    )
    return archive.read_bytes()


def zipped(data: bytes) -> bytes:
    """``data`` compressed by gzip, with the same bytes each time."""
    return gzip.compress(data, 6, mtime=0)


def nested(
    tree: Mapping[str, bytes], *, packed: bool = False, form: int = tarfile.GNU_FORMAT
) -> bytes:
    """A tar of tars, one for each folder of ``tree``, as in ILSVRC2012.

    Inner tars may be gzipped.
    """
    folders: dict[str, dict[str, bytes]] = {}
    for name, data in tree.items():
        folder, _, rest = name.partition("/")
        folders.setdefault(folder, {})[rest] = data
    inner = {f"{folder}.tar": tar_of(files, form) for folder, files in folders.items()}
    if packed:
        inner = {f"{name}.gz": zipped(data) for name, data in inner.items()}
    return tar_of(inner, form)
