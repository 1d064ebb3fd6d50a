"""``examples/train_digits.py`` trains a network from shards of real digits, in each framework."""

from __future__ import annotations

import runpy
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import dataprep

EXAMPLE = Path(__file__).parents[2] / "examples" / "train_digits.py"


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.parametrize(
    "framework",
    [
        "torch",
        pytest.param("tensorflow", marks=pytest.mark.frameworks),
        pytest.param("mxnet", marks=pytest.mark.frameworks),
    ],
)
def test_a_network_learns_to_read_digits_from_shards(framework: str, tmp_path: Path) -> None:
    """The network recognises at least 95 % of the 360 held-out digits.

    Both formats have all 1,797.
    """
    if find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed")
    done = subprocess.run(
        [sys.executable, EXAMPLE, tmp_path, "--framework", framework],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.removeprefix("accuracy on held-out digits: ")) >= 0.95
    for split, digits in (("train", 1437), ("validation", 360)):
        for format in ("tfrecord", "recordio"):
            assert len(dataprep.open(tmp_path / "shards", split, format=format)) == digits


def test_without_scikit_learn_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without scikit-learn, one line says what to install, and nothing is written."""
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(SystemExit, match=r"^scikit-learn is not installed: pip install"):
        runpy.run_path(str(EXAMPLE), run_name="__main__")
