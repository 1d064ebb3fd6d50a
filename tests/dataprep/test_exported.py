"""What ``import dataprep`` offers, and how little it costs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import dataprep
from dataprep.sample import draw_tree
from dataprep.versions import resizer
from tests.commandline import FORMATS

HEAVY = (
    *("numpy", "pandas", "pyarrow", "cv2", "PIL", "simplejpeg", "dask", "distributed", "boto3"),
    *("botocore", "bokeh", "pydantic", "yaml", "tensorflow", "torch", "mxnet", "scipy"),
)


def loaded(code: str) -> set[str]:
    """Top-level modules that a fresh interpreter has after ``code``."""
    told = "print(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    script = f"import atexit, json, sys\natexit.register(lambda: {told})\n{code}"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return {name.partition(".")[0] for name in json.loads(done.stderr.splitlines()[-1])}


def test_all_is_sorted() -> None:
    """``__all__`` is sorted and has no name twice."""
    assert list(dataprep.__all__) == sorted(set(dataprep.__all__))


def test_all_is_there() -> None:
    """Every exported name exists, and is what it is called."""
    for name in dataprep.__all__:
        value = getattr(dataprep, name)
        if name not in ("__version__", "open"):
            assert value.__name__ == name
    assert dataprep.open.__name__ == "open_dataset"


def test_all_is_complete() -> None:
    """Nothing public is reachable that ``__all__`` does not list, submodules aside."""
    listed = set(dataprep.__all__)
    for name in listed:
        getattr(dataprep, name)
    public = {
        name
        for name, value in vars(dataprep).items()
        if not name.startswith("_")
        and not getattr(value, "__name__", "").startswith("dataprep.")
        and name not in ("annotations", "Any", "TYPE_CHECKING", "import_module")
    }
    assert public == listed - {"__version__"}


def test_the_library_can_be_used_by_its_names() -> None:
    """The names that pipelines need are exported."""
    needed = {"ShardConfig", "shard", "verify", "inspect", "open", "Dataset", "Sample", "convert"}
    needed |= {"TFRecordWriter", "read_tfrecords", "RecordIOWriter", "read_recordio"}
    assert needed <= set(dataprep.__all__)


def test_dir() -> None:
    """``dir`` shows what is exported before any of it is loaded."""
    assert set(dataprep.__all__) <= set(dir(dataprep))


def test_unknown_name() -> None:
    """A name that does not exist is an AttributeError that names it."""
    with pytest.raises(AttributeError, match="no attribute 'shart'"):
        dataprep.shart  # noqa: B018


def test_import_is_light() -> None:
    """``import dataprep`` imports no library at all."""
    assert loaded("import dataprep").isdisjoint(HEAVY)


def test_names_load_when_used() -> None:
    """A name brings what it needs, so that the test above means something."""
    found = loaded("import dataprep; dataprep.open")
    assert {"numpy", "pyarrow"} <= found
    assert "pandas" not in found  # every worker of a loader would pay for it


@pytest.mark.parametrize("program", ["dataprep", "iobench"])
@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["COMMAND", "--help"]])
def test_help_is_light(program: str, arguments: list[str]) -> None:
    """Help and version import none of the heavy libraries; pydantic is typer's own choice.

    The resizer, which ``dataprep --version`` names, brings a part of Pillow.
    """
    command = {"dataprep": "shard", "iobench": "run"}[program]
    arguments = [command if argument == "COMMAND" else argument for argument in arguments]
    code = f"sys.argv = [{program!r}, *{arguments!r}]\nimport {program}.__main__"
    allowed = {"pydantic", "PIL"} if arguments == ["--version"] else {"pydantic"}
    assert loaded(code).isdisjoint({*HEAVY, "rich", "pygments", "markdown_it"} - allowed)


def test_a_worker_is_light() -> None:
    """What makes shards brings neither pandas nor dask.distributed."""
    assert loaded("import dataprep.job.worker").isdisjoint({"pandas", "distributed", "boto3"})


def test_a_job_in_this_process_is_light(tmp_path: Path) -> None:
    """From listing to manifest it needs neither pandas nor dask.distributed."""
    draw_tree(tmp_path / "photos", images=8, classes=2)
    config: dict[str, object] = {
        "source": f"{tmp_path}/photos",
        "output": f"{tmp_path}/out",
        "format": [*FORMATS],
    }
    config["dask"] = {"processes": False}
    code = f"import dataprep\ndataprep.shard(dataprep.ShardConfig.model_validate({config!r}))"
    assert loaded(code).isdisjoint({"pandas", "distributed", "boto3"})


def test_version() -> None:
    """--version prints name, version and resizer on stdout and ends with 0."""
    done = subprocess.run(
        [sys.executable, "-m", "dataprep", "--version"], capture_output=True, text=True, check=True
    )
    wanted = f"dataprep {dataprep.__version__} (resizer: {resizer()})\n"
    assert (done.stdout, done.stderr) == (wanted, "")


def test_no_framework_is_imported_by_a_job() -> None:
    """The modules of a job import no training framework."""
    found = loaded("import dataprep; dataprep.shard; dataprep.verify; dataprep.open")
    assert found.isdisjoint({"tensorflow", "torch", "mxnet"})
