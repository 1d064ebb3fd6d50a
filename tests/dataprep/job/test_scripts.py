"""Scripts that start worker processes need a guard, and lack of it is reported."""

from __future__ import annotations

import subprocess
import sys
from multiprocessing import process
from pathlib import Path

import pytest

import dataprep
from dataprep.errors import ConfigError

pytestmark = pytest.mark.process

SCRIPT = """
import dataprep
config = {config!r}
dataprep.shard(dataprep.ShardConfig.model_validate(config))
"""


def test_a_worker_that_begins_starts_no_job(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker starts no job while it imports its caller's script."""
    config = dataprep.ShardConfig(source=str(images), output=str(tmp_path / "out"))
    monkeypatch.setattr(process.current_process(), "_inheriting", True, raising=False)
    with pytest.raises(ConfigError, match="if __name__ == '__main__'"):
        dataprep.shard(config)


@pytest.fixture
def script(images: Path, tmp_path: Path) -> str:
    """A script that starts a job of worker processes whenever it is imported."""
    config = {
        "source": str(images),
        "output": str(tmp_path / "out"),
        "dask": {"workers": 1, "processes": True},
    }
    return SCRIPT.format(config=config)


def test_a_script_from_standard_input(script: str, tmp_path: Path) -> None:
    """Workers cannot import a script from standard input, so that it needs no guard."""
    done = subprocess.run(
        [sys.executable, "-"],
        input=script,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "out" / "train.manifest.json").exists()


def test_a_script_without_a_guard(script: str, tmp_path: Path) -> None:
    """A script without a guard ends with an error, and starts no job in its workers."""
    file = tmp_path / "script.py"
    file.write_text(script)
    done = subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert "worker processes did not start" in last
    assert "if __name__ == '__main__'" in last
