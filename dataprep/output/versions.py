"""The versions of libraries that determine the bytes of an output, and of other libraries."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, version

from dataprep._version import __version__
from dataprep.errors import JobError

PIPELINE = 5
"""The version of the conversion. It is increased when the same source gives other bytes."""

# Names of packages on PyPI.
_CODECS = ("simplejpeg", "opencv-python-headless", "pillow")
_FRAMEWORKS = ("torch", "tensorflow", "tensorflow-cpu", "mxnet", "nvidia-dali-cuda120")
_OTHER_LIBRARIES = ("numpy", "dask", "distributed", "boto3", "pyarrow")


@lru_cache(maxsize=2)
def versions_that_determine_bytes(*, same_everywhere: bool = True) -> tuple[tuple[str, str], ...]:
    """The names and versions of all software that determines the bytes of an output.

    They are part of the fingerprint of a job.

    Args:
        same_everywhere: whether the bytes are the same on every processor. If not, the architecture
            and the vector instructions of this processor are included.
    """
    versions = {"pipeline": str(PIPELINE)}
    for name in _CODECS:
        versions[name] = version(name)
    versions["resizer"] = resizer()
    if not same_everywhere:
        import cv2  # imported here, because the import is slow and rarely needed

        versions["processor"] = f"{platform.machine()} {cv2.getCPUFeaturesLine()}".strip()
    return tuple(versions.items())


@cache
def resizer() -> str:
    """The name and version of the library with which ``image.resize`` resizes images here.

    The version of NumPy is left out, because all versions add integers in the same way.
    """
    try:
        import cykooz_resizer  # noqa: F401  imported here, because it imports Pillow
    except ImportError:
        return "numpy"
    return f"cykooz-resizer {version('cykooz-resizer')}"


def resizer_difference(planned: Mapping[str, str]) -> str:
    """Describe how the resizer of this machine differs from that of a job; empty if they are equal.

    Jobs of earlier versions do not name their resizer. It gave the same pixels as cykooz-resizer.

    Args:
        planned: the versions with which the job was planned.
    """
    own_resizer = resizer()
    default = own_resizer if own_resizer.startswith("cykooz-resizer") else "cykooz-resizer"
    planned_resizer = planned.get("resizer", default)
    if planned_resizer == own_resizer:
        return ""
    return (
        f"planned with the resizer {planned_resizer}, but {platform.node()} has {own_resizer}: a "
        f"job keeps to one resizer; use machines with {planned_resizer}"
    )


def installed_libraries() -> str:
    """Two lines with the versions of the codecs and of the frameworks that are installed."""
    codecs = [f"{name} {version(name)}" for name in _CODECS]
    codecs.append(resizer())
    frameworks = []
    for name in _FRAMEWORKS:
        try:
            frameworks.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return f"codecs: {', '.join(codecs)}\nframeworks: {', '.join(frameworks) or 'none'}"


def informative_versions() -> dict[str, str]:
    """The versions of libraries that do not determine the bytes, for information."""
    versions = {"dataprep-iobench": __version__, "python": platform.python_version()}
    for name in _OTHER_LIBRARIES:
        versions[name] = version(name)
    return versions


def require_versions(planned: tuple[tuple[str, str], ...]) -> None:
    """Raise an error unless this machine has the libraries with which the job was planned.

    Args:
        planned: the names and versions of these libraries.

    Raises:
        JobError: versions differ; the error names the differences.
    """
    resizer_problem = resizer_difference(dict(planned))
    if resizer_problem:
        raise JobError(f"the job was {resizer_problem}")
    same_everywhere = "processor" not in dict(planned)
    own_versions = dict(versions_that_determine_bytes(same_everywhere=same_everywhere))
    differences = []
    for name, planned_version in planned:
        own_version = own_versions.get(name, "missing")
        if own_version != planned_version:
            differences.append(f"{name} {own_version} instead of {planned_version}")
    if differences:
        raise JobError(
            f"worker {platform.node()} has {', '.join(differences)}: its bytes would differ from "
            "those of the other workers: install the same versions everywhere"
        )
