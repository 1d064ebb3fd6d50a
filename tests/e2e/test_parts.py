"""The parts of a job, each in its own process, make the bytes of one run."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from dataprep.drawn import SampleTree
from dataprep.stores import StoreOptions
from dataprep.stores.s3 import S3Store
from tests import commandline
from tests.commandline import (
    JOB,
    Finished,
    Running,
    comparable,
    files,
    in_process,
    objects,
)
from tests.e2e.conftest import Gate

pytestmark = pytest.mark.slow


def part(tree: Path, output: str | Path, which: str, *more: str) -> list[str]:
    """The command of one part."""
    arguments = ["--source", str(tree), "--output", str(output)]
    return ["shard", *arguments, *JOB, "--workers", "1", "--part", which, *more]


def side_by_side(commands: Sequence[Sequence[str]]) -> list[Finished]:
    """Run commands that start together, and check that all succeed."""
    with ExitStack() as stack:
        running = [stack.enter_context(Running(*command)) for command in commands]
        finished = [job.finish() for job in running]
    assert not any(job.code for job in finished), [job.err for job in finished]
    return finished


def test_three_parts_side_by_side(
    tree: Path, tmp_path: Path, reference: Mapping[str, object]
) -> None:
    """Three parts that start together, then finalize, make exactly the objects of one run.

    A part of a complete split does nothing, and finalize does not change the manifest.
    """
    output = tmp_path / "out"
    finished = side_by_side([part(tree, output, f"{i}/3", "--json") for i in range(3)])
    lines = [split.one_object["splits"][0] for split in finished]
    assert [split["made_shards"] for split in lines] == [4, 4, 3]
    assert not (output / "train.manifest.json").exists()
    done = commandline.dataprep("finalize", output, "--split", "train", code=0)
    assert done.out.startswith("train: 120 photos written, 0 failed")
    assert files(output) == reference.keys()
    assert comparable(objects(output)) == reference
    before = objects(output)
    again = commandline.dataprep(*part(tree, output, "0/5"), code=0)
    assert "0 shards made" in again.out
    assert "complete" in again.out
    assert commandline.dataprep("finalize", output).code == 0
    assert objects(output) == before


def test_the_first_is_met_while_it_plans(
    tree: Path, tmp_path: Path, gate: Gate, reference: Mapping[str, object]
) -> None:
    """A part that starts between the labels and the job file of another part joins its job."""
    output = tmp_path / "out"
    with gate.stopping("train.plan", 1, *part(tree, f"gated://{output}", "0/2")) as first:
        assert set(objects(output)) == {"labels.json", "leases/train.0-of-2"}
        commandline.dataprep(*part(tree, output, "1/2"), code=0)
        gate.open()
        finished = first.finish()
    assert finished.code == 0, finished.err
    assert commandline.dataprep("finalize", output).code == 0
    assert comparable(objects(output)) == reference


def test_killed_and_resumed(
    tree: Path, tmp_path: Path, gate: Gate, reference: Mapping[str, object]
) -> None:
    """finalize names the shards that a killed part lacks. Run again, the part makes only those."""
    output = tmp_path / "out"
    env = gate.kills_at("receipts/", 3)
    commandline.dataprep(
        *part(tree, f"gated://{output}", "1/2", *commandline.IN_ONE_PROCESS),
        env=env,
        code=-signal.SIGKILL,
    )
    assert commandline.dataprep(*part(tree, output, "0/2")).code == 0
    early = commandline.dataprep("finalize", output, "--split", "train", "--parts", "2", code=1)
    (line,) = early.complaints
    assert "3 of 11 shards are missing" in line
    missing = [
        i for i in range(11) if not (output / f"receipts/train-{i:05}-of-00011.json").exists()
    ]
    assert f"number {', '.join(map(str, missing))} (parts 1/2)" in line
    assert not (output / "train.manifest.json").exists()
    resumed = commandline.dataprep(*part(tree, output, "1/2", "--json"), code=0)
    (content,) = resumed.one_object["splits"]
    assert (content["made_shards"], content["kept_shards"], content["lacking_shards"]) == (3, 2, 0)
    assert commandline.dataprep("finalize", output, "--split", "train").code == 0
    assert comparable(objects(output)) == reference


def test_one_run_completes_what_parts_began(
    tree: Path, tmp_path: Path, reference: Mapping[str, object]
) -> None:
    """``shard`` without --part continues the job of the parts and makes the rest."""
    output = tmp_path / "out"
    done = commandline.dataprep(*part(tree, output, "2/4"), code=0)
    assert "8 of 11 shards are missing. When all parts are done: " in done.out
    assert f"dataprep finalize {output} --split train" in done.out
    assert commandline.dataprep("shard", "--source", tree, "--output", output, *JOB).code == 0
    assert comparable(objects(output)) == reference


def test_another_job_is_refused(tree: Path, tmp_path: Path) -> None:
    """A part with another seed is refused with the difference, and writes nothing."""
    output = tmp_path / "out"
    assert commandline.dataprep(*part(tree, output, "0/2")).code == 0
    before = objects(output)
    other = commandline.dataprep(*part(tree, output, "1/2", "--seed", "1"), code=2)
    assert "seed: 0 before, 1 now" in other.complaints[0]
    assert objects(output) == before


def test_with_a_validation_split(tree: Path, tmp_path: Path) -> None:
    """Parts share both splits, and finalize completes both, as one run would have."""
    job = ("shard", "--source", tree, "--validation", "30%", "--shard-size", "1MB")
    assert commandline.dataprep(*job, "--output", tmp_path / "one").code == 0
    output = tmp_path / "out"
    for which in ("1/2", "0/2"):
        commandline.dataprep(*job, "--output", output, "--part", which, code=0)
    done = commandline.dataprep("finalize", output, "--json", code=0)
    assert [split["split"] for split in done.one_object["splits"]] == ["train", "validation"]
    assert comparable(objects(output)) == comparable(objects(tmp_path / "one"))


def test_finalize_names_what_each_split_lacks(tree: Path, tmp_path: Path) -> None:
    """finalize completes each complete split and names what each other split lacks."""
    output = tmp_path / "out"
    job = ("--source", tree, "--output", output, "--shard-size", "1MB", "--part", "0/1")
    assert commandline.dataprep("shard", *job, "--validation", "30%").code == 0
    assert commandline.dataprep("shard", *job, "--split", "another").code == 0
    for name in ("train", "another"):
        min((output / "receipts").glob(f"{name}-*")).unlink()
    for options in ([], ["--json"]):
        done = commandline.dataprep("finalize", output, *options, code=1)
        (complaint,) = done.complaints
        another, train = complaint.splitlines()
        assert another.startswith("dataprep: another: 1 of ")
        assert train.startswith("  train: 1 of ")
    content = done.one_object
    assert [split["split"] for split in content["splits"]] == ["validation"]
    assert [split["split"] for split in content["incomplete"]] == ["another", "train"]
    assert "number 0" in content["incomplete"][0]["why"]
    assert {path.name for path in output.glob("*.manifest.json")} == {"validation.manifest.json"}


@pytest.mark.parametrize("server", ["moto", "radosgw"])
def test_on_s3(
    tree: Path,
    server: str,
    gate: Gate,
    reference: Mapping[str, object],
    request: pytest.FixtureRequest,
) -> None:
    """Parts that start together, and a run that was killed and resumed, make the same bytes.

    Every object is verified. Only receipts differ, which contain the store's own ETags.
    """
    bucket = request.getfixturevalue("bucket" if server == "moto" else "radosgw_bucket")
    options = StoreOptions(endpoint_url=request.getfixturevalue(server).url)
    arguments = ("--endpoint-url", str(options.endpoint_url))
    output = f"s3://{bucket}/parts"
    side_by_side([part(tree, output, f"{i}/2", *arguments) for i in range(2)])
    commandline.dataprep("finalize", output, *arguments, code=0)

    job = ("shard", "--source", str(tree), *JOB, *arguments, "--json", "--output")
    commandline.dataprep(
        *job,
        f"gateds3://{bucket}/killed",
        *commandline.IN_ONE_PROCESS,
        env=gate.kills_at("receipts/", 4),
        code=-signal.SIGKILL,
    )
    resumed = commandline.dataprep(*job, f"s3://{bucket}/killed", code=0)
    assert resumed.one_object["splits"][0]["kept_shards"] == 3
    commandline.dataprep("verify", f"s3://{bucket}/killed", "--deep", *arguments, code=0)
    expected = {key: data for key, data in reference.items() if not key.startswith("receipts/")}
    for name in ("parts", "killed"):
        files = comparable(objects(S3Store(f"s3://{bucket}/{name}", options)))
        assert files.keys() == reference.keys()
        assert {key: files[key] for key in expected} == expected


class TestFailures:
    def test_are_held_over_the_whole(self, broken_tree: SampleTree, tmp_path: Path) -> None:
        """A part with too many failures stops.

        If all parts together have too many, finalize fails.
        """
        output = tmp_path / "out"
        failed = list(broken_tree.defects.values()).count("failed")
        job = ("--source", broken_tree.root, "--output", output, "--shard-size", "1MB")
        alone = commandline.dataprep("shard", *job, "--part", "0/2", "--max-failures", "0", code=1)
        assert "--max-failures 0 allows 0" in alone.complaints[0]
        counts = []
        for which in ("0/2", "1/2"):
            done = commandline.dataprep(
                "shard",
                *job,
                "--part",
                which,
                "--max-failures",
                str(failed - 1),
                "--json",
                code=0,
            )
            counts.append(done.one_object["splits"][0]["failed"])
        assert min(counts) > 0
        refused = commandline.dataprep(
            "finalize", output, "--max-failures", str(failed - 1), code=1
        )
        assert f"{failed} samples failed" in refused.complaints[0]
        assert not (output / "train.manifest.json").exists()
        done = commandline.dataprep(
            "finalize", output, "--max-failures", str(failed), "--json", code=0
        )
        assert done.one_object["splits"][0]["samples"]["failed"] == failed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--part", "2/2"], "I from 0 to N-1"),
        (["--part", "0/2", "--overwrite"], "use another --output"),
        (["--part", "0/2", "--retry-failed"], "run --retry-failed without --part"),
        (["--part", "1/1000000"], "N at most 999,999"),
        (["--overwrite", "--retry-failed"], "exclude each other"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be(tree: Path, tmp_path: Path, arguments: list[str], message: str) -> None:
    """Requests that would disturb other runs are refused in one line, and nothing is written."""
    output = tmp_path / "out"
    done = in_process("shard", "--source", tree, "--output", output, *arguments, code=2)
    assert message in done.complaints[0]
    assert not output.exists()


def test_parts_of_a_new_job_where_an_old_one_was(tree: Path, tmp_path: Path) -> None:
    """After the removals that the refusal of --overwrite names, parts can start a new job."""
    output, other = tmp_path / "out", tmp_path / "other"
    assert commandline.dataprep("shard", "--source", tree, "--output", output, *JOB).code == 0
    assert commandline.dataprep(*part(tree, other, "0/1", "--seed", "4")).code == 0
    for path in (*output.glob("train.*"), *output.glob("**/train-*")):
        path.unlink()
    commandline.dataprep(*part(tree, output, "0/1", "--seed", "4"), code=0)
    assert comparable(objects(output)) == comparable(objects(other))


@pytest.mark.parametrize(
    ("arguments", "message"), [([], "nothing there"), (["--split", "train"], "no train.job.json")]
)
def test_nothing_to_finalize(tmp_path: Path, arguments: list[str], message: str) -> None:
    """Without a job, or without the named split, finalize says what it looked for."""
    done = in_process("finalize", tmp_path, *arguments, code=2)
    assert message in done.complaints[0]
