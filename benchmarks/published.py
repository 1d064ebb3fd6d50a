"""Figures that others have published about feeding a training job, beside those of this machine.

    python -m benchmarks.published PHOTOS [--only NAME] [--repeats 6]

PHOTOS are class folders. Each claim is measured by its command, and its rules decide whether it
holds; then ``docs/published-figures.md`` is written. Runs and figures stay in ``--folder``: a later
call goes on with them, and measures only what is missing, or what ``--only`` names. Where MXNet is
not installed its claim is left out: call again with a Python that has it, and ``--only mxnet``.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shlex
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

from benchmarks.contest import worded
from benchmarks.limited_store import Limits, limited_store
from benchmarks.workplace import Workplace, photographs
from dataprep import Part
from dataprep.reading.staging import stage
from iobench.analysis.repeats import metric_values
from iobench.results.statistics import Estimate, estimate, median
from iobench.runner.run_folder import holds_run, read

ROOT = Path(__file__).parents[1]
CPUS = len(os.sched_getaffinity(0))

Figures: TypeAlias = Mapping[str, Mapping[str, Sequence[float]]]
"""By metric and point, one figure per repeat."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A condition on the interval of a point, or of the ratio of two points: ``of/over``.

    It uses the claim's first metric. The lower end must be above ``above`` and at most
    ``at_most``; the upper end must be at least ``reaches``.
    """

    of: str
    above: float = 0.0
    reaches: float = 0.0
    at_most: float = math.inf

    def holds(self, found: Estimate) -> bool:
        """Whether an interval meets the condition."""
        return self.above < found.low <= self.at_most and found.high >= self.reaches


@dataclass(frozen=True, slots=True)
class Claim:
    """A published figure, and how to check it.

    Attributes:
        holds_if: ``rules`` in words.
        command: what to run, here or, without ``measure``, elsewhere.
        why: why there are no figures, or why a rule may fail.
        measure: returns the figures; None if they need another machine.
        metrics: units by metric.
        points: the parameters that select a point's trials, by its name.
        rules: conditions, all of which must hold.
        copies: how many times to use each photograph, under different names.
    """

    name: str
    claim: str
    published: str
    holds_if: str
    command: str
    why: str = ""
    measure: Callable[[Claim, Workplace, int], Figures] | None = None
    metrics: Mapping[str, str] = field(default_factory=lambda: {"samples_per_s": "img/s"})
    points: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    rules: Sequence[Rule] = ()
    copies: int = 1


def benchmark(claim: Claim, place: Workplace, repeats: int) -> Figures:
    """Run or resume the ``iobench run`` of a claim, and return its figures."""
    program, *words = shlex.split(claim.command)
    words += ["--set", f"data.source={place.repeated(claim.copies * place.images)}"]
    words += ["--set", f"data.folder={place.root / 'data'}", "--set", f"repeats={repeats}"]
    config = Path(words[1])
    asked = "".join([*words, config.read_text()])
    folder = place.root / f"{config.stem}-{zlib.crc32(asked.encode()):08x}"
    words += ["--output", str(folder), *(["--resume"] if holds_run(folder) else [])]
    subprocess.run([sys.executable, "-m", program, *words], check=True, stdout=sys.stderr)
    trials = read(folder).trials
    chosen = {
        point: [one for one in trials if params.items() <= one.params.items()]
        for point, params in claim.points.items()
    }
    return {
        metric: {point: metric_values(some, metric) for point, some in chosen.items()}
        for metric in claim.metrics
    }


def shares(claim: Claim, place: Workplace, repeats: int) -> Figures:
    """Measure how long a host takes to stage all shards and a quarter, from a slow store."""
    parts = {"all": None, "quarter": Part(0, 4)}
    taken: dict[str, list[float]] = {name: [] for name in parts}
    sharded = place.sharded(place.images, shard_size="1MB")
    with limited_store(Limits(bytes_per_s=5e6, latency_s=0.02), sharded) as store:
        for name in [*parts] * repeats:
            with tempfile.TemporaryDirectory(dir=place.root) as folder:
                (done,) = stage(store.uri, folder, host=parts[name], options=store.options())
            taken[name].append(done.seconds)
    return {"seconds": taken}


def digits(claim: Claim, place: Workplace, repeats: int) -> Figures:
    """Run the example once and return its accuracy, which is the same in each run."""
    _, script, *words = shlex.split(claim.command)
    program = [sys.executable, str(ROOT / script), *words]
    done = subprocess.run(program, check=True, cwd=place.root, stdout=subprocess.PIPE, text=True)
    return {"accuracy": {"validation": [float(done.stdout.split()[-1])]}}


def judged(claim: Claim, figures: Figures) -> tuple[str, str]:
    """Return the measured figures in words, and the verdict."""
    first = next(iter(claim.metrics))
    points = {**figures[first]}
    for rule in claim.rules:
        of, _, over = rule.of.partition("/")
        if over:
            points[rule.of] = [a / b for a, b in zip(points[of], points[over], strict=True)]
    failed = [one.of for one in claim.rules if not one.holds(estimate(points[one.of]))]
    words = []
    for metric, unit in claim.metrics.items():
        said = []
        for name, found in (points if metric == first else figures[metric]).items():
            shown = estimate(found if name in [one.of for one in claim.rules] else [median(found)])
            said.append(f"{name} {worded(shown)}".replace(" to ", "–"))
        words.append(f"{unit}: {', '.join(said)}")
    verdict = f"holds ({claim.holds_if})"
    if failed:
        verdict = f"does not hold here ({claim.holds_if}): {', '.join(failed)}; {claim.why}"
    return "; ".join(words), verdict.removesuffix("; ")


def page(figures: Mapping[str, Figures], images: int, repeats: int) -> str:
    """Return the page: a row for each claim, and the commands."""
    rows = [("", "claim", "published", "measured here", "verdict"), ("---",) * 5]
    numbers: dict[str, list[str]] = {}
    for number, one in enumerate(CLAIMS, 1):
        measured, verdict = "", "not run yet" if one.measure else f"not measured here: {one.why}"
        if one.name in figures:
            measured, verdict = judged(one, figures[one.name])
        rows.append((str(number), one.claim, one.published, measured, verdict))
        numbers.setdefault(one.command, []).append(str(number))
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    listed = "\n".join(f"# {', '.join(n)}\n{command}" for command, n in numbers.items())
    return _PAGE.format(
        cpus=CPUS,
        images=images,
        repeats=repeats,
        table=table,
        commands=listed.replace(" --set", " \\\n    --set"),
    )


_LOOPS = "iobench run configs/bench/loaders.yaml --set loaders=[]"
_SIZES = (
    "iobench run configs/bench/shard-size.yaml --set loaders=[] --set disk.layout_parallelism=1"
)


def _sizes(name: str, claim: str, published: str, sizes: Sequence[str]) -> Claim:
    """Compare files with shards of the same images, on a disk or a store."""
    return Claim(
        name,
        claim,
        published,
        "shards are faster than files",
        _SIZES,
        measure=benchmark,
        metrics={"mb_per_s": "MB/s"},
        points={
            "files": {"data": f"files@{name}"},
            **{size: {"data": f"shards-{size}@{name}"} for size in sizes},
        },
        rules=[Rule(f"{size}/files", above=1) for size in sizes],
        copies=4,
    )


CLAIMS = (
    _sizes(
        "disk",
        "few large files, not many small, from disk",
        "10 GB: 2,000,000 of 5 kB hours, 2,000 of 5 MB minutes; best 1 to 128 MB",
        ("1MB", "4MB", "16MB", "64MB", "128MB"),
    ),
    _sizes("s3", "the same from S3", "the same", ("1MB", "16MB", "128MB")),
    Claim(
        name="workers",
        claim="more workers in a training loop",
        published="1 to 7: 100 to 300 img/s, epoch 260 to 96 s, device 50 to 95 % busy",
        holds_if="each step is faster",
        command=_LOOPS,
        why=f"there are {CPUS} CPUs",
        measure=benchmark,
        metrics={"samples_per_s": "img/s", "au_mlperf": "device busy"},
        points={
            name: {"data": "photos@disk", "workers": workers}
            for name, workers in (("one", 1), ("two", 2), ("four", 4), ("seven", 7))
        },
        rules=[Rule(ratio, above=1) for ratio in ("two/one", "four/two", "seven/four")],
    ),
    Claim(
        name="resize",
        claim="resize once, beforehand",
        published="3 times with 1 worker; more workers gain nothing",
        holds_if="reaches 3; at most 1.05",
        command=_LOOPS,
        why="the photographs are small; the device still waits",
        measure=benchmark,
        points={
            "photos": {"data": "photos@disk", "workers": 1},
            "resized": {"data": "files@disk", "workers": 1},
            "resized2": {"data": "files@disk", "workers": 2},
        },
        rules=[Rule("resized/photos", reaches=3), Rule("resized2/resized", at_most=1.05)],
    ),
    Claim(
        name="sleep",
        claim="a data set that sleeps a second an item",
        published="1 worker: 1 item/s; 3 workers: 3",
        holds_if="within 5 %",
        command="iobench run configs/bench/loaders.yaml --set training=[] --set "
        '\'loaders=[{"loader":"mock","workers":[1,3],"item_s":1,"batch_size":1,"seconds":9}]\'',
        measure=benchmark,
        metrics={"samples_per_s": "items/s"},
        points={"one": {"workers": 1}, "three": {"workers": 3}},
        rules=[
            Rule("one", above=0.95, at_most=1.05),
            Rule("three", above=2.85, at_most=3.15),
        ],
    ),
    Claim(
        name="access",
        claim="download first, stream or read lazily: data fit in memory",
        published="the download wins",
        holds_if="its later epochs are faster",
        command="iobench run configs/bench/access.yaml --set 'loaders.0.access=[file,pipe,lazy]'",
        measure=benchmark,
        metrics={"steady_samples_per_s": "img/s", "time_to_first_batch_s": "first batch, s"},
        points={
            "download": {"loader": "torch-iterable", "access": "file"},
            "stream": {"loader": "torch-iterable", "access": "pipe"},
            "download-map": {"loader": "torch-map", "access": "file"},
            "lazy-map": {"loader": "torch-map", "access": "lazy"},
        },
        rules=[Rule("download/stream", above=1), Rule("download-map/lazy-map", above=1)],
    ),
    Claim(
        name="larger",
        claim="data do not fit",
        published="not stated",
        holds_if="",
        command="systemd-run --user --scope -p MemoryMax=2G iobench run configs/bench/access.yaml "
        "--set data.shards=s3://bucket/out",
        why="needs systemd and a store elsewhere",
    ),
    Claim(
        name="shares",
        claim="M/N keys for each of N hosts, not all M",
        published="load time divided by N",
        holds_if="4 hosts: above 3.2",
        command="dataprep stage s3://bucket/out /nvme/out --host 0/4",
        measure=shares,
        metrics={"seconds": "s"},
        rules=[Rule("all/quarter", above=3.2)],
    ),
    Claim(
        name="ceiling",
        claim="synthetic data first",
        published="the device's own rate is the ceiling",
        holds_if="the loop is not faster",
        command="iobench run configs/bench/ladder.yaml --set training.0.inputs=synthetic "
        "--set 'training.1.inputs=[synthetic,warm]'",
        measure=benchmark,
        points={
            "synthetic": {"input": "synthetic", "workers": 1},
            "shards": {"input": "warm", "workers": 1},
        },
        rules=[Rule("shards/synthetic", at_most=1)],
    ),
    Claim(
        name="gpu",
        claim="pinned memory; mixed precision",
        published="the same",
        holds_if="",
        command="iobench run configs/bench/train-resnet50.yaml --set training.0.pin_memory=false "
        "--set training.0.precision=float32",
        why="needs a GPU; compare without `--set`",
    ),
    Claim(
        name="scaling",
        claim="several GPUs",
        published="3,012 to 5,874 img/s (0.975) from 4 to 8; 44,000 (0.92) at 64; 171,000 (0.90) "
        "at 256",
        holds_if="",
        command="iobench run configs/bench/train-all-gpus.yaml --set 'training.0.devices=[4,8]'",
        why="needs 8 GPUs; on more hosts, examples/train_ddp.py",
    ),
    Claim(
        name="mxnet",
        claim="MXNet trains LeNet from RecordIO",
        published="accuracy 0.977 training, 0.969 validation; 15,554 to 19,700 samples/s on a GPU",
        holds_if="reaches 0.969",
        command="python examples/train_digits.py digits --framework mxnet",
        measure=digits,
        metrics={"accuracy": "one run, scikit-learn's digits, not MNIST"},
        rules=[Rule("validation", reaches=0.969)],
    ),
    Claim(
        name="advice",
        claim="all of the advice at once: photos from S3 with 1 worker to resized shards on disk",
        published="up to 10 times",
        holds_if="reaches 10",
        command="iobench run configs/bench/advise.yaml --set loaders=[] --set object_store=null "
        "--set training.0.workers=1 --set training.0.inputs=store "
        f"--set training.1.workers={CPUS}",
        measure=benchmark,
        points={
            "photos": {"loader": "torch-folder"},
            "shards": {"loader": "torch-iterable"},
        },
        rules=[Rule("shards/photos", reaches=10)],
    ),
)

_PAGE = """\
# Published figures, measured here

For people who read that a change speeds training up: what {cpus} CPUs find, without a GPU, with
{images:,} photographs. `python -m benchmarks.published PHOTOS` writes this page. Both sides of a
ratio have the same images. Figures are medians of {repeats} repeats; the rule in brackets applies
to the interval.

{table}

By number; `--set data.source=PHOTOS` is added for iobench:

<!-- not run: half an hour -->
```sh
{commands}
```

- S3 is moto on the same CPUs, without latency: Amazon's differences are larger.
- Small files are photographs at 256 pixels, some 40 kB; one process reads.
- `loaders.yaml` emulates a V100.
- The hosts' store answers after 20 ms, with 5 MB/s for each host.
"""


def main() -> None:
    """Measure what is missing, and write the page after each claim."""
    measurable = {one.name: one for one in CLAIMS if one.measure}
    parser = argparse.ArgumentParser(prog="python -m benchmarks.published")
    parser.add_argument("photos", type=Path, help="class folders")
    parser.add_argument("--only", choices=measurable)
    parser.add_argument("--repeats", type=int, default=6)
    parser.add_argument("--folder", type=Path, default=Path("reports/published"))
    parser.add_argument("--page", type=Path, default=ROOT / "docs/published-figures.md")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    images = len(photographs(options.photos))
    place = Workplace(options.folder.resolve(), options.photos.resolve(), images)
    kept = place.root / "figures.json"
    figures = json.loads(kept.read_text()) if kept.exists() else {}
    for name, claim in measurable.items():
        wanted = name == options.only if options.only else name not in figures
        if wanted and claim.measure and (claim.measure is not digits or find_spec("mxnet")):
            figures[name] = claim.measure(claim, place, options.repeats)
            kept.write_text(json.dumps(figures))
        options.page.write_text(page(figures, images, options.repeats))


if __name__ == "__main__":
    main()
