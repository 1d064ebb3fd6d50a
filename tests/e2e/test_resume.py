"""The same command completes a job, does nothing, or is refused with the difference."""

from __future__ import annotations

import io
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

from dataprep.drawn import SampleTree
from dataprep.drawn.drawing import draw_photo
from tests import commandline
from tests.commandline import (
    JOB,
    Finished,
    comparable,
    files,
    in_process,
    objects,
)
from tests.e2e.conftest import Gate

pytestmark = pytest.mark.slow


def table(output: Path, split: str = "train") -> pd.DataFrame:
    """The table of samples of a split."""
    data = (output / f"{split}.samples.parquet").read_bytes()
    frame: pd.DataFrame = pq.read_table(io.BytesIO(data)).to_pandas()
    return frame


def only_split(finished: Finished) -> dict[str, Any]:
    """The only split in the JSON of ``--json``."""
    (split,) = finished.one_object["splits"]
    assert isinstance(split, dict)
    return split


@pytest.fixture
def output(reference_folder: Path, tmp_path: Path) -> Path:
    """A copy of a complete output of ``tree``."""
    return Path(shutil.copytree(reference_folder, tmp_path / "out"))


def shard(*arguments: str | Path, code: int | None = None) -> Finished:
    """``dataprep shard``, within this process."""
    return in_process("shard", *arguments, "--workers", "2", code=code)


class TestComplete:
    def test_again_does_nothing(self, tree: Path, output: Path) -> None:
        """A complete job that is run again writes nothing, also with other harmless settings."""
        before = {name: (output / name).stat() for name in files(output)}
        done = shard(
            *("--source", tree, "--output", output, *JOB, "--json", "--max-failures", "7"),
            *("--set", "store.read_timeout_s=5", "--set", "dask.retries=0"),
            code=0,
        )
        assert "nothing to do" in done.err
        assert only_split(done)["made_shards"] == 0
        after = {name: (output / name).stat() for name in files(output)}
        assert after.keys() == before.keys()
        for name, state in after.items():
            assert state.st_ino == before[name].st_ino, name
            assert state.st_mtime_ns == before[name].st_mtime_ns, name

    def test_as_a_command(self, tree: Path, output: Path) -> None:
        """The real command ends with exit code 0, with results on stdout and messages on stderr."""
        done = commandline.dataprep("shard", "--source", tree, "--output", output, *JOB, code=0)
        assert done.out.splitlines()[1].startswith("train: 120 photos written, 0 failed")
        assert "nothing to do" in done.err
        assert "nothing to do" not in done.out

    @pytest.mark.smoke
    @pytest.mark.parametrize("missing", [[3], [0, 10], list(range(11))])
    def test_a_receipt_removed(
        self,
        tree: Path,
        output: Path,
        reference: Mapping[str, object],
        missing: list[int],
    ) -> None:
        """Only shards without a receipt are made again, and equal bytes are not written again."""
        receipts = {f"receipts/train-{i:05}-of-00011.json" for i in missing}
        before = {name: (output / name).stat().st_mtime_ns for name in files(output)}
        for receipt in receipts:
            (output / receipt).unlink()
        done = shard("--source", tree, "--output", output, *JOB, "--json", code=0)
        assert only_split(done)["made_shards"] == len(missing)
        assert only_split(done)["kept_shards"] == 11 - len(missing)
        assert comparable(objects(output)) == reference
        written = {name for name in before if (output / name).stat().st_mtime_ns != before[name]}
        assert receipts <= written
        assert not [name for name in written if "/" in name and not name.startswith("receipts/")]


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
    def test_another_config(self, tree: Path, output: Path, change: list[str], named: str) -> None:
        """A config that would make other bytes is refused with the key and both values."""
        before = objects(output)
        done = shard("--source", tree, "--output", output, *JOB, *change, code=2)
        assert done.out == ""
        (line,) = done.complaints
        assert named in line
        assert "--overwrite" in line
        assert objects(output) == before

    @pytest.mark.parametrize("complete", [True, False], ids=["complete", "half"])
    @pytest.mark.parametrize("kind", ["new", "gone", "of another size", "renamed class"])
    def test_another_source(self, source: Path, output: Path, kind: str, complete: bool) -> None:
        """A source with an added, removed or changed file is refused with the name."""
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
        done = shard("--source", source, "--output", output, *JOB, code=2)
        assert done.out == ""
        (line,) = done.complaints
        assert f"{kind}, such as {name!r}" in line
        assert objects(output) == before

    def test_a_plan_changed_by_hand(self, tree: Path, output: Path) -> None:
        """A plan that differs from that of the job file is refused."""
        plan = output / "train.plan.parquet"
        plan.write_bytes(plan.read_bytes()[:-1] + b"x")
        done = shard("--source", tree, "--output", output, *JOB, code=2)
        assert "train.plan.parquet" in done.complaints[0]

    def test_other_libraries(self, tree: Path, output: Path) -> None:
        """A job that was planned with another version of a codec is refused with both versions."""
        from dataprep.job.job_file import JobFile

        path = output / "train.job.json"
        job = JobFile.from_json(path.read_bytes(), "job")
        content = {k: getattr(job, k) for k in JobFile.__slots__}
        content["versions"] = {**job.versions, "simplejpeg": "0.1"}
        path.write_bytes(JobFile(**content).to_json())
        done = shard("--source", tree, "--output", output, *JOB, code=2)
        assert 'simplejpeg: "0.1" before' in done.complaints[0]


class TestOverwrite:
    def test_replaces_everything(self, tree: Path, output: Path, tmp_path: Path) -> None:
        """``--overwrite`` leaves no file of the earlier job, whatever its number of shards was."""
        change = ("--format", "tfrecord", "--size", "200", "--shard-size", "1MB", "--seed", "3")
        shard("--source", tree, "--output", output, *change, "--overwrite", code=0)
        assert shard("--source", tree, "--output", tmp_path / "new", *change).code == 0
        assert not any("of-00011" in name for name in files(output))
        assert comparable(objects(output)) == comparable(objects(tmp_path / "new"))

    def test_leaves_other_splits_alone(
        self, tree: Path, output: Path, reference: Mapping[str, object]
    ) -> None:
        """Only the split that is named is replaced."""
        other = ("--source", tree, "--output", output, "--split", "train2", "--size", "64")
        assert shard(*other).code == 0
        assert shard(*other, "--seed", "9", "--overwrite").code == 0
        files = comparable(objects(output))
        assert {key: files[key] for key in reference} == reference

    @pytest.mark.parametrize(
        "location", ["receipts/=4", "tfrecord/=6", "train.plan=1", "train.job=1"]
    )
    def test_killed_while_it_removes(
        self, tree: Path, output: Path, tmp_path: Path, gate: Gate, location: str
    ) -> None:
        """A killed removal is continued, and the output is never treated as empty."""
        change = ("--source", tree, "--format", "tfrecord", "--size", "200", "--shard-size", "1MB")
        prefix, _, count = location.partition("=")
        commandline.dataprep(
            *("shard", *change, "--output", f"gated://{output}", "--overwrite"),
            env=gate.kills_at(f"delete:{prefix}", int(count)),
            code=-signal.SIGKILL,
        )
        refused = shard(*change, "--output", output, code=2)
        assert "--overwrite" in refused.complaints[0]
        assert shard(*change, "--output", output, "--overwrite").code == 0
        assert shard(*change, "--output", tmp_path / "new").code == 0
        assert comparable(objects(output)) == comparable(objects(tmp_path / "new"))


def test_a_validation_share(tree: Path, tmp_path: Path) -> None:
    """One run makes two disjoint, complete splits with a tenth of each class, chosen by the seed.

    Run again, both are complete. Without one receipt, only that shard is made.
    """
    job = ("--source", tree, "--size", "64", "--validation", "10%", "--json", "--output")
    output = tmp_path / "a"
    done = shard(*job, output, code=0)
    assert [split["split"] for split in done.one_object["splits"]] == ["train", "validation"]
    train, validation = table(output), table(output, "validation")
    names = {str(path.relative_to(tree)) for path in tree.rglob("*.JPEG")}
    assert set(train["source"]) | set(validation["source"]) == names
    assert set(train["source"]).isdisjoint(validation["source"])
    assert validation["label"].value_counts().to_dict() == dict.fromkeys(range(6), 2)
    assert train["label"].value_counts().to_dict() == dict.fromkeys(range(6), 18)
    before = comparable(objects(output))
    assert shard(*job, output).err.count("nothing to do") == 2
    (output / "receipts/validation-00000-of-00001.json").unlink()
    done = shard(*job, output)
    assert [split["made_shards"] for split in done.one_object["splits"]] == [0, 1]
    assert comparable(objects(output)) == before
    assert shard(*job, tmp_path / "b", "--seed", "1").code == 0
    assert set(table(tmp_path / "b", "validation")["source"]) != set(validation["source"])


class TestFailures:
    @pytest.mark.parametrize(
        ("limit", "enough"), [("0", "unlimited"), ("0", "50%"), ("3", ""), ("1%", "")]
    )
    def test_too_many_then_more_allowed(
        self, broken_tree: SampleTree, tmp_path: Path, limit: str, enough: str
    ) -> None:
        """Too many failures give exit code 1 and no manifest. A higher limit completes the job."""
        job = ("--source", broken_tree.root, "--output", tmp_path / "out", "--size", "64")
        done = shard(*job, "--max-failures", limit, code=1)
        assert done.out == ""
        (line,) = done.complaints
        assert f"--max-failures {limit} allows" in line
        assert not (tmp_path / "out/train.manifest.json").exists()
        failed = list(broken_tree.defects.values()).count("failed")
        assert shard(*job, "--max-failures", str(failed - 1)).code == 1
        completed = shard(*job, "--max-failures", enough or str(failed), "--json", code=0)
        assert only_split(completed)["samples"]["failed"] == failed

    def test_the_source_changes_while_the_job_runs(
        self, source: Path, tmp_path: Path, gate: Gate
    ) -> None:
        """A file that changes after it was listed ends the job with 1, by name and incomplete."""
        output = tmp_path / "out"
        with gate.stopping(
            "receipts/",
            1,
            *("shard", "--source", source, *JOB, "--workers", "1"),
            *("--output", f"gated://{output}"),
        ) as running:
            plan = pq.read_table(io.BytesIO((output / "train.plan.parquet").read_bytes()))
            rows = zip(plan["shard"].to_pylist(), plan["source"].to_pylist(), strict=True)
            victim = source / max(rows)[1]  # it belongs to the last shard, which has not started
            victim.write_bytes(victim.read_bytes() + b"\0")
            gate.open()
            finished = running.finish()
        assert finished.code == 1
        (line,) = finished.complaints
        assert victim.name in line
        assert "Traceback" not in finished.err
        assert not (output / "train.manifest.json").exists()


@pytest.fixture
def listing(tmp_path: Path) -> Path:
    """A listing with two labels for each of four photos. The first photo is listed twice."""
    for number in range(4):
        (tmp_path / f"{number}.jpg").write_bytes(draw_photo(number))
    file = tmp_path / "photos.lst"
    rows = ((0, 0, 5, "0.jpg"), (1, 1, 6, "1.jpg"), (2, 0, 5, "0.jpg"), (3, 0, 7, "2.jpg"))
    lines = ["\t".join(map(str, row)) for row in (*rows, (4, 1, 8, "3.jpg"))]
    file.write_text("\n".join(lines))
    return file


def test_a_name_that_is_listed_twice(listing: Path, tmp_path: Path) -> None:
    """The size and the class of a photo are those of the row that is a sample."""
    mended = (tmp_path / "3.jpg").read_bytes()
    (tmp_path / "3.jpg").write_bytes(mended[:200])
    locations = ("--source", listing, "--output", tmp_path / "out")
    job = (*locations, "--kind", "listing", "--max-failures", "1", "--json")
    assert only_split(shard(*job, code=0))["samples"]["failed"] == 1
    (tmp_path / "3.jpg").write_bytes(mended)
    samples = only_split(shard(*job, "--retry-failed", code=0))["samples"]
    assert (samples["written"], samples["failed"], samples["skipped"]) == (4, 0, 1)


def test_another_label_beside_an_entry_that_is_no_sample(listing: Path, tmp_path: Path) -> None:
    """Changed labels are refused, unless an entry that is not a sample explains the change."""
    job = ("--kind", "listing", "--source", listing, "--output", tmp_path / "out")
    shard(*job, code=0)
    text = listing.read_text()
    listing.write_text(text.replace("\t6\t", "\t9\t"))
    done = shard(*job, code=2)
    assert "source: other classes, labels or locations" in done.complaints[0]
    listing.write_text(text)
    shard(*job, code=0)


@pytest.mark.parametrize("retry", [(), ("--retry-failed",)], ids=["resume", "retry"])
def test_an_entry_that_was_refused_may_become_readable(
    source: Path, tmp_path: Path, retry: tuple[str, ...]
) -> None:
    """The job goes on without the entry, and does not report other labels."""
    link = sorted(path for path in source.iterdir() if path.is_dir())[0] / "dead.jpg"
    link.symlink_to("nowhere")
    job = ("--source", source, "--output", tmp_path / "out", "--max-failures", "unlimited")
    shard(*job, code=0)
    link.unlink()
    shutil.copy(next(path for path in sorted(link.parent.iterdir()) if path != link), link)
    shard(*job, *retry, code=0)


def test_another_label_of_an_entry_that_is_no_sample(listing: Path, tmp_path: Path) -> None:
    """The labels of a refused entry may change, because no output has them; a sample's may not."""
    text = listing.read_text()
    listing.write_text(f"{text}\n5\t0\t5\tx.jpg")
    locations = ("--source", listing, "--output", tmp_path / "out")
    job = (*locations, "--kind", "listing", "--max-failures", "unlimited")
    shard(*job, code=0)
    listing.write_text(f"{text}\n5\t1\t5\tx.jpg")
    shard(*job, code=0)
    changed = text.replace("\t6\t", "\t9\t")
    listing.write_text(f"{changed}\n5\t1\t5\tx.jpg")
    done = shard(*job, code=2)
    assert "source: other classes, labels or locations" in done.complaints[0]
