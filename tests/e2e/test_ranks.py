"""Training on several hosts continues after kills, with other numbers of ranks and with shares."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dataprep
from dataprep.reading.staging import stage
from tests.e2e.ranks import GLOBAL_BATCH, SEEN

pytest.importorskip("torch")
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory, tree: Path) -> Path:
    """An output of 120 samples in some shards."""
    folder = tmp_path_factory.mktemp("ranks") / "out"
    image = {"mode": "exact", "size": 320, "upscale": True, "quality": 97}
    config = {"source": tree, "output": folder, "image": image, "shard_size": "1.2MB"}
    dataprep.shard(dataprep.ShardConfig.model_validate(config))
    return folder


@pytest.mark.process
@pytest.mark.parametrize(
    "workers",
    [
        pytest.param([], marks=pytest.mark.smoke),
        pytest.param(["fork"], marks=pytest.mark.slow),
        pytest.param(["spawn"], marks=pytest.mark.slow),
    ],
    ids=["no workers", "fork", "spawn"],
)
def test_killed_and_gone_on_with_other_ranks(
    output: Path, tmp_path: Path, workers: list[str]
) -> None:
    """Two ranks are killed, then one, then three complete the epoch and read the next one."""
    shutil.copytree(output, tmp_path / "out")
    for world_size, steps in ((2, 3), (1, 2), (3, 99)):
        program = [sys.executable, "-m", "tests.e2e.ranks", str(tmp_path)]
        ranks = []
        for rank in range(world_size):
            arguments = [str(rank), str(world_size), str(steps), *workers]
            ranks.append(subprocess.Popen([*program, *arguments], cwd=ROOT, start_new_session=True))
        codes = []
        for process in ranks:
            codes.append(process.wait(timeout=240))
            with contextlib.suppress(ProcessLookupError):  # its workers may wait forever
                os.killpg(process.pid, signal.SIGKILL)
        assert codes == ([0] if steps == 99 else [-9]) * world_size
        saved = json.loads((tmp_path / SEEN).read_text())
        if steps != 99:
            (samples_of_epoch,) = saved["epochs"]
            assert len(samples_of_epoch) % GLOBAL_BATCH == 0
            assert workers or saved["state"]["samples"] == len(samples_of_epoch)
    first, second = saved["epochs"]
    assert sorted(first) == sorted(second) == list(range(120))
    assert first != second
    assert workers or (saved["state"]["epoch"], saved["state"]["samples"]) == (1, 120)


@pytest.mark.parametrize("even", ["keep", "drop", "pad"])
def test_ranks_of_two_hosts_read_their_shares(output: Path, tmp_path: Path, even: Any) -> None:
    """Ranks together read all samples (``keep``), or have equal steps each, even after a resume."""
    number_of_image = {
        bytes(sample.image): number for number, sample in enumerate(dataprep.open(output))
    }
    lengths = {0: set[int](), 16: set[int]()}
    numbers_read: list[int] = []
    for host in range(2):
        dest = tmp_path / str(host)
        stage(output, dest, host=dataprep.Part(host, 2))
        dataset = dataprep.open(dest)
        for rank in (2 * host, 2 * host + 1):
            for start in lengths:
                batches = dataprep.to_torch(
                    dataset, batch_size=4, rank=rank, world_size=4, even=even, start=start
                )
                read = [number_of_image[image] for images, _ in batches for image in images]
                lengths[start].add(len(read))
                numbers_read += read if start == 0 else []
    if even == "keep":
        assert sorted(numbers_read) == list(range(120))
    else:
        (every,), (rest,) = lengths.values()
        assert every - rest == 4
        assert every % 4 == 0
        assert (
            len(set(numbers_read)) == 120
            if even == "pad"
            else len(set(numbers_read)) == len(numbers_read)
        )


@pytest.mark.slow
@pytest.mark.process
def test_the_example(tmp_path: Path) -> None:
    """The example shards, stages, trains two ranks, kills them, and continues with three."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", str(ROOT / "examples" / "several_hosts.sh"), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, "PATH": path},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    goes_on, ended = done.stdout.splitlines()[-2:]
    assert goes_on.startswith("epoch 0 resumes after ")
    assert ended == "epoch 0: 1,200 samples on 3 ranks"
