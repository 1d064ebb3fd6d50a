"""Ports of EFS's mount helper."""

from __future__ import annotations

from pathlib import Path

import pytest

from iobench.targets.efs_helper import mounted_by_helper
from tests.permissions import reachable_folder, unprivileged

OPTIONS = ("rw", "vers=4.1", "port=20052", "addr=127.0.0.1")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("fs-5d7edb06.mnt.efs.20052", True),
        ("fs-5d7edb06.mnt.efs.20053", False),
        ("fs-5d7edb06.mnt.efs.120052", False),
        ("~fs-5d7edb06.mnt.efs.20052", False),
        ("stunnel-config.fs-5d7edb06.mnt.efs.20052", False),
    ],
)
def test_a_file_of_its_own_has_the_port_at_its_end(tmp_path: Path, name: str, told: bool) -> None:
    """Other files lie there, and half-made ones."""
    (tmp_path / name).touch()
    assert mounted_by_helper(OPTIONS, tmp_path) is told
    assert mounted_by_helper(("rw",), tmp_path) is False


def test_what_may_not_be_listed_tells_nothing(tmp_path: Path) -> None:
    """Root alone may, and most machines have no such folder."""
    assert mounted_by_helper(OPTIONS, tmp_path / "nowhere") is False
    with reachable_folder() as folder:
        (folder / "fs-5d7edb06.mnt.efs.20052").touch()
        folder.chmod(0o700)
        with unprivileged():
            # Who runs the tests as somebody else than root owns the folder.
            assert mounted_by_helper(OPTIONS, folder) is (folder.stat().st_uid != 0)
        folder.chmod(0o755)
