"""What a person sees: progress on stderr, the results of a job on stdout, in words or as JSON."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import IO

import typer

from dataprep.cli.program import printable
from dataprep.counted import counted
from dataprep.errors import DataprepError, TooManyFailures
from dataprep.job.conversion import Progress
from dataprep.job.report import Display, PartSummary, Summary
from dataprep.manifest import OUT_OF_BOUNDS, quirk_name

_SHOWN_FAILURES = 5
_SHOWN_CLASSES = 3
_LINE_EVERY_S = 5.0
_REDRAW_EVERY_S = 0.1


class Terminal(Display):
    """Progress as one line: drawn again on a terminal, printed every five seconds elsewhere."""

    def __init__(
        self, stream: IO[str] | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = stream or sys.stderr
        self._clock = clock
        self._redraws = self._stream.isatty()
        self._lock = threading.Lock()
        self._split = ""

    def start(self, split: str, samples: int, done: int) -> None:
        """Begin a split of which ``done`` samples are stored already."""
        self._split, self._samples, self._before = split, samples, done
        self._made = Progress()
        self._start_s = self._shown_s = self._clock()

    def advance(self, progress: Progress) -> None:
        """Count what was done, and show it if it is time."""
        every_s = _REDRAW_EVERY_S if self._redraws else _LINE_EVERY_S
        with self._lock:
            if not self._split:
                return
            self._made += progress
            if self._clock() - self._shown_s >= every_s:
                self._show("" if self._redraws else "\n")

    def note(self, line: str) -> None:
        """Print a line of its own."""
        with self._lock:
            self._write(f"{printable(line)}\n")

    def stop(self) -> None:
        """Leave the last state on the screen."""
        with self._lock:
            if self._split:
                self._show("\n")
                self._split = ""

    def _show(self, end: str) -> None:
        self._shown_s = self._clock()
        line = self._line(self._shown_s - self._start_s)
        if self._redraws:  # a line that wraps cannot be drawn again
            line = line[: shutil.get_terminal_size().columns - 1]
        self._write(f"{line}{end}")

    def _line(self, elapsed_s: float) -> str:
        per_s = 1 / max(elapsed_s, 1e-9)
        rate = self._made.samples * per_s
        # A shard that is made again after its worker died is counted again.
        done = min(self._samples, self._before + self._made.samples)
        left = _clock((self._samples - done) / rate) if rate > 0 else "-:--"
        return (
            f"{self._split}  {done:,}/{self._samples:,} photos  {rate:,.0f} img/s  "
            f"{self._made.source_bytes * per_s / 1e6:,.0f} MB/s  {self._made.failed:,} failed  "
            f"{left} left"
        )

    def _write(self, text: str) -> None:
        """Write, if the terminal is still open; otherwise the job continues without it."""
        with contextlib.suppress(OSError):
            self._stream.write(f"\r\x1b[K{text}" if self._redraws else text)
            self._stream.flush()


class Copying(Terminal):
    """Progress in bytes instead of photos."""

    def _line(self, elapsed_s: float) -> str:
        copied = self._made.source_bytes
        size = f"{(self._before + copied) / 1e6:,.0f}/{self._samples / 1e6:,.0f} MB"
        return f"{self._split}  {size}  {copied / max(elapsed_s, 1e-9) / 1e6:,.0f} MB/s"


def show(text: str) -> None:
    """Print a result; names in it cannot control the terminal."""
    typer.echo("\n".join(printable(line) for line in text.split("\n")))


def show_splits(splits: Iterator[Summary | PartSummary], as_json: bool) -> None:
    """Print each split when it is done; as JSON, one object for all of them.

    If the job stops, the object has the reason and the failures that are known.
    """
    made: list[Summary | PartSummary] = []
    try:
        for summary in splits:
            if not as_json and not made and summary.understood is not None:
                show("\n".join(summary.understood.lines))
            made.append(summary)
            if not as_json:
                show(split_text(summary))
    except DataprepError as error:
        if as_json and error.exit_code == 1:
            show(splits_json(made, stopped=error))
        raise
    if as_json:
        show(splits_json(made))


def splits_json(
    splits: Sequence[Summary | PartSummary],
    *,
    stopped: DataprepError | None = None,
    incomplete: Mapping[str, DataprepError] | None = None,
) -> str:
    """One JSON object: the splits that were made, and why others were not."""
    content: dict[str, object] = {}
    if splits and splits[0].understood is not None:
        content["understood"] = asdict(splits[0].understood)
    content["splits"] = [summary.as_dict() for summary in splits]
    if incomplete:
        reasons = [{"split": name, "why": str(error)} for name, error in incomplete.items()]
        content["incomplete"] = reasons
    if stopped is not None:
        known = stopped.failures if isinstance(stopped, TooManyFailures) else ()
        failures = [{"source": name, "reason": reason} for name, reason in known]
        content["stopped"] = {"why": str(stopped), "failures": failures}
    return json.dumps(content)


def split_text(summary: Summary | PartSummary) -> str:
    """A split, or a part of one, in a few lines."""
    lines = _part(summary) if isinstance(summary, PartSummary) else _split(summary)
    return "\n".join(lines)


def _split(summary: Summary) -> Iterator[str]:
    manifest = summary.manifest
    counts = manifest.samples
    made = f"{counted(counts.written, 'photo')} written, {counts.failed:,} failed"
    skipped = f", {counts.skipped:,} skipped" if counts.skipped else ""
    yield f"{summary.split}: {made}{skipped} -> {summary.output}"
    for name, entry in manifest.formats.items():
        mean = entry.bytes / len(entry.shards) / 1e6
        yield f"  {name:<10} {counted(len(entry.shards), 'shard')} of {mean:,.1f} MB"
    quirks = [
        f"{quirk_name(kind)} {count:,}"
        for kind, count in manifest.warnings.items()
        if kind != OUT_OF_BOUNDS and not kind.startswith("failed_")
    ]
    stored = f"  {counts.passthrough:,} stored unchanged, {counts.reencoded:,} re-encoded"
    yield f"{stored}; {', '.join(quirks)}" if quirks else stored
    for reason, count in summary.skips.items():
        yield f"  skipped: {reason} {count:,}"
    yield from _remarks(summary)
    yield from _failures(summary.failures, counts.failed, f"are in {summary.split}")
    if outside := manifest.warnings.get(OUT_OF_BOUNDS):
        yield (
            f"  {counted(outside, 'shard')} outside 1 to 128 MB: choose another --shard-size, "
            "unless the split has too few photos for one shard"
        )
    last = f"Check it with: dataprep verify {summary.output}"
    if summary.kept_shards:
        last = f"{counted(summary.kept_shards, 'shard')} stored by an earlier run. {last}"
    if summary.made_shards:
        last = f"{summary.seconds:,.1f} s, {summary.images_per_s:,.0f} img/s. {last}"
    yield last


def _remarks(summary: Summary) -> Iterator[str]:
    """What may not be what was meant: pixels that were not turned, the validation split."""
    if unturned := summary.manifest.warnings.get("orientation_ignored"):
        yield (
            f"  {counted(unturned, 'photo')} stored without the EXIF orientation, pixels not "
            "turned: --set image.orientation=apply turns them"
        )
    if (share := summary.validation) is not None:
        yield (
            f"  {share.percent:.3g}% of the {counted(share.of, 'photo')}, where {share.asked} was "
            "asked for: each class keeps one photo at least, and gives one if it has two"
        )
    if missing := summary.missing_classes:
        names = ", ".join(map(repr, missing[:_SHOWN_CLASSES]))
        more = ", ..." if len(missing) > _SHOWN_CLASSES else ""
        yield f"  {counted(len(missing), 'class')} without a photo in this split: {names}{more}"


def _part(summary: PartSummary) -> Iterator[str]:
    made = f"{counted(summary.made_shards, 'shard')} made"
    kept = f", {summary.kept_shards:,} stored by an earlier run" if summary.kept_shards else ""
    failed = f", {counted(summary.failed, 'photo')} failed" if summary.failed else ""
    yield f"{summary.split}, part {summary.part}: {made}{kept}{failed} -> {summary.output}"
    yield from _failures(summary.failures, summary.failed, f"will be in {summary.split}")
    command = f"dataprep finalize {summary.output} --split {summary.split}"
    if summary.complete:
        yield "The split is complete."
    elif summary.lacking_shards:
        missing = f"{summary.lacking_shards:,} of {counted(summary.shards, 'shard')} are missing"
        yield f"{missing}. When all parts are done: {command}"
    else:
        yield f"All shards are stored. Now: {command}"


def _failures(known: Sequence[tuple[str, str]], failed: int, where: str) -> Iterator[str]:
    for name, reason in known[:_SHOWN_FAILURES]:
        yield f"  failed: {name}: {reason}"
    if failed > _SHOWN_FAILURES and known:
        yield f"  all {failed:,} failures {where}.samples.parquet"


def _clock(seconds: float) -> str:
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minutes}:{second:02}"
