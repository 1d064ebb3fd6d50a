"""Tests of dataprep.job.report."""

from __future__ import annotations

import json
from dataclasses import replace

from dataprep.errors import StoreError, TooManyFailures
from dataprep.job.report import part_text, stopped_json, summary_json, summary_text
from dataprep.job.summary import PartSummary, Summary
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
    warnings={"cmyk_converted": 1_022, "failed_corrupt": 2},
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


def test_the_whole_paragraph() -> None:
    """A split is told in full: counts, formats, spread, speed, warnings, failures, place."""
    assert summary_text([SUMMARY]).splitlines() == [
        "train: 1,900 of 1,903 samples written (400 passed through, 1,500 re-encoded), "
        "2 failed, 1 skipped",
        "  tfrecord: 2 shards, 124.0 MB, 62.0 MB each; labels in records from 1",
        "  spread: no shard is more than 3.2% off the mean",
        "  2 shards made in 12.3 s, 154 img/s",
        "  met: cmyk_converted 1,022, failed_corrupt 2",
        "  skipped: hidden or system file 1",
        "  failed: c/a.jpg: empty file (0 bytes)",
        "  failed: c/b.jpg: truncated JPEG",
        "  in s3://bucket/out",
    ]


def test_what_did_not_happen_is_not_told() -> None:
    """One shard has no spread; nothing made has no speed; no warnings, no failures, no lines."""
    one = FormatEntry(0, 900, 60_000_000, SHARDS[:1])
    quiet = replace(
        SUMMARY,
        manifest=replace(MANIFEST, formats={"recordio": one}, warnings={}),
        made_shards=0,
        kept_shards=1,
        failures=(),
        skips={},
    )
    assert summary_text([quiet]).splitlines()[1:] == [
        "  recordio: 1 shard, 60.0 MB, 60.0 MB each; labels in records from 0",
        "  in s3://bucket/out",
    ]


def test_resumed_work_is_told_apart() -> None:
    """Shards kept from an earlier run are told beside those made."""
    text = summary_text([replace(SUMMARY, made_shards=1, kept_shards=1_001)])
    assert "  1 shard made, 1,001 kept from before in 12.3 s, 154 img/s" in text.splitlines()


def test_many_failures_are_cut() -> None:
    """Ten failures are shown; the rest is counted, with the table that has them all."""
    failures = tuple((f"{i}.jpg", "broken") for i in range(1_015))
    text = summary_text([replace(SUMMARY, failures=failures)])
    assert text.count("  failed: ") == 10
    assert "  and 1,005 more: see status and reason in train.samples.parquet" in text


def test_splits_follow_each_other() -> None:
    """Each split has its paragraph, in order; none makes no text."""
    both = summary_text([SUMMARY, replace(SUMMARY, split="validation")])
    assert both.index("train: ") < both.index("validation: ")
    assert summary_text([]) == ""


def test_the_json_is_one_object() -> None:
    """The JSON is one line with an object for each split and every figure in it."""
    text = summary_json([SUMMARY])
    assert "\n" not in text
    (found,) = json.loads(text)["splits"]
    assert found == {
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
        "warnings": {"cmyk_converted": 1_022, "failed_corrupt": 2},
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


def test_a_job_that_stopped() -> None:
    """The splits before, the error and what is known of failures are one object, too."""
    error = TooManyFailures("2 samples failed")
    error.failures = SUMMARY.failures
    found = json.loads(stopped_json([SUMMARY], error))
    assert found["splits"] == json.loads(summary_json([SUMMARY]))["splits"]
    assert found["stopped"] == {
        "why": "2 samples failed",
        "failures": [
            {"source": "c/a.jpg", "reason": "empty file (0 bytes)"},
            {"source": "c/b.jpg", "reason": "truncated JPEG"},
        ],
    }
    assert json.loads(stopped_json([], StoreError("no answer")))["stopped"]["failures"] == []


def test_shards_out_of_bounds() -> None:
    """A line of their own says how many, and what helps."""
    odd = replace(MANIFEST, warnings={"shards_out_of_bounds": 2})
    lines = summary_text([replace(SUMMARY, manifest=odd)]).splitlines()
    (said,) = [line for line in lines if "1 to 128 MB" in line]
    assert said.startswith("  2 shards out of the 1 to 128 MB that were aimed at")
    assert "another --shard-size keeps them within" in said
    assert not any("met:" in line for line in lines)


def test_a_split_smaller_than_a_shard() -> None:
    """No other size would help."""
    only = replace(MANIFEST.formats["tfrecord"], shards=MANIFEST.formats["tfrecord"].shards[:1])
    odd = replace(MANIFEST, formats={"tfrecord": only}, warnings={"shards_out_of_bounds": 1})
    said = summary_text([replace(SUMMARY, manifest=odd)])
    assert "aimed at: the whole split fills no more than one" in said
    assert "--shard-size" not in said


PART = PartSummary(
    split="train",
    output="s3://bucket/out",
    part=Part(1, 4),
    shards=750,
    made_shards=180,
    kept_shards=7,
    lacking=300,
    complete=False,
    samples=300_000,
    failed=2,
    seconds=100.04,
    failures=(("c/a.jpg", "empty file (0 bytes)"),),
)


def test_a_part() -> None:
    """A part tells what it made, what the split lacks, and the command that completes it."""
    assert part_text([PART]).splitlines() == [
        "train: part 1/4: 180 shards made, 7 kept from before, 2 failed, in 100.0 s, 2,999 img/s",
        "  failed: c/a.jpg: empty file (0 bytes)",
        "  300 of 750 shards of the split still to come; when all parts are done: "
        "dataprep finalize s3://bucket/out --split train",
        "  in s3://bucket/out",
    ]
    found = json.loads(summary_json([PART]))["splits"][0]
    assert (found["part"], found["lacking_shards"], found["seconds"]) == ("1/4", 300, 100.04)


def test_the_last_part() -> None:
    """Where nothing lacks it is time to finalise; where that was done it is said."""
    text = part_text([replace(PART, lacking=0, made_shards=0, failed=0, failures=())])
    assert "0 shards made, 7 kept from before\n" in text
    assert "every shard of the split is stored; now: dataprep finalize" in text
    done = part_text([replace(PART, lacking=0, complete=True)])
    assert "finalize" not in done
    assert "the split is complete" in done
