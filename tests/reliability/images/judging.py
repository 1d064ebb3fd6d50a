"""What became of each file by itself: held against what is allowed, and against djpeg."""

from __future__ import annotations

import json
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tests.reliability.images.case import Case

PATIENCE_S = 180.0
"""For one file, three times converted, on a machine that others use too."""

MOST_BYTES = 1_700_000_000
"""Resident at the peak: 89,478,485 pixels take WebP's decoder 16 bytes each; 0.2 GB is Python."""

_TOLD = frozenset({"recovered", "truncated_kept", "subsampling_converted", "scans_missing"})
_OUR_WORDS = ("no scan of",)
_LONGEST_REASON = 300


@dataclass(frozen=True)
class Judged:
    """One file: what each policy made of it, and what is wrong with that."""

    case: Case
    name: str
    told: tuple[Mapping[str, Any], ...]
    wrong: tuple[str, ...]


def judged(named: Mapping[str, Case], root: Path) -> Iterator[Judged]:
    """Convert each file in a child process that is started anew when it dies or hangs."""
    child = _Child()
    try:
        for name, case in named.items():
            told = child.ask(root / name)
            wrong: tuple[str, ...] = () if told else ("the process died or hung",)
            for one in told:
                wrong += tuple(f"{one['policy']}: {what}" for what in _wrong(case, one))
            wrong += tuple(_beside_djpeg(case, root / name, told))
            yield Judged(case, name, tuple(told), wrong)
    finally:
        child.end()


def _wrong(case: Case, told: Mapping[str, Any]) -> Iterator[str]:
    result, reason = told["result"], told["reason"]
    kept = (
        told["policy"] == "keep" and "written" in (result, "") and "truncated_kept" in told["notes"]
    )
    if result not in case.allowed and not kept:
        yield f"{result} ({reason}), not one of {sorted(case.allowed)}"
    if result != "written" and not (
        reason and reason.isprintable() and len(reason) < _LONGEST_REASON
    ):
        yield f"its reason is no plain sentence: {reason[:400]!r}"
    if told["peak_bytes"] > MOST_BYTES:
        yield f"{told['peak_bytes'] / 1e9:.2f} GB of memory"


def _beside_djpeg(case: Case, path: Path, told: list[dict[str, Any]]) -> Iterator[str]:
    """A clean JPEG is not corrupt, and one with a warning is not stored without a word."""
    if not case.data.startswith(b"\xff\xd8") or shutil.which("djpeg") is None or not told:
        return
    result, notes = told[0]["result"], set(told[0]["notes"])
    if result not in ("written", "corrupt"):
        return
    done = subprocess.run(
        ["djpeg", "-grayscale", "-outfile", "/dev/null", path]
        if result == "corrupt"
        else ["djpeg", "-outfile", "/dev/null", path],
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    said = done.stderr.decode(errors="replace").strip()
    clean = done.returncode == 0 and not said
    if (
        clean
        and result == "corrupt"
        and not told[0]["reason"].partition("JPEG: ")[2].startswith(_OUR_WORDS)
    ):
        yield f"djpeg decodes it without a word; here: {told[0]['reason']}"
    if not clean and result == "written" and not notes & _TOLD:
        yield f"stored without a note ({sorted(notes)}), but djpeg says: {said[:200]}"


class _Child:
    """A process that converts; it is started when it is first needed, and again when it is gone."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def ask(self, path: Path) -> list[dict[str, Any]]:
        """What it tells of a file; nothing where it died or hung over it."""
        if self._process is None:
            module = "tests.reliability.images.converting"
            self._process = subprocess.Popen(
                [sys.executable, "-m", module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        given, answered = self._process.stdin, self._process.stdout
        assert given is not None
        assert answered is not None
        given.write(json.dumps(str(path)) + "\n")
        given.flush()
        line = answered.readline() if _comes(answered) else ""
        if not line:
            self.end()
            return []
        found: list[dict[str, Any]] = json.loads(line)
        return found

    def end(self) -> None:
        """End the process, whatever it does."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def _comes(answered: IO[str]) -> bool:
    end_s = time.monotonic() + PATIENCE_S
    while (left_s := end_s - time.monotonic()) > 0:
        if select.select([answered], [], [], left_s)[0]:
            return True
    return False
