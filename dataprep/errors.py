"""All errors of this package, as one tree, and the exit codes of commands.

Each error is also the builtin exception that fits, and its message says what to do. Errors can be
pickled, since most of them travel from a worker to the process that runs the job. The errors of
other libraries (botocore, Pillow, pydantic) and OSError are translated once, where the library is
called.

::

    DataprepError
    ├── ConfigError            ValueError         a wrong key, value or combination of values
    ├── SourceError            OSError            the source cannot be listed or read
    │   ├── SourceNotFound     FileNotFoundError  the source does not exist, or is empty
    │   ├── SourceChanged      RuntimeError       the source has changed since it was listed
    │   ├── NotAnArchive                          a file that cannot be read as an archive
    │   └── CorruptArchive                        an archive is damaged
    │       └── TruncatedArchive EOFError         the archive ends inside a member
    ├── ImageError             ValueError         one sample cannot become an image
    │   ├── NotAnImage                            no codec recognises the bytes
    │   ├── CorruptImage                          the image is broken, truncated or empty
    │   ├── UnsupportedImage                      the image cannot be converted without guessing
    │   ├── RefusedImage                          the policy refuses images of this kind
    │   ├── UnreadableImage                       the file of this image may not be read
    │   ├── DecoderCrashed                        the decoder crashes on it, each time
    │   ├── DecoderHung                           the decoder does not return, each time
    │   ├── ImageTooLarge                         the image exceeds a limit
    │   └── ImageTooSmall                         a side is below a limit: skipped, no failure
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
        ├── OutputConflict                        OUTPUT has another job, or another run writes it
        ├── LeaseLost                             another run may have begun to write OUTPUT
        ├── ShardsMissing                         not all shards of a split are stored
        ├── TooManyFailures                       more failed samples than allowed
        └── WorkerLost                            one shard has ended several workers
            └── SampleLost                        one sample has ended several processes
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

INTERRUPTED = 130
"""The exit code of a command that Ctrl-C, SIGTERM or SIGHUP has stopped; 128 + SIGINT."""


class DataprepError(Exception):
    """Root of the tree.

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
    """The source has changed since the job was planned."""

    exit_code = 1


class NotAnArchive(SourceError):
    """A file is no archive, or is an archive that cannot be read in place."""


class CorruptArchive(SourceError):
    """An archive is damaged."""


class TruncatedArchive(CorruptArchive, EOFError):
    """An archive ends inside a member."""


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
    """The image is of a kind that cannot be converted without guessing."""

    kind = "unsupported"


class RefusedImage(ImageError):
    """The image is valid, but of a kind that the policy refuses.

    Attributes:
        kind: the kind, as the manifest counts it.
    """

    kind = "refused"

    def __init__(self, message: str, kind: str = "refused") -> None:
        super().__init__(message)
        self.kind = kind


class UnreadableImage(ImageError):
    """The file of this image may not be read."""

    kind = "unreadable"


class DecoderCrashed(ImageError):
    """The decoder crashed its process while it converted this file, each time."""

    kind = "crashed"


class DecoderHung(ImageError):
    """The decoder did not return within the time limit for this file, each time."""

    kind = "hung"


class ImageTooLarge(ImageError):
    """The image has more pixels, or the file more bytes, than the limit allows."""

    kind = "too_large"


class ImageTooSmall(ImageError):
    """The image has a side below the limit. It is skipped, which is no failure."""

    kind = "too_small"


class RecordError(DataprepError, ValueError):
    """A record file does not follow its format.

    Attributes:
        record: the number of the record, from 0; -1 if unknown.
        offset: the byte at which the record begins; -1 if unknown.
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

    # FileNotFoundError is the first base, since unpickling must use the __new__ of OSError.


class DatasetChanged(DatasetError, RuntimeError):
    """The data set was made anew after it was opened, or is being made anew now."""

    exit_code = 1


class SchemaTooNew(DatasetError):
    """A newer version of this package wrote the file."""


class FormatMissing(DatasetError):
    """The data set was not made in this format."""


class JobError(DataprepError, RuntimeError):
    """The job cannot continue. Its results so far are saved; run it again to resume it."""


class OutputConflict(JobError):
    """OUTPUT has another job, or another run is writing to it."""

    exit_code = 2


class LeaseLost(JobError):
    """This run has lost its lock on OUTPUT: it has expired, or another run has taken it over."""


class ShardsMissing(JobError):
    """A split cannot be finalized, since some of its shards are not stored yet."""


class TooManyFailures(JobError):
    """More samples failed than ``max_failures`` allows.

    Attributes:
        failures: the name of each failed sample, as far as known, and the reason.
    """

    failures: tuple[tuple[str, str], ...] = ()


class WorkerLost(JobError):
    """Several workers have ended while they made one shard."""


class SampleLost(WorkerLost):
    """Several processes were killed or did not return while they converted one sample."""


class Changes:
    """Records whether a command has changed its output, which decides the exit code of an error.

    The exit code 2 means that nothing was written. An error with this code gets the code 1 if it
    occurs after the first change.
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
                vars(error)["exit_code"] = 1
            raise


@contextlib.contextmanager
def nothing_written() -> Iterator[None]:
    """Give a StoreError the exit code 2, since nothing has been written yet."""
    try:
        yield
    except StoreError as error:
        error.exit_code = 2
        raise
