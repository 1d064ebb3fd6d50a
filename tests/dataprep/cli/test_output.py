"""What a person sees of a job: progress, the summary of each split, and JSON."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from dataprep.cli.output import Terminal, show, show_splits, split_text, splits_json
from dataprep.errors import ConfigError, DataprepError, StoreError, TooManyFailures
from dataprep.job.report import PartSummary, Summary
from dataprep.job.worker import Progress
from dataprep.manifest import FormatEntry, Manifest, SampleCounts, ShardEntry
from dataprep.plan import Part

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


class Clock:
    """A clock that is set by hand."""

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
        """A line at most every five seconds, one at the end, and a note at once."""
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
        """It is drawn over; notes are printed above it."""
        clock, stream = Clock(), Screen()
        display = Terminal(stream, clock)
        display.start("train", 10, 0)
        for _ in range(2):
            clock.now_s += 0.2
            display.advance(Progress(4, 40, 1))
            display.note("a note")
        display.stop()
        drawn = [part for part in stream.getvalue().split("\r\x1b[K") if part]
        shown = [part.split("  ")[1] for part in drawn[::2]]
        assert shown == ["4/10 photos", "8/10 photos", "8/10 photos"]
        assert drawn[1::2] == ["a note\n", "a note\n"]
        assert stream.getvalue().count("\n") == 3

    def test_rates_are_those_of_this_run(self) -> None:
        """What was stored before counts as done, not as work."""
        clock, stream = Clock(), io.StringIO()
        display = Terminal(stream, clock)
        display.start("train", 5_000, 200)
        clock.now_s += 2.0
        display.advance(Progress(1_000, 50_000_000, 3))
        display.stop()
        line = "train  1,200/5,000 photos  500 img/s  25 MB/s  3 failed  0:08 left\n"
        assert stream.getvalue() == line

    @pytest.mark.parametrize(
        ("done", "samples", "left"),
        [(0, 9, "-:--"), (1, 61, "1:00"), (1, 3_601, "1:00:00"), (1, 360_062, "100:01:01")],
    )
    def test_time_left(self, done: int, samples: int, left: str) -> None:
        """Minutes and seconds, with hours where there are some; unknown while nothing is done."""
        clock, stream = Clock(), io.StringIO()
        display = Terminal(stream, clock)
        display.start("train", samples, 0)
        clock.now_s += 1.0
        display.advance(Progress(done, 0, 0))
        display.stop()
        assert stream.getvalue().endswith(f"  {left} left\n")

    def test_work_that_is_done_twice(self) -> None:
        """A shard made again never makes more than all."""
        clock, stream = Clock(), io.StringIO()
        display = Terminal(stream, clock)
        display.start("train", 100, 0)
        for progress in (Progress(95, 950, 2), Progress(10, 100, 1)):
            display.advance(progress)
        display.stop()
        shown = [line.split("  ") for line in stream.getvalue().splitlines()]
        assert [(line[1], line[4]) for line in shown] == [("100/100 photos", "3 failed")]

    def test_a_reader_that_has_ended_stops_no_job(self) -> None:
        """What cannot be shown is not shown."""
        display = Terminal(Gone())
        display.start("train", 1, 0)
        display.note("a note")
        display.stop()

    def test_progress_goes_to_stderr(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Nothing of it goes to stdout."""
        Terminal().note("a note")
        assert capsys.readouterr() == ("", "a note\n")


class TestSummary:
    def test_a_split(self) -> None:
        """Counts, formats, what happened to images, skips, failures, speed, and what to do next."""
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
        """No speed, and no lines for what did not happen."""
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

    def test_a_resumed_split(self) -> None:
        """Shards of earlier runs are counted apart."""
        text = split_text(replace(SUMMARY, made_shards=1, kept_shards=1_001))
        assert "154 img/s. 1,001 shards stored by an earlier run. Check it with" in text

    def test_many_failures_are_cut(self) -> None:
        """Five are shown, and the table that has all."""
        samples = replace(MANIFEST.samples, failed=1_015)
        failures = tuple((f"{i}.jpg", "broken") for i in range(1_015))
        many = replace(SUMMARY, manifest=replace(MANIFEST, samples=samples), failures=failures)
        text = split_text(many)
        assert text.count("  failed: ") == 5
        assert "  all 1,015 failures are in train.samples.parquet" in text.splitlines()

    def test_shards_out_of_bounds(self) -> None:
        """How many, and what to do."""
        odd = replace(MANIFEST, warnings={"shards_out_of_bounds": 1})
        text = split_text(replace(SUMMARY, manifest=odd))
        assert "  1 shard outside 1 to 128 MB: choose another --shard-size, " in text
        assert "shards out of bounds" not in text

    def test_a_part(self) -> None:
        """What it made, what the split still lacks, and the command that completes it."""
        assert split_text(PART).splitlines() == [
            "train, part 1/4: 180 shards made, 7 stored by an earlier run, 2 photos failed"
            " -> s3://bucket/out",
            "  failed: c/a.jpg: empty file (0 bytes)",
            "300 of 750 shards are missing. When all parts are done: "
            "dataprep finalize s3://bucket/out --split train",
        ]

    def test_many_failures_of_a_part(self) -> None:
        """The table that will have them is written by finalize."""
        many = replace(PART, failed=6, failures=PART.failures * 6)
        assert "  all 6 failures will be in train.samples.parquet" in split_text(many)

    def test_the_last_part(self) -> None:
        """When nothing is missing it is time to finalise; a complete split needs nothing."""
        last = replace(PART, lacking_shards=0)
        finalize = "dataprep finalize s3://bucket/out --split train"
        assert split_text(last).endswith(f"\nAll shards are stored. Now: {finalize}")
        assert split_text(replace(last, complete=True)).endswith("\nThe split is complete.")


class TestJson:
    def test_it_is_one_object(self) -> None:
        """With every figure of each split."""
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
        """The splits before it, the reason, and the failures that are known."""
        if isinstance(error, TooManyFailures):
            error.failures = tuple(failures)
        with pytest.raises(type(error)):
            show_splits(_splits(error), as_json=True)
        content = json.loads(capsys.readouterr().out)
        assert [split["split"] for split in content["splits"]] == ["train"]
        known = [{"source": name, "reason": reason} for name, reason in failures]
        assert content["stopped"] == {"why": str(error), "failures": known}

    def test_a_refused_request_prints_nothing(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Nothing was made, and the error says why."""
        with pytest.raises(ConfigError):
            show_splits(_splits(ConfigError("x")), as_json=True)
        assert capsys.readouterr().out == ""

    def test_as_text_a_split_is_printed_when_it_is_done(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """What stops the next one does not hide it."""
        with pytest.raises(StoreError):
            show_splits(_splits(StoreError("x")), as_json=False)
        assert capsys.readouterr().out == f"{split_text(SUMMARY)}\n"


def _splits(error: DataprepError) -> Iterator[Summary | PartSummary]:
    yield SUMMARY
    raise error


def test_results_cannot_control_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Names of files may hold anything."""
    show("a\x1b[2J\nb")
    assert capsys.readouterr().out == "a\\x1b[2J\nb\n"
