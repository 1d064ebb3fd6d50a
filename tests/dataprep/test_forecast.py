"""Tests of dataprep.forecast."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.forecast import (
    Machine,
    SplitForecast,
    failure_warning,
    fate,
    outcome,
    reader_warning,
    working_s,
)
from dataprep.manifest import Row


def row(i: int, **more: object) -> Row:
    """One written sample, or what ``more`` makes of it."""
    known = {"action": "reencoded", "records": {"tfrecord": (0, 1_000 + i, 0)}, **more}
    return Row(i, f"{i}.JPEG", 0, "a", **{"status": "written", **known})  # type: ignore[arg-type]


class TestOutcome:
    def test_a_sample_stands_for_as_many(self) -> None:
        """Bytes and counts are multiplied by the samples that each conversion stands for."""
        rows = [row(i, notes="icc_dropped" if i < 3 else "") for i in range(10)]
        found = outcome(rows, 1_000, ["tfrecord"])
        assert found.bytes_by_format == {"tfrecord": 100 * sum(range(1_000, 1_010))}
        assert found.met == {"icc_dropped": (3, 300)}
        assert (found.trial, found.samples) == (10, 1_000)

    def test_what_fails_has_no_bytes_and_is_met(self) -> None:
        """Failures and skips are counted as the manifest counts them, and weigh nothing."""
        rows = [
            row(0),
            row(1, status="failed", kind="corrupt", action="", records=None),
            row(2, status="skipped", kind="too_small", notes="too_small", action="", records=None),
            row(3, action="passthrough", notes="greyscale_kept,icc_dropped"),
        ]
        found = outcome(rows, 8, ["tfrecord"])
        assert found.bytes_by_format == {"tfrecord": 2 * (1_000 + 1_003)}
        assert found.met == {
            "failed_corrupt": (1, 2),
            "greyscale_kept": (1, 2),
            "icc_dropped": (1, 2),
            "too_small": (1, 2),
        }
        assert (found.passthrough, found.reencoded) == (0.25, 0.25)

    def test_retagged_files_pass_through(self) -> None:
        """A file whose orientation tag alone was set counts as passed through."""
        found = outcome([row(0, action="retagged"), row(1)], 2, ["tfrecord"])
        assert found.passthrough == 0.5

    @given(st.integers(1, 40), st.integers(0, 1_000))
    def test_all_converted_is_exact(self, count: int, extra: int) -> None:
        """Where every sample was converted nothing is estimated."""
        rows = [row(i + extra, notes="recovered") for i in range(count)]
        found = outcome(rows, count, ["tfrecord"])
        assert found.bytes_by_format["tfrecord"] == sum(1_000 + i + extra for i in range(count))
        assert found.met == {"recovered": (count, count)}


class TestFate:
    ROWS = (row(0), row(1, status="failed"), row(2, status="skipped"), row(3))

    def split(self, limit: int, refused: int, samples: int = 4) -> SplitForecast:
        """A split of which the rows above were converted."""
        found = fate(
            self.ROWS,
            samples,
            exact=samples == 4,
            entries=samples + refused,
            refused=refused,
            allowed=limit,
        )
        return SplitForecast("train", samples, 1, {}, found)

    def test_what_is_written(self) -> None:
        """What fails and what is skipped is not, in the same share of all samples."""
        assert self.split(0, 3).written == 2
        assert self.split(0, 3, samples=400).written == 200
        assert self.split(0, 3, samples=400).fate.failures == 103

    def test_exactly_too_many(self) -> None:
        """One number of all failures, and the limit that lets the job through."""
        said = failure_warning(self.split(3, 3), "3")
        assert said == (
            "train: shard would stop: 4 of 7 fail, --max-failures 3 allows 3; give --max-failures 4"
        )
        assert failure_warning(self.split(4, 3), "4") is None

    def test_probably_too_many(self) -> None:
        """An estimate is called one, unless the listing alone decides."""
        said = failure_warning(self.split(99, 10, samples=400), "99")
        assert said is not None
        assert "would probably stop: about 110 of 410 fail" in said
        assert "give --max-failures 27%" in said
        certain = failure_warning(self.split(9, 10, samples=400), "9")
        assert certain is not None
        assert "would stop: about 110" in certain

    def test_nothing_to_write(self) -> None:
        """A job of broken images alone makes nothing, however many may fail."""
        found = fate([row(0, status="failed")], 1, exact=True, entries=1, refused=0, allowed=9)
        said = failure_warning(SplitForecast("train", 1, 1, {}, found), "100%")
        assert said == "train: shard would stop: no sample can be written"


class TestTime:
    @pytest.mark.parametrize(
        ("shards", "workers", "processors", "expected"),
        [
            (100, 1, 64, 600.0),
            (64, 64, 64, 600 / 64),
            (65, 64, 64, 600 / 65 * 2),  # one shard more is one more round
            (1, 8, 8, 600.0),  # nobody can help with a single shard
            (100, 50, 2, 300.0),  # two processors do no more than two
            (100, 50, None, 12.0),
        ],
    )
    def test_rounds_of_shards(
        self, shards: int, workers: int, processors: int | None, expected: float
    ) -> None:
        """Workers take shards in rounds, and share processors where they are more."""
        assert working_s(600.0, shards, Machine(workers, processors)) == pytest.approx(expected)

    @given(st.integers(1, 500), st.integers(1, 99), st.none() | st.integers(1, 64))
    def test_bounds(self, shards: int, workers: int, processors: int | None) -> None:
        """It takes no longer than one worker alone, and no less than an even share."""
        took = working_s(1.0, shards, Machine(workers, processors))
        assert 1 / workers - 1e-12 <= took <= 1.0 + 1e-12


class TestReaders:
    def test_enough(self) -> None:
        """Nothing is said where every reader has a shard."""
        assert reader_warning("train", 64, 4 * 10**9, 64) is None
        assert reader_warning("train", 8, 10**9, None) is None

    def test_too_few(self) -> None:
        """Who would have none, and the shard size that helps."""
        said = reader_warning("train", 12, 1_200_000_000, 64)
        assert said is not None
        assert "12 shards for 64 readers, of which 52 would have none" in said
        assert "--shard-size 18.7MB" in said

    def test_too_few_samples(self) -> None:
        """Where no shard size gives enough the most that can be had is said."""
        said = reader_warning("train", 3, 5_000_000, 64)
        assert said is not None
        assert "make 4 shards at most" in said

    def test_clearly_too_few(self) -> None:
        """Without a number of readers only fewer than eight are remarked, if more can be had."""
        assert reader_warning("train", 2, 10**9, None) is not None
        assert reader_warning("train", 2, 5_000_000, None) is None
