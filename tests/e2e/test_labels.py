"""Classes told by files, from the command line to the records."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import dataprep
from dataprep.errors import ConfigError, TooManyFailures
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


def job(place: Path, output: str = "out", **changes: object) -> dataprep.ShardConfig:
    """A job over the flat images."""
    return dataprep.ShardConfig.model_validate(
        {
            "source": str(place / "val"),
            "kind": "flat",
            "output": str(place / output),
            "split": "validation",
            **changes,
        }
    )


def test_flat_images_get_the_classes_of_the_devkit(validation: Path) -> None:
    """Labels are places among the sorted synsets, not the devkit's own numbers."""
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
    """Class 10 comes after 9, as ground truth, in a listing and through a map."""
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


def test_an_image_that_the_ground_truth_lacks_fails(validation: Path) -> None:
    """It is accounted for with the reason, and the limit on failures holds."""
    (validation / "truth.csv").write_text("ILSVRC2012_val_00000001,cat\n")
    truth = {"ground_truth": str(validation / "truth.csv")}
    with pytest.raises(TooManyFailures, match=r"truth\.csv has no class for it"):
        dataprep.shard(job(validation, labels=truth))
    (summary,) = dataprep.shard(job(validation, "other", labels=truth, max_failures="100%"))
    assert (summary.manifest.samples.written, summary.manifest.samples.failed) == (1, 29)


def test_resumes_with_the_same_files_only(validation: Path) -> None:
    """Label files that say something else are another job; the same content elsewhere is not."""
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
    """Flat images without a file about classes are refused, with what would do."""
    with pytest.raises(ConfigError, match=r"does not say which class .*labels\.ground_truth"):
        dataprep.shard(job(validation))
    assert not (validation / "out").exists()
