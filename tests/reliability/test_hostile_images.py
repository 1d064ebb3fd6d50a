"""A share of the hostile files: none crashes, hangs, or is taken for what it is not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.reliability.images import judging
from tests.reliability.images.bases import jpegs
from tests.reliability.images.case import CORRUPT, WRITTEN, Case
from tests.reliability.images.corpus import corpus
from tests.reliability.images.jobs import entries, unaccounted, undecodable, watched
from tests.reliability.images.tree import write, write_special

SEED = int(os.environ.get("DATAPREP_SEED", "20"))
EACH = 8


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    """A few files of every mutator."""
    return corpus(SEED, EACH, large=False)


def test_every_file_by_itself(cases: list[Case], tmp_path: Path) -> None:
    """It is written or refused as it may be, in bounded memory, with a reason; djpeg agrees."""
    print(f"DATAPREP_SEED={SEED}")  # noqa: T201
    named = write(cases, tmp_path)
    assert len(named) > 250
    found = list(judging.judged(named, tmp_path))
    assert [one.name for one in found] == list(named)
    assert [f"{one.name}: {what}" for one in found for what in one.wrong] == []


def test_whole_jobs_account_for_every_file(cases: list[Case], tmp_path: Path) -> None:
    """Too many failures end a job with 1; allowed ones are in the table, each with its reason."""
    print(f"DATAPREP_SEED={SEED}")  # noqa: T201
    root, output = tmp_path / "tree", tmp_path / "output"
    named = write(cases, root)
    special = write_special(root, jpegs()["baseline"])
    assert entries(root).keys() == named.keys() | special.keys()
    both = ("--format", "tfrecord", "--format", "recordio")
    job = ("shard", "--source", root, "--output", output, "--size", "64", "--workers", "2", *both)
    assert list(watched(*job).wrong(1)) == []
    assert not (output / "train.manifest.json").exists()
    assert list(watched(*job, "--max-failures", "100%").wrong(0)) == []
    assert list(unaccounted(output, root, named, special)) == []
    assert list(watched("verify", output, "--deep").wrong(0)) == []
    assert list(undecodable(output)) == []


def test_a_wrong_result_is_found(tmp_path: Path) -> None:
    """The checks see what is written and must not be, and what is refused and must not be."""
    sound = jpegs()["baseline"]
    flawed = sound[: len(sound) // 2] + b"\xff\xd9"
    named = write(
        [
            Case("a", "refused though sound", sound[:-20], WRITTEN),
            Case("a", "written though broken", sound, CORRUPT),
            Case("a", "as it may be", flawed, CORRUPT),
        ],
        tmp_path,
    )
    refused, written, right = judging.judged(named, tmp_path)
    assert "corrupt" in refused.wrong[0]
    assert "written" in written.wrong[0]
    assert right.wrong == ()


def test_a_child_that_dies_is_told_and_replaced(tmp_path: Path) -> None:
    """A file at which the process dies is wrong, and the next one is judged all the same."""
    named = write([Case("a", what, jpegs()["baseline"], WRITTEN) for what in "bcd"], tmp_path)
    _, second, _ = named
    (tmp_path / second).unlink()  # the child ends with an error that is not the image's
    found = list(judging.judged(named, tmp_path))
    assert [one.wrong for one in found] == [(), ("the process died or hung",), ()]
