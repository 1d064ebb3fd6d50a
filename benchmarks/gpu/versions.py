"""Print the machine, and every package that Python finds on it.

The first lines are the requirements of this package that the container image does not fulfil. The
kit is installed without its dependencies, because an image may have OpenCV under another name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distributions, requires, version

from packaging.requirements import Requirement

from benchmarks.gpu.build import NAME
from iobench.machine.environment import describe


def unfulfilled() -> Iterator[str]:
    """Yield each requirement of this package that is missing or has another version."""
    for line in requires(NAME) or ():
        requirement = Requirement(line)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        try:
            installed = version(requirement.name)
        except PackageNotFoundError:
            yield f"{requirement}: not installed under this name"
            continue
        if not requirement.specifier.contains(installed, prereleases=True):
            yield f"{requirement}: {installed} is installed"


def main() -> None:
    """Print the requirements that are not fulfilled, the machine and the packages."""
    for line in unfulfilled():
        print(f"unfulfilled: {line}")
    print(json.dumps(describe({}), indent=1))
    packages = {package.metadata["Name"]: package.version for package in distributions()}
    for name in sorted(packages, key=str.lower):
        print(f"{name}=={packages[name]}")


if __name__ == "__main__":
    main()
