"""Tests of dataprep.examples."""

from __future__ import annotations

from pathlib import Path

import pytest

from dataprep.errors import ConfigError
from dataprep.examples import copy_configs
from tests.permissions import reachable_folder, unprivileged


def test_copies_are_whole(tmp_path: Path) -> None:
    """Every example arrives under ``configs``, as it is."""
    copies = list(copy_configs(tmp_path))
    assert tmp_path / "configs" / "shard" / "folder.yaml" in copies
    assert tmp_path / "configs" / "bench" / "schema.json" in copies
    assert all(path.read_bytes() for path in copies)


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    """A second copy is refused, with the file that is there."""
    list(copy_configs(tmp_path))
    with pytest.raises(ConfigError, match="is there already"):
        list(copy_configs(tmp_path))


def test_a_folder_that_may_not_be_written() -> None:
    """One error of the request, with the place and the reason."""
    with reachable_folder() as folder:
        folder.chmod(0o555)
        with unprivileged(), pytest.raises(ConfigError, match=r"cannot write .*Permission denied"):
            list(copy_configs(folder))
