"""The machine and the libraries, without a name of host, user or account."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil

from dataprep._version import __version__
from iobench.memory import memory_bytes
from iobench.mounts import mount_of, mounts

_LIBRARIES = (
    *("numpy", "simplejpeg", "opencv-python-headless", "pillow", "crc32c", "boto3", "obstore"),
    *("torch", "tensorflow", "tensorflow-cpu", "mxnet", "moto"),
)


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
