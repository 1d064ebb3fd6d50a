"""A few photographs, drawn."""

from __future__ import annotations

from pathlib import Path

import pytest

from dataprep.sample import draw_tree


@pytest.fixture(scope="session")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six, in two classes. Read only."""
    return draw_tree(tmp_path_factory.mktemp("few") / "photos", images=6, classes=2).root
