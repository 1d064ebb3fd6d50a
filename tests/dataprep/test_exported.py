"""``import dataprep`` offers all public names at a low cost, and its errors form one tree."""

from __future__ import annotations

import builtins
import inspect
import json
import pickle
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

import dataprep
from dataprep import errors
from dataprep.drawn import draw_tree
from dataprep.errors import DataprepError, ImageError, RecordError
from dataprep.output.versions import resizer
from tests.commandline import FORMATS

HEAVY = (
    *("numpy", "pandas", "pyarrow", "cv2", "PIL", "simplejpeg", "dask", "distributed", "boto3"),
    *("botocore", "bokeh", "pydantic", "yaml", "tensorflow", "torch", "mxnet", "scipy"),
)


def loaded(code: str) -> set[str]:
    """The top-level modules that a new interpreter has imported after ``code``."""
    message = "print(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    script = f"import atexit, json, sys\natexit.register(lambda: {message})\n{code}"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return {name.partition(".")[0] for name in json.loads(done.stderr.splitlines()[-1])}


def test_all_is_there() -> None:
    """``__all__`` is sorted without repetitions, and every name exists under its own name."""
    assert list(dataprep.__all__) == sorted(set(dataprep.__all__))
    assert set(dataprep.__all__) <= set(dir(dataprep))
    for name in dataprep.__all__:
        value = getattr(dataprep, name)
        if name not in ("__version__", "open"):
            assert value.__name__ == name
    assert dataprep.open.__name__ == "open_dataset"
    with pytest.raises(AttributeError, match="no attribute 'shart'"):
        dataprep.shart  # noqa: B018


def test_all_is_complete() -> None:
    """``__all__`` has every public name, except submodules."""
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
    needed |= {"stage", "plan", "finalize", "PillowTransform"}
    needed |= {"Understood", "ValidationShare", "SplitEstimate"}  # results consist of these
    assert needed <= set(dataprep.__all__)


def classes_in(annotation: object) -> set[type]:
    """The classes of this package in an annotation, including nested ones."""
    modules: set[type] = set()
    if isinstance(annotation, type) and annotation.__module__.startswith("dataprep."):
        modules.add(annotation)
    for part in get_args(annotation):
        modules |= classes_in(part)
    return modules


def functions_of(value: object) -> Iterator[Any]:
    """The function itself, or the public methods and properties of a class."""
    if not isinstance(value, type):
        yield value
        return
    for name, member in vars(value).items():
        function = member.fget if isinstance(member, property) else member
        function = getattr(function, "__func__", function)
        if not name.startswith("_") and inspect.isfunction(function):
            yield function


# The adapters name types of frameworks. Methods of a config are internal.
OTHERS = ("normalise", "to_torch", "to_tf", "to_mxnet", "ShardConfig")


def test_types_of_results_and_settings_are_exported() -> None:
    """The types of results and settings are in ``__all__``."""
    listed = {getattr(dataprep, name) for name in dataprep.__all__}
    modules: set[type] = set()
    for name in set(dataprep.__all__) - set(OTHERS):
        for function in functions_of(getattr(dataprep, name)):
            if callable(function):
                modules |= classes_in(get_type_hints(function).get("return"))
    for name in dataprep.ShardConfig.model_fields:
        modules |= classes_in(get_type_hints(dataprep.ShardConfig)[name])
    assert {dataprep.Estimate, dataprep.Staged, dataprep.Verification, dataprep.Shard} <= modules
    assert modules <= listed


def test_every_error_is_exported() -> None:
    """All errors are in the package, so that callers can catch them."""
    for name, value in CLASSES.items():
        assert getattr(dataprep, name) is value


def test_functions_hide_no_module() -> None:
    """An exported name is not replaced when any module of the package is imported."""
    script = (
        "import pkgutil, dataprep, dataprep.cli.main\n"
        "import dataprep.reading.staging, dataprep.job.split_plan\n"
        "names = {module.name for module in pkgutil.iter_modules(dataprep.__path__)}\n"
        "assert not names & set(dataprep.__all__), names & set(dataprep.__all__)\n"
        "assert callable(dataprep.stage) and callable(dataprep.plan)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_import_is_light() -> None:
    """``import dataprep`` imports no other package."""
    assert loaded("import dataprep").isdisjoint(HEAVY)


def test_names_load_when_used() -> None:
    """A used name imports what it needs, so that the previous test is effective."""
    modules = loaded("import dataprep; dataprep.open")
    assert {"numpy", "pyarrow"} <= modules
    assert "pandas" not in modules  # every worker of a loader would import it


@pytest.mark.parametrize("program", ["dataprep", "iobench"])
@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["COMMAND", "--help"]])
def test_help_is_light(program: str, arguments: list[str]) -> None:
    """Help and version import no heavy library, except pydantic, which typer imports.

    The resizer, which ``dataprep --version`` names, imports a part of Pillow.
    """
    command = {"dataprep": "shard", "iobench": "run"}[program]
    arguments = [command if argument == "COMMAND" else argument for argument in arguments]
    code = f"sys.argv = [{program!r}, *{arguments!r}]\nimport {program}.__main__"
    allowed = {"pydantic", "PIL"} if arguments == ["--version"] else {"pydantic"}
    assert loaded(code).isdisjoint({*HEAVY, "rich", "pygments", "markdown_it"} - allowed)


def test_a_worker_is_light() -> None:
    """A worker imports neither pandas nor dask.distributed."""
    assert loaded("import dataprep.job.shard_making").isdisjoint({"pandas", "distributed", "boto3"})


def test_a_job_in_this_process_is_light(tmp_path: Path) -> None:
    """A job imports neither pandas nor dask.distributed from listing to manifest."""
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
    """--version prints name, version, codecs and frameworks on stdout, and ends with 0."""
    done = subprocess.run(
        [sys.executable, "-m", "dataprep", "--version"], capture_output=True, text=True, check=True
    )
    first, codecs, frameworks = done.stdout.splitlines()
    assert first == f"dataprep {dataprep.__version__}"
    assert codecs.startswith("codecs: simplejpeg ")
    assert codecs.endswith(resizer())
    assert f"torch {version('torch')}" in frameworks
    assert done.stderr == ""


def test_no_framework_is_imported_by_a_job() -> None:
    """The modules of a job, and the name of an adapter, import no training framework."""
    names = ("shard", "verify", "open", "normalise", "to_torch", "to_tf", "to_mxnet")
    modules = loaded("\n".join(["import dataprep", *(f"dataprep.{name}" for name in names)]))
    assert modules.isdisjoint({"tensorflow", "torch", "mxnet"})


CLASSES = {
    name: value
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, DataprepError)
}


def drawn() -> dict[str, tuple[str | None, str | None]]:
    """The parent and the builtin class of each error in the tree of the module's docstring."""
    modules: dict[str, tuple[str | None, str | None]] = {}
    above: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").split("::", 1)[1].splitlines():
        if match := re.match(r"([ │├└─]*)(\w+)(?:\s+([A-Z]\w+)(?=\s\s))?(?:\s|$)", line):
            depth, name, builtin = len(match[1]), match[2], match[3]
            while above and above[-1][0] >= depth:
                above.pop()
            modules[name] = (above[-1][1] if above else None, builtin)
            above.append((depth, name))
    return modules


def test_the_tree_lists_every_class() -> None:
    """The tree has exactly the classes of the module."""
    assert drawn().keys() == CLASSES.keys()
    assert len(CLASSES) > 25


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_each_error_stands_where_it_is_drawn(name: str) -> None:
    """Each class has the parent and the builtin class that the tree shows."""
    parent, builtin = drawn()[name]
    bases = CLASSES[name].__bases__
    expected = {Exception if parent is None else CLASSES[parent]}
    if builtin is not None:
        expected.add(getattr(builtins, builtin))
    assert set(bases) == expected


@pytest.mark.parametrize("kind", CLASSES.values(), ids=str)
def test_errors_cross_processes(kind: type[DataprepError]) -> None:
    """Each error keeps class, message, location and exit code when it is pickled."""
    error = kind("what to do: 7 %")
    assert error.exit_code == kind.exit_code
    if isinstance(error, RecordError):
        assert (error.record, error.offset) == (-1, -1)
        error = type(error)("what to do: 7 %", record=3, offset=2**40)
    else:
        error.exit_code = 77
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert str(again) == "what to do: 7 %"
    assert vars(again) == vars(error)
    assert again.exit_code == error.exit_code


def test_image_errors_have_kinds_of_their_own() -> None:
    """Every image error is counted under its own kind."""
    kinds = [value.kind for value in CLASSES.values() if issubclass(value, ImageError)]
    assert len(kinds) == len(set(kinds)) == 10


def test_exit_codes() -> None:
    """Wrong requests end with 2, and jobs that ran end with 1."""
    wrong = {name for name, value in CLASSES.items() if value.exit_code == 2}
    assert wrong == {
        "ConfigError",
        "CorruptArchive",
        "DatasetError",
        "FormatMissing",
        "ManifestMissing",
        "NotAnArchive",
        "OutputConflict",
        "SchemaTooNew",
        "SourceError",
        "SourceNotFound",
        "TruncatedArchive",
    }
    assert {value.exit_code for value in CLASSES.values()} == {1, 2}
