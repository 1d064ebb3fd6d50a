"""Images in archives have classes by rules, and unclear archives are refused."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest

from dataprep.errors import SourceError
from dataprep.sources.ilsvrc import ILSVRC
from dataprep.sources.options import ILSVRCOptions
from dataprep.sources.protocol import Listing
from tests.commandline import in_process
from tests.source_folders import write_files
from tests.tars import nested, tar_of, zipped

pytestmark = pytest.mark.usefixtures("own_cache")

IMAGE = b"\xff\xd8image"
CAT, DOG = "n02123045", "n02085620"


def images(*names: str) -> dict[str, bytes]:
    """An image with each name."""
    return dict.fromkeys(names, IMAGE)


def listed(folder: Path, archives: Mapping[str, bytes], **options: str) -> Listing:
    """The members of a folder of archives."""
    section = ILSVRCOptions.model_validate(options)
    return ILSVRC(write_files(folder / "tars", archives), None, section).list()


def classes(listing: Listing) -> dict[str, str]:
    """The class of each sample by its base name."""
    return {
        name.rpartition("/")[2]: listing.classes[row]
        for row, name in enumerate(listing.names)
        if row not in listing.problems
    }


BY_NAME = {
    f"{CAT}_1_{CAT}.JPEG": CAT,
    f"{DOG}_1_{DOG}.JPEG": DOG,
    f"{CAT}_2.jpg": CAT,
    f"ILSVRC2012_val_00000001_{DOG}.JPEG": DOG,
    f"{DOG}-7.png": DOG,
}


class TestSynsetsInNames:
    @pytest.mark.parametrize("shape", ["parts", "compressed parts", "one archive", "inner tars"])
    def test_are_the_classes(self, tmp_path: Path, shape: str) -> None:
        """Images with a synset in their names have that class, with any names of archives."""
        names = list(BY_NAME)
        halves = {"train_images_0": names[:2], "train_images_1": names[2:]}
        archives = {f"{part}.tar": tar_of(images(*held)) for part, held in halves.items()}
        if shape == "compressed parts":
            archives = {f"{name}.gz": zipped(data) for name, data in archives.items()}
        tree = images(*[f"{part}/{name}" for part, held in halves.items() for name in held])
        single = {"one archive": tar_of(images(*names)), "inner tars": nested(tree)}
        if shape in single:
            path = tmp_path / "whole.tar"
            path.write_bytes(single[shape])
            assert classes(ILSVRC(str(path)).list()) == BY_NAME
        else:
            assert classes(listed(tmp_path, archives)) == BY_NAME

    def test_decide_where_each_archive_has_one_class_by_chance(self, tmp_path: Path) -> None:
        """The name of an archive is no class if its images have another synset."""
        archives = {
            "a.tar": tar_of(images(f"{CAT}_1.jpg")),
            "b.tar": tar_of(images(f"{DOG}_1.jpg")),
        }
        assert {*classes(listed(tmp_path, archives)).values()} == {CAT, DOG}

    def test_decide_over_folders_that_mix_them(self, tmp_path: Path) -> None:
        """Folders of one archive do not become classes if they mix synsets."""
        path = tmp_path / "whole.tar"
        members = images(f"a/{CAT}_1.jpg", f"a/{DOG}_1.jpg", f"b/{CAT}_2.jpg")
        path.write_bytes(tar_of(members))
        classes_found = classes(ILSVRC(str(path)).list())
        assert classes_found == {f"{CAT}_1.jpg": CAT, f"{DOG}_1.jpg": DOG, f"{CAT}_2.jpg": CAT}

    def test_leave_class_folders_as_they_are(self, tmp_path: Path) -> None:
        """Folders with one synset each are the classes, as they are outside of archives."""
        path = tmp_path / "dogs.tar"
        path.write_bytes(tar_of(images(f"{CAT}-tabby/{CAT}_1.jpg", f"{DOG}-pug/{DOG}_1.jpg")))
        assert {*classes(ILSVRC(str(path)).list()).values()} == {f"{CAT}-tabby", f"{DOG}-pug"}

    @pytest.mark.parametrize(
        ("archives", "message"),
        [
            ({"a.tar": [f"{CAT}_1.jpg", "x.jpg"], "b.tar": [f"{DOG}_1.jpg"]}, "'a/x.jpg' has none"),
            ({f"{CAT}.tar": [f"{CAT}_1.jpg", f"{DOG}_1.jpg"]}, "another one above it"),
            ({"a.tar": [f"{CAT}_1_{DOG}.jpg"]}, f"has {DOG} and {CAT} in its name"),
        ],
        ids=["some", "another above", "two"],
    )
    def test_that_contradict_are_refused(
        self, tmp_path: Path, archives: Mapping[str, list[str]], message: str
    ) -> None:
        """Names that follow no rule for all images are refused, with the settings to choose."""
        packed = {name: tar_of(images(*names)) for name, names in archives.items()}
        with pytest.raises(SourceError, match=message) as refusal:
            listed(tmp_path, packed)
        assert "ilsvrc.classes=archives" in str(refusal.value)
        chosen = classes(listed(tmp_path, packed, classes="archives"))
        assert {*chosen.values()} == {name.removesuffix(".tar") for name in archives}

    def test_can_be_chosen(self, tmp_path: Path) -> None:
        """``names`` skips an image whose name has no synset, with that reason."""
        archives = {"a.tar": tar_of(images(f"{CAT}_1.jpg", "x.jpg"))}
        listing = listed(tmp_path, archives, classes="names")
        assert classes(listing) == {f"{CAT}_1.jpg": CAT}
        (problem,) = listing.problems.values()
        assert problem == ("skipped", "no synset in its name")


class TestWebDataset:
    @pytest.mark.parametrize("sidecar", ["000.cls", "000.json", "000.CLS"])
    @pytest.mark.parametrize("image", ["000.jpg", "000.seg.png"])
    @pytest.mark.parametrize("shape", ["folder", "one archive", "class folders"])
    def test_is_refused_by_name(self, tmp_path: Path, sidecar: str, image: str, shape: str) -> None:
        """A class or facts beside an image make a tar WebDataset, which is refused as such."""
        if shape == "folder":
            source = tmp_path / "tars"
            source.mkdir()
            for name in ("cat.tar", "dog.tar"):
                (source / name).write_bytes(tar_of(images(image) | {sidecar: b"1"}))
        else:
            source = tmp_path / "data.tar"
            above = "cat/" if shape == "class folders" else ""
            source.write_bytes(tar_of(images(above + image) | {above + sidecar: b"1"}))
        with pytest.raises(
            SourceError, match=rf"has '.*{sidecar}' beside '.*{image}', as in WebDat"
        ):
            ILSVRC(str(source)).list()

    @pytest.mark.parametrize("ending", ["txt", "index", "caption"])
    def test_is_refused_where_images_have_captions(self, tmp_path: Path, ending: str) -> None:
        """Texts beside the images make a tar WebDataset, and a few texts do not."""
        names = [f"{number}.jpg" for number in range(4)]
        texts = {f"{number}.{ending}": b"a cat" for number in range(2)}
        with pytest.raises(SourceError, match="as in WebDataset"):
            listed(tmp_path, {"cat.tar": tar_of(images(*names) | texts)})
        few = {"cat.tar": tar_of(images(*names) | {"0.txt": b"a cat"}), "dog.tar": tar_of({})}
        assert {*classes(listed(tmp_path, few)).values()} == {"cat"}

    def test_is_not_every_json_file(self, tmp_path: Path) -> None:
        """A file that belongs to no image does not count."""
        archives = {
            "cat.tar": tar_of(images("1.jpg") | {"annotations.json": b"{}", "labels.cls": b""}),
            "dog.tar": tar_of(images("2.jpg")),
        }
        assert {*classes(listed(tmp_path, archives)).values()} == {"cat", "dog"}

    def test_can_be_read_as_classes_all_the_same(self, tmp_path: Path) -> None:
        """The setting in the refusal treats archives as classes."""
        archives = {
            f"{name}.tar": tar_of(images("1.jpg") | {"1.json": b"{}"}) for name in ("cat", "dog")
        }
        chosen = classes(listed(tmp_path, archives, classes="archives"))
        assert chosen["1.jpg"] in ("cat", "dog")


class TestArchivesOfSeveralClasses:
    @pytest.mark.parametrize(
        "names",
        [
            ("train_images_0.tar", "train_images_1.tar"),
            ("00000.tar", "00001.tar"),
            ("cc-00000.tar", "cc-00001.tar"),
            ("data-part2.tar", "data-part10.tar"),
            ("imagenet-val-000.tar.gz",),
            ("cat_part1.tar", "cat_part2.tar", "dog_part1.tar"),
        ],
        ids=str,
    )
    def test_have_no_class_by_their_name(self, tmp_path: Path, names: tuple[str, ...]) -> None:
        """Archives named like volumes of one data set are no classes, and a note says so."""
        archives = {}
        for number, name in enumerate(names):
            data = tar_of(images(f"{number}.jpg"))
            archives[name] = zipped(data) if name.endswith("gz") else data
        listing = listed(tmp_path, archives)
        assert {*listing.classes} == {""}
        assert f"{names[0]}" in listing.notes[0]
        assert "ilsvrc.classes=archives" in listing.notes[0]
        assert {*listed(tmp_path, archives, classes="archives").classes} != {""}

    @pytest.mark.parametrize(
        "names",
        [("cat", "dog"), ("0", "1"), ("class01", "class02"), (CAT, DOG), ("1900s", "2000s")],
    )
    def test_other_names_are_classes(self, tmp_path: Path, names: tuple[str, ...]) -> None:
        """Any other name of an archive is the class of its images."""
        archives = {f"{name}.tar": tar_of(images(f"{name}.jpg")) for name in names}
        assert {*classes(listed(tmp_path, archives)).values()} == {*names}

    def test_have_classes_in_folders(self, tmp_path: Path) -> None:
        """Class folders in the volumes of one data set are the classes."""
        archives = {
            "part_0.tar": tar_of(images("cat/1.jpg", "dog/2.jpg")),
            "part_1.tar": tar_of(images("cat/3.jpg")),
        }
        classes_found = classes(listed(tmp_path, archives))
        assert classes_found == {"1.jpg": "cat", "2.jpg": "dog", "3.jpg": "cat"}

    def test_are_refused_where_folders_could_be_the_classes(self, tmp_path: Path) -> None:
        """Archives with several folders each have two readings, and both can be chosen."""
        archives = {
            "a.tar": tar_of(images("cat/1.jpg", "dog/2.jpg")),
            "b.tar": tar_of(images("cat/3.jpg")),
        }
        with pytest.raises(SourceError, match=r"a\.tar has several folders \(cat, dog\)"):
            listed(tmp_path, archives)
        folders = classes(listed(tmp_path, archives, classes="folders"))
        assert folders == {"1.jpg": "cat", "2.jpg": "dog", "3.jpg": "cat"}
        classes_of_archives = classes(listed(tmp_path, archives, classes="archives"))
        assert classes_of_archives == {"1.jpg": "a", "2.jpg": "a", "3.jpg": "b"}

    def test_are_not_chosen_where_there_is_one(self, tmp_path: Path) -> None:
        """A folder with a single archive is refused with the address of the archive."""
        archives = {"all.tar": tar_of(images("data/cat/1.jpg", "data/dog/2.jpg"))}
        with pytest.raises(SourceError, match=r"--source .*/tars/all\.tar --kind ilsvrc"):
            listed(tmp_path, archives)


class TestSplits:
    @pytest.mark.parametrize("inner", ["", "SPLIT/"], ids=["classes", "own folder"])
    def test_that_are_archives_are_refused(self, tmp_path: Path, inner: str) -> None:
        """Archives named like splits are refused, with a folder for each that gives classes."""
        archives = {}
        for split in ("train", "test"):
            names = (f"{inner}cat/{split}1.jpg", f"{inner}dog/{split}2.jpg")
            members = images(*[name.replace("SPLIT", split) for name in names])
            archives[f"{split}.tar"] = tar_of(members)
        with pytest.raises(SourceError, match="look like splits") as refusal:
            listed(tmp_path, archives)
        for split in ("train", "test"):
            assert f"--set ilsvrc.folder={split} --split {split}" in str(refusal.value)
            source = ILSVRC(str(tmp_path / "tars"), None, ILSVRCOptions(folder=split))
            assert classes(source.list()) == {f"{split}1.jpg": "cat", f"{split}2.jpg": "dog"}

    def test_that_are_archives_in_parts_are_refused(self, tmp_path: Path) -> None:
        """Parts of different splits do not become one split."""
        names = ("train_0", "train_1", "test_0")
        archives = {f"{name}.tar": tar_of(images("cat/1.jpg", "dog/2.jpg")) for name in names}
        with pytest.raises(SourceError, match="'train_0', 'train_1'") as refusal:
            listed(tmp_path, archives)
        assert "--set ilsvrc.folder=test_0 --split test " in str(refusal.value)

    def test_in_the_archive_of_each_class_are_refused(self, tmp_path: Path) -> None:
        """The commands leave out the other split, so that archives stay classes."""
        members = images("train/1.jpg", "test/2.jpg")
        archives = {f"{name}.tar": tar_of(members) for name in ("cat", "dog")}
        with pytest.raises(SourceError, match=r"--exclude '\*/test' --split train"):
            listed(tmp_path, archives)
        (tmp_path / "more").mkdir()
        members = images("train/1.jpg", "test/2.jpg", "te[s]t/3.jpg")
        archives = {f"{name}.tar": tar_of(members) for name in ("cat", "dog")}
        with pytest.raises(SourceError, match=r"--exclude '\*/te\[\[\]s\]t'.* --split train"):
            listed(tmp_path / "more", archives)

    def test_in_each_part_are_refused(self, tmp_path: Path) -> None:
        """The commands take one split from all parts, with its classes."""
        for part in range(2):
            names = [
                f"{split}/{name}/{part}.jpg"
                for split in ("train", "test")
                for name in ["cat", "dog"]
            ]
            (tmp_path / "parts").mkdir(exist_ok=True)
            (tmp_path / "parts" / f"data_{part}.tar").write_bytes(tar_of(images(*names)))
        arguments_of_job = ("--source", tmp_path / "parts", "--output", tmp_path / "out")
        refused = in_process("plan", *arguments_of_job, "--kind", "ilsvrc", code=2)
        commands = [line.strip() for line in refused.err.splitlines() if " --split " in line]
        for split, command in zip(("train", "test"), commands, strict=True):
            arguments = shlex.split(command.replace("OUTPUT", str(tmp_path / "out")))[2:]
            assert arguments[-4:-2] == ["--split", split]
            planned = in_process("plan", *arguments, "--json", code=0).one_object
            assert planned["understood"]["classes"] == 2
            assert planned["splits"][0]["samples"] == 4

    def test_that_are_archives_can_be_classes(self, tmp_path: Path) -> None:
        """With the setting, archives are classes with any content."""
        archives = {
            f"{name}.tar": tar_of(images("cat/1.jpg", "dog/2.jpg")) for name in ("train", "test")
        }
        with pytest.raises(SourceError):
            listed(tmp_path, archives)
        source = ILSVRC(str(tmp_path / "tars"))
        source.read_splits_as_classes()
        assert {*source.list().classes} == {"train", "test"}

    @pytest.mark.parametrize("name", ["images", "jpg", "val"])
    def test_and_kinds_of_files_give_no_class(self, tmp_path: Path, name: str) -> None:
        """Images in one folder with such a name have no class, at any depth."""
        for number, member in enumerate((f"{name}/1.jpg", f"flowers/{name}/1.jpg")):
            path = tmp_path / f"{number}.tar"
            path.write_bytes(tar_of(images(member)))
            assert {*ILSVRC(str(path)).list().classes} == {""}
