"""An empty sysfs to lay devices out in."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.iobench.machine.machines import Sysfs


@pytest.fixture
def sysfs(tmp_path: Path) -> Sysfs:
    """Below a folder of the test's own."""
    return Sysfs(tmp_path / "machine")
