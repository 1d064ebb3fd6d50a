"""Read the source files of samples and convert their images, in batches and in order."""

from __future__ import annotations

import hashlib
import os
import socket
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple, TypeAlias

from dataprep.errors import (
    ImageError,
    ImageTooLarge,
    ImageTooSmall,
    JobError,
    NotAnImage,
    SourceChanged,
)
from dataprep.image import Converted, ImagePolicy, convert
from dataprep.machine.process_settings import ONE_OPENCV_THREAD
from dataprep.output.keys import MAX_SHARD_BYTES
from dataprep.sources import Located, OnDisk, ReadsRuns, Source
from dataprep.sources.file_names import promises_image
from dataprep.threaded_map import in_order

READ_AHEAD_BYTES = 256 * 2**20
"""The maximum total size of the files that are read or wait to be converted at a time.

A single file may exceed it. It is then read alone.
"""

BATCH_SAMPLES = 16
"""The maximum number of samples in a batch. Larger batches do not fit the processor's caches."""

BATCH_BYTES = 32_000_000
"""The maximum source bytes of a batch. A single sample may exceed it."""

_REPORT_INTERVAL_S = 0.5

_RECORD_HEADROOM_BYTES = 1_000_000
"""The bytes of a shard that are left for the other fields of a record, beside its image."""


class Outcome(NamedTuple):
    """The outcome of converting one sample.

    Attributes:
        converted: the converted image, or the error that explains why there is none.
        sha256: the SHA-256 of the source file, as hexadecimal digits; empty if it was not read.
        source_bytes: the size of the source file; 0 if the file was not read.
    """

    converted: Converted | ImageError
    sha256: str
    source_bytes: int = 0


Batches: TypeAlias = Generator[list[Outcome], None, None]
"""Yields the outcomes of samples in their order, a batch of neighbouring samples at a time."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a conversion.

    Attributes:
        samples: the number of converted samples, including failed and skipped samples.
        source_bytes: the listed size of their source files.
        failed: the number of samples that failed.
    """

    samples: int = 0
    source_bytes: int = 0
    failed: int = 0

    def __add__(self, other: Progress) -> Progress:
        return Progress(
            self.samples + other.samples,
            self.source_bytes + other.source_bytes,
            self.failed + other.failed,
        )

    def __sub__(self, other: Progress) -> Progress:
        return self + Progress(-other.samples, -other.source_bytes, -other.failed)


Report = Callable[[Progress], None]
"""A function that is called with the progress of a conversion.

``ProgressReporter`` calls it with the progress of one shard or chunk since its start, at most twice
a second, and at the end. ``Tally`` calls it with the progress of the job since the last call.
"""


class ProgressReporter:
    """Adds up the progress of samples, and reports it twice a second.

    Args:
        report: called with the progress; None to report nothing.
        source: where the samples come from.
    """

    def __init__(self, report: Report | None, source: Source) -> None:
        self._report = report
        self._source = source
        self._samples = 0
        self._source_bytes = 0
        self._failed = 0
        self._last_report_s = time.monotonic()

    def add(self, item: Located, outcome: Outcome) -> None:
        """Count a sample with its outcome, and report the progress if it is due."""
        self._samples += 1
        self._source_bytes += item.bytes
        error = outcome.converted
        if isinstance(error, ImageError):
            self._failed += status_of(error, item.name, self._source) == "failed"
        self.report_if_due()

    def report_if_due(self) -> None:
        """Report the progress if the last report is half a second old."""
        if self._report and time.monotonic() - self._last_report_s >= _REPORT_INTERVAL_S:
            self.report()

    def report(self) -> None:
        """Report the progress now."""
        if self._report:
            self._report(Progress(self._samples, self._source_bytes, self._failed))
            self._last_report_s = time.monotonic()


def cut_into_batches(
    items: Sequence[Located], max_samples: int = BATCH_SAMPLES
) -> Iterator[Sequence[Located]]:
    """Yield batches of neighbouring samples, limited in their number and in their source bytes.

    Args:
        items: the samples.
        max_samples: the maximum number of samples in a batch. ``BATCH_BYTES`` limits their bytes.
    """
    start = 0
    batch_bytes = 0
    for position, item in enumerate(items):
        is_full = position - start == max_samples
        # A batch has at least one sample, also if the sample alone exceeds the limit.
        is_too_large = position > start and batch_bytes + item.bytes > BATCH_BYTES
        if is_full or is_too_large:
            yield items[start:position]
            start = position
            batch_bytes = 0
        batch_bytes += item.bytes
    if items:
        yield items[start:]


def convert_batches(
    source: Source, items: Sequence[Located], policy: ImagePolicy, report: Report | None = None
) -> Batches:
    """Read and convert samples in order.

    Args:
        source: where the samples come from.
        items: the samples.
        policy: how images are converted.
        report: called with the progress; it may raise an error to stop the work.

    Yields:
        The outcomes of a batch of neighbouring samples.

    Raises:
        SourceChanged: a file is gone or has another size than planned.
        StoreError: a file could not be read.

    Errors of ``report`` are raised, too.
    """
    progress = ProgressReporter(report, source)
    files = read_files(source, items, policy.max_source_bytes)
    with ONE_OPENCV_THREAD.changed():
        for batch in cut_into_batches(items):
            # Read the whole batch before converting it, so that the code of each step stays in
            # the processor's caches.
            contents = []
            for content in islice(files, len(batch)):
                contents.append(content)
                progress.report_if_due()
            outcomes = []
            for item, content in zip(batch, contents, strict=True):
                outcome = convert_file(content, policy, item.name)
                outcomes.append(outcome)
                progress.add(item, outcome)
            yield outcomes
    progress.report()


def convert_file(content: bytes | ImageError, policy: ImagePolicy, name: str) -> Outcome:
    """Convert the image in a source file.

    Args:
        content: the bytes of the file, or the error that explains why it could not be read.
        policy: how images are converted.
        name: the name of the sample, whose extension is compared with the content.

    Returns:
        The outcome. It has an error if the file could not be read, if the image cannot be
        converted, or if the converted image is too large for a shard.
    """
    if isinstance(content, ImageError):
        return Outcome(content, "")
    source_bytes = len(content)
    digest = hashlib.sha256(content).hexdigest()
    try:
        image = convert(content, policy, name=name)
    except ImageError as error:
        return Outcome(error, digest, source_bytes)
    if len(image.data) > MAX_SHARD_BYTES - _RECORD_HEADROOM_BYTES:
        too_large = ImageTooLarge(f"{len(image.data):,} bytes: too many for a shard of 128 MB")
        return Outcome(too_large, digest, source_bytes)
    return Outcome(image, digest, source_bytes)


def status_of(error: ImageError, name: str, source: Source) -> str:
    """Return ``failed`` or ``skipped`` for a sample that could not be converted.

    A sample is skipped if its image is smaller than the policy allows. It is also skipped if its
    file is not an image, its name has no image extension, and its source may list files that are
    not images (``Source.only_images``). All other samples have failed.

    Args:
        error: why the sample could not be converted.
        name: the name of the sample.
        source: where the sample comes from.
    """
    if isinstance(error, ImageTooSmall):
        return "skipped"
    if isinstance(error, NotAnImage):
        should_be_image = promises_image(name) or getattr(source, "only_images", False)
        if not should_be_image:
            return "skipped"
    return "failed"


def read_files(
    source: Source, items: Sequence[Located], max_bytes: int, *, ahead: bool = True
) -> Generator[bytes | ImageError, None, None]:
    """Read the files of samples in order.

    Args:
        source: where the samples come from.
        items: the samples.
        max_bytes: the maximum size of a file. Larger files are not read, unless the source reads
            whole runs (``ReadsRuns``).
        ahead: read files ahead, in ``source.concurrency`` threads. If False, a file is read when
            the caller asks for it, unless the source reads whole runs.

    Yields:
        The bytes of a file, or the error that explains why it cannot be read.

    Raises:
        SourceChanged: a file is gone or has another size than planned.
        StoreError: a file could not be read.
    """
    if isinstance(source, ReadsRuns):
        return (content for content in source.read_runs(items))
    if source.concurrency == 1 or not ahead:
        return (read_file(source, item, max_bytes) for item in items)

    def weight(item: Located) -> int:
        """The bytes of a file in memory. Files that are too large are not read."""
        return item.bytes if item.bytes <= max_bytes else 0

    return in_order(
        lambda item: read_file(source, item, max_bytes),
        items,
        source.concurrency,
        weight=weight,
        budget=READ_AHEAD_BYTES,
    )


def read_file(source: Source, item: Located, max_bytes: int) -> bytes | ImageError:
    """Return the bytes of a file, or the error that explains why it cannot be read.

    Raises:
        SourceChanged: the file is gone or has another size than planned.
        StoreError: the file could not be read.
    """
    if item.bytes > max_bytes:
        return ImageTooLarge(
            f"{item.bytes:,} bytes are more than max_source_bytes allows ({max_bytes:,})"
        )
    try:
        content = source.read(item)
    except ImageError as error:
        return error
    if len(content) != item.bytes:
        raise SourceChanged(
            f"{item.name!r} had {item.bytes:,} bytes when the job was planned and has "
            f"{len(content):,} now: restore it, or start again with --overwrite"
        )
    return content


def require_visible_source(source: Source) -> None:
    """Check that this machine can see a source on a disk, before any sample is read.

    Without this check, each sample would be reported as missing or unreadable.

    Raises:
        JobError: this machine does not see the source, or may not read it.
    """
    if not isinstance(source, OnDisk):
        return
    for path in source.disk_paths():
        if not _is_visible(path):
            raise JobError(
                f"the worker on host {socket.gethostname()} does not see the source {path}, or may "
                "not read it: make it available there under the same path, or use a source that "
                "all workers can reach, such as s3://BUCKET/PREFIX"
            )


def _is_visible(path: str) -> bool:
    """Whether the path is a readable file or a readable folder with entries.

    An empty folder does not count, because it may be a mount point without its file system.
    """
    try:
        if not os.path.isdir(path):  # noqa: PTH112  also for a name of any bytes
            return os.access(path, os.R_OK)
        with os.scandir(path) as entries:
            return next(entries, None) is not None
    except OSError:
        return False
