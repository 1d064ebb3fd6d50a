"""One reader under hostile inputs: each is read right, refused in its own words, or a fault."""

from __future__ import annotations

import hashlib
import re
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from dataprep.errors import DataprepError
from tests.reliability.hostile.bounds import SECONDS, TooSlow, bounded_time
from tests.reliability.hostile.coverage import Lines
from tests.reliability.hostile.mutations import MOST_BYTES, Mutate

NAME = "hostile.bin"
"""What targets call their file."""

_TRACED_SHARE, _TRACED_SHARE_OF_COSTLY = 0.3, 0.1
_MOST_KEPT = 400


@dataclass(frozen=True)
class Target:
    """A reader, and what it is given.

    Attributes:
        name: of the reader.
        family: which of them share a process.
        seeds: sound inputs.
        mutate: makes them hostile.
        read: reads one; raises AssertionError where what it gives is not right.
        modules: parts of paths of the files whose lines are looked for.
        place: what each refusal has to hold, as a regular expression.
        refusals: how it may refuse.
        cost: about how many of the cheapest one of its inputs takes.
    """

    name: str
    family: str
    seeds: Callable[[], Sequence[bytes]]
    mutate: Mutate
    read: Callable[[bytes], object]
    modules: Collection[str]
    place: str = re.escape(NAME)
    refusals: tuple[type[BaseException], ...] = (DataprepError,)
    cost: int = 1


@dataclass
class Found:
    """What was seen of one target."""

    name: str
    seed: int
    inputs: int = 0
    read: int = 0
    refused: int = 0
    lines: int = 0
    seconds: float = 0.0
    faults: dict[str, str] = field(default_factory=dict)


def fuzz(
    target: Target,
    seed: int,
    *,
    inputs: int = 10**12,
    seconds: float = 10**9,
    keep: Path | None = None,
) -> Found:
    """Read up to so many inputs, or for so long; the same seed draws the same ones.

    ``keep`` is a folder: the input under way lies in it, for whoever finds the process dead, and
    those that were faults.
    """
    found = Found(target.name, seed)
    lines = Lines(target.modules)
    known: set[str] = set()
    begin_s = time.monotonic()
    for data, traced in _inputs(target, Random(f"{target.name} {seed}"), lines):
        if found.inputs >= inputs or time.monotonic() - begin_s > seconds:
            break
        if keep is not None:
            (keep / f"{target.name}.now").write_bytes(data)
        found.inputs += 1
        fault = judged(target, data, lines if traced else None)
        if fault is None:
            found.read += 1
        elif not fault:
            found.refused += 1
        elif (place := fault.rpartition("(")[2] + fault.partition(":")[0]) not in known:
            known.add(place)
            found.faults[fault] = digest = hashlib.sha256(data).hexdigest()[:12]
            if keep is not None:
                (keep / f"{target.name}.{digest}").write_bytes(data)
    found.lines, found.seconds = len(lines.known), time.monotonic() - begin_s
    if keep is not None:
        (keep / f"{target.name}.now").unlink(missing_ok=True)
    return found


def _inputs(target: Target, rng: Random, lines: Lines) -> Iterator[tuple[bytes, bool]]:
    """Seeds first; then changes of them, and of what reached new lines."""
    corpus = list(target.seeds())
    costly = target.cost > 10
    for data in corpus[:2] if costly else list(corpus):
        yield data, True
    while True:
        data = target.mutate(rng.choice(corpus), rng)[:MOST_BYTES]
        traced = rng.random() < (_TRACED_SHARE_OF_COSTLY if costly else _TRACED_SHARE)
        yield data, traced
        if traced and lines.new and len(corpus) < _MOST_KEPT:
            corpus.append(data)


def judged(target: Target, data: bytes, lines: Lines | None = None) -> str | None:
    """None where it was read, nothing where it was refused as it should be, else the fault."""
    try:
        with bounded_time():
            if lines is None:
                target.read(data)
            else:
                with lines:
                    target.read(data)
    except target.refusals as error:
        text = str(error)
        if re.search(target.place, text):
            return ""
        return f"no place in {type(error).__name__}: {_shape(text)} ({_where(error)})"
    except TooSlow as error:
        return f"more than {SECONDS:g} s ({_where(error)})"
    except Exception as error:  # noqa: BLE001  whatever it is, it is a fault
        return f"{type(error).__name__}: {_shape(str(error))} ({_where(error)})"
    return None


def _shape(text: str) -> str:
    """A message without what differs from input to input."""
    return re.sub(r"\d+", "N", text)[:100]


def _where(error: BaseException) -> str:
    """The last place in the product."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [
        frame for frame in frames if "/dataprep/" in frame.filename or "/iobench/" in frame.filename
    ]
    ours = [frame for frame in ours if "/tests/" not in frame.filename] or list(frames)
    return f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else "nowhere"
