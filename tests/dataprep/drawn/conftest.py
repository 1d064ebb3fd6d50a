"""One drawn tree for all tests of drawn samples."""

from __future__ import annotations

from pathlib import Path

import pytest

from dataprep.drawn import SampleTree, draw_tree


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> SampleTree:
    """300 valid images and every defect. Read only."""
    dest: Path = tmp_path_factory.mktemp("sample")
    return draw_tree(dest, images=300, classes=10, seed=0, defects=True)


@pytest.fixture(scope="session")
def sound(tree: SampleTree) -> list[Path]:
    """The files that have no defect."""
    odd = {tree.root / path for path in tree.defects}
    return sorted(path for path in tree.root.glob("*/*") if path not in odd)
