"""Broken plug-ins of other packages are reported in a line each, and all others run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from iobench.results.trial import Trial
from iobench.runner.run_folder import read
from tests.commandline import Finished, iobench
from tests.installed import Package, pyproject
from tests.iobench.small_runs import loaders

pytestmark = pytest.mark.slow

MODULE = '''
class Half:
    framework = "none"
    reads = None
    notes = ()

    def __init__(self, *arguments):
        self.arguments = arguments

    def epoch(self, number):
        yield from ()


class Wrong(Half):
    def __init__(self, place):
        """Takes less than it is given."""


class Raising(Half):
    def __init__(self, *arguments):
        raise LookupError("no such\\n  thing \\x1b[2J")


class Untyped(Half):
    def epoch(self, number):
        yield [1, 2], [3, 4]

    def close(self):
        pass


class Shadow(Half):
    def __init__(self, *arguments):
        raise AssertionError("not this one")
'''
LOADERS = {
    "lost": "nowhere_to_be_found:Loader",
    "nameless": "broken_parts:Absent",
    "half": "broken_parts:Half",
    "wrong": "broken_parts:Wrong",
    "raising": "broken_parts:Raising",
    "untyped": "broken_parts:Untyped",
    "null": "broken_parts:Shadow",
}
GROUPS = {
    "iobench.loaders": LOADERS,
    "iobench.consumers": {"half": "broken_parts:Half"},
    "iobench.clients": {"half": "broken_parts:Half", "lost": "nowhere_to_be_found:Client"},
}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Package:
    """An installed package with every broken plug-in."""
    files = {"pyproject.toml": pyproject("broken-parts", GROUPS), "broken_parts.py": MODULE}
    return Package(tmp_path_factory.mktemp("broken"), files)


class Ran:
    """One run of all broken plug-ins beside some of this package."""

    def __init__(self, package: Package, folder: Path) -> None:
        training = {"loader": "mock", "batch_size": 4, "steps": 4, "inputs": ["warm"]}
        values: dict[str, Any] = {
            "name": "broken",
            "repeats": 1,
            "loaders": loaders(*LOADERS, "mock"),
            "data": {"images": 20, "classes": 2, "size": 64, "folder": str(folder / "data")},
            "training": [{**training, "consumer": "half"}],
            "object_store": {
                "clients": ["half", "lost", "boto3"],
                "operations": "get",
                "seconds": 0.1,
                "object_bytes": 1000,
                "at_object_bytes": 1000,
                "connections": 1,
                "at_connections": 1,
            },
        }
        config = folder / "broken.yaml"
        config.write_text(yaml.safe_dump(values))
        self.done: Finished = iobench("run", config, "--output", folder / "run", env=package.env)
        self.dry = iobench("run", config, "--dry-run", env=package.env)
        self.page = (folder / "run" / "report.html").read_text()
        self.trials = read(folder / "run").trials

    def of(self, key: str, name: str) -> Trial:
        """The trial of a loader, consumer or client."""
        (actual,) = [trial for trial in self.trials if trial.params.get(key) == name]
        return actual


@pytest.fixture(scope="module")
def ran(package: Package, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """The one run that all tests examine."""
    return Ran(package, tmp_path_factory.mktemp("ran"))


WHOSE = "of broken-parts 1.0"


@pytest.mark.parametrize(
    ("key", "name", "text"),
    [
        (
            "loader",
            "lost",
            f"loader 'lost' {WHOSE} (nowhere_to_be_found:Loader) cannot be loaded: "
            "ModuleNotFoundError: No module named 'nowhere_to_be_found'",
        ),
        ("loader", "nameless", "(broken_parts:Absent) cannot be loaded: AttributeError: "),
        (
            "loader",
            "half",
            f"loader 'half' {WHOSE} (broken_parts:Half) has no close: see docs/extending.md",
        ),
        ("loader", "wrong", "(broken_parts:Wrong) cannot be created: TypeError: "),
        (
            "loader",
            "raising",
            "(broken_parts:Raising) cannot be created: LookupError: no such",
        ),
        ("loader", "untyped", "the loader yields tuple, not iobench.loaders.Batch"),
        ("consumer", "half", f"consumer 'half' {WHOSE} (broken_parts:Half) has no compute_s, "),
        ("client", "half", f"object-store client 'half' {WHOSE} (broken_parts:Half) has no "),
        ("client", "lost", "(nowhere_to_be_found:Client) cannot be loaded: ModuleNotFoundError"),
    ],
)
def test_each_fails_with_its_name(ran: Ran, key: str, name: str, text: str) -> None:
    """Each failed trial names the package, the entry point and the fault."""
    trial = ran.of(key, name)
    assert trial.status == "failed"
    assert text in trial.reason
    assert "\n" not in trial.reason


def test_the_rest_runs(ran: Ran) -> None:
    """The run ends with exit code 1, and its report has all trials."""
    done = {trial.id.split(",")[0] for trial in ran.trials if trial.status == "done"}
    assert done == {"loader/loader=mock", "loader/loader=null", "object/store=s3"}
    assert ran.done.code == 1
    assert "Traceback" not in ran.done.err
    assert "No module named &#39;nowhere_to_be_found&#39;" in ran.page.replace("&#x27;", "&#39;")


def test_a_name_of_this_packages_own_is_its_own(ran: Ran) -> None:
    """A plug-in with a name of this package is ignored, which the run and the dry run report."""
    assert ran.of("loader", "null").status == "done"
    line = "loader 'null' of broken-parts 1.0 is ignored: this package has the same name"
    assert line in ran.done.err
    assert f"warning: {line}" in ran.dry.out
    assert ran.dry.code == 0


def test_two_packages_with_one_name_are_refused(package: Package, tmp_path: Path) -> None:
    """If two packages register one name, using the name is refused with both packages."""
    groups = {"iobench.loaders": {"half": "others:Half"}}
    files = {"pyproject.toml": pyproject("others", groups, "2.0"), "others.py": MODULE}
    other = Package(tmp_path / "other", files)
    env = {"PYTHONPATH": f"{package.folder}:{other.env['PYTHONPATH']}"}
    config = tmp_path / "config.yaml"
    data = {"folder": str(tmp_path / "data")}
    config.write_text(yaml.safe_dump({"repeats": 1, "data": data, "loaders": loaders("half")}))
    done = iobench("run", config, "--dry-run", env=env)
    assert done.code == 2
    (line,) = done.complaints
    assert "two packages have a loader 'half'" in line
    for whose in ("broken-parts 1.0 (broken_parts:Half)", "others 2.0 (others:Half)"):
        assert whose in line
    config.write_text(yaml.safe_dump({"repeats": 1, "data": data, "loaders": loaders("null")}))
    assert iobench("run", config, "--dry-run", env=env).code == 0
