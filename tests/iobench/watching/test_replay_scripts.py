"""Training scripts with a replay and with live figures, in processes of their own."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from iobench.results.trial import Trial
from iobench.runner.run_folder import read
from tests.commandline import PATIENCE_S
from tests.iobench.watching.scripts import environment, free_port, run, script_command

pytestmark = pytest.mark.slow

PACED = """
import threading, queue, time

class Paced:
    '''A thread that takes ``batch_s`` for each batch, and has up to 4 of them ready.'''

    def __init__(self, batch_s, batches):
        self.batch_s, self.batches = batch_s, batches

    def __len__(self):
        return self.batches

    def __iter__(self):
        ready = queue.Queue(4)

        def fill():
            for number in range(self.batches):
                time.sleep(self.batch_s)
                ready.put([number] * 4)

        threading.Thread(target=fill, daemon=True).start()
        for _ in range(self.batches):
            yield ready.get()
"""


def trial_of(folder: Path) -> Trial:
    """Return the only watched loop of a run."""
    (trial,) = read(folder).trials
    return trial


def loss_range(trial: Trial) -> tuple[float, float]:
    """Return both ends of the loss, which are equal if it is a single figure."""
    metrics = trial.metrics
    if "loss_share" in metrics:
        return metrics["loss_share"], metrics["loss_share"]
    return metrics["loss_share_low"], metrics["loss_share_high"]


@pytest.mark.parametrize(("batch_s", "loss"), [(0.01, 0.0), (0.04, 0.5)])
def test_the_loss_of_a_paced_loop(tmp_path: Path, batch_s: float, loss: float) -> None:
    """A loader of 10 or 40 ms before a step of 20 ms; the loop gets each batch of the loader."""
    code = f"""{PACED}
import iobench
loader = iobench.watch(Paced({batch_s}, 180), "mine", replay=4, replay_steps=40)
assert len(loader) == 220
numbers = []
for batch in loader:
    numbers.append(batch[0])
    time.sleep(0.02)
assert numbers == [*range(104), *[100, 101, 102, 103] * 10, *range(104, 180)]
assert len(loader) == 180
"""
    done = run(tmp_path, code)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("train on the same 4 batches again and again") == 1
    trial = trial_of(tmp_path / "mine")
    # Runs with and without a replay have the same params, so that they can be compared.
    assert trial.params == {"loader": "Paced"}
    low, high = loss_range(trial)
    assert low - 0.1 <= loss <= high + 0.1
    assert "of its rate to its loader" in done.stderr


def test_torchs_workers_go_on_after_the_replay(tmp_path: Path) -> None:
    """Two workers that take 80 ms for a batch cost a loop with steps of 20 ms half."""
    pytest.importorskip("torch")
    done = run(
        tmp_path,
        """
        import time
        import torch, iobench

        class Slow(torch.utils.data.Dataset):
            def __len__(self):
                return 4 * 200
            def __getitem__(self, index):
                time.sleep(0.02)
                return torch.full((2, 2), float(index)), index

        if __name__ == "__main__":
            loader = torch.utils.data.DataLoader(Slow(), batch_size=4, num_workers=2)
            loader = iobench.watch(loader, "mine", replay=3, replay_steps=40)
            assert len(loader) == 240
            labels = []
            for images, numbers in loader:
                assert images[:, 0, 0].tolist() == numbers.tolist()
                labels.append(numbers[0].item() // 4)
                time.sleep(0.02)
            assert labels == [*range(103), *([100, 101, 102] * 14)[:40], *range(103, 200)]
        """,
    )
    assert done.returncode == 0, done.stderr
    low, high = loss_range(trial_of(tmp_path / "mine"))
    assert low - 0.1 <= 0.5 <= high + 0.1


def test_torchs_tensors_that_are_changed_in_place_are_copied(tmp_path: Path) -> None:
    """A batch that the loop has normalised in place is not normalised again."""
    pytest.importorskip("torch")
    done = run(
        tmp_path,
        """
        import torch, iobench

        images = torch.arange(4 * 120, dtype=torch.float32)
        loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(images), batch_size=4)
        loader = iobench.watch(loader, "mine", replay=2, replay_steps=40, samplers=())
        seen = []
        for (batch,) in loader:
            seen.append(batch[0].item())
            batch.mul_(0)
        numbers = [*range(102), *[100, 101] * 20, *range(102, 120)]
        assert seen == [4.0 * number for number in numbers]
        """,
    )
    assert done.returncode == 0, done.stderr
    assert "train on copies of the same 2 batches" in done.stderr


def test_each_rank_replays_and_one_announces_it(tmp_path: Path) -> None:
    """Ranks make equal numbers of steps, also without a companion, and each has its loss."""
    code = f"""{PACED}
import os, subprocess, iobench
if os.environ["RANK"] == "2":
    def refused(*arguments, **named):
        raise OSError(11, "no process")
    subprocess.Popen = refused
steps = 0
for batch in iobench.watch(Paced(0.02, 180), "mine", replay=2, replay_steps=40, samplers=()):
    steps += 1
    time.sleep(0.01)
print(steps)
"""
    command = script_command(tmp_path, code)
    ranks = []
    for rank in range(3):
        variables = environment(RANK=str(rank), WORLD_SIZE="3", LOCAL_RANK=str(rank))
        process = subprocess.Popen(
            command,
            cwd=tmp_path,
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        ranks.append(process)
    outputs = [process.communicate(timeout=PATIENCE_S) for process in ranks]
    assert [stdout.strip() for stdout, _ in outputs] == ["220"] * 3, outputs
    is_announced = ["again and again" in stderr for _, stderr in outputs]
    assert is_announced == [True, False, False]
    assert "the companion process cannot be started" in outputs[2][1]
    for rank in (0, 1):
        trial = trial_of(tmp_path / "mine" / f"rank-{rank}")
        low, high = loss_range(trial)
        assert low - 0.15 <= 0.5 <= high + 0.15


def test_a_loop_that_ends_during_the_replay_is_reported(tmp_path: Path) -> None:
    """The ceiling is unknown with the reason, and everything else is reported."""
    done = run(
        tmp_path,
        """
        import iobench
        for step, batch in enumerate(iobench.watch(Loader(200), "mine", replay=4)):
            if step == 140:
                break
        """,
    )
    assert done.returncode == 0, done.stderr
    trial = trial_of(tmp_path / "mine")
    assert trial.metrics["replay_steps"] == 36
    assert "ceiling_samples_per_s" not in trial.metrics
    page = (tmp_path / "mine" / "report.html").read_text()
    assert "the loop ended during the replay, after 36 of 100 repeated steps" in page


def test_figures_are_served_until_the_watch_ends(tmp_path: Path) -> None:
    """They are served by the script alone, and not after the report is written."""
    pytest.importorskip("prometheus_client")
    port = free_port()
    done = run(
        tmp_path,
        f"""
        import os, socket, time, urllib.request
        import iobench

        def page():
            address = "http://127.0.0.1:{port + 1}/metrics"
            return urllib.request.urlopen(address, timeout=30).read().decode()

        def is_open():
            with socket.socket() as client:
                return client.connect_ex(("127.0.0.1", {port + 1})) == 0

        loader = iobench.watch(Loader(50), "mine", metrics_port={port})
        held_out = iobench.watch(Loader(5), name="validation", metrics_port={port})
        for step, batch in enumerate(loader):
            if step == 9:
                list(held_out)
                print(page())
                child = os.fork()
                if not child:
                    time.sleep(600)  # It outlives the watch, so its copy of the socket is closed.
                    os._exit(0)
        assert is_open()
        iobench.finish()
        assert not is_open()
        os.kill(child, 9)
        os.waitpid(child, 0)
        """,
        RANK="5",
        WORLD_SIZE="8",
        LOCAL_RANK="1",
    )
    assert done.returncode == 0, done.stderr
    labels = '{loader="Loader",rank="5"}'
    assert re.search(rf"^iobench_samples_total{re.escape(labels)} 40\.0$", done.stdout, re.M)
    assert 'iobench_samples_total{loader="validation",rank="5"} 20.0' in done.stdout
    # The port depends on the local rank, and two loaders at one port are announced once.
    assert done.stderr.count(f"live figures for Prometheus: port {port + 1}, path /metrics") == 1


def test_a_port_in_use_is_refused_before_a_folder_is_made(tmp_path: Path) -> None:
    """Two processes without a local rank need a port each."""
    pytest.importorskip("prometheus_client")
    port = free_port()
    done = run(
        tmp_path,
        f"""
        import pathlib, socket
        import iobench
        with socket.socket() as other:
            other.bind(("0.0.0.0", {port}))
            other.listen()
            try:
                iobench.watch(Loader(), "mine", metrics_port={port})
            except ValueError as error:
                print(error)
        assert not pathlib.Path("mine").exists()
        """,
    )
    assert done.returncode == 0, done.stderr
    assert f"port {port} cannot be used" in done.stdout


def test_nothing_is_imported_for_figures_that_nobody_asks_for(tmp_path: Path) -> None:
    """The client for Prometheus is imported only if a port is given."""
    done = run(
        tmp_path,
        """
        import sys
        import iobench
        list(iobench.watch(Loader(200), "mine", replay=2))
        assert not {"prometheus_client", "http.server", "numpy"} & set(sys.modules)
        """,
    )
    assert done.returncode == 0, done.stderr
