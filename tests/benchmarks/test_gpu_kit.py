"""The GPU kit is built, installs and runs without network, and loses only the parts that fail."""

from __future__ import annotations

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from PIL import Image

import iobench
from benchmarks.gpu import prepare
from benchmarks.gpu.build import BROUGHT, MOST_BYTES, PHOTOS, write_photos
from benchmarks.gpu.line import figures, reason
from benchmarks.loader_scaling import PREFETCH, Point, rate_at
from benchmarks.loading_peers import BATCH
from benchmarks.shard_scaling import timed_job
from benchmarks.workplace import Workplace, files_below
from dataprep.drawn import draw_tree
from iobench.config.benchmark import BenchConfig
from iobench.loaders.protocol import ReadPattern
from iobench.results.result import Result, trial_line
from iobench.results.trial import Trial
from iobench.runner.run_folder import add_line, begin_log, read
from iobench.trials.samples_in_flight import sample_flow
from tests.benchmarks.torch_image import make_image
from tests.commandline import make

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "benchmarks" / "gpu" / "run.sh"
PAGE = ROOT / "docs" / "offline.md"
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
PARTS = ("prepare", "device", "loaders", "shard", "training", "watch", "replay", "ladder")
MOST_FILE_BYTES = 16 * 2**20
PATIENT = {"LIMIT": "3000", **{f"LIMIT_{part.upper()}": "600" for part in PARTS}}
"""No part is stopped because the machine is busy."""
FAILING_EXAMPLE = """
import os, pathlib, sys

folder = pathlib.Path(sys.argv[sys.argv.index("--watch") + 1])
folder.mkdir()
(folder / "zeros").write_bytes(bytes(20 << 20))
(folder / "noise").write_bytes(os.urandom(20 << 20))
raise RuntimeError("out of paint")
"""
TAKES_MINUTES = pytest.mark.timeout(1500)


@dataclass(frozen=True)
class Ended:
    """A run of ``run.sh`` has an exit code, printed text and the folder of its results."""

    code: int
    printed: str
    out: Path

    @property
    def lines(self) -> dict[str, str]:
        """Return the printed line of each part by the part's name."""
        named = (line.partition(": ") for line in self.printed.splitlines())
        return {name: message for name, _, message in named}


def run(kit: Path, out: Path, settings: Mapping[str, str], *, offline: bool = False) -> Ended:
    """Run the script of a kit with these variables and none of this machine's for Python or pip."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "PIP_", "VIRTUAL_ENV"))
    }
    command = ["bash", str(kit / "run.sh")]
    if offline:
        # Dask and torchrun need the loopback.
        command = ["unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", *command]
    done = subprocess.run(
        command,
        env={**environment, "DEVICE": "cpu", "QUICK": "1", "OUT": str(out), **settings},
        cwd=out.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return Ended(done.returncode, done.stdout, out)


def copied(kit: Path, target: Path, *without: str) -> Path:
    """Return a copy of a kit in which some files are missing."""
    shutil.copytree(kit, target, copy_function=os.link)
    for pattern in without:
        for path in target.glob(pattern):
            path.unlink()
    return target


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skip if pip reaches no package index."""
    folder = tmp_path_factory.mktemp("index")
    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", "--no-deps", "--dest", folder, "packaging"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"pip reaches no package index: {done.stderr.strip().splitlines()[-1]}")


@pytest.fixture(scope="module")
def kit(index: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a kit for this version of Python with 24 drawn photographs."""
    folder = tmp_path_factory.mktemp("kit")
    photos = draw_tree(folder / "photos", images=24, classes=3).root
    kit_folder = folder / "gpu-kit"
    subprocess.run(
        [
            *(sys.executable, "-m", "benchmarks.gpu.build", "--to", kit_folder),
            *("--for-python", PYTHON, "--photos", photos),
        ],
        cwd=ROOT,
        check=True,
    )
    return kit_folder


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the interpreter of an environment that has only what an image with PyTorch has."""
    return str(make_image(tmp_path_factory.mktemp("image") / "environment"))


@pytest.fixture(scope="module")
def no_network() -> None:
    """Skip where a process cannot be put into a network of its own."""
    tried = ["unshare", "-n", "ip", "link", "set", "lo", "up"]
    try:
        done = subprocess.run(tried, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        pytest.skip(f"{error.filename} is not installed")
    if done.returncode:
        pytest.skip(f"no network of its own for a process: {done.stderr.strip()}")


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """Yield an empty folder with a path that is short enough for sockets below it."""
    with tempfile.TemporaryDirectory(prefix="kit-") as folder:
        yield Path(folder)


@pytest.mark.slow
@pytest.mark.process
@TAKES_MINUTES
def test_the_kit_holds_the_missing_wheels_and_is_small(kit: Path) -> None:
    """It has this package and no package that an image with PyTorch brings; no index is named."""
    packed = {path.name.partition("-")[0].lower() for path in (kit / "wheels").iterdir()}
    assert {"dataprep_iobench", "dask", "boto3", "crc32c", "nvidia_ml_py"} <= packed
    assert not packed & {name.replace("-", "_") for name in BROUGHT | {"torch"}}
    listed = (kit / f"requirements-{PYTHON}.txt").read_text().splitlines()
    assert len(listed) == len(packed)
    assert all(re.fullmatch(r"[a-z0-9-]+==[0-9][\w.]*", line) for line in listed)
    photos_bytes = 300 * 45_000  # A full set of photographs like those of ImageNet is so large.
    size_bytes = sum(path.stat().st_size for path in files_below(kit))
    assert size_bytes + photos_bytes < MOST_BYTES


@pytest.mark.slow
@pytest.mark.process
@TAKES_MINUTES
def test_all_parts_run_without_network(
    kit: Path, image: str, no_network: None, tmp_path: Path, short_folder: Path
) -> None:
    """Each part has its line and its figures, and results, reports and versions are left."""
    settings = {**PATIENT, "PYTHON": image, "TMPDIR": str(short_folder)}
    ended = run(kit, tmp_path / "out", settings, offline=True)
    can_replay = "replay" in inspect.signature(iobench.watch).parameters
    expected = [name for name in PARTS if can_replay or name != "replay"]
    done = [name for name in PARTS if ended.lines[name].startswith("done, ")]
    assert done == expected, ended.printed
    assert ended.code == int(not can_replay)
    assert "48 images" in ended.lines["prepare"]
    assert re.search(r"device alone, synthetic [\d,]+ img/s", ended.lines["device"])
    assert re.search(r"float32 by workers 1: [\d,]+, 2: [\d,]+", ended.lines["loaders"])
    assert re.search(r"by workers 1: [\d,]+ \(1\.0x\), 2: ", ended.lines["shard"])
    assert len(re.findall(r"(?:device|host), (?:not )?pinned, warm", ended.lines["training"])) == 3
    assert "waits for data" in ended.lines["watch"]
    assert not can_replay or "its loader" in ended.lines["replay"]
    assert "+ read, page cache warm" in ended.lines["ladder"]
    for name in ("device", "training", "ladder", "watch"):
        assert (ended.out / name / "report.html").stat().st_size
        assert json.loads((ended.out / name / "result.json").read_bytes())["trials"]
    assert "torch==" in (ended.out / "versions.txt").read_text()
    assert (ended.out / "lines.txt").read_text() == ended.printed
    assert max(path.stat().st_size for path in files_below(ended.out)) < MOST_FILE_BYTES
    assert not list(short_folder.iterdir()), "temporary files are left"


@pytest.mark.slow
@pytest.mark.process
@TAKES_MINUTES
def test_only_the_parts_that_fail_or_overrun_are_lost(
    kit: Path, image: str, tmp_path: Path
) -> None:
    """The other parts are done, the exit code is 1, and no file is too large to be carried back."""
    broken = copied(kit, tmp_path / "kit", "examples/*.py")
    (broken / "examples" / "train_ddp.py").write_text(FAILING_EXAMPLE)
    variables = {**PATIENT, "PARTS": "prepare device watch shard", "LIMIT_DEVICE": "1"}
    variables["PYTHON"] = image
    ended = run(broken, tmp_path / "out", variables)
    assert ended.lines["device"].startswith("stopped after its 1 s")
    assert ended.lines["watch"].startswith("failed with exit code 1")
    assert ended.lines["watch"].endswith("RuntimeError: out of paint")
    assert ended.lines["prepare"].startswith("done, ")
    assert ended.lines["shard"].startswith("done, ")
    assert ended.code == 1
    assert max(path.stat().st_size for path in files_below(ended.out)) < MOST_FILE_BYTES
    assert (ended.out / "watch" / "zeros.gz").exists()
    assert "noise.gz" in ended.lines["gpu-kit"]
    variables = {"PYTHON": image, "PARTS": "prepare shard", "LIMIT": "1"}
    late = run(kit, tmp_path / "late", variables)
    assert [late.lines[name][:8] for name in ("prepare", "shard")] == ["not run:", "not run:"]
    assert late.code == 1


@pytest.mark.slow
@pytest.mark.process
@TAKES_MINUTES
def test_a_missing_wheel_is_named(kit: Path, image: str, tmp_path: Path) -> None:
    """pip's settings on the machine do not add it, and nothing is measured."""
    incomplete = copied(kit, tmp_path / "kit", "wheels/crc32c-*")
    settings = {"PYTHON": image, "PIP_FIND_LINKS": str(kit / "wheels")}
    ended = run(incomplete, tmp_path / "out", settings)
    assert ended.code == 2
    assert "cannot be installed" in ended.printed
    assert "crc32c" in ended.printed


@pytest.mark.slow
@pytest.mark.process
@TAKES_MINUTES
def test_the_page_installs_what_an_image_lacks(kit: Path, image: str, tmp_path: Path) -> None:
    """pip takes the missing packages from the folder of wheels and keeps those of the image."""
    command = "python3 -m pip install --no-index --find-links wheels dataprep-iobench"
    assert f"\n{command}\n" in PAGE.read_text()
    (tmp_path / "wheels").symlink_to(kit / "wheels")
    environment = {"PATH": os.environ["PATH"], "PIP_CONFIG_FILE": os.devnull}
    done = subprocess.run(
        # The packages of the image are links to those of this environment: nothing may change.
        [image, *command.split()[1:], "--dry-run"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    (message,) = re.findall(r"Would install (.*)", done.stdout)
    names = {word.rpartition("-")[0] for word in message.split()}
    assert {"dataprep-iobench", "dask", "boto3"} <= {name.replace("_", "-") for name in names}
    assert not names & {*BROUGHT, "torch"}


@pytest.mark.process
@pytest.mark.parametrize("command", ["wheel", "download", "install"])
def test_the_options_of_pip_on_the_page_exist(command: str) -> None:
    """Every option in the page's blocks is one of pip's."""
    text = PAGE.read_text().replace("\\\n", " ")
    written = re.findall(rf"pip {command} (.*)", text)
    options = {word for line in written for word in line.split() if word.startswith("-")}
    done = subprocess.run(
        [sys.executable, "-m", "pip", command, "--help"], capture_output=True, text=True, check=True
    )
    assert options
    assert options <= set(re.findall(r"--?[\w-]+", done.stdout))


@pytest.mark.parametrize("part", PARTS)
def test_every_part_is_explained(part: str) -> None:
    """The kit's README and the page about machines without network have the line of each part."""
    readme = (SCRIPT.parent / "README.md").read_text()
    assert f"\n{part}: done, N s: " in readme
    assert re.search(rf"^\|.*`{part}`.* \|", PAGE.read_text(), re.M)


@pytest.mark.process
@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"DEVICE": "tpu"}, "DEVICE=tpu: give gpu or cpu"),
        ({"PYTHON": "no-such-python"}, "PYTHON=no-such-python does not run"),
        ({"PYTHON": sys.executable}, f"is Python {PYTHON}: build it again"),
        ({"OUT": "full"}, "OUT=.*full is not empty"),
    ],
    ids=lambda value: "".join(value) if isinstance(value, Mapping) else "",
)
def test_settings_that_cannot_run_are_refused(
    settings: Mapping[str, str], complaint: str, tmp_path: Path
) -> None:
    """The exit code is 2, and the message says what to do."""
    kit = tmp_path / "kit"
    kit.mkdir()
    shutil.copy(SCRIPT, kit)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "result").touch()
    ended = run(kit, tmp_path / "out", settings)
    assert ended.code == 2
    assert re.search(complaint, ended.printed)


def test_the_configs_are_valid(tmp_path: Path) -> None:
    """They suit a GPU, a processor and few steps; a processor has no pinned memory."""
    for name in prepare.RUNS:
        for device, quick in (("gpu", False), ("cpu", False), ("cpu", True)):
            content = prepare.config(name, tmp_path, tmp_path, device=device, quick=quick)
            config = BenchConfig.model_validate(yaml.safe_load(yaml.safe_dump(content)))
            assert all(loop.device == device for loop in config.training)
            assert quick == (config.training[0].model == "lenet")
            if device == "cpu":
                assert not any(loop.pin_memory for loop in config.training)


def test_training_and_ladder_cover_both_types_pinned_and_not(tmp_path: Path) -> None:
    """The ladder has the loop that normalises on the device, from pinned memory."""
    loops = [
        loop
        for name in ("training", "ladder")
        for loop in BenchConfig.model_validate(
            prepare.config(name, tmp_path, tmp_path, device="gpu", quick=False)
        ).training
    ]
    assert sorted((loop.normalise_on, loop.pin_memory) for loop in loops) == [
        ("device", False),
        ("device", True),
        ("host", False),
        ("host", True),
    ]
    assert {loop.precision for loop in loops} == {"mixed"}
    assert {loop.batch_size for loop in loops} == {256}


def test_a_kit_has_enough_images_for_a_steady_state(tmp_path: Path) -> None:
    """Each loop has enough images, and so have 16 workers of a loader alone."""
    batches_and_workers = {(BATCH, 16)}
    for name in ("training", "ladder"):
        content = prepare.config(name, tmp_path, tmp_path, device="gpu", quick=False)
        for loop in BenchConfig.model_validate(content).training:
            batches_and_workers.add((loop.batch_size, loop.workers))
    for batch_size, workers in batches_and_workers:
        pattern = ReadPattern(workers)
        flow = sample_flow(pattern, batch_size=batch_size, workers=workers, prefetch=PREFETCH)
        assert flow.min_epoch_samples <= PHOTOS * 200


def test_photographs_have_a_short_side_of_256(tmp_path: Path) -> None:
    """They come from all classes, at most 300; files that are no images are left out."""
    source = draw_tree(tmp_path / "source", images=9, classes=3).root
    next(source.iterdir()).joinpath("notes.txt").write_text("no image")
    assert write_photos(source, tmp_path / "photos") == 9 <= PHOTOS
    written = files_below(tmp_path / "photos")
    assert len({path.parent.name for path in written}) == 3
    for path in written:
        with Image.open(path) as image:
            assert min(image.size) == 256


def test_a_line_sums_up_what_was_written(tmp_path: Path) -> None:
    """It has the rates of jobs and loaders and the rungs of a ladder, or is empty."""
    jobs = [{"workers": 1, "images": 30, "phase_s": 1.5, "command_s": 4.0}]
    jobs.append({"workers": 4, "images": 120, "phase_s": 2.0, "command_s": 5.0})
    (tmp_path / "shard.json").write_text(json.dumps({"jobs": jobs}))
    assert figures("shard", tmp_path) == "img/s by workers 1: 20 (1.0x), 4: 60 (3.0x)"
    rates = [
        {
            "by": by,
            "count": count,
            "dtype": "uint8",
            "samples_per_s": 1000.0 * count,
            "rule": "steady",
            "balance": 1.0,
        }
        for by in ("threads", "workers")
        for count in (1, 2)
    ]
    (tmp_path / "loaders.json").write_text(json.dumps({"rates": rates}))
    assert figures("loaders", tmp_path) == (
        "img/s uint8 by threads 1: 1,000, 2: 2,000; uint8 by workers 1: 1,000, 2: 2,000"
    )
    (tmp_path / "ladder").mkdir()
    # A run that was killed leaves only its log.
    begin_log(tmp_path / "ladder", read(ROOT / "reports" / "examples" / "ladder"))
    assert figures("ladder", tmp_path).startswith("s/1,000 samples: device-resident 0.784, ")
    assert figures("device", tmp_path) == ""
    (tmp_path / "device.log").write_text("begun\nno GPU\n====\n\n")
    assert reason(tmp_path / "device.log") == "no GPU"
    (tmp_path / "watch.log").write_text("[rank0]: TypeError: no replay\nChildFailedError: \nend\n")
    assert reason(tmp_path / "watch.log") == "TypeError: no replay"


def test_the_line_of_the_device_has_the_means_of_its_readings(tmp_path: Path) -> None:
    """Only readings within the steps that count are taken."""
    params = {"group": "device alone", "input": "synthetic"}
    metrics = {"samples_per_s": 2600.4, "seconds": 10.0}
    trial = Trial("synthetic-1", "train", params, 0, "done", metrics)
    readings = {
        "time_s": [-1.0, 1.0, 9.0, 11.0],
        "gpu.0_utilisation_share": [0.0, 0.98, 1.0, 0.0],
        "gpu.0_power_w": [70.0, 600.0, 620.0, 70.0],
    }
    folder = tmp_path / "device"
    folder.mkdir()
    begin_log(folder, Result("device", "2026-01-01T00:00:00+00:00", {}, {}))
    add_line(folder, trial_line(trial, {}, readings))
    line = figures("device", tmp_path)
    assert line == "device alone, synthetic 2,600 img/s; utilisation 99 %; power 610 W"


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.parametrize("by", ["threads", "workers"])
def test_loaders_are_measured_in_whole_epochs_of_few_images(by: str, tmp_path: Path) -> None:
    """Each sample that is consumed has arrived in the counted time."""
    photos = draw_tree(tmp_path / "photos", images=90, classes=3).root
    make(photos, tmp_path / "shards", image={"size": 64})
    rate = rate_at(str(tmp_path / "shards"), Point(by, 2, "uint8"), 0.1)  # type: ignore[arg-type]
    assert rate.rule == "epochs"
    assert rate.samples_per_s > 0
    assert rate.balance == pytest.approx(1)


@pytest.mark.slow
@pytest.mark.process
def test_a_job_is_timed_with_and_without_its_start(tmp_path: Path) -> None:
    """Photographs are repeated until there are enough, and the shard phase is a part of the job."""
    photos = draw_tree(tmp_path / "photos", images=6, classes=2).root
    (tmp_path / "work").mkdir()
    times = timed_job(Workplace(tmp_path / "work", photos, 0), workers=1, images=12)
    assert (times.workers, times.images) == (1, 12)
    assert 0 < times.phase_s < times.command_s
    assert times.images_per_s == pytest.approx(12 / times.phase_s)


@pytest.mark.process
def test_make_builds_the_kit() -> None:
    """``make gpu-kit`` passes versions of Python and photographs on."""
    done = subprocess.run(
        ["make", "--dry-run", "gpu-kit", "FOR_PYTHON=3.12 3.13", "PHOTOS=my photos"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    command = " ".join(done.stdout.replace("\\\n", " ").split())
    expected = "benchmarks.gpu.build --to build/gpu-kit --for-python 3.12 --for-python 3.13"
    assert f'{expected} --photos "my photos"' in command
