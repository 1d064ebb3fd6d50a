"""Fixtures of the end-to-end tests: one reference output, and a gate at which jobs stop."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from dataprep.drawn import SampleTree, draw_tree
from dataprep.stores import StoreOptions
from iobench.servers.moto_server import MotoServer
from tests.commandline import Running, comparable, make, objects, wait_until
from tests.e2e.gated_store import ENTRY_POINTS
from tests.installed import Package, pyproject


class Gate:
    """A gate at which a job stops; see ``gated_store``."""

    def __init__(self, folder: Path) -> None:
        self._env = Package(folder, {"pyproject.toml": pyproject("gated", ENTRY_POINTS)}).env
        self._file = folder / "gate"

    def kills_at(self, prefix: str, count: int) -> dict[str, str]:
        """The environment of a process that ends at this object as by ``kill -9``."""
        return {**self._env, "GATE": f"{prefix}={count}", "GATE_KILLS": "1"}

    def waits_at(self, prefix: str, count: int) -> dict[str, str]:
        """The environment of a process that waits at this object until ``open`` is called."""
        return {
            **self._env,
            "GATE": f"{prefix}={count}",
            "GATE_FILE": str(self._file),
        }

    @contextmanager
    def stopping(
        self, prefix: str, count: int, *arguments: str | os.PathLike[str]
    ) -> Iterator[Running]:
        """Start a command and yield it when it waits at this object."""
        with Running(*arguments, env=self.waits_at(prefix, count)) as running:
            wait_until(lambda: self.reached, f"{prefix} {count}")
            yield running

    @property
    def reached(self) -> bool:
        """Whether a process waits at the gate."""
        return self._file.exists()

    def open(self) -> None:
        """Let the waiting process continue."""
        self._file.with_suffix(".open").touch()


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    """A gate of this test only."""
    return Gate(tmp_path / "gated-package")


@pytest.fixture(scope="session")
def reference_folder(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``tree`` in all formats, made by one thread without interruption. Read only."""
    output = tmp_path_factory.mktemp("reference") / "out"
    make(tree, output, dask={"workers": 1, "processes": False})
    return output


@pytest.fixture(scope="session")
def reference(reference_folder: Path) -> Mapping[str, object]:
    """The objects of the reference output, which every other way of making it must give."""
    return comparable(objects(reference_folder))


@pytest.fixture(scope="session")
def broken_tree(tmp_path_factory: pytest.TempPathFactory) -> SampleTree:
    """A small tree with every defect. Read only."""
    dest = tmp_path_factory.mktemp("broken") / "photos"
    return draw_tree(dest, images=16, classes=4, seed=5, defects=True)


@pytest.fixture
def endpoint(s3_server: MotoServer) -> StoreOptions:
    """The options with which commands use the S3 server of the test."""
    return StoreOptions(endpoint_url=s3_server.url)
