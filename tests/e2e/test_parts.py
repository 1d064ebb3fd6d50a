"""A job in parts, each a process of its own, gives the bytes of one run."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dataprep.sample import SampleTree, draw_tree
from dataprep.stores import StoreOptions
from dataprep.stores.s3 import S3Store
from iobench.s3_server import MotoServer
from tests import commandline
from tests.commandline import JOB, Running, comparable, files, objects, wait_until

if TYPE_CHECKING:
    from tests.e2e.conftest import Gate

pytestmark = pytest.mark.slow


def part(tree: Path, output: str | Path, which: str, *more: str) -> list[str]:
    """The command of one part."""
    place = ["--source", str(tree), "--output", str(output)]
    return ["shard", *place, *JOB, "--workers", "1", "--part", which, *more]


def test_three_parts_side_by_side(
    tree: Path, tmp_path: Path, reference: Mapping[str, object]
) -> None:
    """Three parts that start together, then finalize: the objects of one run and no others."""
    output = tmp_path / "out"
    with ExitStack() as stack:
        running = [
            stack.enter_context(Running(*part(tree, output, f"{i}/3", "--json"))) for i in range(3)
        ]
        finished = [one.finish() for one in running]
    assert [one.code for one in finished] == [0, 0, 0], [one.err for one in finished]
    said = [one.one_object["splits"][0] for one in finished]
    assert [one["made_shards"] for one in said] == [4, 4, 3]
    assert not (output / "train.manifest.json").exists()
    done = commandline.dataprep("finalize", output, "--split", "train")
    assert done.code == 0, done.err
    assert done.out.startswith("train: 120 photos written, 0 failed")
    assert files(output) == reference.keys()
    assert comparable(objects(output)) == reference


def test_the_first_is_met_while_it_plans(
    tree: Path, tmp_path: Path, gate: Gate, reference: Mapping[str, object]
) -> None:
    """A part that comes between the labels and the job file of another joins the same job."""
    output = tmp_path / "out"
    env = gate.waits_at("train.plan", 1)
    with Running(*part(tree, f"gated://{output}", "0/2"), env=env) as first:
        wait_until(lambda: gate.reached, "the first part to write its plan")
        assert set(objects(output)) == {"labels.json", "leases/train.0-of-2"}
        second = commandline.dataprep(*part(tree, output, "1/2"))
        assert second.code == 0, second.err
        gate.open()
        finished = first.finish()
    assert finished.code == 0, finished.err
    assert commandline.dataprep("finalize", output).code == 0
    assert comparable(objects(output)) == reference


def test_killed_and_resumed(
    tree: Path, tmp_path: Path, gate: Gate, reference: Mapping[str, object]
) -> None:
    """A killed part lacks its shards, which finalize names; run again, it makes only those."""
    output = tmp_path / "out"
    env = gate.kills_at("receipts/", 3)
    killed = commandline.dataprep(
        *part(tree, f"gated://{output}", "1/2", *commandline.IN_ONE_PROCESS), env=env
    )
    assert killed.code == -signal.SIGKILL
    assert commandline.dataprep(*part(tree, output, "0/2")).code == 0
    early = commandline.dataprep("finalize", output, "--split", "train", "--parts", "2")
    assert early.code == 1
    (line,) = early.complaints
    assert "3 of 11 shards are missing" in line
    missing = [
        i for i in range(11) if not (output / f"receipts/train-{i:05}-of-00011.json").exists()
    ]
    assert f"number {', '.join(map(str, missing))} (parts 1/2)" in line
    assert not (output / "train.manifest.json").exists()
    resumed = commandline.dataprep(*part(tree, output, "1/2", "--json"))
    assert resumed.code == 0, resumed.err
    (said,) = resumed.one_object["splits"]
    assert (said["made_shards"], said["kept_shards"], said["lacking_shards"]) == (3, 2, 0)
    assert commandline.dataprep("finalize", output, "--split", "train").code == 0
    assert comparable(objects(output)) == reference


def test_one_run_completes_what_parts_began(
    tree: Path, tmp_path: Path, reference: Mapping[str, object]
) -> None:
    """shard without --part finds the job of the parts and makes the rest of it."""
    output = tmp_path / "out"
    done = commandline.dataprep(*part(tree, output, "2/4"))
    assert done.code == 0
    assert "8 of 11 shards are missing. When all parts are done: " in done.out
    assert f"dataprep finalize {output} --split train" in done.out
    assert commandline.dataprep("shard", "--source", tree, "--output", output, *JOB).code == 0
    assert comparable(objects(output)) == reference


def test_again_after_finalize(tree: Path, tmp_path: Path) -> None:
    """A part of a complete split does nothing, and finalize leaves the manifest alone."""
    output = tmp_path / "out"
    assert commandline.dataprep(*part(tree, output, "0/1")).code == 0
    assert commandline.dataprep("finalize", output).code == 0
    before = objects(output)
    again = commandline.dataprep(*part(tree, output, "0/3"))
    assert again.code == 0
    assert "0 shards made" in again.out
    assert "complete" in again.out
    assert commandline.dataprep("finalize", output).code == 0
    assert objects(output) == before


def test_another_job_is_refused(tree: Path, tmp_path: Path) -> None:
    """A part that was given another seed names the difference and writes nothing."""
    output = tmp_path / "out"
    assert commandline.dataprep(*part(tree, output, "0/2")).code == 0
    before = objects(output)
    other = commandline.dataprep(*part(tree, output, "1/2", "--seed", "1"))
    assert other.code == 2
    assert "seed: 0 before, 1 now" in other.complaints[0]
    assert objects(output) == before


def test_with_a_validation_split(tree: Path, tmp_path: Path) -> None:
    """Parts share out both splits, finalize completes both, as one run would have."""
    job = ("shard", "--source", tree, "--validation", "30%", "--shard-size", "1MB")
    assert commandline.dataprep(*job, "--output", tmp_path / "one").code == 0
    output = tmp_path / "out"
    for which in ("1/2", "0/2"):
        done = commandline.dataprep(*job, "--output", output, "--part", which)
        assert done.code == 0, done.err
    done = commandline.dataprep("finalize", output, "--json")
    assert done.code == 0, done.err
    assert [one["split"] for one in done.one_object["splits"]] == ["train", "validation"]
    assert comparable(objects(output)) == comparable(objects(tmp_path / "one"))


def test_finalize_names_what_each_split_lacks(tree: Path, tmp_path: Path) -> None:
    """Every split is tried: those that are whole are completed, the others all named."""
    output = tmp_path / "out"
    job = ("--source", tree, "--output", output, "--shard-size", "1MB", "--part", "0/1")
    assert commandline.dataprep("shard", *job, "--validation", "30%").code == 0
    assert commandline.dataprep("shard", *job, "--split", "another").code == 0
    for name in ("train", "another"):
        min((output / "receipts").glob(f"{name}-*")).unlink()
    for options in ([], ["--json"]):
        done = commandline.dataprep("finalize", output, *options)
        assert done.code == 1
        (complaint,) = done.complaints
        another, train = complaint.splitlines()
        assert another.startswith("dataprep: another: 1 of ")
        assert train.startswith("  train: 1 of ")
    found = done.one_object
    assert [one["split"] for one in found["splits"]] == ["validation"]
    assert [one["split"] for one in found["incomplete"]] == ["another", "train"]
    assert "number 0" in found["incomplete"][0]["why"]
    assert {path.name for path in output.glob("*.manifest.json")} == {"validation.manifest.json"}


def test_on_s3(tree: Path, bucket: str, s3_server: MotoServer, tmp_path: Path) -> None:
    """Parts that start together on S3 give what one run gives there, to the byte."""
    place = ("--endpoint-url", s3_server.url)
    with ExitStack() as stack:
        running = [
            stack.enter_context(Running(*part(tree, f"s3://{bucket}/parts", f"{i}/2", *place)))
            for i in range(2)
        ]
        finished = [one.finish() for one in running]
    assert [one.code for one in finished] == [0, 0], [one.err for one in finished]
    done = commandline.dataprep("finalize", f"s3://{bucket}/parts", *place)
    assert done.code == 0, done.err
    one = ("shard", "--source", tree, *JOB, *place, "--output", f"s3://{bucket}/one")
    assert commandline.dataprep(*one).code == 0
    options = StoreOptions(endpoint_url=s3_server.url)
    parts, straight = (
        comparable(objects(S3Store(f"s3://{bucket}/{name}", options))) for name in ("parts", "one")
    )
    assert parts == straight


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> SampleTree:
    """A small tree with every defect. Read only."""
    dest = tmp_path_factory.mktemp("broken") / "photos"
    return draw_tree(dest, images=16, classes=4, seed=5, defects=True)


class TestFailures:
    def test_are_held_over_the_whole(self, broken: SampleTree, tmp_path: Path) -> None:
        """No part alone has too many, all of them together have: finalize says so, exit 1."""
        output = tmp_path / "out"
        failed = list(broken.defects.values()).count("failed")
        job = ("--source", broken.root, "--output", output, "--shard-size", "1MB")
        counts = []
        for which in ("0/2", "1/2"):
            done = commandline.dataprep(
                "shard", *job, "--part", which, "--max-failures", str(failed - 1), "--json"
            )
            assert done.code == 0, done.err
            counts.append(done.one_object["splits"][0]["failed"])
        assert min(counts) > 0
        refused = commandline.dataprep("finalize", output, "--max-failures", str(failed - 1))
        assert refused.code == 1
        assert f"{failed} samples failed" in refused.complaints[0]
        assert not (output / "train.manifest.json").exists()
        done = commandline.dataprep("finalize", output, "--max-failures", str(failed), "--json")
        assert done.code == 0, done.err
        assert done.one_object["splits"][0]["samples"]["failed"] == failed

    def test_stop_a_part(self, broken: SampleTree, tmp_path: Path) -> None:
        """A part that alone has more failures than the whole may have stops with exit 1."""
        output = tmp_path / "out"
        done = commandline.dataprep(
            *("shard", "--source", broken.root, "--output", output, "--shard-size", "1MB"),
            *("--part", "0/2", "--max-failures", "0"),
        )
        assert done.code == 1
        assert "--max-failures 0 allows 0" in done.complaints[0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--part", "2/2"], "I from 0 to N-1"),
        (["--part", "0/2", "--overwrite"], "use another --output"),
        (["--part", "0/2", "--retry-failed"], "run --retry-failed without --part"),
        (["--part", "1/1000000"], "N at most 999,999"),
        (["--overwrite", "--retry-failed"], "exclude each other"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be(tree: Path, tmp_path: Path, arguments: list[str], said: str) -> None:
    """Requests that would undo each other's work are refused in one line, nothing written."""
    output = tmp_path / "out"
    done = commandline.dataprep("shard", "--source", tree, "--output", output, *arguments)
    assert done.code == 2
    assert said in done.complaints[0]
    assert not output.exists()


def test_parts_of_a_new_job_where_an_old_one_was(tree: Path, tmp_path: Path) -> None:
    """What the refusal of --overwrite says to delete is enough for parts to begin anew."""
    output, other = tmp_path / "out", tmp_path / "other"
    assert commandline.dataprep("shard", "--source", tree, "--output", output, *JOB).code == 0
    assert commandline.dataprep(*part(tree, other, "0/1", "--seed", "4")).code == 0
    for path in (*output.glob("train.*"), *output.glob("**/train-*")):
        path.unlink()
    done = commandline.dataprep(*part(tree, output, "0/1", "--seed", "4"))
    assert done.code == 0, done.err
    assert comparable(objects(output)) == comparable(objects(other))


def test_nothing_to_finalize(tmp_path: Path) -> None:
    """Without any job, or without the split that is named, finalize says what it looked for."""
    (tmp_path / "out").mkdir()
    for arguments, said in (
        ([], "nothing there"),
        (["--split", "train"], "no train.job.json"),
    ):
        done = commandline.dataprep("finalize", tmp_path / "out", *arguments)
        assert done.code == 2
        assert said in done.complaints[0]
