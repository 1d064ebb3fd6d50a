"""Everything that can go wrong, as one tree.

Each error is also the builtin that fits, says what to do, and survives pickling, since most
of them cross from a worker to the driver. Foreign errors (botocore, Pillow, pydantic, OSError)
are translated once, where the foreign library is called.

::

    DataprepError
    ├── ConfigError            ValueError         a key, a value or a combination that cannot be
    ├── SourceError            OSError            the source cannot be listed or read
    │   ├── SourceNotFound     FileNotFoundError  nothing there, or nothing in it
    │   ├── SourceChanged      RuntimeError       not what was planned
    │   ├── NotAnArchive                          a file that cannot be read as an archive
    │   └── CorruptArchive                        a damaged one
    │       └── TruncatedArchive EOFError         the archive ends inside a member
    ├── ImageError             ValueError         one sample cannot become an image
    │   ├── NotAnImage                            no codec knows the bytes
    │   ├── CorruptImage                          broken, truncated or empty
    │   ├── UnsupportedImage                      known, but nothing honest can be made of it
    │   ├── RefusedImage                          the policy refuses images of this kind
    │   ├── UnreadableImage                       this one file may not be read
    │   ├── DecoderCrashed                        native code dies of it, each time
    │   ├── DecoderHung                           native code does not come back, each time
    │   ├── ImageTooLarge                         over a limit
    │   └── ImageTooSmall                         under a limit: skipped, no failure
    ├── RecordError            ValueError         a record file does not follow its format
    │   ├── CorruptRecord                         a checksum, magic or length is wrong
    │   └── TruncatedRecord    EOFError           the file ends inside a record
    ├── StoreError             OSError            a store did not do what it was asked
    │   ├── ObjectNotFound     FileNotFoundError  no such key, bucket or directory
    │   ├── PermissionRefused  PermissionError    credentials or rights are missing
    │   ├── StoreUnreachable   ConnectionError    no answer, after all retries
    │   ├── StoreFull                             no space left
    │   └── StoredBytesDiffer                     what was stored is not what was sent
    ├── DatasetError           ValueError         an output cannot be read as a data set
    │   ├── ManifestMissing    FileNotFoundError  not there, or not complete
    │   ├── DatasetChanged     RuntimeError       no longer what was opened
    │   ├── SchemaTooNew                          written by a newer version
    │   └── FormatMissing                         not made in the format that was asked for
    └── JobError               RuntimeError       the job cannot go on
        ├── OutputConflict                        OUTPUT holds another job, or another run writes it
        ├── LeaseLost                             another run may have begun to write OUTPUT
        ├── ShardsMissing                         not all shards of a split are stored
        ├── TooManyFailures                       more failed samples than allowed
        └── WorkerLost                            workers die over one shard
            └── SampleLost                        or over one sample, not by its content
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

INTERRUPTED = 130
"""The exit code of a command that Ctrl-C, SIGTERM or SIGHUP has stopped; 128 + SIGINT."""


class DataprepError(Exception):
    """Root of the tree. ``exit_code`` is what the command line ends with."""

    exit_code = 1


class ConfigError(DataprepError, ValueError):
    """A key, a value or a combination of values that cannot be."""

    exit_code = 2


class SourceError(DataprepError, OSError):
    """The source cannot be listed or read."""

    exit_code = 2


class SourceNotFound(SourceError, FileNotFoundError):
    """There is nothing at the source, or nothing in it."""


class SourceChanged(SourceError, RuntimeError):
    """The source no longer is what the job was planned from."""

    exit_code = 1


class NotAnArchive(SourceError):
    """A file is no archive, or of a kind that cannot be read in place."""


class CorruptArchive(SourceError):
    """An archive is damaged."""


class TruncatedArchive(CorruptArchive, EOFError):
    """An archive ends inside a member."""


class ImageError(DataprepError, ValueError):
    """One sample cannot become an image; ``kind`` is what the manifest counts."""

    kind = "image"


class NotAnImage(ImageError):
    """No codec knows these bytes."""

    kind = "not_an_image"


class CorruptImage(ImageError):
    """The image is broken, truncated or empty."""

    kind = "corrupt"


class UnsupportedImage(ImageError):
    """A known kind of image of which nothing honest can be made."""

    kind = "unsupported"


class RefusedImage(ImageError):
    """A sound image of a kind that the policy refuses; ``kind`` says which."""

    kind = "refused"

    def __init__(self, message: str, kind: str = "refused") -> None:
        super().__init__(message)
        self.kind = kind


class UnreadableImage(ImageError):
    """This one file may not be read."""

    kind = "unreadable"


class DecoderCrashed(ImageError):
    """Native code that was given this file ended its process by a fault, each time."""

    kind = "crashed"


class DecoderHung(ImageError):
    """Native code that was given this file did not come back within the limit, each time."""

    kind = "hung"


class ImageTooLarge(ImageError):
    """The image has more pixels, or the file more bytes, than the limit allows."""

    kind = "too_large"


class ImageTooSmall(ImageError):
    """The image has a side below the limit; it is skipped, which is no failure."""

    kind = "too_small"


class RecordError(DataprepError, ValueError):
    """A record file does not follow its format.

    ``record`` counts from 0, ``offset`` is the byte at which that record begins.
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
    """A store did not do what it was asked to do."""


class ObjectNotFound(StoreError, FileNotFoundError):
    """No such key, bucket or directory."""


class PermissionRefused(StoreError, PermissionError):
    """Credentials or rights are missing."""


class StoreUnreachable(StoreError, ConnectionError):
    """The store did not answer, after all retries."""


class StoreFull(StoreError):
    """No space is left in the store."""


class StoredBytesDiffer(StoreError):
    """The store holds other bytes than those that were sent."""


class DatasetError(DataprepError, ValueError):
    """An output cannot be read as a data set."""

    exit_code = 2


class ManifestMissing(FileNotFoundError, DatasetError):
    """There is no data set here, or it is not complete."""

    # OSError's side comes first: its __new__ is the one that unpickling must find.


class DatasetChanged(DatasetError, RuntimeError):
    """The data set is being made anew, or was, since it was opened."""

    exit_code = 1


class SchemaTooNew(DatasetError):
    """Written by a newer version of this package."""


class FormatMissing(DatasetError):
    """The data set was not made in this format."""


class JobError(DataprepError, RuntimeError):
    """The job cannot go on; what is done is kept, and running it again resumes it."""


class OutputConflict(JobError):
    """OUTPUT already holds another job."""

    exit_code = 2


class LeaseLost(JobError):
    """This run's claim on OUTPUT has lapsed, or another has taken it over."""


class ShardsMissing(JobError):
    """A split cannot be finalised while shards of it are not stored."""


class TooManyFailures(JobError):
    """More samples failed than ``max_failures`` allows.

    ``failures`` are name and reason of those that are known.
    """

    failures: tuple[tuple[str, str], ...] = ()


class WorkerLost(JobError):
    """Workers die over one shard, again and again."""


class SampleLost(WorkerLost):
    """Processes that convert one sample are killed or hang, again and again."""


class Changes:
    """Whether a command has changed its output yet, which decides the exit code of an error.

    2 says that nothing was written. An error that usually says so gets 1 after the first change.
    """

    def __init__(self) -> None:
        self._begun = False

    def begin(self) -> None:
        """Note that something has been written or removed."""
        self._begun = True

    @contextlib.contextmanager
    def exit_codes(self) -> Iterator[None]:
        """Correct the exit codes of errors that pass through."""
        try:
            yield
        except DataprepError as error:
            if self._begun and error.exit_code == 2:
                error.exit_code = 1
            raise
        except OSError as error:
            if self._begun:
                vars(error)["exit_code"] = 1
            raise


@contextlib.contextmanager
def nothing_written() -> Iterator[None]:
    """Give a StoreError the exit code of a wrong request, since nothing has been written yet."""
    try:
        yield
    except StoreError as error:
        error.exit_code = 2
        raise
