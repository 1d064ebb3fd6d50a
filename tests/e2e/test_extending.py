"""The package of docs/extending.md is taken from the page, installed, measured and reported."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from iobench.results.trial import Trial
from iobench.runner.run_folder import read
from tests.commandline import Finished, dataprep, iobench
from tests.installed import Package, pyproject

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "extending.md").read_text()


def files_of(page: str) -> dict[str, str]:
    """The files of a page, by the name in the paragraph before each block."""
    text_of_file: dict[str, str] = {}
    for block in re.finditer(r"\n\n([^\n]*):\n\n(?:<!--[^\n]+\n)?```\w+\n(.*?)```", page, re.S):
        names = re.findall(r"`([\w./]+\.\w+)`", block[1])
        text_of_file |= {names[0]: block[2]} if names else {}
    return text_of_file


FILES = files_of(PAGE)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Package:
    """The installed package of the page."""
    return Package(tmp_path_factory.mktemp("shelf"), FILES, SHELF_TOKEN="anything")


class Measured:
    """The config of the page with shorter trials and small data."""

    def __init__(self, package: Package, folder: Path, data: dict[str, Any]) -> None:
        values = yaml.safe_load(FILES["shelf.yaml"])
        values |= {"repeats": 1, "data": data}
        values["loaders"][0]["seconds"] = 0.1
        values["loaders"][0]["batch_size"] = 4
        values["object_store"] |= {"seconds": 0.2, "connections": 2, "at_connections": 2}
        self.config = folder / "shelf.yaml"
        self.config.write_text(yaml.safe_dump(values))
        self.folder = folder / "run"
        self.package = package
        self.done = self.run("--output", self.folder)

    def run(self, *arguments: str | Path) -> Finished:
        """Run ``iobench run`` with this config."""
        return iobench("run", self.config, *arguments, env=self.package.env)

    def of(self, key: str, name: str) -> list[Trial]:
        """The trials of a loader or client."""
        return [trial for trial in read(self.folder).trials if trial.params.get(key) == name]


@pytest.fixture(scope="module")
def measured(package: Package, tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """The one run that the tests examine."""
    data_folder = tmp_path_factory.mktemp("data")
    data = {"images": 40, "classes": 2, "size": 64, "shard_size": "1MB"}
    return Measured(package, tmp_path_factory.mktemp("run"), {**data, "folder": str(data_folder)})


def test_the_page_has_them_all() -> None:
    """The page has six files, each under its name, and one of them is the config."""
    assert set(FILES) == {
        "pyproject.toml",
        "shelf_iobench/loader.py",
        "shelf_iobench/client.py",
        "shelf_iobench/format.py",
        "shelf_iobench/store.py",
        "shelf.yaml",
    }


def test_they_are_measured(measured: Measured) -> None:
    """The plug-ins are measured in their own processes, beside loaders of this package."""
    assert measured.done.code == 0, measured.done.err
    (loader,) = measured.of("loader", "one-by-one")
    assert (loader.status, loader.reason) == ("done", "")
    assert loader.metrics["samples_per_s"] > 0
    assert loader.metrics["mb_per_s"] > 0
    assert loader.metrics["notes"] == ["one thread, nothing decoded"]
    clients = measured.of("client", "plain-http")
    assert {trial.params["operation"] for trial in clients} == {"get", "put"}
    for trial in clients:
        assert (trial.status, trial.reason) == ("done", "")
        assert trial.metrics["bytes"] == 100_000 * trial.metrics["requests"] > 0


def test_the_report_names_them_and_their_package(measured: Measured) -> None:
    """The report names the plug-ins in its figures, and their package with the machine."""
    brought = read(measured.folder).environment["from other packages"]
    assert brought == {
        "loader one-by-one": "shelf-iobench 1.0",
        "object-store client plain-http": "shelf-iobench 1.0",
    }
    page = (measured.folder / "report.html").read_text()
    for text in ("one-by-one", "plain-http", "shelf-iobench 1.0"):
        assert text in page


def test_a_dry_run_names_them(measured: Measured) -> None:
    """A dry run names the plug-ins as text and as JSON."""
    output = measured.run("--dry-run").out
    assert "one-by-one" in output.splitlines()[2]
    assert "  loader one-by-one: provided by shelf-iobench 1.0" in output
    assert "  object-store client plain-http: provided by shelf-iobench 1.0" in output
    content = json.loads(measured.run("--dry-run", "--json").out)
    assert content["from_other_packages"]["loader one-by-one"] == "shelf-iobench 1.0"


def test_without_the_package_the_name_is_unknown(measured: Measured) -> None:
    """The error lists the names that exist."""
    done = iobench("run", measured.config, "--dry-run", env={"PYTHONPATH": str(ROOT)})
    assert done.code == 2
    assert "no loader 'one-by-one': use one of" in done.complaints[0]


def test_its_store_is_read_by_its_scheme(measured: Measured, tmp_path: Path) -> None:
    """The loader reads shards in its store by the scheme. S3 clients are skipped with a reason."""
    data_path = Path(read(measured.folder).config["data"]["folder"])
    (shards,) = data_path.glob("shards-*.complete")
    values = {
        "name": "far",
        "repeats": 1,
        "data": {"shards": f"shelf://{shards.with_suffix('')}", "folder": str(tmp_path / "data")},
        "loaders": [
            {"loader": "one-by-one", "data": "shards@s3", "workers": 0, "batch_size": 4}
            | {"seconds": 0.1}
        ],
        "object_store": {
            "targets": [{"label": "shelf", "uri": f"shelf://{tmp_path / 'shelf'}"}],
            "clients": "boto3",
            "operations": "get",
            "object_bytes": 1000,
            "connections": 1,
        },
    }
    path = tmp_path / "far.yaml"
    path.write_text(yaml.safe_dump(values))
    done = iobench("run", path, "--output", tmp_path / "run", env=measured.package.env)
    assert done.code == 0, done.err
    by_kind = {trial.kind: trial for trial in read(tmp_path / "run").trials}
    assert by_kind["loader"].status == "done", by_kind["loader"].reason
    assert by_kind["loader"].cold is not None
    assert by_kind["loader"].cold.label == "server cache unknown"
    assert by_kind["object"].status == "skipped"
    assert "client 'boto3' works with S3 only" in by_kind["object"].reason


SAME_FRAMING = """
from dataprep.formats.tfrecord import TFRecordFormat

class Mine(TFRecordFormat):
    name = "mine"
"""
EARLIER = """
class Early:
    name, extension = "early", ""

    def default_label_offset(self, are_synsets, layout=None):
        return 0
"""
FORMATS = {
    "pyproject.toml": pyproject(
        "mine", {"dataprep.formats": {"mine": "mine:Mine", "early": "mine:Early"}}
    ),
    "mine.py": SAME_FRAMING + EARLIER,
}


class Sharded:
    """Shards in a format of another package, and commands that can import the package."""

    def __init__(self, name: str, package: Package, tree: Path, folder: Path) -> None:
        self.name, self.package, self.output = name, package, folder / "out"
        sizes = ("--size", "64", "--shard-size", "1MB", "--workers", "1")
        done = self.run(
            "shard", "--source", tree, "--output", self.output, "--format", name, *sizes
        )
        assert done.code == 0, done.err
        (self.shard,) = (self.output / name).iterdir()

    def run(self, *arguments: str | Path) -> Finished:
        """Run ``dataprep`` with these arguments."""
        return dataprep(*arguments, env=self.package.env)

    def python(self, program: str) -> str:
        """The output of a Python program."""
        done = subprocess.run(
            [sys.executable, "-c", program, str(self.output)],
            env={**os.environ, **self.package.env},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout


@pytest.fixture(scope="module", params=["pictures", "mine"])
def sharded(
    request: pytest.FixtureRequest,
    package: Package,
    tree: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Sharded:
    """Shards in the format of the page, and in a format with the framing of TFRecord."""
    folder = tmp_path_factory.mktemp("formats")
    if request.param == "mine":
        package = Package(folder / "mine", FORMATS)
    return Sharded(request.param, package, tree, folder)


class TestFormat:
    """A record format of another package."""

    @pytest.mark.parametrize("depth", [(), ("--deep",)])
    def test_it_is_verified(self, sharded: Sharded, depth: tuple[str, ...]) -> None:
        """``verify`` checks the trailer too. An additional byte behind it is a fault."""
        assert sharded.run("verify", sharded.output, *depth).code == 0
        content = sharded.shard.read_bytes()
        sharded.shard.write_bytes(content + b"x")
        assert sharded.run("verify", sharded.output, *depth).code == 1
        sharded.shard.write_bytes(content)

    def test_it_is_read_at_random(self, sharded: Sharded) -> None:
        """Reading by number, from start to end and in batches gives the same samples."""
        program = """
import sys, dataprep
from dataprep.reading.record_reader import Records
with dataprep.open(sys.argv[1]) as dataset:
    everything = [bytes(sample.image) for sample in dataset]
    single = [dataset[i].image for i in range(len(dataset))]
    batch = [bytes(image) for image in Records(dataset).fetch([*range(len(dataset))])]
    print(dataset.format, len(dataset), everything == single == batch)
"""
        assert sharded.python(program).split() == [sharded.name, "120", "True"]

    def test_it_is_staged(self, sharded: Sharded, tmp_path: Path) -> None:
        """A staged copy has the shards of the format, and its indexes if it has some."""
        done = sharded.run("stage", sharded.output, tmp_path / "copy", "--format", sharded.name)
        assert done.code == 0, done.err
        copied = tmp_path / "copy" / sharded.name / sharded.shard.name
        assert copied.read_bytes() == sharded.shard.read_bytes()
        assert (tmp_path / "copy" / "index").exists() == (sharded.name == "mine")
        assert sharded.run("verify", tmp_path / "copy", "--deep").code == 0

    @pytest.mark.parametrize("scanned", [False, True])
    def test_it_is_sharded_again(self, sharded: Sharded, tmp_path: Path, scanned: bool) -> None:
        """An output is sharded again by its tables, and bare shards by a scan.

        Images do not change.
        """
        source = sharded.shard.parent if scanned else sharded.output
        again = ("--kind", "records", "--format", sharded.name, "--output", tmp_path / "again")
        named = ("--set", f"records.format={sharded.name}")
        done = sharded.run("shard", "--source", source, *again, *named, "--workers", "1")
        assert done.code == 0, done.err
        assert "120 photos written, 0 failed" in done.out + done.err
        assert sharded.run("verify", tmp_path / "again").code == 0
        (shard,) = (tmp_path / "again" / sharded.name).iterdir()
        if not scanned:
            assert shard.stat().st_size == sharded.shard.stat().st_size

    def test_inspect_says_its_name(self, sharded: Sharded) -> None:
        """``inspect`` names the format, both for an output and for a shard in an output."""
        content = json.loads(sharded.run("inspect", sharded.shard, "--json").out)
        assert (content["format"], len(content["records"])) == (sharded.name, 120)
        assert content["fault"] is None
        assert all(line["format"] == "JPEG" for line in content["records"])
        assert f"{sharded.name}, labels from" in sharded.run("inspect", sharded.output).out

    def test_the_format_of_the_page_keeps_the_contract(self, package: Package) -> None:
        """The format of the documentation passes the contract of registered formats."""
        suite = ROOT / "tests" / "contracts" / "test_format_contract.py"
        options = ("-q", "-p", "no:cacheprovider", "-k", "[pictures]")
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, str(suite)],
            env={**os.environ, **package.env},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout

    def test_a_format_of_an_earlier_protocol_is_refused(self, tree: Path, tmp_path: Path) -> None:
        """The refusal names the format and the missing methods.

        Other shards can still be inspected.
        """
        env = Package(tmp_path / "mine", FORMATS).env
        done = dataprep("shard", "--source", tree, "--output", "o", "--format", "early", env=env)
        assert done.code == 2
        assert "'early' of mine 1.0 (mine:Early) has no trailer, has_checksums" in done.err
        golden = ROOT / "tests" / "golden" / "webdataset.tar"
        assert dataprep("inspect", golden, env=env).code == 0
