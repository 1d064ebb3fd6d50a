"""What was seen of a corpus, as rows: each file by itself, then whole jobs over all of them."""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tests.commandline import comparable, objects
from tests.reliability.images import jobs
from tests.reliability.images.bases import jpegs
from tests.reliability.images.case import Case
from tests.reliability.images.judging import MOST_BYTES, Judged, judged
from tests.reliability.images.tree import write_special
from tests.reliability.rows import Row

_JOB = ("--format", "tfrecord", "--format", "recordio", "--shard-size", "1.2MB", "--workers", "2")
_ALL_MAY_FAIL = ("--max-failures", "100%")
_ALONE = "convert, each file alone, by three policies"
MOST_OF_A_JOB_BYTES = 4_500_000_000
"""Of a job's process in which two threads convert: two of the largest images, a shard of each
format for each, files read ahead, and Python with its libraries."""
MOST_OF_A_WORKER_BYTES = 1_900_000_000
"""At 95 % of 2 GB Dask ends a worker process."""


def alone(named: Mapping[str, Case], root: Path) -> tuple[list[Row], list[str]]:
    """A row for each mutator, and one of time and memory; every fault in words."""
    by_mutator: dict[str, list[Judged]] = defaultdict(list)
    for one in judged(named, root):
        by_mutator[one.case.mutator].append(one)
    rows = [
        Row(mutator, _ALONE, len(found), _results(found), sum(bool(one.wrong) for one in found))
        for mutator, found in by_mutator.items()
    ]
    every = [one for found in by_mutator.values() for one in found]
    told = [told for one in every for told in one.told]
    slowest, largest = (max(one[key] for one in told) for key in ("seconds", "peak_bytes"))
    seen = f"slowest {slowest:.1f} s, at most {largest / 1e9:.2f} GB resident "
    seen += f"(bound {MOST_BYTES / 1e9:.1f} GB)"
    died = sum(not one.told for one in every)
    rows.append(Row("all of these", _ALONE, len(told), f"{seen}; crashed or hung: {died}", died))
    return rows, [
        f"{one.case.mutator}, {one.case.what}: {what}" for one in every for what in one.wrong
    ]


def _results(found: Iterable[Judged]) -> str:
    """By the default policy."""
    results = Counter(one.told[0]["result"] for one in found if one.told)
    return ", ".join(f"{kind} {count:,}" for kind, count in results.most_common())


def whole(named: Mapping[str, Case], root: Path, work: Path) -> tuple[list[Row], list[str]]:
    """Rows of jobs over the tree, with what is no file in it, and every fault in words."""
    special = write_special(root, jpegs()["baseline"])
    rows: list[Row] = []
    faults: list[str] = []

    def add(fault: str, where: str, seen: str, wrong: Iterable[str], times: int = 1) -> None:
        said = [f"{fault}, {where}: {what}" for what in wrong]
        rows.append(Row(fault, where, times, seen, len(said)))
        faults.extend(said)

    tree = f"a tree of {sum(jobs.entries(root).values()):,} entries"
    modes = {"short side of 64": ("--size", "64"), "sizes as they are": ("--mode", "none")}
    for number, (mode, options) in enumerate(modes.items()):
        output = work / f"output-{number}"
        job = ("shard", "--source", root, "--output", output, *_JOB, *options)
        refused = jobs.watched(*job)
        add(
            tree,
            f"shard, {mode}, --max-failures 1%",
            _seen(refused),
            [*refused.wrong(1), *_finalised(output), *_beyond(refused, MOST_OF_A_JOB_BYTES)],
        )
        done = jobs.watched(*job, *_ALL_MAY_FAIL)
        account = jobs.unaccounted(output, root, named, special) if done.code == 0 else ()
        add(
            tree,
            "the same, resumed with --max-failures 100%",
            f"{_seen(done)}; {_counts(output)}",
            [*done.wrong(0), *account, *_beyond(done, MOST_OF_A_JOB_BYTES)],
            sum(jobs.entries(root).values()),
        )
        deep = jobs.watched("verify", output, "--deep")
        add(tree, f"verify --deep of that, {mode}", _seen(deep), deep.wrong(0))
        wrong = list(jobs.undecodable(output))
        add(
            "records of that",
            "every image decoded, both formats",
            f"{len(wrong)} do not decode",
            wrong,
        )
    again = work / "output-again"
    processes = ("--set", "dask.processes=true", *modes["short side of 64"], *_ALL_MAY_FAIL)
    done = jobs.watched("shard", "--source", root, "--output", again, *_JOB, *processes)
    differs = _differing(work / "output-0", again)
    add(
        tree,
        "shard again, in worker processes of 2 GB",
        f"{_seen(done)}; {len(differs)} objects that differ",
        [*done.wrong(0), *differs, *_beyond(done, MOST_OF_A_WORKER_BYTES)],
    )
    _look(add, tree, root, work)
    add(*_unreadable(work))
    return rows, faults


def _look(add: object, tree: str, root: Path, work: Path) -> None:
    assert callable(add)
    sheet = work / "sheet.png"
    for words in (
        ("plan", "--source", root, "--output", work / "planned", "--size", "64"),
        ("inspect", work / "output-0"),
        ("inspect", work / "output-0", "--json"),
        ("inspect", work / "output-1", "--contact-sheet", sheet, "--images", "400"),
    ):
        done = jobs.watched(*words)
        shown = " ".join(str(word) for word in words if not isinstance(word, Path))
        add(tree, shown, _seen(done), [*done.wrong(0), *_beyond(done, MOST_OF_A_JOB_BYTES)])


def _seen(done: jobs.Watched) -> str:
    peak = f"at most {done.peak_bytes / 1e9:.2f} GB a process"
    return f"exit code {done.code}, {done.seconds:.0f} s, {peak}"


def _beyond(done: jobs.Watched, most: int) -> Iterator[str]:
    if done.peak_bytes > most:
        yield f"{done.peak_bytes / 1e9:.2f} GB, more than {most / 1e9:.1f} GB"


def _finalised(output: Path) -> Iterator[str]:
    if (output / "train.manifest.json").exists():
        yield "a manifest, though more failed than may"


def _counts(output: Path) -> str:
    path = output / "train.manifest.json"
    if not path.exists():
        return "no manifest"
    samples = json.loads(path.read_text())["samples"]
    return ", ".join(f"{key} {samples[key]:,}" for key in ("written", "failed", "skipped"))


def _differing(left: Path, right: Path) -> list[str]:
    first, second = comparable(objects(left)), comparable(objects(right))
    keys = sorted(first.keys() | second.keys())
    return [f"{key} differs" for key in keys if first.get(key) != second.get(key)]


def _unreadable(work: Path) -> tuple[str, str, str, list[str]]:
    """A file that its user may not read; root may all, unless it gives that up."""
    where = "shard, as a user whom permissions bind"
    source, output = work / "unreadable", work / "output-unreadable"
    named = {f"a/{name}.JPEG": "written" for name in "bcd"} | {"a/secret.JPEG": "failed"}
    for name in named:
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(jpegs()["baseline"])
    (source / "a/secret.JPEG").chmod(0)
    bound = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
    before = bound if os.geteuid() == 0 else ()
    job = ("shard", "--source", source, "--output", output, *_ALL_MAY_FAIL)
    done = jobs.watched(*job, before=before)
    wrong = [*done.wrong(0)]
    if done.code == 0:
        wrong += jobs.unaccounted(output, source, {}, named)
    return "a file that may not be read", where, f"{_seen(done)}; {_counts(output)}", wrong
