"""The library restores all settings of the process of its user."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import cv2
import pytest

import dataprep
from dataprep.drawn import draw_tree
from dataprep.job import conversion
from tests.commandline import make

STATE = """
def state():
    import faulthandler, gc, locale, logging, multiprocessing, os, resource, signal, socket
    import sys, threading, warnings
    import cv2, numpy, pyarrow, torch
    from PIL import Image, ImageFile
    limits = {name for name in vars(resource) if name.startswith("RLIMIT_")}
    umask = os.umask(0o22)
    os.umask(umask)
    loggers = ["", "PIL", "boto3", "botocore", "distributed", "dask", "tornado", "asyncio", "bokeh"]
    return {
        "OpenCV's threads": cv2.getNumThreads(),
        "OpenCV's optimisation": [cv2.useOptimized(), cv2.ocl.useOpenCL()],
        "torch": [torch.get_num_threads(), str(torch.get_default_dtype()), torch.initial_seed()],
        "pyarrow's threads": [pyarrow.cpu_count(), pyarrow.io_thread_count()],
        "NumPy": [str(numpy.geterr()), str(numpy.get_printoptions()),
                  str(numpy.random.get_state())],
        "Pillow": [Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES, ImageFile.MAXBLOCK],
        "warnings": [str(entry) for entry in warnings.filters],
        "limits": {name: resource.getrlimit(getattr(resource, name)) for name in sorted(limits)},
        "environment": dict(os.environ),
        "path": list(sys.path),
        "folder": os.getcwd(),
        "umask": umask,
        "signals": {str(number): str(signal.getsignal(number)) for number in signal.Signals},
        "timer": signal.getitimer(signal.ITIMER_REAL),
        "garbage": [gc.isenabled(), gc.get_threshold(), gc.get_freeze_count()],
        "hooks": [str(sys.excepthook), str(threading.excepthook), str(sys.displayhook)],
        "switches": [sys.getswitchinterval(), sys.getrecursionlimit(), faulthandler.is_enabled()],
        "locale": locale.setlocale(locale.LC_ALL),
        "logging": [[logging.getLogger(name).level, len(logging.getLogger(name).handlers)]
                    for name in loggers] + [logging.root.manager.disable],
        "sockets": socket.getdefaulttimeout(),
        "start of processes": multiprocessing.get_start_method(allow_none=True),
        "processors": sorted(os.sched_getaffinity(0)),
        "threads": threading.active_count(),
        "main": sys.modules["__main__"].__dict__.get("__file__"),
    }
"""
EVERYTHING = """
import importlib, pkgutil
import dataprep
for name in dataprep.__all__:
    getattr(dataprep, name)
for module in pkgutil.walk_packages(dataprep.__path__, "dataprep."):
    # The fork server of a job and the command have processes of their own; the last two
    # frameworks are not installed here.
    if module.name not in {"dataprep.job.fork_server_preload", "dataprep.__main__",
                           "dataprep.reading.mxnet", "dataprep.reading.tensorflow"}:
        importlib.import_module(module.name)
"""
USE = """
import io
import numpy, dataprep
from PIL import Image
exif = bytes.fromhex("457869660000 49492a0008000000 0500 1201")  # five entries, of which none is
file = io.BytesIO()
Image.new("RGB", (300, 200), "red").save(file, "PNG", exif=exif)
dataprep.convert(file.getvalue(), dataprep.ImagePolicy(size=64))
dataprep.Augmentation(size=512)(file.getvalue(), numpy.random.default_rng(0))
"""


def run(code: str, folder: Path) -> Any:
    """The last line that a program prints, as JSON. The program is read from standard input."""
    done = subprocess.run(
        [sys.executable, "-"], input=code, cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def changes(before: str, between: str, folder: Path) -> dict[str, Any]:
    """The differences of a process's state before and after ``between``."""
    code = "\n".join(
        [
            "import json",
            STATE,
            before,
            "first = state()",
            between,
            "last = state()",
            "print(json.dumps({key: [first[key], last[key]] for key in first "
            "if first[key] != last[key]}))",
        ]
    )
    return dict(run(code, folder))


def imports_of_others(folder: Path) -> str:
    """The imports of all modules of other packages that this one imports."""
    names = run(f"{EVERYTHING}\nimport json, sys, torch\nprint(json.dumps([*sys.modules]))", folder)
    others = [name for name in names if name.partition(".")[0] not in ("dataprep", "__main__")]
    return textwrap.dedent(
        f"""
        import contextlib, importlib, warnings
        for name in {others!r}:
            with contextlib.suppress(Exception):
                importlib.import_module(name)
        """
    )


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.smoke
def test_importing_converting_and_augmenting_change_nothing(tmp_path: Path) -> None:
    """No setting changes, neither by an import nor by an Exif block of which Pillow warns.

    Other packages, some of which change settings, are imported before.
    """
    strict = "warnings.simplefilter('error')"  # nor do these filters change the result
    before = f"{imports_of_others(tmp_path)}\n{strict}"
    assert changes(before, EVERYTHING + USE, tmp_path) == {}


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.smoke
@pytest.mark.parametrize("processes", [True, False])
def test_a_job_restores_what_it_changes(tmp_path: Path, processes: bool) -> None:
    """After ``dataprep.shard``, limits, warnings and OpenCV's threads are those before it."""
    draw_tree(tmp_path / "photos", images=8, classes=2)
    job = f"""
import dataprep
from dataprep.config.shard_config import DaskOptions
def job(output):
    dataprep.shard(dataprep.ShardConfig(
        source="photos", output=output, image=dataprep.ImagePolicy(size=64),
        dask=DaskOptions(workers=1, processes={processes}),
    ))
job("first")  # imports other packages, some of which change settings
"""
    setting = """
import cv2, resource, warnings
cv2.setNumThreads(3)
resource.setrlimit(resource.RLIMIT_NOFILE, (512, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
warnings.resetwarnings()
"""
    changed_settings = changes(job + setting, "job('second')", tmp_path)
    # multiprocessing's fork server and Dask's event loop stay for the next job.
    changed_settings.pop("threads", None)
    assert changed_settings == {}


def test_a_job_converts_with_one_thread_for_each_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenCV's own pool is off in all threads of a job, and is restored afterwards."""
    draw_tree(tmp_path / "photos", images=24, classes=2)
    thread_counts: set[int] = set()
    convert = dataprep.convert

    def noting(*arguments: Any, **options: Any) -> Any:
        thread_counts.add(cv2.getNumThreads())
        return convert(*arguments, **options)

    monkeypatch.setattr(conversion, "convert", noting)
    before = cv2.getNumThreads()
    cv2.setNumThreads(3)
    try:
        make(tmp_path / "photos", tmp_path / "out", image={"size": 64})
        assert thread_counts == {1}
        assert cv2.getNumThreads() == 3
    finally:
        cv2.setNumThreads(before)


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.smoke
@pytest.mark.parametrize(("threads", "pause_s"), [(0, 1.0), (2, 0.0)])
def test_a_job_runs_in_a_fork_of_a_process_with_opencv_threads(
    tmp_path: Path, threads: int, pause_s: float
) -> None:
    """A fork has no threads of OpenCV's pool, so that nothing may wait for them.

    The settings and pauses are those in which a wait was seen.
    """
    draw_tree(tmp_path / "photos", images=8, classes=2)
    program = f"""
import os, signal, time, cv2, numpy as np
import dataprep
from dataprep.config.shard_config import DaskOptions
job = dataprep.ShardConfig(
    source="photos", output="out", image=dataprep.ImagePolicy(size=64),
    dask=DaskOptions(workers=1, processes=False),
)
dataprep.plan(job)  # imports what a job needs: the fork must follow the pool's work at once
cv2.setNumThreads(2)
cv2.cvtColor(np.zeros((1500, 1500, 3), np.uint8), cv2.COLOR_RGB2BGRA)  # starts the pool
cv2.setNumThreads({threads})
time.sleep({pause_s})
child = os.fork()
if child == 0:
    signal.alarm(60)
    dataprep.shard(job)
    os._exit(0)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=False)
    assert done.returncode == 0
