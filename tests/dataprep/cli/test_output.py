"""A user sees progress, the summary of each split, and JSON."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from dataprep.cli.output import Terminal, show, show_splits, split_text, splits_json
from dataprep.errors import ConfigError, DataprepError, StoreError, TooManyFailures
from dataprep.job.conversion import Progress
from dataprep.job.parts import Part
from dataprep.job.report import PartSummary, Summary
from dataprep.message_text import counted
from dataprep.output.manifest import FormatEntry, Manifest, SampleCounts, ShardEntry

SHARDS = (ShardEntry("a", 60_000_000, 900, "x"), ShardEntry("b", 64_000_000, 1_000, "y"))
MANIFEST = Manifest(
    split="train",
    created="2026-01-01T00:00:00+00:00",
    fingerprint="f1",
    config={},
    run={},
    versions={},
    formats={"tfrecord": FormatEntry(1, 1_900, 124_000_000, SHARDS)},
    samples=SampleCounts(1_903, 1_900, 2, 1, 400, 1_500),
    warnings={"failed_corrupt": 2, "icc_dropped": 1_022, "upscaled": 2},
)
SUMMARY = Summary(
    split="train",
    output="s3://bucket/out",
    manifest=MANIFEST,
    seconds=12.34567,
    made_shards=2,
    kept_shards=0,
    images_per_s=154.21,
    failures=(("c/a.jpg", "empty file (0 bytes)"), ("c/b.jpg", "truncated JPEG")),
    skips={"hidden or system file": 1},
)
PART = PartSummary(
    split="train",
    output="s3://bucket/out",
    part=Part(1, 4),
    shards=750,
    made_shards=180,
    kept_shards=7,
    lacking_shards=300,
    complete=False,
    samples=300_000,
    failed=2,
    seconds=100.04,
    failures=(("c/a.jpg", "empty file (0 bytes)"),),
)
MANY = replace(
    SUMMARY,
    manifest=replace(MANIFEST, samples=replace(MANIFEST.samples, failed=1_015)),
    failures=tuple((f"{i}.jpg", "broken") for i in range(1_015)),
)
FINALIZE = "dataprep finalize s3://bucket/out --split train"


class Clock:
    """A clock that tests set."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


class Screen(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


class Gone(io.StringIO):
    """A stream whose reader has ended."""

    def write(self, text: str) -> int:
        raise BrokenPipeError(text)


class TestProgress:
    def test_a_log_has_a_line_every_five_seconds(self) -> None:
        """A log gets one line every five seconds at most, one at the end, and each note at once."""
        clock, stream = Clock(), io.StringIO()
        display = Terminal(stream, clock)
        display.start("train", 100, 0)
        for _ in range(4):
            clock.now_s += 2.0
            display.advance(Progress(10, 2_000_000, 0))
        line = "train  30/100 photos  5 img/s  1 MB/s  0 failed  0:14 left\n"
        assert stream.getvalue() == line
        display.note("a\nnote")
        display.stop()
        display.stop()
        assert stream.getvalue() == (
            f"{line}a\\nnote\ntrain  40/100 photos  5 img/s  1 MB/s  0 failed  0:12 left\n"
        )

    def test_a_terminal_has_one_line(self) -> None:
        """The line on a terminal is overwritten, and notes are printed above it."""
        clock, stream = Clock(), Screen()
        display = Terminal(stream, clock)
        display.start("train", 10, 0)
        for _ in range(2):
            clock.now_s += 0.2
            display.advance(Progress(4, 40, 1))
            display.note("a note")
        display.stop()
        drawn = [part for part in stream.getvalue().split("\r\x1b[K") if part]
        visible = [part.split("  ")[1] for part in drawn[::2]]
        assert visible == ["4/10 photos", "8/10 photos", "8/10 photos"]
        assert drawn[1::2] == ["a note\n", "a note\n"]
        assert stream.getvalue().count("\n") == 3

    @pytest.mark.parametrize(
        ("samples", "skipped_samples", "seconds", "new_samples", "line"),
        [
            (9, 0, 1, [Progress()], "train  0/9 photos  0 img/s  0 MB/s  0 failed  -:-- left"),
            (61, 0, 1, [Progress(1)], "1:00 left"),
            (3_601, 0, 1, [Progress(1)], "1:00:00 left"),
            (360_062, 0, 1, [Progress(1)], "100:01:01 left"),
            (
                5_000,
                200,
                2,
                [Progress(1_000, 50_000_000, 3)],
                "train  1,200/5,000 photos  500 img/s  25 MB/s  3 failed  0:08 left",
            ),
            (100, 0, 0, [Progress(95, 950, 2), Progress(10, 100, 1)], "100/100 photos .* 3 failed"),
        ],
    )
    def test_the_last_line(
        self,
        samples: int,
        skipped_samples: int,
        seconds: float,
        new_samples: list[Progress],
        line: str,
    ) -> None:
        """Rates and remaining time are those of this run, and a shard made again counts once."""
        clock, stream = Clock(), io.StringIO()
        display = Terminal(stream, clock)
        display.start("train", samples, skipped_samples)
        clock.now_s += seconds
        for progress in new_samples:
            display.advance(progress)
        display.stop()
        (last_line,) = stream.getvalue().splitlines()
        assert re.search(f"{line}", last_line)

    def test_a_reader_that_has_ended_stops_no_job(self) -> None:
        """A job continues if its progress cannot be written."""
        display = Terminal(Gone())
        display.start("train", 1, 0)
        display.note("a note")
        display.stop()

    def test_progress_goes_to_stderr(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Progress is not written to stdout."""
        Terminal().note("a note")
        assert capsys.readouterr() == ("", "a note\n")


class TestSummary:
    def test_a_split(self) -> None:
        """The summary has counts, formats, changes, skips, failures, speed, and the next step."""
        assert split_text(SUMMARY).splitlines() == [
            "train: 1,900 photos written, 2 failed, 1 skipped -> s3://bucket/out",
            "  tfrecord   2 shards of 62.0 MB",
            "  400 stored unchanged, 1,500 re-encoded; colour profile dropped 1,022, upscaled 2",
            "  skipped: hidden or system file 1",
            "  failed: c/a.jpg: empty file (0 bytes)",
            "  failed: c/b.jpg: truncated JPEG",
            "12.3 s, 154 img/s. Check it with: dataprep verify s3://bucket/out",
        ]

    def test_a_split_that_was_complete(self) -> None:
        """A split that was complete has no speed, and no lines for things that did not happen."""
        quiet = replace(
            SUMMARY,
            manifest=replace(MANIFEST, warnings={}, samples=SampleCounts(5, 5, 0, 0, 5, 0)),
            made_shards=0,
            kept_shards=2,
            failures=(),
            skips={},
        )
        assert split_text(quiet).splitlines() == [
            "train: 5 photos written, 0 failed -> s3://bucket/out",
            "  tfrecord   2 shards of 62.0 MB",
            "  5 stored unchanged, 0 re-encoded",
            "2 shards stored by an earlier run. Check it with: dataprep verify s3://bucket/out",
        ]

    @pytest.mark.parametrize(
        ("summary", "lines"),
        [
            (
                replace(SUMMARY, made_shards=1, kept_shards=1_001),
                ["12.3 s, 154 img/s. 1,001 shards stored by an earlier run. Check it with: "],
            ),
            (MANY, ["  all 1,015 failures are in train.samples.parquet"]),
            (
                replace(SUMMARY, manifest=replace(MANIFEST, warnings={"shards_out_of_bounds": 1})),
                ["  1 shard outside 1 to 128 MB: choose another --shard-size, "],
            ),
            (
                replace(PART, failed=6, failures=PART.failures * 6),
                ["  all 6 failures will be in train.samples.parquet"],
            ),
            (replace(PART, lacking_shards=0), [f"All shards are stored. Now: {FINALIZE}"]),
            (replace(PART, lacking_shards=0, complete=True), ["The split is complete."]),
        ],
        ids=["resumed", "many failures", "out of bounds", "failures of a part", "last", "complete"],
    )
    def test_what_is_said_besides(self, summary: Summary | PartSummary, lines: list[str]) -> None:
        """Earlier shards are counted separately, and five of many failures are shown."""
        text = split_text(summary)
        for start in lines:
            assert any(line.startswith(start) for line in text.splitlines())
        assert text.count("  failed: ") <= 5
        assert "shards out of bounds" not in text

    def test_a_part(self) -> None:
        """A part has its own figures, the shards that its split lacks, and the next command."""
        assert split_text(PART).splitlines() == [
            "train, part 1/4: 180 shards made, 7 stored by an earlier run, 2 photos failed"
            " -> s3://bucket/out",
            "  failed: c/a.jpg: empty file (0 bytes)",
            "300 of 750 shards are missing. When all parts are done: "
            "dataprep finalize s3://bucket/out --split train",
        ]


class TestJson:
    """``--json`` prints one object."""

    def test_it_is_one_object(self) -> None:
        """The JSON object has every figure of each split."""
        text = splits_json([SUMMARY, PART])
        assert "\n" not in text
        split, part = json.loads(text)["splits"]
        assert split == {
            "split": "train",
            "output": "s3://bucket/out",
            "samples": {
                "total": 1_903,
                "written": 1_900,
                "failed": 2,
                "skipped": 1,
                "passthrough": 400,
                "reencoded": 1_500,
            },
            "formats": {
                "tfrecord": {"shards": 2, "records": 1_900, "bytes": 124_000_000, "label_offset": 1}
            },
            "warnings": {"failed_corrupt": 2, "icc_dropped": 1_022, "upscaled": 2},
            "spread": 0.0323,
            "made_shards": 2,
            "kept_shards": 0,
            "seconds": 12.346,
            "images_per_s": 154.2,
            "fingerprint": "f1",
            "failures": [
                {"source": "c/a.jpg", "reason": "empty file (0 bytes)"},
                {"source": "c/b.jpg", "reason": "truncated JPEG"},
            ],
            "skips": {"hidden or system file": 1},
            "missing_classes": [],
            "validation": None,
        }
        assert (part["part"], part["lacking_shards"], part["seconds"]) == ("1/4", 300, 100.04)

    @pytest.mark.parametrize(
        ("error", "failures"),
        [(StoreError("no answer"), []), (TooManyFailures("2 failed"), [("c/a.jpg", "empty")])],
    )
    def test_a_job_that_stopped(
        self,
        error: DataprepError,
        failures: list[tuple[str, str]],
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        """The object has the earlier splits, the reason, and the known failures."""
        if isinstance(error, TooManyFailures):
            error.failures = tuple(failures)
        with pytest.raises(type(error)):
            show_splits(_splits(error), as_json=True)
        content = json.loads(capsys.readouterr().out)
        assert [split["split"] for split in content["splits"]] == ["train"]
        expected = [{"source": name, "reason": reason} for name, reason in failures]
        assert content["stopped"] == {"why": str(error), "failures": expected}

    @pytest.mark.parametrize(
        ("error", "as_json", "out"),
        [(ConfigError("x"), True, ""), (StoreError("x"), False, f"{split_text(SUMMARY)}\n")],
    )
    def test_what_was_printed_before(
        self, error: DataprepError, as_json: bool, out: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Text of a split is printed when the split is done. A refused request prints no JSON."""
        with pytest.raises(type(error)):
            show_splits(_splits(error), as_json=as_json)
        assert capsys.readouterr().out == out


def _splits(error: DataprepError) -> Iterator[Summary | PartSummary]:
    """Yield one finished split, then raise the error."""
    yield SUMMARY
    raise error


def test_results_cannot_control_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Control characters in file names are escaped."""
    show("a\x1b[2J\nb")
    assert capsys.readouterr().out == "a\\x1b[2J\nb\n"


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [
        (0, "shard", "0 shards"),
        (1, "shard", "1 shard"),
        (1200, "shard", "1,200 shards"),
        (1, "class", "1 class"),
        (2, "class", "2 classes"),
    ],
)
def test_one_is_singular(number: int, noun: str, text: str) -> None:
    """The noun is singular for one shard; thousands have a separator."""
    assert counted(number, noun) == text
