"""Files can give the classes, and all splits share one label space, even if they start together."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import dataprep
from dataprep import stores
from dataprep.errors import ConfigError, OutputConflict, TooManyFailures
from dataprep.job import prepare
from dataprep.job.plan_command import plan
from dataprep.job.report import Display
from dataprep.output import keys
from dataprep.stores import Buffer, StoreOptions
from dataprep.stores.local import LocalStore
from tests.commandline import files, make
from tests.dataprep.labels.devkits import meta_mat, tarball

pytestmark = pytest.mark.slow

SYNSETS = ("n02119789", "n02100735", "n02110185")  # ILSVRC2012_ID 1, 2, 3


@pytest.fixture
def validation(tree: Path, tmp_path: Path) -> Path:
    """Thirty images as ILSVRC2012_img_val.tar unpacks, and a devkit beside them."""
    (tmp_path / "val").mkdir()
    photos = sorted(path for path in tree.rglob("*") if path.is_file())[:30]
    for number, path in enumerate(photos, start=1):
        shutil.copy(path, tmp_path / "val" / f"ILSVRC2012_val_{number:08d}.JPEG")
    lines = "".join(f"{1 + number % 3}\n" for number in range(50))
    kit = {
        "kit/data/meta.mat": meta_mat(),
        "kit/data/ILSVRC2012_validation_ground_truth.txt": lines.encode(),
    }
    (tmp_path / "devkit.tar.gz").write_bytes(tarball(kit))
    return tmp_path


def job(location: Path, output: str = "out", **changes: object) -> dataprep.ShardConfig:
    """The config of a job over the flat images."""
    return dataprep.ShardConfig.model_validate(
        {
            "source": str(location / "val"),
            "kind": "flat",
            "output": str(location / output),
            "split": "validation",
            **changes,
        }
    )


def test_flat_images_get_the_classes_of_the_devkit(validation: Path) -> None:
    """Labels are positions among the sorted synsets, not the devkit's own numbers."""
    dataprep.shard(job(validation, labels={"ground_truth": str(validation / "devkit.tar.gz")}))
    dataset = dataprep.open(validation / "out", "validation")
    for sample in dataset:
        number = int(sample.filename[15:23])
        assert sample.synset == SYNSETS[(number - 1) % 3].encode()
        assert sample.label == sorted(SYNSETS).index(sample.synset.decode())
    assert dataset.label_space.labels[1].text == "Siberian husky"
    assert len(dataset) == 30


@pytest.mark.parametrize("mapped", ["77,78\n", "13,14\n"], ids=["no class", "two into one"])
def test_numbers_stay_numbers(validation: Path, mapped: str) -> None:
    """Class 10 comes after 9, in ground truth, in a listing and with a map."""
    rows = [(f"ILSVRC2012_val_{number:08d}", number - 1) for number in range(1, 31)]
    truth, listing, names = (validation / name for name in ("truth.csv", "all.csv", "map.csv"))
    truth.write_text("".join(f"{stem},{label}\n" for stem, label in rows))
    lines = "".join(f"val/{stem}.JPEG,{label}\n" for stem, label in rows)
    listing.write_text(f"path,label\n{lines}")
    names.write_text(mapped)
    renamed = {"13": "14"} if mapped.startswith("13") else {}
    classes = [str(label) for _, label in rows if str(label) not in renamed]
    dataprep.shard(job(validation, labels={"ground_truth": str(truth), "map": str(names)}))
    source = {"source": str(listing), "kind": "listing", "labels": {"map": str(names)}}
    dataprep.shard(job(validation, "listed", **source))
    for output in ("out", "listed"):
        dataset = dataprep.open(validation / output, "validation")
        assert [label.synset for label in dataset.label_space.labels] == classes
        for sample in dataset:
            own = str(int(sample.filename[15:23]) - 1)
            assert sample.label == classes.index(renamed.get(own, own))


@pytest.mark.parametrize("prefix", ["", "val/", "/data/imagenet/val/"])
def test_labels_of_a_caffe_file_are_as_in_the_file(validation: Path, prefix: str) -> None:
    """``path label`` lines give these labels, even if classes between them have no samples."""
    labels = [5, 0, 3, 3, 1, 0]
    photos = sorted((validation / "val").iterdir())
    for path in photos[len(labels) :]:
        path.unlink()
    lines = [f"{prefix}{path.name} {label} \n" for path, label in zip(photos, labels, strict=False)]
    (validation / "val.txt").write_text("".join(lines))
    dataprep.shard(job(validation, labels={"ground_truth": str(validation / "val.txt")}))
    table = pq.read_table(validation / "out" / "validation.samples.parquet").to_pylist()
    assert [row["label"] for row in sorted(table, key=lambda row: row["source"])] == labels


@pytest.mark.smoke
def test_a_label_never_overwrites_the_first_of_several(validation: Path) -> None:
    """Another order of classes is refused for samples of several labels, and nothing is written."""
    photos = sorted(path.name for path in (validation / "val").iterdir())
    lines = [f"{number}\t{number % 3}\t0.5\t{name}\n" for number, name in enumerate(photos)]
    (validation / "all.lst").write_text("".join(lines))
    (validation / "order.txt").write_text("2\n1\n0\n")
    source: dict[str, Any] = {
        "source": str(validation / "all.lst"),
        "kind": "listing",
        "listing": {"root": str(validation / "val")},
    }
    with pytest.raises(ConfigError, match=r"first, 0, is its class.* label 2, .*overwrite it"):
        dataprep.shard(job(validation, labels={"classes": str(validation / "order.txt")}, **source))
    assert files(validation / "out") == set()
    dataprep.shard(job(validation, **source))
    assert dataprep.open(validation / "out", "validation")[0].image


def test_an_image_that_the_ground_truth_lacks_fails(validation: Path) -> None:
    """An image without ground truth fails with the reason, and counts for the limit on failures."""
    (validation / "truth.csv").write_text("ILSVRC2012_val_00000001,cat\n")
    truth = {"ground_truth": str(validation / "truth.csv")}
    with pytest.raises(TooManyFailures, match=r"truth\.csv has no class for it"):
        dataprep.shard(job(validation, labels=truth))
    (summary,) = dataprep.shard(job(validation, "other", labels=truth, max_failures="100%"))
    assert (summary.manifest.samples.written, summary.manifest.samples.failed) == (1, 29)


def test_resumes_with_the_same_files_only(validation: Path) -> None:
    """Changed label files are another job. The same content at another location is the same job."""
    kit = validation / "devkit.tar.gz"
    dataprep.shard(job(validation, labels={"ground_truth": str(kit)}))
    shutil.copy(kit, validation / "moved.tgz")
    dataprep.shard(job(validation, labels={"ground_truth": str(validation / "moved.tgz")}))
    (validation / "truth.csv").write_text(
        "".join(f"ILSVRC2012_val_{number:08d},cat\n" for number in range(1, 31))
    )
    with pytest.raises(dataprep.DataprepError, match="source"):
        dataprep.shard(job(validation, labels={"ground_truth": str(validation / "truth.csv")}))


def test_nothing_says_the_classes(validation: Path) -> None:
    """Flat images without a file of classes are refused, and the error names such files."""
    with pytest.raises(ConfigError, match=r"does not say which class .*labels\.ground_truth"):
        dataprep.shard(job(validation))
    assert not (validation / "out").exists()


def labels_of(output: Path, split: str) -> dict[str, int]:
    """The label of each synset in the table of samples."""
    table = pq.read_table(io.BytesIO((output / f"{split}.samples.parquet").read_bytes()))
    return dict(zip(table["synset"].to_pylist(), table["label"].to_pylist(), strict=True))


@pytest.fixture
def fewer(source: Path) -> Path:
    """The drawn tree without its first class."""
    shutil.rmtree(min(source.iterdir()))
    return source


def test_the_larger_split_second(tree: Path, fewer: Path, tmp_path: Path) -> None:
    """A second split with an additional class is refused, with the class and the remedy."""
    output = tmp_path / "out"
    make(fewer, output, split="validation")
    before = files(output)
    with pytest.raises(OutputConflict) as refused:
        make(tree, output, split="train")
    missing = min(path.name for path in tree.iterdir())
    assert "labels.json of this output does not know" in str(refused.value)
    assert repr(missing) in str(refused.value)
    assert files(output) == before


def test_the_smaller_split_second(tree: Path, fewer: Path, tmp_path: Path) -> None:
    """A second split with fewer classes keeps the first split's labels and names missing ones."""
    output = tmp_path / "out"
    make(tree, output, split="train")
    notes: list[str] = []

    class Noted(Display):
        def note(self, line: str) -> None:
            notes.append(line)

    config = dataprep.ShardConfig(source=str(fewer), output=str(output), split="validation")
    dataprep.shard(config, display=Noted())
    train = labels_of(output, "train")
    assert labels_of(output, "validation").items() < train.items()
    missing = min(path.name for path in tree.iterdir())
    assert f"the source has no sample of 1 class, such as {missing!r}" in notes


@pytest.mark.parametrize("again", ["validation", "train"], ids=["a later split", "resumed"])
def test_another_order_of_classes(tree: Path, tmp_path: Path, again: str) -> None:
    """plan and shard refuse labels that differ from labels.json, and accept equal ones."""
    output = tmp_path / "out"
    make(tree, output, split="train")
    names = sorted(path.name for path in tree.iterdir())
    (tmp_path / "order.txt").write_text("\n".join(names))
    settings = {"classes": str(tmp_path / "order.txt")}
    make(tree, output, split=again, labels=settings)
    before = files(output)
    (tmp_path / "order.txt").write_text("\n".join(reversed(names)))
    message = f"label 0 is '{names[0]}' in labels.json and '{names[-1]}' in labels.classes"
    with pytest.raises(OutputConflict, match=message):
        make(tree, output, split=again, labels=settings)
    job = {"source": str(tree), "output": str(output), "split": "test", "labels": settings}
    with pytest.raises(OutputConflict, match=message):
        plan(dataprep.ShardConfig.model_validate(job))
    assert files(output) == before


class Overtaken(LocalStore):
    """A store in which another run creates one object first."""

    def __init__(self, uri: str, faster: Callable[[], None]) -> None:
        super().__init__(uri)
        self._faster: Callable[[], None] | None = faster

    def create(self, key: str, data: Buffer) -> bool:
        """Create an object as the parent class does, after another complete run."""
        if key == keys.LABELS and self._faster:
            faster, self._faster = self._faster, None
            faster()
        return super().create(key, data)


def overtaken(monkeypatch: pytest.MonkeyPatch, output: Path, faster: Callable[[], None]) -> None:
    """Make the next run find ``faster`` done after it has read the output, before it writes."""
    opened = stores.open_store

    def open_store(uri: str, options: StoreOptions | None = None) -> object:
        monkeypatch.setattr(prepare, "open_store", opened)
        return Overtaken(str(output), faster)

    monkeypatch.setattr(prepare, "open_store", open_store)


def test_two_first_runs_at_once(
    tree: Path, fewer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If two splits start together, the second plans again with the labels of the first."""
    output = tmp_path / "out"
    overtaken(monkeypatch, output, lambda: make(tree, output, split="train"))
    make(fewer, output, split="validation")
    train = labels_of(output, "train")
    assert sorted(train.values()) == list(range(6))
    assert labels_of(output, "validation").items() < train.items()
    assert all(verification.ok for verification in dataprep.verify(output, depth="deep"))


def test_two_first_runs_at_once_that_do_not_fit(
    tree: Path, fewer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A larger split that starts after a smaller one is refused by name and leaves nothing."""
    output = tmp_path / "out"
    overtaken(monkeypatch, output, lambda: make(fewer, output, split="validation"))
    with pytest.raises(OutputConflict, match=min(path.name for path in tree.iterdir())):
        make(tree, output, split="train")
    assert not any(name.startswith("train") or "/train" in name for name in files(output))
    assert all(verification.ok for verification in dataprep.verify(output))
