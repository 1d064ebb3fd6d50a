"""The claims of ``benchmarks.published``: what others have published, and how to check it here."""

from __future__ import annotations

import math
import os
import shlex
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from benchmarks.limited_store import Limits, limited_store
from benchmarks.workplace import Workplace
from dataprep import Part
from dataprep.reading.staging import stage
from iobench.analysis.repeats import metric_values
from iobench.results.statistics import Estimate
from iobench.runner.run_folder import holds_run, read

ROOT = Path(__file__).parents[1]
CPUS = len(os.sched_getaffinity(0))

Figures: TypeAlias = Mapping[str, Mapping[str, Sequence[float]]]
"""The figure of each repeat, by metric and point."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A condition on the interval of a point, or of the ratio of two points: ``of/over``.

    The rule uses the claim's first metric. The lower end of the interval must be above ``above``
    and at most ``at_most``; its upper end must be at least ``reaches``.
    """

    of: str
    above: float = 0.0
    reaches: float = 0.0
    at_most: float = math.inf

    def holds(self, interval: Estimate) -> bool:
        """Whether an interval meets the condition."""
        return self.above < interval.low <= self.at_most and interval.high >= self.reaches


@dataclass(frozen=True, slots=True)
class Claim:
    """A published figure, and how to check it.

    Attributes:
        name: the key of its figures, and the argument of ``--only``.
        claim: what to do, in a few words.
        published: the figure that was published for it.
        holds_if: the condition of ``rules``, as the end of a sentence that begins with "The claim
            holds if".
        command: the command to run, here or, without ``measure``, elsewhere.
        result: the sentence of the table, with a field for each point or ratio, such as
            ``{two/one}``.
        why: a paragraph: why there are no figures, or why the claim does not hold here.
        measure: returns the figures; None if they need another machine.
        metrics: the unit of each metric.
        points: the parameters that select the trials of a point, by the name of the point.
        labels: what the page calls a point, if that is not the name of the point.
        rules: conditions, all of which must hold.
        copies: how many times each photograph is used, under different names.
    """

    name: str
    claim: str
    published: str
    holds_if: str
    command: str
    result: str = ""
    why: str = ""
    measure: Callable[[Claim, Workplace, int], Figures] | None = None
    metrics: Mapping[str, str] = field(default_factory=lambda: {"samples_per_s": "images/s"})
    points: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    rules: Sequence[Rule] = ()
    copies: int = 1

    def label(self, name: str) -> str:
        """The name of a point, or of a ratio of two points, on the page."""
        return " / ".join(self.labels.get(point, point) for point in name.split("/"))


def benchmark(claim: Claim, workplace: Workplace, repeats: int) -> Figures:
    """Run or resume the ``iobench run`` of a claim, and return its figures."""
    photos = workplace.repeated(claim.copies * workplace.images)
    program, *arguments = shlex.split(claim.command)
    arguments += ["--set", f"data.source={photos}"]
    arguments += ["--set", f"data.folder={workplace.root / 'data'}", "--set", f"repeats={repeats}"]
    config = Path(arguments[1])
    # Claims with the same command share a run. Another command or config gets another folder.
    request = "".join([*arguments, config.read_text()])
    folder = workplace.root / f"{config.stem}-{zlib.crc32(request.encode()):08x}"
    arguments += ["--output", str(folder)]
    if holds_run(folder):
        arguments.append("--resume")
    subprocess.run([sys.executable, "-m", program, *arguments], check=True, stdout=sys.stderr)
    trials = read(folder).trials
    figures: dict[str, dict[str, Sequence[float]]] = {metric: {} for metric in claim.metrics}
    for point, parameters in claim.points.items():
        of_point = [trial for trial in trials if parameters.items() <= trial.params.items()]
        for metric in claim.metrics:
            figures[metric][point] = metric_values(of_point, metric)
    return figures


def shares(claim: Claim, workplace: Workplace, repeats: int) -> Figures:
    """Measure how long a host takes to stage all shards and a quarter, from a slow store."""
    parts = {"all": None, "quarter": Part(0, 4)}
    durations_s: dict[str, list[float]] = {name: [] for name in parts}
    sharded = workplace.sharded(workplace.images, shard_size="1MB")
    with limited_store(Limits(bytes_per_s=5e6, latency_s=0.02), sharded) as store:
        for name in [*parts] * repeats:
            with tempfile.TemporaryDirectory(dir=workplace.root) as folder:
                (done,) = stage(store.uri, folder, host=parts[name], options=store.options())
            durations_s[name].append(done.seconds)
    return {"seconds": durations_s}


def digits(claim: Claim, workplace: Workplace, repeats: int) -> Figures:
    """Run the example once and return its accuracy, which is the same in each run."""
    _, script, *arguments = shlex.split(claim.command)
    program = [sys.executable, str(ROOT / script), *arguments]
    done = subprocess.run(
        program, check=True, cwd=workplace.root, stdout=subprocess.PIPE, text=True
    )
    return {"accuracy": {"validation": [float(done.stdout.split()[-1])]}}


_LOOPS = "iobench run configs/bench/loaders.yaml --set loaders=[]"
_SIZES = (
    "iobench run configs/bench/shard-size.yaml --set loaders=[] --set disk.layout_parallelism=1"
)


def _sizes(name: str, claim: str, published: str, sizes: Sequence[str]) -> Claim:
    """Return the claim that compares files with shards of the same images.

    Args:
        name: the name of the claim: ``disk`` or ``s3``, where the data are.
        claim: what to do, in a few words.
        published: the figure that was published for it.
        sizes: the sizes of shards, ascending, such as ``16MB``.
    """
    points = {"files": {"data": f"files@{name}"}}
    labels = {}
    for size in sizes:
        points[size] = {"data": f"shards-{size}@{name}"}
        labels[size] = f"shards of {size.replace('MB', ' MB')}"
    smallest, largest = sizes[0], sizes[-1]
    return Claim(
        name=name,
        claim=claim,
        published=published,
        holds_if="shards of every size are read at a higher rate than files",
        command=_SIZES,
        result=f"Files are read at {{files}} MB/s. Shards of {smallest.replace('MB', ' MB')} are "
        f"{{{smallest}/files}} times as fast, and {labels[largest]} are "
        f"{{{largest}/files}} times as fast.",
        measure=benchmark,
        metrics={"mb_per_s": "MB/s"},
        points=points,
        labels=labels,
        rules=[Rule(f"{size}/files", above=1) for size in sizes],
        copies=4,
    )


CLAIMS = (
    _sizes(
        "disk",
        "read a few large files instead of many small ones, from a disk",
        "10 GB take hours in 2,000,000 files of 5 kB, and minutes in 2,000 files of 5 MB. Files of "
        "1 to 128 MB are best.",
        ("1MB", "4MB", "16MB", "64MB", "128MB"),
    ),
    _sizes(
        "s3",
        "read a few large objects instead of many small ones, from S3",
        "The same figures as for a disk.",
        ("1MB", "16MB", "128MB"),
    ),
    Claim(
        name="workers",
        claim="use more loader workers in a training loop",
        published="From 1 to 7 workers the rate rises from 100 to 300 images/s, an epoch takes "
        "96 s instead of 260 s, and the device is busy 95 % instead of 50 % of the time.",
        holds_if="2 workers are faster than 1, 4 faster than 2, and 7 faster than 4",
        result="2 workers are {two/one} times as fast as 1, 4 workers {four/two} times as fast as "
        "2, and 7 workers {seven/four} times as fast as 4.",
        command=_LOOPS,
        why=f"This machine has {CPUS} CPUs, which 2 workers keep busy. More workers only share "
        "them. On a machine with 16 CPUs, 16 workers were 11 times as fast as one: see "
        "[One GPU, measured](one-gpu.md).",
        measure=benchmark,
        metrics={
            "samples_per_s": "images/s",
            "au_mlperf": "share of the time in which the device is busy",
        },
        points={
            name: {"data": "photos@disk", "workers": workers}
            for name, workers in (("one", 1), ("two", 2), ("four", 4), ("seven", 7))
        },
        labels={"one": "1 worker", "two": "2 workers", "four": "4 workers", "seven": "7 workers"},
        rules=[Rule(ratio, above=1) for ratio in ("two/one", "four/two", "seven/four")],
    ),
    Claim(
        name="resize",
        claim="resize the images once, beforehand",
        published="The loop is 3 times as fast with 1 worker. More workers then gain nothing.",
        holds_if="the loop is 3 times as fast on resized images as on photographs, and a second "
        "worker then gains at most 5 %",
        result="On resized images, the loop is {resized/photos} times as fast as on photographs. "
        "With 2 workers, it is then {resized2/resized} times as fast as with 1.",
        command=_LOOPS,
        why="The photographs of this data set are small (some 500 by 400 pixels), so resizing "
        "saves less than for photographs of a camera. After resizing, the device still waits for "
        "data, so a second worker gains.",
        measure=benchmark,
        points={
            "photos": {"data": "photos@disk", "workers": 1},
            "resized": {"data": "files@disk", "workers": 1},
            "resized2": {"data": "files@disk", "workers": 2},
        },
        labels={
            "photos": "photographs, 1 worker",
            "resized": "resized images, 1 worker",
            "resized2": "resized images, 2 workers",
        },
        rules=[Rule("resized/photos", reaches=3), Rule("resized2/resized", at_most=1.05)],
    ),
    Claim(
        name="sleep",
        claim="use 3 workers instead of 1 for a data set that sleeps for a second for each item",
        published="1 worker delivers 1 item/s, and 3 workers deliver 3 items/s.",
        holds_if="both measured rates differ from these rates by at most 5 %",
        result="1 worker delivers {one} item/s, and 3 workers deliver {three} items/s.",
        command="iobench run configs/bench/loaders.yaml --set training=[] --set "
        '\'loaders=[{"loader":"mock","workers":[1,3],"item_s":1,"batch_size":1,"seconds":9}]\'',
        measure=benchmark,
        metrics={"samples_per_s": "items/s"},
        points={"one": {"workers": 1}, "three": {"workers": 3}},
        labels={"one": "1 worker", "three": "3 workers"},
        rules=[
            Rule("one", above=0.95, at_most=1.05),
            Rule("three", above=2.85, at_most=3.15),
        ],
    ),
    Claim(
        name="access",
        claim="download data that fit into memory first, instead of streaming them or reading "
        "sample by sample",
        published="Downloading first is the fastest way.",
        holds_if="epochs after the download are faster than streamed epochs, and faster than "
        "epochs that are read sample by sample",
        result="After a download, an epoch that is read in sequence is {download/stream} times as "
        "fast as a streamed one. An epoch of single samples is {download-map/lazy-map} times as "
        "fast as one that requests each sample from the store.",
        command="iobench run configs/bench/access.yaml --set 'loaders.0.access=[file,pipe,lazy]'",
        measure=benchmark,
        metrics={
            "steady_samples_per_s": "images/s",
            "time_to_first_batch_s": "seconds to the first batch",
        },
        points={
            "download": {"loader": "torch-iterable", "access": "file"},
            "stream": {"loader": "torch-iterable", "access": "pipe"},
            "download-map": {"loader": "torch-map", "access": "file"},
            "lazy-map": {"loader": "torch-map", "access": "lazy"},
        },
        labels={
            "download": "downloaded, read in sequence",
            "stream": "streamed",
            "download-map": "downloaded, read by sample",
            "lazy-map": "requested by sample",
        },
        rules=[Rule("download/stream", above=1), Rule("download-map/lazy-map", above=1)],
    ),
    Claim(
        name="larger",
        claim="download data that do not fit into memory first, instead of streaming them",
        published="No figure was published.",
        holds_if="",
        command="systemd-run --user --scope -p MemoryMax=2G iobench run configs/bench/access.yaml "
        "--set data.shards=s3://bucket/out",
        why="It needs systemd, which limits the memory, and a store on another machine.",
    ),
    Claim(
        name="shares",
        claim="give each of N hosts its share of the shards, instead of all shards",
        published="The time to load is divided by N.",
        holds_if="all shards take more than 3.2 times as long as a quarter of them",
        result="All shards take {all} s, and a quarter of them {quarter} s. The ratio is "
        "{all/quarter}.",
        command="dataprep stage s3://bucket/out /nvme/out --host 0/4",
        measure=shares,
        metrics={"seconds": "s"},
        labels={"all": "all shards", "quarter": "a quarter of the shards"},
        rules=[Rule("all/quarter", above=3.2)],
    ),
    Claim(
        name="ceiling",
        claim="measure with synthetic data first",
        published="The device's own rate is the ceiling of the loop.",
        holds_if="the loop is not faster on shards than on synthetic data",
        result="On shards, the loop has {shards/synthetic} of its rate on synthetic data.",
        command="iobench run configs/bench/ladder.yaml --set training.0.inputs=synthetic "
        "--set 'training.1.inputs=[synthetic,warm]'",
        measure=benchmark,
        points={
            "synthetic": {"input": "synthetic", "workers": 1},
            "shards": {"input": "warm", "workers": 1},
        },
        labels={"synthetic": "synthetic data", "shards": "shards, warm"},
        rules=[Rule("shards/synthetic", at_most=1)],
    ),
    Claim(
        name="gpu",
        claim="use pinned memory and mixed precision",
        published="No figure was published.",
        holds_if="",
        result="On another machine with an H200, the loop is 1.27 times as fast with pinned memory "
        "and batches of 128, and 1.07 times as fast with batches of 256.",
        command="iobench run configs/bench/train-resnet50.yaml --set training.0.pin_memory=false "
        "--set training.0.precision=float32",
        why="It needs a GPU. [One GPU, measured](one-gpu.md) has figures of a machine with a GPU, "
        "but does not compare mixed precision with float32. To measure the claim, run this command "
        "with and without its `--set` options, and compare the two runs.",
    ),
    Claim(
        name="scaling",
        claim="train on several GPUs",
        published="From 4 to 8 GPUs the rate rises from 3,012 to 5,874 images/s (an efficiency of "
        "0.975). It is 44,000 images/s with 64 GPUs (0.92), and 171,000 with 256 (0.90).",
        holds_if="",
        command="iobench run configs/bench/train-all-gpus.yaml --set 'training.0.devices=[4,8]'",
        why="It needs 8 GPUs. On several hosts, run examples/train_ddp.py.",
    ),
    Claim(
        name="mxnet",
        claim="train a LeNet with MXNet from RecordIO",
        published="The accuracy is 0.977 in training and 0.969 in validation, at 15,554 to 19,700 "
        "samples/s on a GPU.",
        holds_if="the accuracy in validation reaches 0.969",
        result="The accuracy in validation is {validation}, on scikit-learn's digits instead of "
        "MNIST, in one run.",
        command="python examples/train_digits.py digits --framework mxnet",
        measure=digits,
        metrics={"accuracy": "share of the digits"},
        labels={"validation": "accuracy in validation"},
        rules=[Rule("validation", reaches=0.969)],
    ),
    Claim(
        name="advice",
        claim="follow all of the advice at once: resized shards on a disk with all workers, "
        "instead of photographs on S3 with 1 worker",
        published="The loop is up to 10 times as fast.",
        holds_if="the loop is 10 times as fast",
        result="The loop is {shards/photos} times as fast: {shards} instead of {photos} images/s.",
        why="The store is a program on the same CPUs, without latency, so photographs arrive "
        "faster here than from a store on another machine. There are also few CPUs for more "
        "workers.",
        command="iobench run configs/bench/advise.yaml --set loaders=[] --set object_store=null "
        "--set training.0.workers=1 --set training.0.inputs=store "
        f"--set training.1.workers={CPUS}",
        measure=benchmark,
        points={
            "photos": {"loader": "torch-folder"},
            "shards": {"loader": "torch-iterable"},
        },
        labels={"photos": "photographs on S3, 1 worker", "shards": f"shards, {CPUS} workers"},
        rules=[Rule("shards/photos", reaches=10)],
    ),
)
