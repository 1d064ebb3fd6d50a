"""Jobs that are killed at random moments and run again: the same bytes, and nothing left behind.

``PYTHONPATH=. python -m tests.reliability.killed [--times N] [--seed S] [--save]``. A failing round
says its number and seed; ``--only NUMBER`` repeats it alone.
"""

from __future__ import annotations

import argparse
import datetime
import os
import random
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from dataprep.sample import draw_tree
from iobench.s3_server import MotoServer
from tests.commandline import FORMATS
from tests.reliability import parts_store
from tests.reliability.moments import drawn
from tests.reliability.places import Bucket, Folder, Place
from tests.reliability.rounds import Job, Rounds, Seen
from tests.reliability.rows import Row, Tried, save, table

TIMES = 60
_WHERE = ("a folder", "S3", "S3, in parts")
_SHARD_SIZES = {"a folder": "1.2MB", "S3": "1.2MB", "S3, in parts": "6MB"}
_SHARDS = {"1.2MB": 8, "6MB": 2}  # of 120 images, or a few more


@dataclass(frozen=True)
class Kind:
    """What is killed how; ``share`` of all kills, ``engine`` who does the work."""

    fault: str
    job: str = "shard"
    share: int = 1
    engine: str = "processes"


KINDS = (
    Kind("SIGKILL to a worker", share=10),
    Kind("SIGKILL to the fork server", share=3),
    Kind("SIGKILL to the driver", share=12),
    Kind("SIGKILL to the group", share=12),
    Kind("SIGKILL to the driver", engine="threads", share=5),
    Kind("SIGKILL to the group", job="part", share=3),
    Kind("SIGKILL to the group", job="finalize", share=6),
    Kind("SIGKILL to the group", job="overwrite", share=6),
    Kind("Ctrl-C", share=6),
    Kind("Ctrl-C", engine="threads", share=3),
    Kind("Ctrl-C twice", share=5),
    Kind("SIGTERM to the driver", share=4),
)


_WORDS = {
    "SIGKILL to a worker": "SIGKILL to a worker process, or what forks them before there is one",
    "SIGKILL to the fork server": "SIGKILL to the process that workers are forked from",
    "SIGKILL to the group": "SIGKILL to driver and workers",
    "Ctrl-C": "Ctrl-C (SIGINT to driver and workers)",
    "Ctrl-C twice": "Ctrl-C twice within half a second (two before Python looks count as one)",
}


@dataclass(frozen=True)
class Reference:
    """What an undisturbed run makes, comparable and as it is, and how long each engine takes."""

    made: Mapping[str, object]
    raw: Mapping[str, bytes]
    usual_s: Mapping[str, float]


class Bench:
    """The places, and undisturbed runs there, each made when it is first wanted."""

    def __init__(self, folder: Path, source: Path, server: MotoServer) -> None:
        self._source = source
        environment = {**MotoServer.ENVIRONMENT, **parts_store.environment(folder / "package")}
        os.environ.update(MotoServer.ENVIRONMENT)  # places look at the server from here
        places: list[Place] = [Folder(folder), Bucket(server), Bucket(server, "partss3")]
        self._rounds = {
            place.name: Rounds(place, folder / place.name.replace(" ", "-"), environment)
            for place in places
        }
        self._references: dict[str, Reference] = {}

    def round(self, kind: Kind, where: str, rng: random.Random) -> Seen:
        """One of this kind; one in four is killed again when it is run again.

        By threads or by processes, whole or in parts, overwritten or new: the bytes are those of
        one reference.
        """
        job = self._job(kind, where, rng)
        shards = _SHARDS[_SHARD_SIZES[where]]
        there = job.content or {}
        moments = [drawn(rng, shards, there) for _ in range(rng.choice([1, 1, 1, 2]))]
        made = self.reference(where).made
        return self._rounds[where].disturbed(job, kind.fault, moments, made, rng)

    def elsewhere(self, where: str = "S3") -> Row:
        """A killed job, resumed as from another machine: it waits for the lease."""
        rounds, reference = self._rounds[where], self.reference(where)
        killed = Job(self._shard(where, "processes"), usual_s=reference.usual_s["processes"])
        resumed = self._shard(where, "threads")
        problems, waited_s = rounds.resumed_elsewhere(killed, resumed, reference.made)
        said = (
            f"says at once that it waits and for how long; done after {waited_s:.0f} s: the same "
            "bytes, nothing left behind"
        )
        fault = "SIGKILL to the group, resumed on another machine"
        return Row(fault, where, 1, "; ".join(problems) or said, len(problems))

    def reference(self, where: str) -> Reference:
        """By both engines, which have to agree."""
        if where not in self._references:
            rounds, usual_s = self._rounds[where], {}
            found = []
            for engine in ("threads", "processes"):
                made, raw, usual_s[engine] = rounds.undisturbed(Job(self._shard(where, engine)))
                found.append(made)
            if found[0] != found[1]:
                raise RuntimeError(f"{where}: threads and processes make other bytes")
            self._references[where] = Reference(made, raw, usual_s)
        return self._references[where]

    def _job(self, kind: Kind, where: str, rng: random.Random) -> Job:
        """Run again, it is done by threads more often than not: they start sooner."""
        reference = self.reference(where)
        usual_s = reference.usual_s[kind.engine]
        again = rng.choice(["threads", "threads", kind.engine])
        first, then = self._shard(where, kind.engine), self._shard(where, again)
        end = ["finalize", "OUTPUT", "--split", "train"]
        if kind.job == "part":
            mine, other = ["--part", "0/2"], ["--part", "1/2"]
            return Job([*first, *mine], [[*then, *mine], [*then, *other], end], usual_s=usual_s)
        if kind.job == "finalize":
            last = {"train.samples.parquet", "train.manifest.json"}
            parts = {key: data for key, data in reference.raw.items() if key not in last}
            return Job(end, [end], parts, reference.usual_s["threads"] / 2)
        if kind.job == "overwrite":
            new = ["--overwrite"]
            return Job([*first, *new], [[*then, *new]], self._other, usual_s)
        return Job([*first, "--resume"], [[*then, "--resume"]], usual_s=usual_s)

    @cached_property
    def _other(self) -> Mapping[str, bytes]:
        """Another job's output."""
        where = "a folder"
        other = [*self._shard(where, "threads"), "--seed", "3"]
        return self._rounds[where].undisturbed(Job(other))[1]

    def _shard(self, where: str, engine: str) -> list[str]:
        formats = [word for name in FORMATS for word in ("--format", name)]
        size = ["--shard-size", _SHARD_SIZES[where], "--workers", "2"]
        who = ["--set", f"dask.processes={str(engine == 'processes').lower()}"]
        free = ["--set", "dask.dashboard=127.0.0.1:0"]
        place = ["--source", str(self._source), "--output", "OUTPUT"]
        return ["shard", *place, *formats, *size, *who, *free]


@contextmanager
def bench(images: int) -> Iterator[Bench]:
    """Over a drawn source of so many images, with a server of its own."""
    with ExitStack() as open_:
        folder = Path(open_.enter_context(tempfile.TemporaryDirectory(prefix="killed-")))
        source = draw_tree(folder / "photos", images=images, classes=6, seed=7).root
        yield Bench(folder, source, open_.enter_context(MotoServer()))


def heed_interrupts() -> None:
    """What a shell starts in the background ignores Ctrl-C, and so would its children."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def planned(times: int) -> list[tuple[Kind, str]]:
    """Kinds by their shares, at all places in turn."""
    total = sum(kind.share for kind in KINDS)
    every = [kind for kind in KINDS for _ in range(max(1, round(times * kind.share / total)))]
    return [(kind, _WHERE[number % len(_WHERE)]) for number, kind in enumerate(every)]


def row(kind: Kind, where: str, found: Sequence[Seen]) -> Row:
    """What became of all rounds of a kind at a place."""
    codes = [code for seen in found for code in seen.codes]
    ended = ", ".join(f"{codes.count(code)} × {code}" for code in sorted({*codes}))
    problems = [problem for seen in found for problem in seen.problems]
    orphans_s = max(seen.died_s for seen in found)
    end_s = max(seen.end_s for seen in found)
    command = {"shard": "shard", "overwrite": "shard --overwrite", "part": "shard --part 0/2"}
    what = f"{_WORDS.get(kind.fault, kind.fault)}: {command.get(kind.job, kind.job)}"
    if kind.job != "finalize":
        what += f", {kind.engine}"
    said = (
        f"exit codes {ended}; the driver ended within {end_s:.1f} s, every other process within "
        f"{orphans_s:.1f} s more; run again: "
        f"{'; '.join(problems[:3]) or 'the same bytes, nothing left behind'}"
    )
    lost = sum(bool(seen.problems) for seen in found)
    return Row(what, where, sum(seen.kills for seen in found), said, lost)


def main() -> int:
    """Every round; 1 where something was lost, wrong or left behind."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--times", type=int, default=TIMES, help="rounds; some have two kills")
    options.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    options.add_argument("--images", type=int, default=120)
    options.add_argument("--only", type=int)
    options.add_argument("--save", action="store_true", help="after every round")
    given = options.parse_args()
    heed_interrupts()
    found: dict[tuple[Kind, str], list[Seen]] = {}
    tried = _tried(given.seed, found)
    with bench(given.images) as rounds:
        for number, (kind, where) in enumerate(planned(given.times)):
            if given.only in (None, number):
                seen = rounds.round(kind, where, random.Random(f"{given.seed} {number}"))
                sys.stderr.write(f"{number} {kind} {where} {seen}\n")
                found.setdefault((kind, where), []).append(seen)
                tried = _kept(_tried(given.seed, found), given.save)
        if given.only is None:
            tried = _kept(_tried(given.seed, found, rounds.elsewhere()), given.save)
    sys.stdout.write(f"{table([tried])}\n")
    return int(any(row.lost for row in tried.rows))


def _tried(seed: int, found: Mapping[tuple[Kind, str], Sequence[Seen]], *more: Row) -> Tried:
    rows = [row(kind, where, seen) for (kind, where), seen in found.items()]
    command = f"PYTHONPATH=. python -m tests.reliability.killed --seed {seed}"
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    return Tried("Killed", command, day, seed, (*rows, *more))


def _kept(tried: Tried, wanted: bool) -> Tried:
    if wanted:
        save("killed", tried)
    return tried


if __name__ == "__main__":
    sys.exit(main())
