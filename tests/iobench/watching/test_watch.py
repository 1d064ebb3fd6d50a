"""A user's own loop is watched in three lines, and has a report however it ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import iobench
from dataprep.errors import ConfigError
from iobench.results.result import Result
from iobench.runner.run_folder import read
from tests.commandline import wait_until
from tests.iobench.watching.scripts import environment, run, script_command

pytestmark = pytest.mark.slow

FILES = {"report.html", "result.json", "trials.jsonl"}
FILES |= {"trials.parquet", "series.parquet", "samples.parquet", "spans.parquet"}
HEAVY = ("numpy", "pandas", "pyarrow", "bokeh", "torch", "pydantic", "psutil", "jinja2", "boto3")


def report_of(folder: Path) -> Result:
    """Return the result of a run, and check that its folder is complete."""
    assert {path.name for path in folder.iterdir()} == FILES
    return read(folder)


def steps_of(result: Result) -> dict[str, int]:
    """Return the steps by loader."""
    return {trial.params["loader"]: trial.metrics["steps"] for trial in result.trials}


def test_three_lines_are_a_report(tmp_path: Path) -> None:
    """The loop gets its loader's batches, and the script imports nothing heavy."""
    done = run(
        tmp_path,
        f"""
        loader = Loader()
        import iobench
        loader = iobench.watch(loader, "reports/mine")
        assert (len(loader), loader.batch_size) == (12, 4)
        seen = [batch for epoch in range(2) for batch in loader]
        assert seen == [[number] * 4 for number in range(12)] * 2
        import sys
        assert not set({HEAVY!r}) & set(sys.modules)
        """,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    (trial,) = report_of(tmp_path / "reports" / "mine").trials
    assert (trial.metrics["steps"], trial.metrics["epochs"]) == (23, 2)
    assert trial.metrics["samples"] == 23 * 4
    assert trial.metrics["harness_share"] > 0
    message = done.stderr.splitlines()
    assert message[0].startswith("iobench: Your loop waits for data ")
    assert message[1] == "iobench: reports/mine/report.html"
    again = run(tmp_path, "import iobench\nlist(iobench.watch(Loader(), 'reports/mine'))")
    assert "mine holds a run already: this run goes to mine-2 beside it" in again.stderr
    report_of(tmp_path / "reports" / "mine-2")


def test_a_loop_that_fails_is_reported_up_to_there(tmp_path: Path) -> None:
    """The error is that of the script, and a loop left by ``break`` counts, too."""
    done = run(
        tmp_path,
        """
        import iobench
        loader = iobench.watch(Loader(), "mine")
        for number, batch in enumerate(loader):
            if number == 5:
                break
        for batch in loader:
            if batch[0] == 7:
                raise ValueError("loss is nan")
        """,
    )
    assert done.returncode == 1
    assert "ValueError: loss is nan" in done.stderr
    # The first step does not count, and the last step of each loop has no end.
    assert steps_of(report_of(tmp_path / "mine")) == {"Loader": 4 + 7}


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, None)])
def test_a_script_that_is_stopped_is_reported(
    tmp_path: Path, number: signal.Signals, code: int | None
) -> None:
    """Scripts that Ctrl-C or SIGKILL ended have a report."""
    command = script_command(
        tmp_path,
        """
        import iobench, time
        for number, batch in enumerate(iobench.watch(Loader(10**9), "mine")):
            time.sleep(0.02)
            if number == 100:
                print("under way", flush=True)
        """,
    )
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as script:
        assert script.stdout is not None
        assert script.stdout.readline() == b"under way\n"
        script.send_signal(number)
        script.wait()
    folder = tmp_path / "mine"
    wait_until(lambda: {path.name for path in folder.iterdir()} == FILES, "the report")
    (trial,) = report_of(folder).trials
    # The first of the 100 whole steps does not count.
    assert trial.metrics["steps"] >= (99 if code else 1)
    assert any("without notice" in note for note in trial.metrics["notes"]) == (code is None)


def test_several_loaders_are_one_report(tmp_path: Path) -> None:
    """Nested training and validation, a generator and an unused loader are in one report."""
    done = run(
        tmp_path,
        """
        import iobench
        train = iobench.watch(Loader(), "mine", name="train", batch_size=32)
        validation = iobench.watch(Loader(5), name="validation")
        unused = iobench.watch(Loader(5), "mine")
        once = iobench.watch((n for n in range(9)), "mine", name="once")
        assert next(once) == 0
        for batch in train:
            if batch[0] % 6 == 0:
                for held_out in validation:
                    pass
        assert list(once) == list(range(1, 9))
        """,
    )
    assert done.returncode == 0, done.stderr
    result = report_of(tmp_path / "mine")
    done_trials = [trial for trial in result.trials if trial.status == "done"]
    steps = {trial.params["loader"]: trial.metrics["steps"] for trial in done_trials}
    assert steps == {"train": 11, "validation": 9, "once": 7}
    assert done_trials[0].metrics["samples"] == 11 * 32
    assert "samples_per_s" not in done_trials[2].metrics
    assert [trial.status for trial in result.trials].count("skipped") == 1


def test_workers_that_import_the_script_write_nothing(tmp_path: Path) -> None:
    """Spawned workers import the script, and forked ones have its memory."""
    done = run(
        tmp_path,
        """
        import multiprocessing, os, sys
        import iobench
        loader = iobench.watch(Loader(), "mine")

        def work(queue):
            queue.put((type(loader).__name__, [batch[0] for batch in loader]))

        if __name__ == "__main__":
            for batch in loader:
                if batch[0] == 6:
                    for method in ("spawn", "fork"):
                        context = multiprocessing.get_context(method)
                        queue = context.Queue()
                        worker = context.Process(target=work, args=(queue,))
                        worker.start()
                        print(method, *queue.get(), flush=True)
                        worker.join()
                        assert worker.exitcode == 0
                    child = os.fork()
                    if not child:
                        sys.exit()  # This runs what is registered for the script's end.
                    assert os.waitpid(child, 0)[1] == 0
        """,
    )
    assert done.returncode == 0, done.stderr
    batches = str(list(range(12)))
    assert done.stdout.splitlines() == [f"spawn Loader {batches}", f"fork Watched {batches}"]
    assert {path.name for path in tmp_path.iterdir()} == {"script.py", "mine"}
    assert steps_of(report_of(tmp_path / "mine")) == {"Loader": 11}


def test_each_rank_writes_for_itself(tmp_path: Path) -> None:
    """One process of a machine reads the figures of the machine."""
    code = """
        import iobench, time
        for batch in iobench.watch(Loader(), "mine", per_s=10):
            time.sleep(0.25)
        """
    for rank in ("0", "1"):
        run(tmp_path, code, RANK=rank, WORLD_SIZE="2", LOCAL_RANK=rank)
    assert {path.name for path in (tmp_path / "mine").iterdir()} == {"rank-0", "rank-1"}
    kinds = []
    for number in (0, 1):
        folder = tmp_path / "mine" / f"rank-{number}"
        assert report_of(folder).trials[0].params["rank"] == number
        columns = pd.read_parquet(folder / "samples.parquet").columns
        kinds.append({name.split(".")[0] for name in columns if "." in name})
    assert kinds[1] == {"tree"} < kinds[0]


def test_a_notebook_ends_it_by_hand(tmp_path: Path) -> None:
    """``finish`` shows a table; the loader still works, and a later one is another run."""
    done = run(
        tmp_path,
        """
        import iobench, pathlib
        loader = iobench.watch(Loader(), "mine")
        list(loader)
        table = iobench.finish()._repr_html_()
        assert "<td>Loader</td>" in table and "mine/report.html" in table and "samples/s" in table
        assert pathlib.Path("mine/report.html").exists()
        assert len(list(loader)) == 12
        list(iobench.watch(Loader(), "other"))
        """,
    )
    assert done.returncode == 0, done.stderr
    assert steps_of(report_of(tmp_path / "mine")) == {"Loader": 11}
    assert steps_of(report_of(tmp_path / "other")) == {"Loader": 11}


def test_torchs_own_loader(tmp_path: Path) -> None:
    """Worker processes work with both ways of starting them."""
    pytest.importorskip("torch")
    done = run(
        tmp_path,
        """
        import torch, iobench

        class Images(torch.utils.data.Dataset):
            def __len__(self):
                return 40
            def __getitem__(self, index):
                return torch.full((3, 2, 2), float(index)), index

        if __name__ == "__main__":
            for method, epochs in (("fork", 2), ("spawn", 1)):
                loader = torch.utils.data.DataLoader(
                    Images(), batch_size=8, num_workers=1, multiprocessing_context=method
                )
                loader = iobench.watch(loader, "mine", name=method, device=True)
                assert (len(loader), len(loader.dataset), loader.num_workers) == (5, 40, 1)
                for epoch in range(epochs):
                    labels = torch.cat([labels for images, labels in loader])
                    assert labels.tolist() == list(range(40))
        """,
    )
    assert done.returncode == 0, done.stderr
    result = report_of(tmp_path / "mine")
    assert steps_of(result) == {"fork": 9, "spawn": 4}
    assert [trial.metrics["samples"] for trial in result.trials] == [72, 32]
    assert "device=True: torch is not imported, or sees no GPU" in done.stderr


def test_no_room_for_a_report_is_a_line(tmp_path: Path) -> None:
    """A missing report is one line, and the script's exit code stays."""
    done = run(
        tmp_path,
        """
        import iobench, pathlib
        list(iobench.watch(Loader(), "mine"))
        pathlib.Path("mine/result.json.partial").mkdir()
        """,
    )
    assert done.returncode == 0
    assert "iobench: cannot write" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("closing", ["sys.stderr.close()", "sys.stderr = None"])
def test_a_script_without_stderr_is_measured(tmp_path: Path, closing: str) -> None:
    """Messages to the user are dropped, and do not go to stdout."""
    done = run(
        tmp_path,
        f"""
        import iobench, sys
        {closing}
        list(iobench.watch(Loader(), "mine", device=True))
        print("ended")
        """,
    )
    assert (done.returncode, done.stdout) == (0, "ended\n")
    assert steps_of(report_of(tmp_path / "mine")) == {"Loader": 11}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"loader": 7}, "watch takes a loader to iterate over, not int"),
        ({"batch_size": 0}, "batch_size is a whole number from 1 on, not 0"),
        ({"batch_size": 2.5}, "batch_size is a whole number"),
        ({"batch_size": True}, "batch_size is a whole number"),
        ({"per_s": 11}, "per_s is 1 to 10 readings a second, not 11"),
        ({"per_s": True}, "per_s is 1 to 10 readings a second, not True"),
        ({"replay": -1}, "replay is a number of batches from 0 on, not -1"),
        ({"replay": True}, "replay is a number of batches"),
        ({"replay": 2, "replay_steps": 39}, "replay_steps is a whole number from 40 on, not 39"),
        ({"replay": 50, "replay_steps": 40}, "keeps more batches than replay_steps=40"),
    ],
)
def test_wrong_arguments_are_refused_at_once(settings: dict[str, object], message: str) -> None:
    """The error comes before anything is written."""
    with pytest.raises(ConfigError, match=message):
        iobench.watch(**{"loader": [1], **settings})  # type: ignore[arg-type]


def test_iobench_alone_is_light() -> None:
    """``import iobench`` imports nothing heavy and lists its names."""
    code = "import iobench, json, sys; print(json.dumps([dir(iobench), sorted(sys.modules)]))"
    command = [sys.executable, "-c", code]
    finished = subprocess.run(command, capture_output=True, text=True, check=True)
    offered, modules = json.loads(finished.stdout)
    assert offered == iobench.__all__ == ["finish", "watch"]
    assert not {name.partition(".")[0] for name in modules} & set(HEAVY)
    with pytest.raises(AttributeError, match="absent"):
        _ = iobench.absent
