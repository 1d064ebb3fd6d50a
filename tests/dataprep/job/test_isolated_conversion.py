"""Images converted in a child process have the same outcomes, and its death fails an image."""

from __future__ import annotations

import signal
from itertools import chain

import pytest

from dataprep.config.shard_config import DEFAULT_SAMPLE_LIMIT, SampleLimit
from dataprep.errors import (
    CorruptImage,
    DecoderCrashed,
    DecoderHung,
    ImageError,
    ImageTooLarge,
    SampleLost,
    SourceChanged,
)
from dataprep.image import Converted, ImagePolicy
from dataprep.job.conversion import Outcome, Progress, convert_batches
from dataprep.job.isolated_conversion import Ending, ending_of, error_of_ending, isolated_batches
from dataprep.sources import Located
from tests.dataprep.job.test_shard_making import Files, jpeg


def comparable(outcome: Outcome) -> tuple[object, str]:
    """Errors as their messages, so that they can be compared."""
    converted = outcome.converted
    return (str(converted) if isinstance(converted, ImageError) else converted), outcome.sha256


def test_the_same_outcomes() -> None:
    """Images, errors, hashes and progress equal those of a conversion in this process."""
    files = {
        **{f"a/{shade}.JPEG": jpeg(shade) for shade in (0, 90, 180)},
        "a/cut.JPEG": jpeg(7)[:100],
        "a/large.JPEG": jpeg(9) + bytes(5_000),
    }
    items = [Located(name, len(data)) for name, data in files.items()]
    policy = ImagePolicy(size=24, max_source_bytes=5_000)
    reported: list[Progress] = []
    isolated = isolated_batches(Files(files), items, policy, DEFAULT_SAMPLE_LIMIT, reported.append)
    alone = list(chain.from_iterable(isolated))
    assert [type(outcome.converted) for outcome in alone] == [
        *[Converted] * 3,
        CorruptImage,
        ImageTooLarge,
    ]
    here = chain.from_iterable(convert_batches(Files(files), items, policy))
    assert [comparable(outcome) for outcome in alone] == [comparable(outcome) for outcome in here]
    assert reported[-1] == Progress(5, sum(map(len, files.values())), 2)


def test_a_changed_file_ends_it() -> None:
    """A file of another size than planned is an error of the source."""
    with pytest.raises(SourceChanged, match=r"a/0\.JPEG"):
        list(
            isolated_batches(
                Files({"a/0.JPEG": jpeg(0)}),
                [Located("a/0.JPEG", 1)],
                ImagePolicy(),
                DEFAULT_SAMPLE_LIMIT,
            )
        )


@pytest.mark.parametrize(
    ("code", "stderr", "kind"),
    [
        (-signal.SIGSEGV, "", "fault"),
        (-signal.SIGABRT, "free(): invalid pointer", "fault"),
        (-signal.SIGABRT, "memory allocation of 48000004 bytes failed", "killed"),
        (-signal.SIGKILL, "", "killed"),
        (-signal.SIGTERM, "", "killed"),
        (1, "", "fault"),
    ],
)
def test_how_a_process_ended(code: int, stderr: str, kind: str) -> None:
    """Fault signals count as faults of the codec, and a kill or a lack of memory does not."""
    assert ending_of(code, stderr).cause == kind


def test_what_an_ending_says_of_the_image() -> None:
    """A fault fails the image, a kill stops the job, and ``hung_samples`` decides about a hang."""
    limit = SampleLimit(5, "fail")
    assert isinstance(error_of_ending("a", Ending("fault", "SIGSEGV"), limit), DecoderCrashed)
    assert isinstance(error_of_ending("a", Ending("hung", "5 s"), limit), DecoderHung)
    with pytest.raises(SampleLost, match=r"'a'.*--set hung_samples=fail"):
        error_of_ending("a", Ending("hung", "5 s"), SampleLimit(5, "stop"))
    with pytest.raises(SampleLost, match=r"'a'.*killed 2 times \(SIGKILL\).*more memory"):
        error_of_ending("a", Ending("killed", "SIGKILL"), limit)
