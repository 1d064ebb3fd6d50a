"""Finds external programs that tests call, by the version text that they print."""

from __future__ import annotations

import os
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

_VERSIONS = {
    "bsdtar": ("--version", r"bsdtar \d"),
    "cjpeg": ("-version", r"libjpeg-turbo version"),
    "convert": ("-version", r"ImageMagick \d"),
    "cwebp": ("-version", r"\A\d+\.\d+\.\d+"),
    "djpeg": ("-version", r"libjpeg-turbo version"),
    "exiftool": ("-ver", r"\A\d+\.\d+\s*\Z"),
    "fio": ("--version", r"\Afio-\d"),
    "jpegtran": ("-version", r"libjpeg-turbo version"),
    "magick": ("-version", r"ImageMagick \d"),
    "tar": ("--version", r"GNU tar"),
}
"""The argument that prints the version of each program, and a pattern of its output."""


@cache
def find_program(name: str) -> str | None:
    """The path of the first program with this name that prints the expected text."""
    question, answer = _VERSIONS[name]
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        path = Path(folder or ".", name)
        if not os.access(path, os.X_OK):
            continue
        try:
            finished = subprocess.run(
                [path, question], capture_output=True, timeout=30, check=False, text=True
            )
        except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
            continue
        if re.search(answer, finished.stdout) or re.search(answer, finished.stderr):
            return str(path)
    return None


def required_program(*names: str) -> str:
    """The path of the first installed program of these. Without any, the test is skipped."""
    for name in names:
        if path := find_program(name):
            return path
    pytest.skip(f"{names[0]} is not installed")
