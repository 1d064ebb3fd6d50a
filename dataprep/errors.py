"""All errors of this package, as one tree, and the exit codes of commands.

Each error is also a subclass of the builtin exception that fits. Its message says what to do.
Errors can be pickled, because most of them travel from a worker to the process that runs the job.
OSError and the errors of other libraries (botocore, Pillow, pydantic) are translated once, where
the library is called.

::

    DataprepError
    ├── ConfigError            ValueError         a wrong key, value or combination of values
    ├── SourceError            OSError            the source cannot be listed or read
    │   ├── SourceNotFound     FileNotFoundError  the source does not exist, or is empty
    │   ├── SourceChanged      RuntimeError       the source has changed since it was listed
    │   ├── NotAnArchive                          the file cannot be read as an archive
    │   └── CorruptArchive                        the archive is damaged
    │       └── TruncatedArchive EOFError         the archive ends inside a member
    ├── ImageError             ValueError         one sample cannot become an image
    │   ├── NotAnImage                            no codec recognises the bytes
    │   ├── CorruptImage                          the image is broken, truncated or empty
    │   ├── UnsupportedImage                      the image cannot be converted without guessing
    │   ├── RefusedImage                          the policy refuses images of this kind
    │   ├── UnreadableImage                       the file of this image may not be read
    │   ├── DecoderCrashed                        the decoder crashes each time
    │   ├── DecoderHung                           the decoder exceeds the time limit each time
    │   ├── ImageTooLarge                         the image exceeds a limit
    │   └── ImageTooSmall                         a side is below the limit; the sample is skipped
    ├── RecordError            ValueError         a record file does not follow its format
    │   ├── CorruptRecord                         a checksum, magic or length is wrong
    │   └── TruncatedRecord    EOFError           the file ends inside a record
    ├── StoreError             OSError            a store did not do what was requested
    │   ├── ObjectNotFound     FileNotFoundError  no such key, bucket or directory
    │   ├── PermissionRefused  PermissionError    credentials or rights are missing
    │   ├── StoreUnreachable   ConnectionError    no answer, after all retries
    │   ├── StoreFull                             no space left
    │   └── StoredBytesDiffer                     the stored bytes differ from those sent
    ├── DatasetError           ValueError         an output cannot be read as a data set
    │   ├── ManifestMissing    FileNotFoundError  there is no data set, or it is not complete
    │   ├── DatasetChanged     RuntimeError       the data set has changed since it was opened
    │   ├── SchemaTooNew                          a newer version of this package wrote it
    │   └── FormatMissing                         the data set lacks the requested format
    └── JobError               RuntimeError       the job cannot continue
        ├── OutputConflict                        OUTPUT belongs to another job, or is in use
        ├── LeaseLost                             another run may have begun to write OUTPUT
        ├── ShardsMissing                         some shards of a split are not stored yet
        ├── TooManyFailures                       more samples failed than allowed
        └── WorkerLost                            several workers died while they made a shard
            └── SampleLost                        several processes died or hung over a sample
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

INTERRUPTED = 130
"""The exit code of a command that Ctrl-C, SIGTERM or SIGHUP has stopped. It is 128 + SIGINT."""


class DataprepError(Exception):
    """Base class of all errors of this package.

    Attributes:
        exit_code: the exit code of a command that fails with this error.
    """

    exit_code = 1


class ConfigError(DataprepError, ValueError):
    """A key, a value or a combination of values is wrong."""

    exit_code = 2


class SourceError(DataprepError, OSError):
    """The source cannot be listed or read."""

    exit_code = 2


class SourceNotFound(SourceError, FileNotFoundError):
    """The source does not exist, or is empty."""


class SourceChanged(SourceError, RuntimeError):
    """The source has changed since it was listed, or since the job was planned."""

    exit_code = 1


class NotAnArchive(SourceError):
    """The file is not an archive, or its members cannot be read without unpacking it."""


class CorruptArchive(SourceError):
    """The archive is damaged."""


class TruncatedArchive(CorruptArchive, EOFError):
    """The archive ends inside a member."""


class ImageError(DataprepError, ValueError):
    """One sample cannot become an image.

    Attributes:
        kind: the name under which the manifest counts the failure.
    """

    kind = "image"


class NotAnImage(ImageError):
    """No codec recognises the bytes."""

    kind = "not_an_image"


class CorruptImage(ImageError):
    """The image is broken, truncated or empty."""

    kind = "corrupt"


class UnsupportedImage(ImageError):
    """The image cannot be converted without guessing, for example at the range of its samples."""

    kind = "unsupported"


class RefusedImage(ImageError):
    """The image is valid, but the policy refuses images of this kind.

    Attributes:
        kind: the kind of the image, under which the manifest counts the failure.
    """

    kind = "refused"

    def __init__(self, message: str, kind: str = "refused") -> None:
        super().__init__(message)
        self.kind = kind


class UnreadableImage(ImageError):
    """The file of this image may not be read."""

    kind = "unreadable"


class DecoderCrashed(ImageError):
    """The process crashed each time it decoded this image."""

    kind = "crashed"


class DecoderHung(ImageError):
    """The decoder exceeded the time limit each time it decoded this image."""

    kind = "hung"


class ImageTooLarge(ImageError):
    """The image has more pixels than the limit allows, or its file has more bytes."""

    kind = "too_large"


class ImageTooSmall(ImageError):
    """A side of the image is below the limit. The sample is skipped; this is not a failure."""

    kind = "too_small"


class RecordError(DataprepError, ValueError):
    """A record file does not follow its format.

    Attributes:
        record: the number of the record, from 0; -1 if unknown.
        offset: the byte offset at which the record begins; -1 if unknown.
    """

    def __init__(self, message: str, *, record: int = -1, offset: int = -1) -> None:
        super().__init__(message)
        self.record = record
        self.offset = offset


class CorruptRecord(RecordError):
    """A checksum, a magic number or a length is wrong."""


class TruncatedRecord(RecordError, EOFError):
    """The file ends inside a record."""


class StoreError(DataprepError, OSError):
    """A store did not do what was requested."""


class ObjectNotFound(StoreError, FileNotFoundError):
    """There is no such key, bucket or directory."""


class PermissionRefused(StoreError, PermissionError):
    """Credentials or rights are missing."""


class StoreUnreachable(StoreError, ConnectionError):
    """The store did not answer, after all retries."""


class StoreFull(StoreError):
    """No space is left in the store."""


class StoredBytesDiffer(StoreError):
    """The stored bytes differ from those that were sent."""


class DatasetError(DataprepError, ValueError):
    """An output cannot be read as a data set."""

    exit_code = 2


class ManifestMissing(FileNotFoundError, DatasetError):
    """There is no data set at this location, or it is not complete."""

    # FileNotFoundError is the first base class, because unpickling must use OSError.__new__.


class DatasetChanged(DatasetError, RuntimeError):
    """The data set was written again after it was opened, or is being written again now."""

    exit_code = 1


class SchemaTooNew(DatasetError):
    """A newer version of this package wrote the file."""


class FormatMissing(DatasetError):
    """The data set was not made in this format."""


class JobError(DataprepError, RuntimeError):
    """The job cannot continue. Its results so far are saved; run it again to resume it."""


class OutputConflict(JobError):
    """OUTPUT belongs to another job, or another run is writing to it."""

    exit_code = 2


class LeaseLost(JobError):
    """This run has lost its lock on OUTPUT. The lock expired, or another run took it over."""


class ShardsMissing(JobError):
    """A split cannot be finalized, because some of its shards are not stored yet."""


class TooManyFailures(JobError):
    """More samples failed than ``max_failures`` allows.

    Attributes:
        failures: pairs of the name of a failed sample and the reason, as far as they are known.
    """

    failures: tuple[tuple[str, str], ...] = ()


class WorkerLost(JobError):
    """Several workers died while they made the same shard."""


class SampleLost(WorkerLost):
    """Several processes died or did not return while they converted the same sample."""


class Changes:
    """Records whether a command has changed its output.

    The exit code 2 means that nothing was written. If an error with this code occurs after the
    first change, its code becomes 1.
    """

    def __init__(self) -> None:
        self._have_begun = False

    def begin(self) -> None:
        """Record that the command writes or removes something from now on."""
        self._have_begun = True

    @contextlib.contextmanager
    def exit_codes(self) -> Iterator[None]:
        """Correct the exit codes of errors that pass through."""
        try:
            yield
        except DataprepError as error:
            if self._have_begun and error.exit_code == 2:
                error.exit_code = 1
            raise
        except OSError as error:
            if self._have_begun:
                # The command line reads this attribute. OSError does not declare it.
                vars(error)["exit_code"] = 1
            raise


@contextlib.contextmanager
def nothing_written() -> Iterator[None]:
    """Give a StoreError the exit code 2, because nothing has been written yet."""
    try:
        yield
    except StoreError as error:
        error.exit_code = 2
        raise
