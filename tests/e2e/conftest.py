"""What the end-to-end tests share: one reference output, and a gate to stop jobs at."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

import dataprep
from tests.commandline import FORMATS, comparable, objects
from tests.e2e.gated_store import ENTRY_POINTS


class Gate:
    """Where a job is to stop; see ``gated_store``."""

    def __init__(self, folder: Path) -> None:
        root = Path(__file__).parents[2]
        package = folder / "gated-1.0.dist-info"
        package.mkdir(parents=True)
        (package / "METADATA").write_text("Metadata-Version: 2.1\nName: gated\nVersion: 1.0\n")
        (package / "entry_points.txt").write_text(ENTRY_POINTS)
        self._path = f"{folder}:{root}"
        self._file = folder / "gate"

    def kills_at(self, prefix: str, count: int) -> dict[str, str]:
        """The environment of a process that ends as by ``kill -9``."""
        return {"PYTHONPATH": self._path, "GATE": f"{prefix}={count}", "GATE_KILLS": "1"}

    def waits_at(self, prefix: str, count: int) -> dict[str, str]:
        """The environment of a process that waits until ``open`` is called."""
        return {
            "PYTHONPATH": self._path,
            "GATE": f"{prefix}={count}",
            "GATE_FILE": str(self._file),
        }

    @property
    def reached(self) -> bool:
        """Whether a process waits."""
        return self._file.exists()

    def open(self) -> None:
        """Let it go on."""
        self._file.with_suffix(".open").touch()


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    """A gate of one's own."""
    return Gate(tmp_path / "gated-package")


@pytest.fixture(scope="session")
def reference_folder(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``tree`` in both formats, by one thread, straight through. Read only."""
    output = tmp_path_factory.mktemp("reference") / "out"
    config = dataprep.ShardConfig.model_validate(
        {
            "source": str(tree),
            "output": str(output),
            "format": FORMATS,
            "shard_size": "1.2MB",
            "dask": {"workers": 1, "processes": False},
        }
    )
    dataprep.shard(config)
    return output


@pytest.fixture(scope="session")
def reference(reference_folder: Path) -> Mapping[str, object]:
    """What every other way of making it must give as well."""
    return comparable(objects(reference_folder))
