"""Every hostile image as a tar, as a listing and as shards: each is accounted for once.

``PYTHONPATH=. python -m tests.reliability.hostile_sources [--each N] [--seed S] [--save]``

The same files as in ``hostile_images``, which tries them as class folders.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import io
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow.parquet as pq

import dataprep
from dataprep.formats import RecordOptions, Sample, get_format
from dataprep.names import to_bytes, unescape
from tests.reliability.hostile_images import EACH, SEED
from tests.reliability.images.case import Case
from tests.reliability.images.corpus import corpus
from tests.reliability.images.jobs import Watched, watched
from tests.reliability.images.tree import name_of, write
from tests.reliability.rows import Row, Tried, save, table

_JOB = ("--format", "tfrecord", "--format", "recordio", "--shard-size", "8MB", "--size", "64")
_ALL_MAY_FAIL = ("--max-failures", "100%")
_PROCESSES = ("--set", "dask.processes=true", "--set", "dask.dashboard=127.0.0.1:0")
ENGINES = {"threads": ("--set", "dask.processes=false"), "worker processes: 2": _PROCESSES}
KINDS = {"one tar": "ilsvrc", "a listing": "listing", "TFRecord": "records", "RecordIO": "records"}
JOBS = (
    ("one tar", "threads"),
    ("a listing", "worker processes: 2"),
    ("TFRecord", "worker processes: 2"),
    ("RecordIO", "threads"),
)


def as_source(what: str, named: Mapping[str, Case], folder: Path) -> Path:
    """The files as such a source, below ``folder``; a listing's files lie there already."""
    if what == "one tar":
        with tarfile.open(folder / "all.tar", "w") as tar:
            for name, case in named.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(case.data)
                tar.addfile(entry, io.BytesIO(case.data))
        return folder / "all.tar"
    if what == "a listing":
        with (folder / "all.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["path", "label"])
            rows.writerows([folder / "tree" / name, name.partition("/")[0]] for name in named)
        return folder / "all.csv"
    suffix = {"TFRecord": ".tfrecord", "RecordIO": ".rec"}[what]
    with dataprep.RecordFile(folder / f"all{suffix}") as file:
        writer = get_format(what.lower()).writer(
            file, RecordOptions(1 if what == "TFRecord" else 0)
        )
        for number, (name, case) in enumerate(named.items()):
            writer.write(_sample(number, name, case))
    return folder / f"all{suffix}"


def _sample(number: int, name: str, case: Case) -> Sample:
    group = name.partition("/")[0]
    return Sample(
        image=case.data,
        label=int(group[1:]),
        width=1,
        height=1,
        channels=3,
        colorspace="RGB",
        encoding="JPEG",
        number=number,
        filename=to_bytes(name.rpartition("/")[2]),
        synset=to_bytes(group),
        text=to_bytes(group),
        source=to_bytes(name),
    )


def unaccounted(output: Path, named: Mapping[str, Case], *, by_number: bool) -> Iterator[str]:
    """Files that do not stand once in an output's table, as they may, and with a reason.

    ``by_number``: samples are called by their place in the shard.
    """
    rows = pq.read_table(output / "train.samples.parquet").to_pylist()
    if len(rows) != len(named):
        yield f"{len(rows):,} samples of {len(named):,} files"
    statuses: Counter[str] = Counter()
    for row in rows:
        statuses[row["status"]] += 1
        if row["status"] not in ("written", "failed", "skipped"):
            yield f"{row['source']}: status {row['status']!r}"
        if row["status"] != "written" and not row["reason"]:
            yield f"{row['source']} {row['status']} without a reason"
    names = Counter(unescape(row["source"]) for row in rows)
    yield from (f"{name} stands {count} times" for name, count in names.items() if count > 1)
    if by_number:
        return
    by_end = {name.rpartition("/")[2]: case for name, case in named.items()}
    ends = Counter(name.rpartition("/")[2] for name in names)
    yield from (f"{name} is not there" for name in by_end.keys() - ends.keys())
    yield from (f"{name} is nobody's" for name in ends.keys() - by_end.keys())
    for row in rows:
        case = by_end.get(unescape(row["source"]).rpartition("/")[2])
        if case is None:
            continue
        right = case.allowed != {"written"}
        if row["status"] == "written":
            right = "written" in case.allowed
        if not right:
            yield f"{row['source']} is {row['status']} ({row['reason']}), not {case.allowed}"


def counts(output: Path) -> str:
    """Such as ``3 failed, 5 written``; empty where there is no table."""
    path = output / "train.samples.parquet"
    if not path.exists():
        return "no table"
    found = Counter(pq.read_table(path, columns=["status"])["status"].to_pylist())
    return ", ".join(f"{count:,} {status}" for status, count in sorted(found.items()))


def tried(what: str, engine: str, named: Mapping[str, Case], folder: Path) -> tuple[Row, list[str]]:
    """A job over them all as such a source, then every record verified."""
    source = as_source(what, named, folder)
    output = folder / f"output-{what}-{engine}".replace(" ", "-").replace(":", "")
    more = (*_JOB, *_ALL_MAY_FAIL, "--kind", KINDS[what], *ENGINES[engine], "--workers", "2")
    done: Watched = watched("shard", "--source", source, "--output", output, *more)
    wrong = [*done.wrong(0)]
    if done.code == 0:
        wrong += unaccounted(output, named, by_number=KINDS[what] == "records")
        wrong += watched("verify", output, "--deep").wrong(0)
    seen = f"each once: {counts(output)}; at most {done.peak_bytes / 1e9:.2f} GB a process"
    seen += f"; {done.seconds:.0f} s; verify --deep passes" if not wrong else ""
    return Row(f"{len(named):,} hostile images", f"{what}, {engine}", 1, seen, len(wrong)), wrong


def main(arguments: list[str] | None = None) -> int:
    """Print the rows and what is wrong; 1 where anything is."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--each", type=int, default=EACH, help="files of each mutator; 0: all")
    parser.add_argument("--small", action="store_true", help="without the largest images")
    parser.add_argument("--save", action="store_true")
    given = parser.parse_args(arguments)
    cases = corpus(given.seed, given.each or None, large=not given.small)
    command = "PYTHONPATH=. python -m tests.reliability.hostile_sources"
    command += f" --each {given.each}" if given.each != EACH else ""
    command += " --small" if given.small else ""
    command += f" --seed {given.seed}"
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
        write(cases, Path(folder) / "tree")
        named = {name_of(number, case): case for number, case in enumerate(cases)}
        for what, engine in JOBS:
            row, wrong = tried(what, engine, named, Path(folder))
            rows.append(row)
            sys.stdout.write(f"{row}\n")
            sys.stdout.flush()
            for fault in wrong[:20]:
                sys.stderr.write(f"WRONG {row.where}: {fault}\n")
            title = "Hostile images in tars, listings and shards"
            form = Tried(title, command, day, given.seed, rows)
            if given.save:
                save("hostile-sources", form)
    sys.stdout.write(f"{table([form])}\n")
    return 1 if any(row.lost for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
