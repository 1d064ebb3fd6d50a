"""Folders of files as sources: helpers that write them, shard them and count their reads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from iobench.servers.fault_proxy import FaultProxy
from tests.commandline import IN_ONE_PROCESS, Finished, in_process


def write_files(folder: Path, files: Mapping[str, bytes]) -> str:
    """Write files by their names below ``folder``; return it as the address of a source."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return str(folder)


def shard_folder(kind: str, folder: Path, *more: str, code: int) -> Finished:
    """Shard a folder of files into ``out`` beside it."""
    job = ("shard", "--kind", kind, "--source", folder, "--output", folder.parent / "out")
    return in_process(*job, *IN_ONE_PROCESS, *more, code=code)


def reads_of(proxy: FaultProxy, key: str) -> int:
    """The number of read requests for ``key``, for the whole object or a range."""
    return sum(request.method == "GET" and key in request.path for request in proxy.requests)
