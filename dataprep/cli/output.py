"""Show the progress of a job on stderr, and its results on stdout, as text or as JSON."""

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
from dataprep.errors import DataprepError, TooManyFailures
from dataprep.job.conversion import Progress
from dataprep.job.report import Display, PartSummary, Summary
from dataprep.message_text import counted
from dataprep.output.manifest import OUT_OF_BOUNDS, quirk_name

_MAX_FAILURES_SHOWN = 5
_MAX_CLASSES_SHOWN = 3
_LINE_INTERVAL_S = 5.0
_REDRAW_INTERVAL_S = 0.1


class Terminal(Display):
    """Shows progress as one line.

    On a terminal the line is drawn again. Otherwise a new line is printed every five seconds.
    """

    def __init__(
        self, stream: IO[str] | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = stream or sys.stderr
        self._clock = clock
        self._redraws = self._stream.isatty()
        self._lock = threading.Lock()
        # The split that is in progress; empty if none is.
        self._split = ""

    def start(self, split: str, samples: int, done: int) -> None:
        """Begin a split. ``done`` of its samples were stored by an earlier run."""
        self._split = split
        self._samples = samples
        self._samples_before = done
        self._progress = Progress()
        self._start_s = self._clock()
        self._last_shown_s = self._start_s

    def advance(self, progress: Progress) -> None:
        """Add the progress of a task, and show the total if it is time."""
        interval_s = _REDRAW_INTERVAL_S if self._redraws else _LINE_INTERVAL_S
        with self._lock:
            if not self._split:
                return
            self._progress += progress
            if self._clock() - self._last_shown_s >= interval_s:
                self._show("" if self._redraws else "\n")

    def note(self, line: str) -> None:
        """Print a message on a line of its own."""
        with self._lock:
            self._write(f"{printable(line)}\n")

    def stop(self) -> None:
        """End the split, and leave its last line on the screen."""
        with self._lock:
            if self._split:
                self._show("\n")
                self._split = ""

    def _show(self, end: str) -> None:
        """Write the line of progress, followed by ``end``."""
        self._last_shown_s = self._clock()
        line = self._line(self._last_shown_s - self._start_s)
        if self._redraws:
            # A line that is wider than the terminal cannot be drawn again.
            line = line[: shutil.get_terminal_size().columns - 1]
        self._write(f"{line}{end}")

    def _line(self, elapsed_s: float) -> str:
        """Return the line to show."""
        elapsed_s = max(elapsed_s, 1e-9)
        images_per_s = self._progress.samples / elapsed_s
        megabytes_per_s = self._progress.source_bytes / elapsed_s / 1e6
        # A shard that is converted again after its worker died is counted again.
        done = min(self._samples, self._samples_before + self._progress.samples)
        time_left = "-:--"
        if images_per_s > 0:
            time_left = _clock_text((self._samples - done) / images_per_s)
        return (
            f"{self._split}  {done:,}/{self._samples:,} photos  {images_per_s:,.0f} img/s  "
            f"{megabytes_per_s:,.0f} MB/s  {self._progress.failed:,} failed  {time_left} left"
        )

    def _write(self, text: str) -> None:
        """Write to the stream. If the terminal was closed, the job continues without it."""
        with contextlib.suppress(OSError):
            self._stream.write(f"\r\x1b[K{text}" if self._redraws else text)
            self._stream.flush()


class CopyProgress(Terminal):
    """Shows the progress of a copy, in bytes instead of photos."""

    def _line(self, elapsed_s: float) -> str:
        # For a copy, ``start`` gets bytes instead of samples.
        copied_bytes = self._progress.source_bytes
        done_bytes = self._samples_before + copied_bytes
        megabytes_per_s = copied_bytes / max(elapsed_s, 1e-9) / 1e6
        return (
            f"{self._split}  {done_bytes / 1e6:,.0f}/{self._samples / 1e6:,.0f} MB  "
            f"{megabytes_per_s:,.0f} MB/s"
        )


def show(text: str) -> None:
    """Print a result. Control characters in names are escaped."""
    typer.echo("\n".join(printable(line) for line in text.split("\n")))


def show_splits(splits: Iterator[Summary | PartSummary], as_json: bool) -> None:
    """Print each split as soon as it is done. With JSON, print one object for all splits.

    If the job stops with exit code 1, the JSON object has the reason. After too many failures, it
    also has the failures that are known.
    """
    summaries: list[Summary | PartSummary] = []
    try:
        for summary in splits:
            is_first = not summaries
            summaries.append(summary)
            if as_json:
                continue
            if is_first and summary.understood is not None:
                show("\n".join(summary.understood.lines))
            show(split_text(summary))
    except DataprepError as error:
        if as_json and error.exit_code == 1:
            show(splits_json(summaries, stopped=error))
        raise
    if as_json:
        show(splits_json(summaries))


def splits_json(
    splits: Sequence[Summary | PartSummary],
    *,
    stopped: DataprepError | None = None,
    incomplete: Mapping[str, DataprepError] | None = None,
) -> str:
    """Return one JSON object for all splits of a command.

    Args:
        splits: the splits that are done.
        stopped: the error that stopped the job; None if it has not stopped.
        incomplete: for each split that is not complete, the error that says why.
    """
    content: dict[str, object] = {}
    if splits and splits[0].understood is not None:
        content["understood"] = asdict(splits[0].understood)
    content["splits"] = [summary.as_dict() for summary in splits]
    if incomplete:
        reasons = [{"split": name, "why": str(error)} for name, error in incomplete.items()]
        content["incomplete"] = reasons
    if stopped is not None:
        failures = []
        if isinstance(stopped, TooManyFailures):
            failures = [{"source": name, "reason": reason} for name, reason in stopped.failures]
        content["stopped"] = {"why": str(stopped), "failures": failures}
    return json.dumps(content)


def split_text(summary: Summary | PartSummary) -> str:
    """Describe a split, or a part of a split, in a few lines."""
    if isinstance(summary, PartSummary):
        return "\n".join(_part_lines(summary))
    return "\n".join(_split_lines(summary))


def _split_lines(summary: Summary) -> Iterator[str]:
    """Describe a split that is complete."""
    manifest = summary.manifest
    counts = manifest.samples
    written = f"{counted(counts.written, 'photo')} written, {counts.failed:,} failed"
    skipped = f", {counts.skipped:,} skipped" if counts.skipped else ""
    yield f"{summary.split}: {written}{skipped} -> {summary.output}"
    for name, entry in manifest.formats.items():
        mean_megabytes = entry.bytes / len(entry.shards) / 1e6
        yield f"  {name:<10} {counted(len(entry.shards), 'shard')} of {mean_megabytes:,.1f} MB"
    quirks = []
    for warning, count in manifest.warnings.items():
        if warning != OUT_OF_BOUNDS and not warning.startswith("failed_"):
            quirks.append(f"{quirk_name(warning)} {count:,}")
    line = f"  {counts.passthrough:,} stored unchanged, {counts.reencoded:,} re-encoded"
    if quirks:
        line = f"{line}; {', '.join(quirks)}"
    yield line
    for reason, count in summary.skips.items():
        yield f"  skipped: {reason} {count:,}"
    yield from _remarks(summary)
    yield from _failures(summary.failures, counts.failed, f"are in {summary.split}")
    if shards_out_of_bounds := manifest.warnings.get(OUT_OF_BOUNDS):
        yield (
            f"  {counted(shards_out_of_bounds, 'shard')} outside 1 to 128 MB: choose another "
            "--shard-size, unless the split has too few photos for one shard"
        )
    line = f"Check it with: dataprep verify {summary.output}"
    if summary.kept_shards:
        line = f"{counted(summary.kept_shards, 'shard')} stored by an earlier run. {line}"
    if summary.made_shards:
        line = f"{summary.seconds:,.1f} s, {summary.images_per_s:,.0f} img/s. {line}"
    yield line


def _remarks(summary: Summary) -> Iterator[str]:
    """Point out results that the user may not expect."""
    if not_turned := summary.manifest.warnings.get("orientation_ignored"):
        yield (
            f"  {counted(not_turned, 'photo')} stored without the EXIF orientation, pixels not "
            "turned: --set image.orientation=apply turns them"
        )
    if (share := summary.validation) is not None:
        yield (
            f"  {share.percent:.3g}% of the {counted(share.of, 'photo')} instead of the requested "
            f"{share.asked}: each class keeps at least one photo, and gives one if it has two"
        )
    if missing := summary.missing_classes:
        names = ", ".join(map(repr, missing[:_MAX_CLASSES_SHOWN]))
        more = ", ..." if len(missing) > _MAX_CLASSES_SHOWN else ""
        yield f"  {counted(len(missing), 'class')} without a photo in this split: {names}{more}"


def _part_lines(summary: PartSummary) -> Iterator[str]:
    """Describe a part of a split, and say how to complete the split."""
    written = f"{counted(summary.made_shards, 'shard')} made"
    kept = f", {summary.kept_shards:,} stored by an earlier run" if summary.kept_shards else ""
    failed = f", {counted(summary.failed, 'photo')} failed" if summary.failed else ""
    yield f"{summary.split}, part {summary.part}: {written}{kept}{failed} -> {summary.output}"
    yield from _failures(summary.failures, summary.failed, f"will be in {summary.split}")
    command = f"dataprep finalize {summary.output} --split {summary.split}"
    if summary.complete:
        yield "The split is complete."
    elif summary.lacking_shards:
        missing = f"{summary.lacking_shards:,} of {counted(summary.shards, 'shard')} are missing"
        yield f"{missing}. When all parts are done: {command}"
    else:
        yield f"All shards are stored. Now: {command}"


def _failures(failures: Sequence[tuple[str, str]], failed: int, are_in: str) -> Iterator[str]:
    """Describe the first failures, and name the table that has all of them.

    Args:
        failures: the name and the reason of some photos that failed.
        failed: the number of all photos that failed.
        are_in: "are in" or "will be in", followed by the name of the split.
    """
    for name, reason in failures[:_MAX_FAILURES_SHOWN]:
        yield f"  failed: {name}: {reason}"
    if failed > _MAX_FAILURES_SHOWN and failures:
        yield f"  all {failed:,} failures {are_in}.samples.parquet"


def _clock_text(seconds: float) -> str:
    """Return a duration as ``1:02:03``, or ``2:03`` if it is less than an hour."""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    if hours:
        return f"{hours}:{minute:02}:{second:02}"
    return f"{minutes}:{second:02}"
