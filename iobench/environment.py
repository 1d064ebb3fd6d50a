"""The machine and the libraries, without a name of host, user or account."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from dataprep._version import __version__

_LIBRARIES = (
    *("numpy", "simplejpeg", "opencv-python-headless", "pillow", "crc32c", "boto3", "obstore"),
    *("torch", "tensorflow", "tensorflow-cpu", "mxnet", "moto"),
)
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


class Mount(NamedTuple):
    """A mounted file system: its type and the options that it was mounted with."""

    point: Path
    file_system: str
    options: str


def describe(targets: Mapping[str, Path]) -> dict[str, Any]:
    """Everything that a figure depends on, and the file systems of ``targets`` by label."""
    return {
        "iobench": __version__,
        "python": platform.python_version(),
        "kernel": f"{platform.system()} {platform.release()}",
        "processor": processor(),
        "processors": len(os.sched_getaffinity(0)),
        "memory_bytes": memory_bytes(),
        "gpus": gpus(),
        "libraries": libraries(),
        "targets": {label: _target(path) for label, path in targets.items()},
    }


def processor() -> str:
    """The processor's model, as the kernel names it."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.machine()
    match = re.search(r"^model name\s*:\s*(.+)$", text, re.M)
    return match[1].strip() if match else platform.machine()


@cache
def memory_bytes() -> int:
    """Memory of the machine, or of the control group where that has less."""
    limits = [psutil.virtual_memory().total]
    for path in _LIMITS:
        try:
            text = Path(path).read_text().strip()
        except OSError:
            continue
        if text.isdigit():
            limits.append(int(text))
    return min(limits)


def gpus() -> list[dict[str, str]]:
    """Name, memory and driver of each NVIDIA GPU; none where its tool does not answer."""
    fields = ("name", "memory.total", "driver_version")
    command = ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    rows = [line.split(", ") for line in done.stdout.splitlines()]
    return [dict(zip(fields, row, strict=True)) for row in rows if len(row) == len(fields)]


def libraries() -> dict[str, str]:
    """Versions of those that are installed and take part."""
    found = {}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def mounts() -> list[Mount]:
    """Every mounted file system."""
    try:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return []
    return [mount for line in lines if (mount := parse_mount(line)) is not None]


def parse_mount(line: str) -> Mount | None:
    """A line of ``/proc/PID/mountinfo`` (see proc(5)): point, type and options."""
    before, dash, after = line.partition(" - ")
    left, right = before.split(), after.split()
    if not dash or len(left) < 6 or not right:
        return None
    point = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), left[4])
    return Mount(Path(point), right[0], left[5])


def mount_of(path: Path, table: Iterable[Mount]) -> Mount | None:
    """The mount that ``path``, absolute, lies on: the deepest, and of equals the last."""
    found = None
    for mount in table:
        deeper = found is None or len(mount.point.parts) >= len(found.point.parts)
        if path.is_relative_to(mount.point) and deeper:
            found = mount
    return found


def file_system(path: Path) -> str:
    """The type of file system that ``path`` lies on, ``unknown`` where it cannot be told."""
    mount = mount_of(path.resolve(), mounts())
    return mount.file_system if mount else "unknown"


def _target(path: Path) -> dict[str, Any]:
    mount = mount_of(path.resolve(), mounts())
    described: dict[str, Any] = {
        "file_system": mount.file_system if mount else "unknown",
        "mount_options": mount.options if mount else "",
    }
    try:
        usage = psutil.disk_usage(str(path))
    except OSError:
        return described
    return {**described, "total_bytes": usage.total, "free_bytes": usage.free}
