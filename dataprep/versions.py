"""The libraries that determine bytes, and those worth knowing."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, version

from dataprep._version import __version__
from dataprep.errors import JobError

PIPELINE = 5
"""Raised whenever this package makes other bytes of the same source."""

_DETERMINING = ("simplejpeg", "opencv-python-headless", "pillow")
_FRAMEWORKS = ("torch", "tensorflow", "tensorflow-cpu", "mxnet", "nvidia-dali-cuda120")
_INFORMING = ("numpy", "dask", "distributed", "boto3", "pyarrow")


@lru_cache(maxsize=2)
def determining(*, same_everywhere: bool = True) -> tuple[tuple[str, str], ...]:
    """Name and version of what decides the bytes; part of the fingerprint.

    Where bytes are not the same on every processor, its architecture and vector instructions are
    among them.
    """
    versions = {name: version(name) for name in _DETERMINING}
    found = {"pipeline": str(PIPELINE), **versions, "resizer": resizer()}
    if not same_everywhere:
        import cv2  # here, since it is slow to import and rarely needed

        found["processor"] = f"{platform.machine()} {cv2.getCPUFeaturesLine()}".strip()
    return tuple(found.items())


@cache
def resizer() -> str:
    """The library that resizes here: the one that ``image.resize`` imports.

    NumPy without its version: it adds whole numbers.
    """
    try:
        import cykooz_resizer  # noqa: F401  here, since it brings Pillow
    except ImportError:
        return "numpy"
    return f"cykooz-resizer {version('cykooz-resizer')}"


def other_resizer(planned: Mapping[str, str]) -> str:
    """How the resizer here differs from that of a job with such versions; empty if it does not.

    Jobs of earlier versions do not name theirs: it made the pixels of cykooz-resizer.
    """
    here = resizer()
    known = here if here.startswith("cykooz-resizer") else "cykooz-resizer"
    wanted = planned.get("resizer", known)
    if wanted == here:
        return ""
    return (
        f"planned with the resizer {wanted}, but {platform.node()} has {here}: a job keeps to one "
        f"resizer; use machines with {wanted}"
    )


def installed() -> str:
    """The codecs and frameworks of this environment, in two lines."""
    codecs = [f"{name} {version(name)}" for name in _DETERMINING]
    found = []
    for name in _FRAMEWORKS:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    codecs.append(resizer())
    return f"codecs: {', '.join(codecs)}\nframeworks: {', '.join(found) or 'none'}"


def informing() -> dict[str, str]:
    """Versions worth noting that decide nothing."""
    return {
        "dataprep-iobench": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in _INFORMING},
    }


def require_versions(planned: tuple[tuple[str, str], ...]) -> None:
    """Refuse to work with other libraries than the job was planned with.

    Raises:
        JobError: it names the differences.
    """
    if other := other_resizer(dict(planned)):
        raise JobError(f"the job was {other}")
    exact = "processor" not in dict(planned)
    here = dict(determining(same_everywhere=exact))
    different = [
        f"{name} {here.get(name, 'missing')} instead of {wanted}"
        for name, wanted in planned
        if here.get(name) != wanted
    ]
    if different:
        raise JobError(
            f"worker {platform.node()} has {', '.join(different)}: its bytes would differ from "
            "the other workers': install the same versions everywhere"
        )
