"""Build the GPU kit: ``python -m benchmarks.gpu.build --to build/gpu-kit``, or ``make gpu-kit``.

The folder has photographs, these benchmarks, an example, ``run.sh``, and wheels of this package and
of its dependencies. Dependencies that a container image with PyTorch has are left out. The wheels
are for Linux on x86-64, in the versions of ``constraints/bare.txt``. They come from the package
index that pip is configured for.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import dataprep
from benchmarks.workplace import files_below

ROOT = Path(__file__).parents[2]
NAME = "dataprep-iobench"
EXTRAS = "gpu"

BROUGHT = frozenset({"numpy", "pandas", "pyarrow", "opencv-python-headless", "pillow", "scipy"})
"""Dependencies that a container image with PyTorch has. The kit has no wheels of them."""

MOST_BYTES = 60_000_000
"""The maximum size of the folder, because it is copied to the machine by hand."""

PHOTOS = 300
"""The maximum number of photographs in the kit."""

SIZE = 256
"""The short side of each photograph in pixels."""

_PLATFORMS = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_24", "manylinux_2_17")
_OLD_PLATFORMS = ("manylinux2014", "manylinux2010", "manylinux1", "linux")
"""Platforms whose names do not have the version of glibc."""


class BuildFailed(Exception):
    """The kit cannot be built. The message has the reason."""


def build(target: Path, pythons: Sequence[str], photos: Path | None) -> int:
    """Build the kit. Returns its size in bytes.

    Args:
        target: the folder of the kit. An earlier kit in it is replaced.
        pythons: the versions of Python on the machine, such as ``3.12``.
        photos: class folders of photographs; None to draw images.

    Raises:
        BuildFailed: pip failed, no photograph can be read, or the kit is too large.
    """
    kit = target.with_name(f"{target.name}.new")
    shutil.rmtree(kit, ignore_errors=True)
    kit.mkdir(parents=True)
    _write_wheels(kit, pythons)
    if photos is not None:
        write_photos(photos, kit / "photos")
    else:
        from dataprep.drawn import draw_tree

        with tempfile.TemporaryDirectory() as folder:
            drawn = draw_tree(Path(folder) / "drawn", images=PHOTOS, classes=20).root
            write_photos(drawn, kit / "photos")
    _copy_programs(kit)
    size_bytes = sum(path.stat().st_size for path in files_below(kit))
    if size_bytes > MOST_BYTES:
        raise BuildFailed(
            f"the kit has {size_bytes / 1e6:.1f} MB, more than {MOST_BYTES / 1e6:.0f}: build it "
            f"for fewer versions of Python, or with smaller photographs; see {kit}"
        )
    if target.exists():
        shutil.rmtree(target)
    kit.rename(target)
    return size_bytes


def write_photos(source: Path, target: Path) -> int:
    """Write up to ``PHOTOS`` photographs with a short side of ``SIZE`` pixels.

    Every n-th file below ``source`` is taken, in the order of their paths, until there are enough;
    n is the number of files / ``PHOTOS``, rounded down, and at least 1. Files that are not images
    are left out. Returns the number of photographs.

    Raises:
        BuildFailed: there is no photograph.
    """
    files = files_below(source)
    policy = dataprep.ImagePolicy(size=SIZE)
    count = 0
    for path in files[:: max(1, len(files) // PHOTOS)]:
        if count == PHOTOS:
            break
        try:
            converted = dataprep.convert(path.read_bytes(), policy)
        except dataprep.ImageError:
            continue
        folder = target / path.parent.name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{count:03d}.jpg").write_bytes(converted.data)
        count += 1
    if not count:
        raise BuildFailed(f"no photograph below {source}: give class folders")
    return count


def _write_wheels(kit: Path, pythons: Sequence[str]) -> None:
    """Write the wheels, and a list of them for each version of Python."""
    wheels = kit / "wheels"
    _pip("wheel", ["--no-deps", "--wheel-dir", wheels, ROOT])
    (own,) = wheels.iterdir()
    for python in pythons:
        versions = dict(_resolved(own, python))
        packed = [f"{name}=={version}" for name, version in sorted(versions.items())]
        requirements = kit / f"requirements-{python}.txt"
        requirements.write_text("".join(f"{line}\n" for line in packed))
        folders = ["--dest", str(wheels), "--find-links", str(wheels)]
        _pip("download", ["--no-deps", *folders, "-r", str(requirements), *_for_python(python)])


def _resolved(wheel: Path, python: str) -> Iterator[tuple[str, str]]:
    """Yield name and version of each required package that the container image does not have."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        arguments = [
            *("--dry-run", "--ignore-installed", "--report", str(report)),
            *("--target", str(Path(folder) / "site"), *_for_python(python)),
            *("--constraint", str(ROOT / "constraints" / "bare.txt")),
            f"{NAME}[{EXTRAS}] @ {wheel.resolve().as_uri()}",
        ]
        _pip("install", arguments)
        packages = json.loads(report.read_text())["install"]
    for package in packages:
        name = package["metadata"]["name"].lower().replace("_", "-").replace(".", "-")
        if name not in BROUGHT:
            yield name, package["metadata"]["version"]


def _for_python(python: str) -> Iterator[str]:
    """Yield the options of pip for wheels of a version of Python on Linux, x86-64."""
    yield from ("--python-version", python, "--implementation", "cp", "--only-binary", ":all:")
    for platform in (*_PLATFORMS, *_OLD_PLATFORMS):
        yield from ("--platform", f"{platform}_x86_64")


def _pip(command: str, arguments: Sequence[str | Path]) -> None:
    """Run a command of pip without its output.

    Raises:
        BuildFailed: pip failed. The message has the last line of its output.
    """
    program = [sys.executable, "-m", "pip", command, "--quiet", "--disable-pip-version-check"]
    done = subprocess.run(
        [*program, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise BuildFailed(f"pip {command} failed: {lines[-1]}")


def _copy_programs(kit: Path) -> None:
    """Copy the programs that run on the machine."""
    here = Path(__file__).parent
    unneeded = shutil.ignore_patterns("__pycache__")
    shutil.copytree(here.parent, kit / "benchmarks", ignore=unneeded)
    (kit / "examples").mkdir()
    shutil.copy(ROOT / "examples" / "train_ddp.py", kit / "examples")
    for name in ("run.sh", "README.md"):
        (kit / "benchmarks" / here.name / name).rename(kit / name)


def main() -> None:
    """Build the kit, and print its size."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu.build")
    parser.add_argument("--to", type=Path, required=True, help="the folder to build")
    parser.add_argument(
        "--for-python",
        action="append",
        metavar="VERSION",
        help="a version of Python on the machine; may be repeated (default: 3.11 and 3.12)",
    )
    parser.add_argument(
        "--photos", type=Path, help="your own photographs (default: images are drawn)"
    )
    options = parser.parse_args()
    if options.to.exists() and not (options.to / "run.sh").exists():
        parser.error(f"--to {options.to} exists and is no kit: name another folder")
    if options.photos is not None and not options.photos.is_dir():
        parser.error(f"--photos {options.photos} is no folder")
    try:
        size_bytes = build(options.to, options.for_python or ["3.11", "3.12"], options.photos)
    except BuildFailed as error:
        raise SystemExit(f"gpu-kit: {error}") from None
    print(f"{options.to}: {size_bytes / 1e6:.1f} MB; on the machine: bash {options.to.name}/run.sh")


if __name__ == "__main__":
    main()
