"""Class folders of real collections, with links and system folders, are sharded or refused."""

from __future__ import annotations

import json
import tarfile
from io import BytesIO
from pathlib import Path

import pytest

import dataprep
from dataprep.sources.local_tree import Tree
from dataprep.stores import Store
from tests.commandline import Finished, in_process
from tests.permissions import reachable_folder, unprivileged
from tests.small_photos import jpeg, photos


def shard(source: Path, output: Path, *options: str, code: int = 0) -> Finished:
    """Run ``dataprep shard`` and check its exit code."""
    arguments = ["shard", "--source", str(source), "--output", str(output), *options]
    return in_process(*arguments, code=code)


def classes(output: Path) -> list[str]:
    """The classes of an output in the order of their labels."""
    content = json.loads((output / "labels.json").read_bytes())
    return [entry["synset"] for entry in content["classes"]]


def test_a_linked_class_is_a_class(tmp_path: Path) -> None:
    """Twenty folders and a link to a folder outside are 21 classes with all their photos."""
    source = tmp_path / "photos"
    photos(source, {f"class{number:02}": 2 for number in range(20)})
    photos(tmp_path, {"elsewhere": 3})
    (source / "linked").symlink_to(Path("..") / "elsewhere")
    done = shard(source, tmp_path / "out")
    assert "class folders, 21 classes, 43 images; labels 0 to 20" in done.out
    assert "43 photos written, 0 failed" in done.out
    dataset = dataprep.open(str(tmp_path / "out"))
    labels = [dataset[number].label for number in range(len(dataset))]
    assert labels.count(20) == 3


def test_a_subset_by_links(tmp_path: Path) -> None:
    """Links to class folders are read. A broken link among the photos fails with its reason."""
    photos(tmp_path / "full", dict.fromkeys("abc", 3))
    (tmp_path / "subset").mkdir()
    for name in "ab":
        (tmp_path / "subset" / name).symlink_to(tmp_path / "full" / name)
    (tmp_path / "full" / "a" / "gone.jpg").symlink_to("nowhere")
    done = shard(tmp_path / "subset", tmp_path / "out", "--max-failures", "1")
    assert "6 photos written, 1 failed" in done.out
    assert "failed: a/gone.jpg: broken symlink" in done.out
    assert classes(tmp_path / "out") == ["a", "b"]


def test_boxes_of_a_subset_by_links(tmp_path: Path) -> None:
    """Linked annotations give all linked photos their boxes."""
    photos(tmp_path / "full", {"a": 2, "b": 2})
    for name in ("a/0", "a/1"):
        (tmp_path / "drawn" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "drawn" / f"{name}.xml").write_text(
            "<annotation><object><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>9</xmax><ymax>9</ymax>"
            "</bndbox></object></annotation>"
        )
    for link, target in (("subset", "full"), ("boxes", "drawn")):
        (tmp_path / link).mkdir()
        (tmp_path / link / "a").symlink_to(tmp_path / target / "a")
    job = ("--boxes", str(tmp_path / "boxes"))
    done = shard(tmp_path / "subset", tmp_path / "out", *job)
    assert "2 annotations read; 2 of 2 images have 2 boxes" in done.err


def test_system_folders_are_counted_as_skipped(tmp_path: Path) -> None:
    """System folders make no classes at any depth, and are counted as skipped."""
    system = {"@eaDir": 2, "lost+found": 1, "$RECYCLE.BIN": 2, "cat/@eaDir": 2}
    photos(tmp_path / "photos", {"cat": 3, "dog": 3, **system})
    done = shard(tmp_path / "photos", tmp_path / "out")
    assert "6 photos written, 0 failed, 7 skipped" in done.out
    assert "skipped: hidden or system file 7" in done.out
    assert classes(tmp_path / "out") == ["cat", "dog"]


def test_an_unreadable_system_folder_is_counted_in_warnings(tmp_path: Path) -> None:
    """The job continues, and verification accepts the manifest."""
    with reachable_folder() as root:
        photos(root / "photos", {"cat": 1, "dog": 1, "lost+found": 0})
        (root / "out").mkdir()
        (root / "out").chmod(0o777)
        (root / "photos" / "lost+found").chmod(0)
        with unprivileged():
            done = shard(root / "photos", root / "out")
        assert "note: 1 folder left out that cannot be read either: 'lost+found'" in done.out
        manifest = json.loads((root / "out" / "train.manifest.json").read_bytes())
        assert manifest["warnings"]["unreadable_folders"] == 1
        in_process("verify", str(root / "out"), code=0)


@pytest.mark.parametrize("source", ["own", "own/tfrecord"])
def test_folders_of_records_may_be_unreadable_too(source: str) -> None:
    """An unreadable system or excluded folder is counted, and any other one ends the job."""
    with reachable_folder() as root:
        photos(root / "photos", {"cat": 2, "dog": 2})
        shard(root / "photos", root / "own")
        for name in ("lost+found", "old"):
            (root / source / name).mkdir(mode=0)
        (root / "out").mkdir()
        (root / "out").chmod(0o777)
        job = (root / source, root / "out", "--kind", "records")
        with unprivileged():
            refused = shard(*job, code=2)
            done = shard(*job, "--exclude", "old")
        assert f"cannot list {root / source}" in refused.err
        assert (
            "note: 2 folders left out that cannot be read either: 'lost+found', 'old'" in done.out
        )
        assert "matches nothing" not in done.err
        manifest = json.loads((root / "out" / "train.manifest.json").read_bytes())
        assert manifest["warnings"]["unreadable_folders"] == 2


def test_excluded_shards_are_not_read(tmp_path: Path) -> None:
    """An unreadable folder can be excluded like any other: exclusion needs no right to read."""
    photos(tmp_path / "photos", {"cat": 2, "dog": 2})
    for name in ("new", "old"):
        shard(tmp_path / "photos", tmp_path / name)
        (tmp_path / "records" / name).mkdir(parents=True)
        for file in (tmp_path / name / "tfrecord").iterdir():
            file.rename(tmp_path / "records" / name / file.name)
    options = ("--kind", "records", "--exclude", "old", "--set", "records.incomplete=true")
    done = shard(tmp_path / "records", tmp_path / "out", *options)
    assert "4 photos written, 0 failed" in done.out
    assert "matches nothing" not in done.err


def test_exclude_leaves_out_what_it_matches(tmp_path: Path) -> None:
    """Excluding works as an option, as a key and several times. A glob without a match is named."""
    source = tmp_path / "photos"
    photos(source, {"cat": 2, "dog": 2, "dog/thumbs": 1, "rejects": 1})
    options = ("--exclude", "thumbs", "--exclude", "rejects", "--exclude", "typo")
    done = shard(source, tmp_path / "out", *options)
    assert "4 photos written, 0 failed, 2 skipped" in done.out
    assert "skipped: excluded by 'rejects' 1" in done.out
    assert "exclude: 'typo' matches nothing in the source" in done.err
    config = tmp_path / "job.yaml"
    config.write_text(
        f"source: {source}\noutput: {tmp_path / 'other'}\nexclude: [thumbs, rejects]\n"
    )
    in_process("shard", str(config), code=0)
    assert classes(tmp_path / "out") == classes(tmp_path / "other") == ["cat", "dog"]


def test_a_glob_that_matches_is_not_called_useless(tmp_path: Path) -> None:
    """A glob may match an unreadable folder, a system file, or files that another glob matches."""
    with reachable_folder() as root:
        photos(root / "photos", {"cat": 2, "dog": 2, "locked": 1, "@eaDir": 1, "dog/old": 1})
        (root / "out").mkdir()
        (root / "out").chmod(0o777)
        (root / "photos" / "locked").chmod(0)
        globs = ("locked", "@eaDir", "old", "dog/old", "**/0.jpg", "none/at/all")
        with unprivileged():
            options = [option for glob in globs for option in ("--exclude", glob)]
            done = shard(root / "photos", root / "out", *options)
    useless = [line for line in done.err.splitlines() if "matches nothing" in line]
    assert len(useless) == 1
    assert "exclude: 'none/at/all' matches nothing in the source" in useless[0]


@pytest.mark.parametrize("glob", ["", "/", "[z-a]"])
def test_a_glob_that_means_nothing_is_refused(tmp_path: Path, glob: str) -> None:
    """The message names the option and the glob."""
    photos(tmp_path / "photos", {"cat": 1})
    done = shard(tmp_path / "photos", tmp_path / "out", "--exclude", glob, code=2)
    assert f"--exclude: {glob!r}" in done.err or f"--exclude {glob}" in done.err, done.err


@pytest.mark.parametrize("kind", ["listing", "flat", "ilsvrc", "records"])
def test_every_kind_of_source_leaves_out(tmp_path: Path, kind: str) -> None:
    """``exclude`` skips a row of a listing, an image of a folder, a member and a record."""
    source = tmp_path / "photos"
    photos(source, {"cat": 2, "dog": 2, "cat/thumbs": 1, "@eaDir": 1})
    path = {"listing": "list.csv", "flat": "", "ilsvrc": "all.tar", "records": ""}[kind]
    options = ["--kind", kind, "--exclude", "thumbs"]
    skipped = 2
    if kind == "listing":
        names = ["cat/0.jpg", "cat/1.jpg", "dog/0.jpg", "dog/1.jpg", "cat/thumbs/0.jpg"]
        rows = [f"{name},{name[:3]}\n" for name in [*names, "@eaDir/0.jpg"]]
        (source / path).write_text("path,label\n" + "".join(rows))
    elif kind == "flat":
        rows = [f"{group}/{n}.jpg,{group}\n" for group in ("cat", "dog") for n in (0, 1)]
        (tmp_path / "truth.csv").write_text("file,label\n" + "".join(rows))
        options += ["--set", f"labels.ground_truth={tmp_path / 'truth.csv'}"]
    elif kind == "ilsvrc":
        with tarfile.open(source / path, "w") as tar:
            for folder in ("cat", "dog", "@eaDir"):
                tar.add(source / folder, folder)
    else:
        shard(source, tmp_path / "before", "--format", "recordio")
        source, skipped = tmp_path / "before", 1
    done = shard(source / path, tmp_path / "out", *options)
    assert f"4 photos written, 0 failed, {skipped} skipped" in done.out, done
    assert "skipped: excluded by 'thumbs' 1" in done.out
    assert classes(tmp_path / "out") == ["cat", "dog"]


def test_a_class_that_is_left_out_gets_no_label(tmp_path: Path) -> None:
    """A class whose only row is excluded gets no label."""
    photos(tmp_path, {"cat": 1, "dog": 1, "bat": 1})
    rows = "".join(f"{group}/0.jpg,{group}\n" for group in ("bat", "cat", "dog"))
    (tmp_path / "list.csv").write_text(f"path,label\n{rows}")
    options = ("--kind", "listing", "--exclude", "bat")
    done = shard(tmp_path / "list.csv", tmp_path / "out", *options)
    assert "2 classes, 2 images" in done.out
    assert classes(tmp_path / "out") == ["cat", "dog"]


def test_splits_of_an_output_have_the_same_labels(tmp_path: Path) -> None:
    """Another order of classes is refused, and so is a new split without labels.json."""
    photos(tmp_path / "train", {"cat": 1, "dog": 1, "owl": 1})
    photos(tmp_path / "val", {"dog": 1, "owl": 1})
    output, validation = tmp_path / "out", ("--split", "validation")
    shard(tmp_path / "train", output)
    (tmp_path / "classes.txt").write_text("owl\ndog\ncat\n")
    order = ("--set", f"labels.classes={tmp_path}/classes.txt")
    refused = shard(tmp_path / "val", output, *validation, *order, code=2)
    assert "label 0 is 'cat' in labels.json and 'owl' in labels.classes" in refused.err
    shard(tmp_path / "val", output, *validation)
    dataset = dataprep.open(str(output), "validation")
    assert sorted(dataset[number].label for number in range(len(dataset))) == [1, 2]
    (output / "labels.json").unlink()
    refused = shard(tmp_path / "val", output, "--split", "test", code=2)
    assert "labels.json is missing" in refused.err
    assert not (output / "test.job.json").exists()


def test_a_job_begun_with_other_exclusions_is_refused_with_the_reason(tmp_path: Path) -> None:
    """A job is not continued with more or with fewer exclusions."""
    source = tmp_path / "photos"
    photos(source, {"cat": 2, "dog": 2, "owl": 1})
    shard(source, tmp_path / "all")
    done = shard(source, tmp_path / "all", "--exclude", "owl", code=2)
    assert "source: 1 file skipped now (excluded by 'owl'), such as 'owl/0.jpg'" in done.err
    shard(source, tmp_path / "fewer", "--exclude", "owl")
    done = shard(source, tmp_path / "fewer", code=2)
    assert "source: 1 file skipped before (excluded by 'owl'), such as 'owl/0.jpg'" in done.err
    shard(source, tmp_path / "fewer", "--exclude", "owl")


def test_jobs_of_earlier_versions_are_refused_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Earlier versions treated system folders as classes, and links to folders as files."""
    source = tmp_path / "photos"
    photos(source, {"cat": 2, "dog": 2, "@eaDir": 1})
    photos(tmp_path, {"elsewhere": 2})
    (source / "linked").symlink_to("../elsewhere")

    def listed_before(store: Store, prefix: str, _: object) -> Tree:
        return Tree(list(store.list(prefix)))

    with monkeypatch.context() as patch:
        patch.setattr("dataprep.sources.exclusion.is_clutter", lambda path: None)
        patch.setattr("dataprep.sources.files.list_tree", listed_before)
        shard(source, tmp_path / "out", "--max-failures", "1")
    done = shard(source, tmp_path / "out", "--max-failures", "1", code=2)
    assert "1 file skipped now (hidden or system file), such as '@eaDir/0.jpg'" in done.err
    assert "2 files behind links that earlier versions did not follow, such as" in done.err


SPLITS = {
    "splits-capital": {"Training": "train", "Validation": "validation"},
    "splits-prefixed": {"train_images": "train", "val_images": "validation"},
}


@pytest.mark.parametrize("splits", SPLITS.values(), ids=SPLITS)
def test_splits_beside_each_other_are_refused_with_a_command_each(
    tmp_path: Path, splits: dict[str, str]
) -> None:
    """Nothing is written, and each printed command works."""
    source, output = tmp_path / "photos", tmp_path / "out"
    photos(source, {f"{folder}/{group}": 2 for folder in splits for group in ("cat", "dog")})
    refused = shard(source, output, code=2)
    assert not output.exists()
    for folder, split in splits.items():
        options = f"--source {source}/{folder} --split {split}"
        assert f"  dataprep shard {options} --output OUTPUT\n" in refused.err
        done = shard(source / folder, output, "--split", split)
        assert "class folders, 2 classes, 4 images" in done.out
    setting = "labels.split_folders=classes"
    assert f"  dataprep shard --source {source} --set {setting} --output OUTPUT" in refused.err
    done = shard(source, tmp_path / "all", "--set", setting)
    assert classes(tmp_path / "all") == [*splits]
    assert "folders of level 1 are the classes, such as " in done.out


def test_numeric_folders_keep_the_order_of_texts_and_say_so(tmp_path: Path) -> None:
    """``labels.order`` gives the other order, and cannot be mixed with the first."""
    source = tmp_path / "photos"
    photos(source, {str(number): 1 for number in range(12)})
    done = shard(source, tmp_path / "out")
    assert "labels 0 to 11 in the order of names\n" in done.out
    assert "ordered as texts: 0, 1, 10, 11, 2, ...; --set labels.order=numeric" in done.out
    assert classes(tmp_path / "out") == sorted(map(str, range(12)))
    numeric = ("--set", "labels.order=numeric")
    refused = shard(source, tmp_path / "out", *numeric, code=2)
    assert "other classes than in numeric order" in refused.err
    done = shard(source, tmp_path / "other", *numeric)
    assert "labels 0 to 11 in numeric order\n" in done.out
    assert "note:" not in done.out
    assert classes(tmp_path / "other") == [str(number) for number in range(12)]


def test_names_have_no_numeric_order(tmp_path: Path) -> None:
    """A class that is no number is named, and a list of classes is an order already."""
    source = tmp_path / "photos"
    photos(source, {"1": 1, "cat": 1})
    numeric = ("--set", "labels.order=numeric")
    refused = shard(source, tmp_path / "out", *numeric, code=2)
    assert "the class 'cat' is not a whole number" in refused.err
    (tmp_path / "classes.txt").write_text("cat\n1\n")
    listed = ("--set", f"labels.classes={tmp_path}/classes.txt")
    refused = shard(source, tmp_path / "out", *numeric, *listed, code=2)
    assert "labels.classes and labels.order exclude each other" in refused.err


def test_the_level_of_the_classes_is_said(tmp_path: Path) -> None:
    """The message has the level of the class folders only if folders are nested."""
    photos(tmp_path / "deep", {"pets/cat/old": 1, "pets/dog": 1})
    done = shard(tmp_path / "deep", tmp_path / "out")
    assert "note: folders of level 2 are the classes, such as 'cat' in 'pets/cat/old/" in done.out
    photos(tmp_path / "flat", {"cat": 1, "dog": 1})
    assert "note:" not in shard(tmp_path / "flat", tmp_path / "other").out


def tar_of(members: dict[str, bytes]) -> bytes:
    """A tar of these files."""
    sink = BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, BytesIO(data))
    return sink.getvalue()


@pytest.mark.parametrize("kind", ["imagefolder", "ilsvrc"])
def test_an_empty_class_is_named_and_gets_a_number_only_if_it_is_listed(
    tmp_path: Path, kind: str
) -> None:
    """An empty class is named, and gets a number only if it is listed, for folders and tars."""
    source = tmp_path / "photos"
    if kind == "imagefolder":
        photos(source, {"ant": 1, "bee": 0, "cat": 1})
    else:
        tars = {f"{name}.tar": tar_of({f"{name}.jpg": jpeg(len(name))}) for name in ("ant", "cat")}
        source.write_bytes(tar_of({**tars, "bee.tar": tar_of({})}))
    done = shard(source, tmp_path / "out", "--kind", kind)
    assert "2 classes, 2 images; labels 0 to 1 in the order of names" in done.out
    assert "without images, which make no class: 'bee" in done.out
    assert "2 photos written, 0 failed" in done.out
    assert classes(tmp_path / "out") == ["ant", "cat"]
    (tmp_path / "classes.txt").write_text("ant\nbee\ncat\n")
    listed = ("--set", f"labels.classes={tmp_path}/classes.txt")
    shard(source, tmp_path / "listed", "--kind", kind, *listed)
    assert classes(tmp_path / "listed") == ["ant", "bee", "cat"]
