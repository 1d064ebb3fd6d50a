"""Run again: go on, do nothing, or refuse and say what differs."""

from __future__ import annotations

import io
import os
import shutil
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from dataprep.cli.main import app
from dataprep.sample import SampleTree, draw_tree
from tests import commandline
from tests.commandline import JOB, Finished, Running, comparable, files, objects, wait_until

if TYPE_CHECKING:
    from tests.e2e.conftest import Gate

pytestmark = pytest.mark.slow

Shard = Callable[..., Finished]


def table(output: Path, split: str = "train") -> pd.DataFrame:
    """A split's table of samples."""
    data = (output / f"{split}.samples.parquet").read_bytes()
    found: pd.DataFrame = pq.read_table(io.BytesIO(data)).to_pandas()
    return found


def only_split(finished: Finished) -> dict[str, Any]:
    """What ``--json`` says of the one split."""
    (split,) = finished.one_object["splits"]
    assert isinstance(split, dict)
    return split


@pytest.fixture
def shard() -> Shard:
    """``dataprep shard``, within this process."""

    def run(*arguments: str | Path) -> Finished:
        given = ["shard", *map(str, arguments), "--workers", "2"]
        result = CliRunner().invoke(app, given)
        return Finished(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def output(reference_folder: Path, tmp_path: Path) -> Path:
    """A copy of a complete output of ``tree``."""
    return Path(shutil.copytree(reference_folder, tmp_path / "out"))


@pytest.fixture
def source(tree: Path, tmp_path: Path) -> Path:
    """A copy of the drawn tree, to be changed."""
    return Path(shutil.copytree(tree, tmp_path / "photos"))


@pytest.fixture(scope="session")
def broken_tree(tmp_path_factory: pytest.TempPathFactory) -> SampleTree:
    """A small tree with every defect. Read only."""
    dest = tmp_path_factory.mktemp("broken") / "photos"
    return draw_tree(dest, images=16, classes=4, seed=5, defects=True)


class TestComplete:
    def test_again_does_nothing(self, tree: Path, output: Path, shard: Shard) -> None:
        """A complete job run again writes nothing, says so and exits 0."""
        before = {name: (output / name).stat() for name in files(output)}
        done = shard("--source", tree, "--output", output, *JOB, "--json")
        assert done.code == 0
        assert "nothing to do" in done.err
        assert only_split(done)["made_shards"] == 0
        after = {name: (output / name).stat() for name in files(output)}
        assert {n: (s.st_ino, s.st_mtime_ns) for n, s in after.items()} == {
            n: (s.st_ino, s.st_mtime_ns) for n, s in before.items()
        }

    def test_as_a_command(self, tree: Path, output: Path) -> None:
        """The same through the real command: exit code 0, results on stdout, notes on stderr."""
        done = commandline.dataprep("shard", "--source", tree, "--output", output, *JOB)
        assert done.code == 0
        assert done.out.startswith("train: 120 photos written, 0 failed")
        assert "nothing to do" in done.err
        assert "nothing to do" not in done.out

    def test_other_workers_and_limits_are_the_same_job(
        self, tree: Path, output: Path, shard: Shard
    ) -> None:
        """What does not determine bytes may differ: workers, limits of failures, time-outs."""
        done = shard(
            *("--source", tree, "--output", output, *JOB, "--max-failures", "7"),
            *("--set", "store.read_timeout_s=5", "--set", "dask.retries=0"),
        )
        assert done.code == 0
        assert "nothing to do" in done.err

    @pytest.mark.parametrize("missing", [[3], [0, 10], list(range(11))])
    def test_a_receipt_removed(
        self,
        tree: Path,
        output: Path,
        shard: Shard,
        reference: Mapping[str, object],
        missing: list[int],
    ) -> None:
        """Only shards without a receipt are made again, and to the same bytes."""
        for i in missing:
            (output / f"receipts/train-{i:05}-of-00011.json").unlink()
        inode = {name: (output / name).stat().st_ino for name in files(output)}
        done = shard("--source", tree, "--output", output, *JOB, "--json")
        assert done.code == 0, done.err
        assert only_split(done)["made_shards"] == len(missing)
        assert only_split(done)["kept_shards"] == 11 - len(missing)
        assert comparable(objects(output)) == reference
        made = {
            name
            for name in files(output)
            if name.startswith("tfrecord/") and (output / name).stat().st_ino != inode[name]
        }
        assert made == {f"tfrecord/train-{i:05}-of-00011" for i in missing}

    @pytest.mark.smoke
    @pytest.mark.parametrize("left", ["shortened", "receipt", "nothing"])
    def test_a_shard_that_is_damaged(
        self, tree: Path, output: Path, shard: Shard, reference: Mapping[str, object], left: str
    ) -> None:
        """A shard that is shortened, or gone with or without its receipt, is made again."""
        damaged = output / "recordio/train-00004-of-00011.rec"
        if left == "shortened":
            os.truncate(damaged, damaged.stat().st_size - 8)
        else:
            damaged.unlink()
        if left == "nothing":
            (output / "receipts/train-00004-of-00011.json").unlink()
        (output / "train.manifest.json").unlink()
        done = shard("--source", tree, "--output", output, *JOB, "--json")
        assert only_split(done)["made_shards"] == 1
        assert comparable(objects(output)) == reference


class TestRefused:
    @pytest.mark.parametrize(
        ("change", "named"),
        [
            (["--seed", "1"], "seed: 0 before, 1 now"),
            (["--size", "64"], "image.size: nothing before, 64 now"),
            (["--quality", "80"], "image.quality: 95 before, 80 now"),
            (["--shard-size", "2MB"], "shard_size: 1200000 before, 2000000 now"),
            (["--set", "image.upscale=true"], "image.upscale: false before, true now"),
            (["--set", "shuffle=false"], "shuffle: true before, false now"),
            (["--validation", "5%"], 'validation: nothing before, "5%" now'),
            (["--set", "label_offset.tfrecord=0"], "label_offset.tfrecord: nothing before, 0 now"),
        ],
        ids=lambda value: value if isinstance(value, str) else " ".join(value),
    )
    def test_another_config(
        self, tree: Path, output: Path, shard: Shard, change: list[str], named: str
    ) -> None:
        """A config that would make other bytes is refused with the key and both values."""
        before = objects(output)
        done = shard("--source", tree, "--output", output, *JOB, *change)
        assert done.code == 2
        assert done.out == ""
        (line,) = done.complaints
        assert named in line
        assert "--overwrite" in line
        assert objects(output) == before

    def test_another_format(self, tree: Path, output: Path, shard: Shard) -> None:
        """Another list of formats is another job."""
        before = objects(output)
        done = shard("--source", tree, "--output", output, "--shard-size", "1.2MB")
        assert done.code == 2
        (line,) = done.complaints
        assert 'format: ["tfrecord", "recordio"] before, ["tfrecord"] now' in line
        assert objects(output) == before

    @pytest.mark.parametrize("complete", [True, False], ids=["complete", "half"])
    @pytest.mark.parametrize("kind", ["new", "gone", "of another size", "renamed class"])
    def test_another_source(
        self, source: Path, output: Path, shard: Shard, kind: str, complete: bool
    ) -> None:
        """A source to which a file was added, or that lost or changed one, is refused by name."""
        if not complete:
            (output / "train.manifest.json").unlink()
            (output / "receipts/train-00002-of-00011.json").unlink()
        first = sorted(source.rglob("*.JPEG"))[0]
        name = str(first.relative_to(source))
        if kind == "new":
            name = name.replace(".JPEG", "x.JPEG")
            shutil.copy(first, source / name)
        elif kind == "gone":
            first.unlink()
        elif kind == "renamed class":
            first.parent.rename(source / "n00000001")
            kind, name = "new", f"n00000001/{first.name}"
        else:
            first.write_bytes(first.read_bytes() + b"\0")
        before = objects(output)
        done = shard("--source", source, "--output", output, *JOB)
        assert done.code == 2
        assert done.out == ""
        (line,) = done.complaints
        assert f"{kind}, such as {name!r}" in line
        assert objects(output) == before

    def test_a_plan_changed_by_hand(self, tree: Path, output: Path, shard: Shard) -> None:
        """A plan that is not the one the job was written with is refused."""
        plan = output / "train.plan.parquet"
        plan.write_bytes(plan.read_bytes()[:-1] + b"x")
        done = shard("--source", tree, "--output", output, *JOB)
        assert done.code == 2
        assert "train.plan.parquet" in done.complaints[0]

    def test_other_libraries(self, tree: Path, output: Path, shard: Shard) -> None:
        """A job planned with another version of a codec is refused with both versions."""
        from dataprep.job.jobfile import JobFile

        path = output / "train.job.json"
        job = JobFile.from_json(path.read_bytes(), "job")
        content = {k: getattr(job, k) for k in JobFile.__slots__}
        content["versions"] = {**job.versions, "simplejpeg": "0.1"}
        path.write_bytes(JobFile(**content).to_json())
        done = shard("--source", tree, "--output", output, *JOB)
        assert done.code == 2
        assert 'simplejpeg: "0.1" before' in done.complaints[0]


class TestOverwrite:
    def test_replaces_everything(
        self, tree: Path, output: Path, shard: Shard, tmp_path: Path
    ) -> None:
        """With --overwrite nothing of the job before is left, whatever its number of shards."""
        change = ("--format", "tfrecord", "--size", "200", "--shard-size", "1MB", "--seed", "3")
        done = shard("--source", tree, "--output", output, *change, "--overwrite")
        assert done.code == 0, done.err
        assert shard("--source", tree, "--output", tmp_path / "new", *change).code == 0
        assert not any("of-00011" in name for name in files(output))
        assert comparable(objects(output)) == comparable(objects(tmp_path / "new"))

    def test_leaves_other_splits_alone(
        self, tree: Path, output: Path, shard: Shard, reference: Mapping[str, object]
    ) -> None:
        """Only the split that is named is replaced."""
        other = ("--source", tree, "--output", output, "--split", "train2", "--size", "64")
        assert shard(*other).code == 0
        assert shard(*other, "--seed", "9", "--overwrite").code == 0
        found = comparable(objects(output))
        assert {key: found[key] for key in reference} == reference

    def test_receipts_of_nobody_knows_what(self, tree: Path, output: Path, shard: Shard) -> None:
        """Shards whose job file is gone are refused before anything is read or written."""
        (output / "train.manifest.json").unlink()
        (output / "train.job.json").unlink()
        before = objects(output)
        done = shard("--source", tree, "--output", output, *JOB)
        assert done.code == 2
        assert "train.job.json" in done.complaints[0]
        assert "--overwrite" in done.complaints[0]
        assert objects(output) == before

    @pytest.mark.parametrize("place", ["receipts/=4", "tfrecord/=6", "train.plan=1", "train.job=1"])
    def test_killed_while_it_removes(
        self, tree: Path, output: Path, tmp_path: Path, shard: Shard, gate: Gate, place: str
    ) -> None:
        """A removal that was killed is gone on with, and never taken for an empty output."""
        change = ("--source", tree, "--format", "tfrecord", "--size", "200", "--shard-size", "1MB")
        prefix, _, count = place.partition("=")
        killed = commandline.dataprep(
            *("shard", *change, "--output", f"gated://{output}", "--overwrite"),
            env=gate.kills_at(f"delete:{prefix}", int(count)),
        )
        assert killed.code == -signal.SIGKILL
        refused = shard(*change, "--output", output)
        assert refused.code == 2, refused.err
        assert "--overwrite" in refused.complaints[0]
        assert shard(*change, "--output", output, "--overwrite").code == 0
        assert shard(*change, "--output", tmp_path / "new").code == 0
        assert comparable(objects(output)) == comparable(objects(tmp_path / "new"))


class TestSplits:
    def test_an_unknown_class(
        self, tree: Path, source: Path, output: Path, shard: Shard, reference: Mapping[str, object]
    ) -> None:
        """A later split with a class that labels.json lacks is refused, the class named."""
        (source / "n01440764").rename(source / "n09999999")
        done = shard("--source", source, "--output", output, "--split", "validation")
        assert done.code == 2
        assert "n09999999" in done.complaints[0]
        assert files(output) == reference.keys()

    def test_fewer_classes(self, source: Path, output: Path, shard: Shard) -> None:
        """A later split with some of the classes keeps the numbers of the first."""
        labels = (output / "labels.json").read_bytes()
        shutil.rmtree(source / "n01440764")
        done = shard("--source", source, "--output", output, "--split", "validation")
        assert done.code == 0, done.err
        assert (output / "labels.json").read_bytes() == labels
        rows = table(output, "validation")
        assert dict(zip(rows["synset"], rows["label"], strict=True)) == {
            "n01443537": 1,
            "n01484850": 2,
            "n01491361": 3,
            "n01494475": 4,
            "n01496331": 5,
        }

    def test_a_validation_share(self, tree: Path, tmp_path: Path, shard: Shard) -> None:
        """--validation makes both splits in one run: disjoint, complete, and one in ten a class."""
        job = ("--source", tree, "--size", "64", "--validation", "10%")
        done = shard(*job, "--output", tmp_path / "a", "--json")
        assert done.code == 0, done.err
        assert [one["split"] for one in done.one_object["splits"]] == ["train", "validation"]
        train, held = table(tmp_path / "a"), table(tmp_path / "a", "validation")
        names = {str(path.relative_to(tree)) for path in tree.rglob("*.JPEG")}
        assert set(train["source"]) | set(held["source"]) == names
        assert set(train["source"]).isdisjoint(held["source"])
        assert held["label"].value_counts().to_dict() == dict.fromkeys(range(6), 2)
        assert train["label"].value_counts().to_dict() == dict.fromkeys(range(6), 18)

    def test_a_validation_share_is_seeded(self, tree: Path, tmp_path: Path, shard: Shard) -> None:
        """The seed alone decides which samples are held out."""
        job = ("--source", tree, "--size", "64", "--validation", "10%")
        held = {}
        for name, seed in (("a", "0"), ("b", "0"), ("c", "1")):
            done = shard(*job, "--output", tmp_path / name, "--seed", seed)
            assert done.code == 0, done.err
            held[name] = set(table(tmp_path / name, "validation")["source"])
        assert held["a"] == held["b"] != held["c"]

    def test_a_validation_share_resumes(self, tree: Path, tmp_path: Path, shard: Shard) -> None:
        """Run again, both splits are complete; with one receipt less, that shard alone is made."""
        job = ("--source", tree, "--size", "64", "--validation", "10%", "--output", tmp_path / "a")
        assert shard(*job).code == 0
        before = comparable(objects(tmp_path / "a"))
        assert shard(*job).err.count("nothing to do") == 2
        (tmp_path / "a/receipts/validation-00000-of-00001.json").unlink()
        done = shard(*job, "--json")
        assert [one["made_shards"] for one in done.one_object["splits"]] == [0, 1]
        assert comparable(objects(tmp_path / "a")) == before


class TestFailures:
    def broken(self, tree: SampleTree) -> int:
        """How many entries are expected to fail."""
        return list(tree.defects.values()).count("failed")

    @pytest.mark.parametrize("limit", ["none", "0", "3", "1%"])
    def test_too_many_then_more_allowed(
        self, broken_tree: SampleTree, tmp_path: Path, shard: Shard, limit: str
    ) -> None:
        """More failures than allowed give exit 1 and no manifest; a higher limit completes it."""
        job = ("--source", broken_tree.root, "--output", tmp_path / "out", "--size", "64")
        done = shard(*job, "--max-failures", limit)
        assert done.code == 1
        assert done.out == ""
        (line,) = done.complaints
        assert f"--max-failures {limit} allows" in line
        assert not (tmp_path / "out/train.manifest.json").exists()
        failed = self.broken(broken_tree)
        again = shard(*job, "--max-failures", str(failed - 1))
        assert again.code == 1
        completed = shard(*job, "--max-failures", str(failed), "--json")
        assert completed.code == 0, completed.err
        assert only_split(completed)["samples"]["failed"] == failed

    def test_a_share(self, broken_tree: SampleTree, tmp_path: Path, shard: Shard) -> None:
        """A share counts over all entries of the source."""
        job = ("--source", broken_tree.root, "--output", tmp_path / "out", "--size", "64")
        done = shard(*job, "--max-failures", "50%", "--json")
        assert done.code == 0, done.err
        assert only_split(done)["samples"]["failed"] == self.broken(broken_tree)

    def test_refused_before_any_shard(
        self, tmp_path: Path, shard: Shard, tree: Path, source: Path
    ) -> None:
        """Failures that the listing alone shows count too."""
        for i in range(3):
            (source / f"n01440764/out{i}.JPEG").symlink_to("/etc/passwd")
        job = ("--source", source, "--output", tmp_path / "out2", "--size", "64")
        assert shard(*job, "--max-failures", "2").code == 1
        assert shard(*job, "--max-failures", "3").code == 0

    def test_the_source_changes_while_the_job_runs(
        self, source: Path, tmp_path: Path, gate: Gate
    ) -> None:
        """A file that changes after it was listed ends the job with 1, by name, unfinished."""
        output = tmp_path / "out"
        with Running(
            *("shard", "--source", source, *JOB, "--workers", "1"),
            *("--output", f"gated://{output}"),
            env=gate.waits_at("receipts/", 1),
        ) as running:
            wait_until(lambda: gate.reached, "the first receipt")
            plan = pq.read_table(io.BytesIO((output / "train.plan.parquet").read_bytes()))
            rows = zip(plan["shard"].to_pylist(), plan["source"].to_pylist(), strict=True)
            victim = source / max(rows)[1]  # of the last shard, which has not begun
            victim.write_bytes(victim.read_bytes() + b"\0")
            gate.open()
            finished = running.finish()
        assert finished.code == 1
        (line,) = finished.complaints
        assert victim.name in line
        assert "Traceback" not in finished.err
        assert not (output / "train.manifest.json").exists()
