"""The options of ``dataprep``'s commands: their effect, their help and their refusals."""

from __future__ import annotations

import json
import re
from importlib.metadata import entry_points
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from dataprep.cli.main import app
from tests.commandline import in_process
from tests.small_photos import photos

COMMANDS = ("plan", "shard", "finalize", "verify", "inspect", "sample", "init", "schema")


def invoked(*arguments: str | Path) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def options(command: str) -> set[str]:
    """The options in the help of a command."""
    return set(re.findall(r"^  (--[a-z-]+)", invoked(command, "--help").stdout, re.M))


def test_help_lists_the_commands() -> None:
    """The help has one line for each command."""
    lines = invoked("--help").stdout.splitlines()
    for command in COMMANDS:
        (line,) = [line for line in lines if line.startswith(f"  {command} ")]
        assert len(line) < 79


def test_plan_takes_the_options_of_shard() -> None:
    """plan has all options of shard that describe the output. Each has further ones of its own."""
    of_plan, of_shard = options("plan"), options("shard")
    assert of_plan - of_shard == {"--readers", "--prices"}
    extra = {"--overwrite", "--retry-failed", "--takeover", "--part", "--print-config"}
    assert of_shard - of_plan == extra
    overrides = "source kind output split format mode size quality shard-size layout boxes seed"
    overrides += " validation workers max-failures endpoint-url set"
    assert {f"--{name}" for name in overrides.split()} <= of_plan & of_shard


def test_help_shows_the_usual_options_first() -> None:
    """The first section has the ten usual options, and other sections follow."""
    first = invoked("shard", "--help").stdout.split("Options:")[1].split("\n\n")[0]
    flags = re.findall(r"^  (--[a-z-]+)", first, re.M)
    assert len(flags) == 10
    assert {"--source", "--output", "--format", "--size"} <= set(flags)


def test_help_names_every_kind_of_source() -> None:
    """The help lists the registered kinds of this package."""
    registered = entry_points(group="dataprep.sources")
    own = {entry.name for entry in registered if entry.value.startswith("dataprep.")}
    assert "ilsvrc" in own
    assert own <= set(re.findall(r"\w+", invoked("shard", "--help").stdout))


@pytest.mark.parametrize(
    ("arguments", "key", "value"),
    [
        (["--source", "photos"], "source", "photos"),
        (["--output", "s3://b/x"], "output", "s3://b/x"),
        (["--kind", "flat"], "kind", "flat"),
        (["--split", "validation"], "split", "validation"),
        (["--format", "recordio"], "format", ["recordio"]),
        (["--format", "recordio", "--format", "tfrecord"], "format", ["recordio", "tfrecord"]),
        (["--mode", "long"], "image.mode", "long"),
        (["--size", "32"], "image.size", 32),
        (["--size", "32x16", "--mode", "crop"], "image.size", [32, 16]),
        (["--quality", "80"], "image.quality", 80),
        (["--shard-size", "5MB"], "shard_size", 5_000_000),
        (["--layout", "tfds"], "layout", "tfds"),
        (["--boxes", "boxes.csv"], "boxes.source", "boxes.csv"),
        (["--seed", "0"], "seed", 0),
        (["--validation", "5%"], "validation", "5%"),
        (["--workers", "3"], "dask.workers", 3),
        (["--scheduler", "tcp://h:1"], "dask.scheduler", "tcp://h:1"),
        (["--max-failures", "unlimited"], "max_failures", "unlimited"),
        (["--unlabelled"], "unlabelled", True),
        (["--endpoint-url", "http://h:1"], "store.endpoint_url", "http://h:1"),
        (["--set", "dask.retries=1"], "dask.retries", 1),
        (["--seed", "4", "--set", "seed=5"], "seed", 5),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, list) else "",
)
def test_an_option_overrides_the_file(
    tmp_path: Path, arguments: list[str], key: str, value: object
) -> None:
    """``--print-config`` prints the file with defaults, and with options in place of its values."""
    file = tmp_path / "job.yaml"
    file.write_text("source: a\noutput: b\nseed: 3\nimage: {size: 64}\n")
    done = invoked("shard", file, *arguments, "--print-config")
    assert done.exit_code == 0, done.stderr
    printed = yaml.safe_load(done.stdout)
    for part in key.split("."):
        previous, printed = printed, printed[part]
    assert previous[part] == value


@pytest.mark.parametrize("command", ["plan", "shard"])
@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "source is missing: give --source or the key in a config file; output is missing"),
        (
            ["--source", "a", "--output", "b", "--shard-size", "4GiB"],
            "--shard-size 4GiB: shards are 1 MB to 128 MB",
        ),
        (["--source", "a", "--output", "b", "--size", "big"], "--size big: give a whole number"),
        (["--source", "a", "--output", "b", "--set", "a"], "--set a: write KEY=VALUE"),
    ],
    ids=["missing", "range", "size", "set"],
)
def test_a_wrong_option_is_one_line(command: str, arguments: list[str], line: str) -> None:
    """A wrong option is one line with its name, and exit code 2."""
    done = invoked(command, *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"dataprep: {line}")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["shard", "finalize"])
def test_no_limit_of_failures_has_one_name(tmp_path: Path, command: str) -> None:
    """``none`` is refused because it could mean 0 as well, and the message explains the values."""
    photos(tmp_path / "photos", {"cat": 1})
    output = str(tmp_path / "out")
    job = [output]
    if command == "shard":
        job = ["--source", str(tmp_path / "photos"), "--output", output]
    (line,) = in_process(command, *job, "--max-failures", "none", code=2).complaints
    assert "give 0 to allow no failure, or unlimited to allow any number" in line
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "options",
    [
        ["--overwrite", "--retry-failed"],
        ["--part", "0/2", "--overwrite"],
        ["--part", "0/2", "--retry-failed"],
        ["--part", "2/2"],
    ],
    ids=" ".join,
)
def test_options_that_exclude_each_other(tmp_path: Path, options: list[str]) -> None:
    """Options that exclude each other are refused before anything is read or written."""
    done = invoked("shard", "--source", "nowhere", "--output", tmp_path / "out", *options)
    assert (done.exit_code, done.stdout) == (2, "")
    assert options[0] in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--quick", "--deep"], "--quick and --deep exclude each other"),
        (["--fail-on-leakage"], "--fail-on-leakage needs --against SPLIT"),
        (["--endpoint-url", "h:1"], "--endpoint-url h:1: must begin with http"),
        (["--set", "image.size=1"], "unknown key image: known keys: store"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_verify_refuses(arguments: list[str], line: str) -> None:
    """Wrong options are refused before verify reads the output."""
    done = invoked("verify", "nowhere", *arguments)
    assert done.exit_code == 2
    assert done.stderr.startswith(f"dataprep: {line}")


def test_sample_then_shard_then_verify(tmp_path: Path) -> None:
    """Drawn images can be sharded. Results are on stdout, and all other lines on stderr."""
    photos, out = tmp_path / "photos", tmp_path / "out"
    drawn = invoked("sample", photos, "--images", "4", "--classes", "2")
    assert drawn.stdout.startswith("4 photos in 2 classes, ")
    sharded = invoked("shard", "--source", photos, "--output", out)
    assert sharded.exit_code == 0, sharded.stderr
    understood, written, *_ = sharded.stdout.splitlines()
    assert understood.startswith(f"{photos}/: class folders, 2 classes, 4 images; ")
    assert written == f"train: 4 photos written, 0 failed -> {out}"
    assert f"Check it with: dataprep verify {out}\n" in sharded.stdout
    assert "train  4/4 photos" in sharded.stderr
    again = invoked("shard", "--source", photos, "--output", out, "--json")
    (split,) = json.loads(again.stdout)["splits"]
    assert (split["made_shards"], split["kept_shards"]) == (0, 1)
    checked = invoked("verify", out, "--json")
    assert (checked.exit_code, checked.stderr) == (0, "")
    assert json.loads(checked.stdout)["splits"][0]["ok"] is True
    (out / "tfrecord" / "train-00000-of-00001").write_bytes(b"")
    assert invoked("verify", out).exit_code == 1


def test_finalize_reports_every_split(tmp_path: Path) -> None:
    """Complete splits are reported, incomplete ones are named, and the exit code is 1."""
    photos, out = tmp_path / "photos", tmp_path / "out"
    invoked("sample", photos, "--images", "40", "--classes", "2")
    job = ("shard", "--source", photos, "--output", out, "--shard-size", "1.2MB")
    assert invoked(*job, "--split", "a").exit_code == 0
    part = invoked(*job, "--split", "b", "--part", "0/2")
    assert part.exit_code == 0, part.stderr
    assert re.search(r"\d+ of \d+ shards are missing. When all parts are done: ", part.stdout)
    done = invoked("finalize", out, "--json")
    assert done.exit_code == 1
    content = json.loads(done.stdout)
    assert [split["split"] for split in content["splits"]] == ["a"]
    assert [split["split"] for split in content["incomplete"]] == ["b"]
    assert content["incomplete"][0]["why"] in done.stderr
    assert invoked(*job, "--split", "b", "--part", "1/2").exit_code == 0
    assert invoked("finalize", out, "--split", "b").stdout.startswith("b: 40 photos written")


def test_init_copies_the_examples(tmp_path: Path) -> None:
    """Every example and schema is copied, and an existing file stays as it is."""
    done = invoked("init", tmp_path)
    assert done.exit_code == 0, done.stderr
    copies = [Path(line) for line in done.stdout.splitlines()]
    assert {tmp_path / "configs/shard/folder.yaml", tmp_path / "configs/prices.yaml"} <= {*copies}
    assert tmp_path / "configs/bench/schema.json" in copies
    assert all(path.read_bytes() for path in copies)
    copies[0].write_text("mine")
    assert invoked("init", tmp_path).stdout == done.stdout
    assert copies[0].read_text() == "mine"


def test_schema_is_what_editors_read() -> None:
    """The command prints the schema file that lies beside the examples."""
    committed = Path(__file__).parents[3] / "configs" / "shard" / "schema.json"
    assert invoked("schema").stdout == committed.read_text()
