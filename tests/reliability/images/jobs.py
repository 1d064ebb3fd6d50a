"""Whole jobs over a hostile tree: watched from outside, and their outputs held against the tree."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
import pyarrow.parquet as pq

import dataprep
from dataprep.errors import ImageError
from dataprep.image import check
from dataprep.names import unescape
from tests.commandline import command
from tests.reliability.images.case import Case

PATIENCE_S = 1_800.0
_LOOK_EVERY_S = 0.1
_STATUSES = ("written", "failed", "skipped")


@dataclass(frozen=True)
class Watched:
    """A command that has ended, or was ended: ``code`` is None then.

    ``peak_bytes`` is the most that one of its processes was resident with (``VmHWM``).
    """

    code: int | None
    out: str
    err: str
    seconds: float
    peak_bytes: int

    def wrong(self, code: int) -> Iterator[str]:
        """What is not as stated: another exit code, a hang, a traceback."""
        if self.code != code:
            ended = "hung" if self.code is None else f"ended with {self.code}, not {code}"
            yield f"{ended}: {self.err[-500:]}"
        if "Traceback" in self.err:
            yield f"a traceback: {self.err[self.err.index('Traceback') :][:1500]}"


def watched(*arguments: str | os.PathLike[str], before: Sequence[str] = ()) -> Watched:
    """Run ``dataprep ARGUMENTS`` and look at the memory of all its processes meanwhile.

    ``before`` are the words of a program that starts it.
    """
    begun_s = time.monotonic()
    peaks: dict[int, int] = {}
    with subprocess.Popen(
        [*before, *command(*arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        over = threading.Event()
        looking = threading.Thread(target=_look, args=(process.pid, peaks, over))
        looking.start()
        code: int | None = None
        try:
            out, err = process.communicate(timeout=PATIENCE_S)
            code = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            out, err = process.communicate()
        finally:
            over.set()
            looking.join()
    peak = max(peaks.values(), default=0)
    seconds = time.monotonic() - begun_s
    return Watched(code, out.decode(), err.decode(errors="replace"), seconds, peak)


def _look(pid: int, peaks: dict[int, int], over: threading.Event) -> None:
    while not over.wait(_LOOK_EVERY_S):
        try:
            root = psutil.Process(pid)
            pids = [pid, *(child.pid for child in root.children(recursive=True))]
        except psutil.NoSuchProcess:
            continue
        for one in pids:
            peaks[one] = max(peaks.get(one, 0), _high_water(one))


def _high_water(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    found = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(found[0]) * 1024 if found else 0


def entries(root: Path) -> Counter[str]:
    """Every name below a tree that is no folder, links and pipes included."""
    return Counter(
        os.path.relpath(Path(folder) / name, root)
        for folder, folders, files in os.walk(root)
        for name in [*files, *(one for one in folders if (Path(folder) / one).is_symlink())]
    )


def unaccounted(
    output: Path, root: Path, named: Mapping[str, Case], special: Mapping[str, str]
) -> Iterator[str]:
    """What is wrong with the samples of an output: each entry once, as it may be, with a reason."""
    rows = pq.read_table(output / "train.samples.parquet").to_pylist()
    seen = Counter(unescape(row["source"]) for row in rows)
    wanted = entries(root)
    yield from (
        f"{name} stands {seen[name]} times, not once" for name in (seen | wanted) - (seen & wanted)
    )
    yield from (f"{name} stands {count} times" for name, count in seen.items() if count > 1)
    for row in rows:
        name, status = unescape(row["source"]), row["status"]
        if status not in _STATUSES:
            yield f"{name}: status {status!r}"
        if status != "written" and not row["reason"]:
            yield f"{name} {status} without a reason"
        if status != special.get(name, status):
            yield f"{name} is {status}, not {special[name]}"
        allowed = named[name].allowed if name in named else frozenset()
        right = "written" in allowed if status == "written" else allowed != {"written"}
        if name in named and not right:
            yield f"{name} is {status} ({row['reason']}), allowed: {sorted(allowed)}"


def undecodable(output: Path) -> Iterator[str]:
    """Records whose image does not decode to the size that is told of it."""
    for format in ("tfrecord", "recordio"):
        for sample in dataprep.open(output, "train", format=format):
            try:
                check(bytes(sample.image))
            except ImageError as error:
                yield f"{format} {sample.number}: {error}"
