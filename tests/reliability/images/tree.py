"""Cases as class folders, with what is no file at all beside them."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Sequence
from pathlib import Path

from tests.reliability.images.case import Case

_CLASSES = 8
_ODD = re.compile(r"[^a-z0-9]+")


def name_of(number: int, case: Case) -> str:
    """Such as ``c3/00011_jpeg-sound_baseline.JPEG``."""
    words = _ODD.sub("-", f"{case.mutator} {case.what}".lower()).strip("-")[:80]
    return f"c{number % _CLASSES}/{number:05d}_{words}{case.suffix}"


def write(cases: Sequence[Case], root: Path) -> dict[str, Case]:
    """Write each case below ``root``; by the name of its file."""
    named = {name_of(number, case): case for number, case in enumerate(cases)}
    for name, case in named.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(case.data)
    return named


def write_special(root: Path, sound: bytes) -> dict[str, str]:
    """What is no plain file, or not here: by name, the status it must have.

    A folder that is called as an image is a folder: what lies in it is a sample.
    """
    folder = root / "c0"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "folder.JPEG").mkdir()
    (folder / "folder.JPEG" / "inside.JPEG").write_bytes(sound)
    (folder / "nothing.JPEG").mkdir()
    (folder / "dangling.JPEG").symlink_to("not-here.JPEG")
    (folder / "itself.JPEG").symlink_to("itself.JPEG")
    (folder / "outside.JPEG").symlink_to("/etc/hostname")
    (folder / "above.JPEG").symlink_to("..")
    (folder / "linked.JPEG").symlink_to("folder.JPEG/inside.JPEG")
    os.mkfifo(folder / "pipe.JPEG")
    (folder / ("n" * 250 + ".JPEG")).write_bytes(sound)
    with socket.socket(socket.AF_UNIX) as listening:
        here = Path.cwd()
        os.chdir(folder)  # a socket's address has at most 107 bytes
        try:
            listening.bind("socket.JPEG")
        finally:
            os.chdir(here)
    failed = ("dangling", "itself", "outside", "above", "pipe", "socket")
    statuses = {f"c0/{name}.JPEG": "failed" for name in failed}
    written = ("folder.JPEG/inside.JPEG", "linked.JPEG", "n" * 250 + ".JPEG")
    return statuses | {f"c0/{name}": "written" for name in written}
