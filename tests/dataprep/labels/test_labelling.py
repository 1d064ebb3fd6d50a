"""Label files are found at each location, and applied to the classes of a source."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.errors import ConfigError, OutputConflict
from dataprep.labels import Label, LabelSpace
from dataprep.labels.class_files import GROUND_TRUTH, META
from dataprep.labels.labelling import Classified, Labelling, load_labelling, require_shared_classes
from dataprep.labels.options import LabelOptions
from dataprep.stores import StoreOptions, open_store
from iobench.servers.moto_server import MotoServer
from tests.dataprep.labels.devkits import meta_mat, tarball

VALIDATION = {"ILSVRC2012_val_00000001": "n02110185", "ILSVRC2012_val_00000002": "n02119789"}
NAMES = ["a/1.jpg", "a/2.jpg", "b/3.jpg", "b/notes.txt"]
FOUND = Classified(["a", "a", "b", ""], {3: ("skipped", "clutter")}, None)
NUMBERS = [str(number) for number in range(12)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a devkit, as a tarball and unpacked, and some tables."""
    files = {
        f"kit/data/{META}": meta_mat(),
        f"kit/data/{GROUND_TRUTH}": b"3\n1\n",
        "devkit.tar.gz": tarball({f"d/{META}": meta_mat(), f"d/{GROUND_TRUTH}": b"3\n1\n"}),
        "alone.txt": b"3\n1\n",
        "classes.txt": b"zebra\tEquus\nant\n",
        "map.csv": b"bee,ant\n",
        "list.json": b'["ant", "bee"]',
        "twice.txt": b"ant\nbee\nant\n",
        "three.csv": b"ant,bee,cow\n",
        "quote.csv": b'ant,0\n"cow,1\n',
        "blanks.txt": b"cat 0\ndog 1\n",
    }
    for name, data in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return tmp_path


def load(**options: Any) -> Labelling:
    """The content of these files."""
    return load_labelling(LabelOptions(**options), None)


def unheard(line: str) -> None:
    """Fail: no message is expected."""
    raise AssertionError(line)


def one_each(classes: list[str], space: LabelSpace | None = None) -> Classified:
    """One sample of each class."""
    return Classified(classes, {}, space)


def applied(
    classified: Classified,
    mapped: Mapping[str, str] | None = None,
    truth: Mapping[str, str] | None = None,
) -> Classified:
    """The result of these tables for samples 00.jpg, 01.jpg and so on."""
    names = [f"{row:02}.jpg" for row in range(len(classified.classes))]
    labelling = Labelling(truth=truth or {}, truth_name="truth", new_names=mapped or {})
    return labelling.apply(names, classified, lambda line: None)


def order_of(classified: Classified) -> list[str] | None:
    """The classes in the order of their labels, or None if their names decide."""
    return list(classified.space.index) if classified.space else None


class TestLoad:
    def test_nothing_is_asked_for(self) -> None:
        """Without files nothing changes."""
        assert load().apply(NAMES, FOUND, unheard) is FOUND
        assert load().space("ba") == LabelSpace.of("ab")

    def test_the_devkit_wherever_it_is(
        self, folder: Path, bucket: str, s3_server: MotoServer
    ) -> None:
        """The devkit is found as a tarball, a folder or a file with meta.mat, on disk and on S3."""
        options = StoreOptions(endpoint_url=s3_server.url)
        packed = (folder / "devkit.tar.gz").read_bytes()
        open_store(f"s3://{bucket}/kit", options).put("dev.tar.gz", packed)
        labellings = [
            load(ground_truth=f"{folder}/devkit.tar.gz"),
            load(ground_truth=f"{folder}/kit/data/{GROUND_TRUTH}"),
            load(ground_truth=f"{folder}/kit"),
            load(ground_truth=f"{folder}/alone.txt", meta=f"{folder}/devkit.tar.gz"),
            load(ground_truth=f"{folder}/alone.txt", meta=f"{folder}/kit/data/{META}"),
            load(ground_truth=f"{folder}/alone.txt", meta=f"{folder}/kit/"),
            load_labelling(LabelOptions(ground_truth=f"s3://{bucket}/kit/dev.tar.gz"), options),
        ]
        assert [entry.truth for entry in labellings] == [VALIDATION] * 7
        assert all(entry.texts["n02100735"] == "English setter" for entry in labellings)

    def test_texts_of_meta(self, folder: Path) -> None:
        """meta.mat gives texts to the classes of a training set too."""
        for path in (f"{folder}/kit/data/{META}", f"{folder}/kit/", f"{folder}/devkit.tar.gz"):
            space = load(texts=path).space(["n02119789", "n99999999"])
            assert [label.text for label in space.labels] == ["kit fox, Vulpes macrotis", ""]

    def test_an_order(self, folder: Path) -> None:
        """Labels follow the file, the second column is the text, and other classes are refused."""
        labelling = load(classes=f"{folder}/classes.txt")
        assert labelling.space(["ant"]).labels == (
            Label(0, "zebra", "Equus"),
            Label(1, "ant", "ant"),
        )
        with pytest.raises(ConfigError, match=r"does not name 1 class .*'bee'.*labels\.map"):
            labelling.space(["ant", "bee"])

    def test_the_order_of_imagenet(self) -> None:
        """A subset has the labels of all 1,000 synsets."""
        space = load(classes="ilsvrc2012").space(["n01443537"])
        assert (len(space.labels), space.index["n01443537"]) == (1000, 1)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"ground_truth": "none.txt"}, r"labels\.ground_truth: there is no file '.*none\.txt'"),
            ({"texts": "kits"}, r"labels\.texts: there is no file"),
            ({"classes": "twice.txt"}, "names the class 'ant' more than once"),
            (
                {"map": "twice.txt"},
                r"twice\.txt, line 1: 'ant' has no second column: expected two columns in each "
                r"line with a tab, a comma or a semicolon .*, as in old,new \(labels\.map\)$",
            ),
            ({"map": "three.csv"}, r"3 columns.*: 'ant, bee, cow': .*old,new \(labels\.map\)$"),
            ({"texts": "three.csv"}, r"3 columns.*: 'ant, bee, cow': .*cat \(labels\.texts\)$"),
            ({"texts": "twice.txt"}, r"line 1: 'ant' has .*tabby cat \(labels\.texts\)$"),
            ({"texts": "quote.csv"}, r"line 2: .*: '\"cow,1': expected .* \(labels\.texts\)$"),
            (
                {"classes": "blanks.txt"},
                r"blanks\.txt, line 1: 'cat 0' has a blank between class and label: expected a "
                r"class in each line, or a class and its label, as in cat,0 \(labels\.classes\)$",
            ),
            ({"classes": "three.csv"}, r"3 columns.*: 'ant, bee, cow': .* \(labels\.classes\)$"),
            ({"map": "list.json"}, r"list\.json, entry 1: 'ant' has no second column"),
            ({"ground_truth": "alone.txt"}, r"has ILSVRC2012_IDs, which need labels\.meta"),
            ({"ground_truth": "alone.txt", "meta": "map.csv"}, "'3' is neither a synset nor an ID"),
        ],
    )
    def test_what_is_refused(self, folder: Path, options: dict[str, str], message: str) -> None:
        """A missing file, or one of another kind, is named."""
        with pytest.raises(ConfigError, match=message):
            load(**{key: f"{folder}/{name}" for key, name in options.items()})


class TestGroundTruth:
    def test_it_takes_precedence_over_folders(self) -> None:
        """Samples get the class of the file by any of their names. Disagreements are counted."""
        notes: list[str] = []
        truth = {"a/1.jpg": "x", "2.jpg": "a", "3": "y"}
        classified = Labelling(truth=truth, truth_name="t.csv").apply(NAMES, FOUND, notes.append)
        assert classified == Classified(["x", "a", "y", ""], FOUND.problems, None)
        assert notes == [
            "2 samples in the folder of a class that differs from t.csv, which takes precedence"
        ]

    def test_a_sample_that_it_lacks_fails(self) -> None:
        """The reason has the name of the file, and other samples are not affected."""
        labelling = Labelling(truth={"1": "a", "2": "a"}, truth_name="truth")
        classified = labelling.apply(NAMES, FOUND, unheard)
        assert classified.classes == ["a", "a", "", ""]
        assert classified.problems[2] == ("failed", "truth has no class for it")

    @pytest.mark.parametrize(
        ("key", "name"),
        [
            ("val/1.jpg", "1.jpg"),
            ("/data/imagenet/val/1.jpg", "1.jpg"),
            ("./1.jpg", "1.jpg"),
            (r"val\1.jpg", "1.jpg"),
            ("data/cat/1.jpg", "cat/1.jpg"),
            ("val/1", "1.jpg"),
            ("cat/1.jpg", "data/cat/1.jpg"),
        ],
    )
    def test_its_paths_may_begin_with_other_folders(self, key: str, name: str) -> None:
        """A sample is found if its path and the path in the file end alike."""
        labelling = Labelling(truth={"other/2.jpg": "b", key: "a"}, truth_name="t")
        classified = labelling.apply([name], Classified([""], {}, None), unheard)
        assert classified.classes == ["a"]

    def test_paths_that_fit_a_sample_alike_are_not_guessed(self) -> None:
        """Of two classes for one base name neither is taken, and the reason names both paths."""
        truth = {"a/1.jpg": "cat", "b/1.jpg": "dog", "2.jpg": "cat"}
        labelling = Labelling(truth=truth, truth_name="t")
        classified = labelling.apply(["1.jpg", "2.jpg", "c/1.jpg"], one_each([""] * 3), unheard)
        assert classified.classes == ["", "cat", ""]
        why = "t has several classes for it: 'a/1.jpg' and 'b/1.jpg'"
        assert classified.problems[0] == ("failed", why)
        assert classified.problems[2] == ("failed", "t has no class for it")

    @pytest.mark.parametrize("key", [".", "", "/"])
    def test_its_names_may_have_no_base_name(self, key: str) -> None:
        """A name without a base name is that of no sample, and other names are not affected."""
        labelling = Labelling(truth={key: "b", "x/1.jpg": "a"}, truth_name="t")
        classified = labelling.apply(["1.jpg", "2.jpg"], one_each(["", ""]), unheard)
        assert classified.classes == ["a", ""]
        assert classified.problems[1] == ("failed", "t has no class for it")

    def test_one_that_fits_no_sample_is_refused(self) -> None:
        """The error shows a path of the file and one of the source."""
        labelling = Labelling(truth={"x.jpg": "3"}, truth_name="t")
        with pytest.raises(ConfigError, match=r"labels\.ground_truth.* 'x\.jpg'.* 'a/1\.jpg'"):
            labelling.apply(["a/1.jpg"], one_each([""]), unheard)

    def test_numbers_are_the_labels(self) -> None:
        """Labels are as in the file, even if classes between them have no samples."""
        truth = {f"{row:02}": label for row, label in enumerate("503310")}
        result = applied(one_each([""] * 6), truth=truth)
        assert result.space is not None
        assert [result.space.index[name] for name in result.classes] == [5, 0, 3, 3, 1, 0]
        assert order_of(result) == list("012345")

    def test_numbers_too_high_for_labels_are_numbered_anew(self) -> None:
        """IDs of seven digits would make millions of classes and are renumbered with a note."""
        notes: list[str] = []
        labelling = Labelling(truth={"a": "9000000", "b": "7000000"}, truth_name="t")
        classified = labelling.apply(["a", "b"], one_each(["", ""]), notes.append)
        assert order_of(classified) == ["7000000", "9000000"]
        assert "renumbered from 0" in notes[0]

    def test_a_negative_label_is_no_class(self) -> None:
        """The sample fails with that reason, and other numbers do not become names."""
        result = applied(one_each(["", "", ""]), truth={"00": "-1", "01": "10", "02": "9"})
        assert result.problems[0] == ("failed", "truth gives it the label -1; classes count from 0")
        assert order_of(result) == [str(number) for number in range(11)]

    def test_numbers_are_in_their_order(self) -> None:
        """Class 10 comes after 9, even when merged. Classes that are names are sorted as names."""
        truth = {f"{row:02}": name for row, name in enumerate(NUMBERS)}
        assert order_of(applied(one_each([""] * 12), truth=truth)) == NUMBERS
        merged = order_of(applied(one_each([""] * 12), {"3": "4"}, truth))
        assert merged == [name for name in NUMBERS if name != "3"]
        named = one_each(["b", "a"], LabelSpace.in_order("ba"))
        assert applied(named, truth={"00": "x", "01": "1"}).space is None


class TestMap:
    def test_it_merges_and_leaves_out(self) -> None:
        """Classes are renamed. An empty one is skipped, and one that is not named is kept."""
        merged = Labelling(new_names={"a": "b"}).apply(NAMES, FOUND, unheard)
        assert merged.classes == ["b", "b", "b", ""]
        classified = Labelling(new_names={"a": ""}).apply(NAMES, FOUND, unheard)
        assert classified.classes == ["", "", "b", ""]
        assert [classified.problems[row][0] for row in (0, 1, 3)] == ["skipped"] * 3
        assert classified.problems[0][1] == "its class is mapped to nothing"

    def test_names_that_it_does_not_find_are_reported(self) -> None:
        """One of the names is reported, and a class without a sample here counts as found."""
        notes: list[str] = []
        classified = one_each(["1", "0"], LabelSpace.sorted_by_number("012"))
        mapped = {"catt": "bird", "1": "one", "2": "two", "z": "y"}
        Labelling(new_names=mapped).apply(["a", "b"], classified, notes.append)
        assert notes == [
            "labels.map renames 2 classes that the source does not have, such as 'catt'"
        ]

    @given(order=st.permutations(NUMBERS) | st.permutations(["ant", "bee", "cat"]))
    def test_strangers_change_nothing(self, order: list[str]) -> None:
        """Classes that no map names keep the labels of the source."""
        space = LabelSpace.in_order(order)
        assert applied(one_each(order, space), {"77": "78"}).space == space
        assert applied(one_each(order), {"77": "78"}).space is None

    @pytest.mark.parametrize(
        ("classes", "numbered", "mapped", "order"),
        [
            (NUMBERS, True, {"3": "4"}, [name for name in NUMBERS if name != "3"]),
            (NUMBERS, True, {"3": ""}, [name for name in NUMBERS if name != "3"]),
            (NUMBERS, True, {"0": "5", "5": "0"}, NUMBERS),
            (NUMBERS, True, {"10": "cat"}, [*NUMBERS[:10], "cat", "11"]),
            ([f"c{n}" for n in NUMBERS], False, {f"c{n}": n for n in NUMBERS}, NUMBERS),
            (NUMBERS, False, {"3": "4"}, None),
        ],
    )
    def test_numbers_stay_numbers(
        self, classes: list[str], numbered: bool, mapped: dict[str, str], order: list[str] | None
    ) -> None:
        """Merged, swapped and mapped numbers are sorted as numbers, and folder names as texts."""
        source = one_each(classes, LabelSpace.sorted_by_number(classes) if numbered else None)
        assert order_of(applied(source, mapped)) == order

    def test_a_renamed_class_keeps_its_place(self) -> None:
        """A renamed class has the position and text of the first of the merged classes."""
        space = LabelSpace(
            (Label(0, "zebra", "Equus"), Label(1, "ant", "Formica"), Label(2, "bee", ""))
        )
        result = applied(one_each(["ant", "bee", "zebra"], space), {"bee": "zebra", "ant": "wasp"})
        assert result.space is not None
        assert result.space.labels == (Label(0, "zebra", "Equus"), Label(1, "wasp", "wasp"))


class TestLaterSplit:
    def test_unknown_classes_are_refused(self) -> None:
        """One of the unknown classes is named, and a subset is accepted."""
        space = LabelSpace.of("abc")
        require_shared_classes(space, "ab", "validation")
        with pytest.raises(OutputConflict, match=r"'validation' has 2 classes .*such as 'x'\."):
            require_shared_classes(space, "axz", "validation")

    @pytest.mark.parametrize(
        ("order", "message"),
        [
            ("acb", "label 1 is 'b' in labels.json and 'c' in labels.classes"),
            ("ab", "label 2 is 'c' in labels.json and None in labels.classes"),
            ("abcd", "label 3 is None in labels.json and 'd' in labels.classes"),
        ],
    )
    def test_another_order_is_refused(self, order: str, message: str) -> None:
        """The first different label is named, and the same order is accepted."""
        space = LabelSpace.of("abc")
        Labelling(order=tuple("abc")).require_order(space, "validation")
        with pytest.raises(OutputConflict, match=message):
            Labelling(order=tuple(order)).require_order(space, "validation")
