"""PURE. Access modes, as training services offer them, and what each can be combined with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from iobench.data.settings import split_name
from iobench.loaders.own import SYNTHETIC

Access: TypeAlias = Literal["direct", "file", "pipe", "lazy", "mount"]

DIRECT = "direct"
"""As the loader reads by itself; nothing of disk and memory is measured."""

MODES: Mapping[str, str] = {
    "file": "everything is downloaded to a local folder, then read there",
    "pipe": "whole objects in sequence, shuffled by key and by a buffer of samples",
    "lazy": "a range request a sample, when it is asked for",
    "mount": "files at a path: a FUSE mount, NFS, or any folder",
}
"""What each does."""

Connections: TypeAlias = Annotated[int, Field(ge=1, le=256)]
ShuffleBuffer: TypeAlias = Annotated[int, Field(ge=1, le=100_000_000)]

SETTINGS: Mapping[str, str] = {"file": "connections", "pipe": "shuffle_buffer"}
"""The key of a config that one of them alone has a use for."""

# Others read as they like: what they do with a store is not known here.
_LOADERS = {"pipe": frozenset({"torch-iterable", "tf-data"}), "lazy": frozenset({"torch-map"})}


def suits(access: str, loader: str) -> bool:
    """Whether a loader can read in that mode.

    ``pipe`` needs one with a buffer to shuffle in, ``lazy`` one that asks for single samples;
    files on a disk are there for all that read.
    """
    if access == DIRECT:
        return True
    return loader not in SYNTHETIC and loader in _LOADERS.get(access, {loader})


def suiting(access: str) -> str:
    """The loaders of a mode in words."""
    named = _LOADERS.get(access)
    return " or ".join(sorted(named)) if named else "any that reads"


def data_of(access: str, name: str) -> str | None:
    """The data that a trial reads: ``mount`` the files of what lies on a store, the others only
    what does; None where there is nothing for the mode to read."""
    if access == "mount":
        return f"{name.rpartition('@')[0]}@disk"
    return name if access == DIRECT or split_name(name)[2] else None
