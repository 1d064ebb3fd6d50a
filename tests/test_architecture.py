"""Checks which room of a package may import which."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# Data pass from the first line to the last: a room imports only from rooms before it.
ORDER = {
    "dataprep": (
        # Small modules that every room may use.
        *("_version", "errors", "name_encoding", "credentials", "message_text"),
        *("threaded_map", "registry", "schema"),
        "machine",
        "image",
        "stores",
        "formats",
        "output",
        "labels",
        "sources",
        "config",
        "job",
        "reading",
        "checking",
        "drawn",
        *("cli", "__main__"),
    ),
    "iobench": (
        *("errors", "clock", "settings", "plug_ins"),
        "results",
        "machine",
        "servers",
        "data",
        "loaders",
        "consumers",
        "probes",
        "trials",
        "config",
        "analysis",
        "report",
        "runner",
        "watching",
        "selftest",
        *("cli", "__main__", "demo"),
    ),
}
PURE = {"image", "name_encoding", "message_text", "schema", "credentials"}
PURE |= {"output/keys", "output/manifest", "reading/epoch_order"}
PURE |= {
    f"formats/{name}"
    for name in (
        "example",
        "features",
        "layout",
        "payload_writer",
        "protobuf",
        "protocol",
        "recordio",
    )
}
PURE |= {"formats/tfrecord", "formats/webdataset"}
PURE_BENCH = {"analysis", "report", "config/plan", "data/pixels", "trials/ladder", "trials/spans"}
PURE_BENCH |= {
    f"results/{name}" for name in ("statistics", "numbers", "badges", "wording", "host_sums")
}
PURE_BENCH |= {f"machine/{name}" for name in ("coldness", "storage_kinds", "usage")}
IMPURE = {"boto3", "botocore", "dask", "distributed", "pathlib", "shutil", "socket", "subprocess"}
IMPURE |= {"tempfile", "threading", "concurrent", "time", "random", "multiprocessing"}
FRAMEWORKS = {"tensorflow", "mxnet", "torch"}
# These modules may import a framework, each when it is used or on request.
ADAPTERS = {"frameworks", "mxnet", "mxnet_compat", "normalisation", "tensorflow", "torch"}
ADAPTERS |= {"torch_epochs"}


def modules(package: str) -> list[Path]:
    """Every Python file of a package."""
    return sorted((ROOT / package).rglob("*.py"))


def room(path: Path) -> str:
    """The room below the package that a file belongs to."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return parts[1]


def imports(path: Path) -> Iterator[str]:
    """The dotted names that a file imports anywhere."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def package(path: Path) -> str:
    """``dataprep`` or ``iobench``."""
    return path.relative_to(ROOT).parts[0]


def rooms_imported(path: Path) -> set[str]:
    """The rooms of its own package that a file imports."""
    here = package(path)
    names = [name.split(".") for name in imports(path)]
    return {parts[1] for parts in names if parts[0] == here and len(parts) > 1} & set(ORDER[here])


# The __init__.py of a package names every room, and imports it lazily.
ROOMS = [path for name in ORDER for path in modules(name) if path.parent != ROOT / name]
ROOMS += [path for name in ORDER for path in (ROOT / name).glob("*.py") if path.stem != "__init__"]


@pytest.mark.parametrize("path", ROOMS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_room_imports_only_from_rooms_before_it(path: Path) -> None:
    """A room imports only from rooms before it in the order of ARCHITECTURE.md."""
    order = ORDER[package(path)]
    here = order.index(room(path))
    back = {name for name in rooms_imported(path) if order.index(name) > here}
    assert not back, f"{path.relative_to(ROOT)} imports {sorted(back)}, which come after it"


@pytest.mark.parametrize("path", modules("dataprep"), ids=lambda path: str(path.relative_to(ROOT)))
def test_dataprep_knows_nothing_of_iobench_or_of_frameworks(path: Path) -> None:
    """dataprep imports no iobench, and only a few modules import a training framework."""
    roots = {name.split(".")[0] for name in imports(path)}
    assert "iobench" not in roots
    if not (room(path) == "reading" and path.stem in ADAPTERS):
        assert not roots & FRAMEWORKS


def pure_modules(package: str, pure_names: set[str]) -> Iterator[Path]:
    """Every module that is listed above, or whose docstring begins with ``PURE.``"""
    for path in modules(package):
        docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
        is_listed = {room(path), f"{room(path)}/{path.stem}"} & pure_names
        if is_listed or docstring.startswith("PURE."):
            yield path


@pytest.mark.parametrize(
    "path",
    [*pure_modules("dataprep", PURE), *pure_modules("iobench", PURE_BENCH)],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_pure_rooms_touch_no_file_clock_or_network(path: Path) -> None:
    """A module that is PURE imports no module for files, clocks or networks."""
    assert not {name.split(".")[0] for name in imports(path)} & IMPURE


def test_every_room_has_its_place_in_the_order() -> None:
    """Every room, including a new one, has a place in the order."""
    for name, order in ORDER.items():
        assert {room(path) for path in modules(name)} - {"__init__"} == set(order)


def test_no_module_is_named_for_nothing() -> None:
    """No module is named utils, helpers, common or misc."""
    names = {path.stem for package in ("dataprep", "iobench") for path in modules(package)}
    assert not names & {"utils", "util", "helpers", "helper", "common", "misc"}


def test_architecture_names_files_that_exist() -> None:
    """A file that ARCHITECTURE.md names is in one of the two packages, or at the path given."""
    page = (ROOT / "ARCHITECTURE.md").read_text()
    named = set(re.findall(r"`((?:\w+/)+\w+\.py)\b", page))
    assert len(named) > 30
    missing = [
        name
        for name in sorted(named)
        if not any((ROOT / folder / name).exists() for folder in ("", "dataprep", "iobench"))
    ]
    assert not missing


@pytest.mark.parametrize(
    "page", sorted((ROOT / "docs").glob("*.md")), ids=lambda path: str(path.stem)
)
def test_pages_name_files_of_the_packages_that_exist(page: Path) -> None:
    """A page that names a file of one of the packages gives its present path."""
    named = re.findall(r"`((?:dataprep|iobench|benchmarks)/(?:\w+/)*\w+\.py)\b", page.read_text())
    assert [name for name in sorted(set(named)) if not (ROOT / name).exists()] == []
