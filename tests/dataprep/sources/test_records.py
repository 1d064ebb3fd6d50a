"""Shards of other programs, and outputs of this one, are sources."""

from __future__ import annotations

import gzip
import io
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dataprep
from dataprep.errors import CorruptImage, SourceError, SourceNotFound
from dataprep.formats import shard_reader
from dataprep.formats.recordio import MAGIC
from dataprep.formats.tfrecord import masked_crc32c
from dataprep.labels import LabelSpace
from dataprep.sources import Listing, open_source
from dataprep.sources.label_classes import class_numbers, classes_from_numbers, classes_of_records
from dataprep.sources.options import RecordsOptions
from dataprep.sources.records import RecordsSource
from dataprep.sources.records_scan import (
    ScannedRecord,
    is_shard_name,
    sample_names,
    scan,
    shards_of,
)
from dataprep.stores.memory import MemoryStore
from tests.dataprep.conftest import Calls
from tests.dataprep.sources.shards import customary, examples, flipped, image, image_records


def source_of(folder: Path, files: Mapping[str, bytes], **options: Any) -> RecordsSource:
    """A folder with these files as a source."""
    for name, data in files.items():
        (folder / name).write_bytes(data)
    source = open_source(str(folder), "records", None, RecordsOptions(**options))
    assert isinstance(source, RecordsSource)
    return source


def intact(source: RecordsSource, listing: Listing) -> dict[str, bytes]:
    """The bytes of each sample that has no problem."""
    return {
        name: source.read(listing.located(row))
        for row, name in enumerate(listing.names)
        if row not in listing.problems
    }


def reasons(listing: Listing) -> dict[str, str]:
    """The problems of the entries that are no samples."""
    return {listing.names[row]: problem.reason for row, problem in listing.problems.items()}


def listed(folder: Path, *rows: Mapping[str, Any], **options: Any) -> Listing:
    """The listing of one TFRecord shard of these Examples."""
    return source_of(folder, {SHARD: examples(rows)[0]}, **options).list()


def spaces(listing: Listing) -> list[str]:
    """The classes in the order of their labels."""
    assert listing.label_space is not None
    return [label.synset for label in listing.label_space.labels]


SHARD = "train-00000-of-00001"
FIVE = [customary(number) for number in range(5)]
RECS = [((float(number),), image(number)) for number in range(5)]


def test_one_request_reads_a_record(tmp_path: Path, calls: Calls) -> None:
    """A record is one range around the image. Features of 100 kB before it need a second one."""
    rows = [*FIVE, customary(5, a__note=b"x" * 100_000)]
    source = source_of(tmp_path, {SHARD: examples(rows)[0]})
    listing = source.list()
    requests = calls(source._store, "get_range")
    assert source.read(listing.located(3)) == image(3)
    ((_, _, length),) = requests
    assert length < len(image(3)) + 4096
    assert source.read(listing.located(5)) == image(5)


def damaged_recordio(at: int) -> bytes:
    """A RecordIO file with one changed bit in the head of the third record."""
    shard, spans = image_records(RECS)
    return flipped(shard, spans[2][0] + at, 0x20)


def damaged_tfrecord(at: int) -> bytes:
    """A TFRecord file with one changed bit in the third record."""
    shard, spans = examples(FIVE)
    return flipped(shard, spans[2][0] + at)


def without_example() -> bytes:
    """A valid TFRecord file without Examples."""
    payload = b"\x0b no Example"
    length = len(payload).to_bytes(8, "little")
    return b"".join(part + masked_crc32c(part).to_bytes(4, "little") for part in (length, payload))


TFRECORD_DAMAGED = (
    rf"-00001: damaged at byte {examples(FIVE)[1][2][0]}: the checksum .*copy the shard again"
)
RECORDIO_DAMAGED = r"train\.rec: damaged at byte \d+: .*copy the shard"


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        *((SHARD, damaged_tfrecord(at), TFRECORD_DAMAGED) for at in (0, 5, 100)),
        *(("train.rec", damaged_recordio(at), RECORDIO_DAMAGED) for at in (0, 5, 7)),
        (
            f"{SHARD}.tfrecord.gz",
            gzip.compress(examples(FIVE)[0]),
            r"is compressed as a whole.*gzip -d",
        ),
        ("train.rec", b"<!DOCTYPE html>........", r"train\.rec: damaged at byte 0: .* not a shard"),
        (
            SHARD,
            without_example(),
            rf"^{SHARD}: no record can be read: .*not a tf\.train\.Example",
        ),
        ("a.txt", b"a", "train-00000-of-00128"),
    ],
)
def test_what_is_no_sound_shard_is_refused(
    tmp_path: Path, name: str, data: bytes, message: str
) -> None:
    """The error names the shard, the byte and a remedy."""
    source = source_of(tmp_path, {name: data})
    with pytest.raises(SourceError, match=message) as caught:
        source.list()
    assert isinstance(caught.value, SourceNotFound) is (name == "a.txt")


@pytest.mark.parametrize("form", ["tfrecord", "recordio"])
@pytest.mark.parametrize("kept", [1, 7, 11, 12, 200, -1])
def test_a_truncated_shard_is_refused(tmp_path: Path, form: str, kept: int) -> None:
    """The error has the byte at which the truncated record begins."""
    shard, spans = examples(FIVE) if form == "tfrecord" else image_records(RECS)
    cut = spans[3][0] + kept if kept > 0 else sum(spans[3]) + kept
    source = source_of(tmp_path, {SHARD: shard[:cut]})
    with pytest.raises(SourceError, match=rf"-00001: damaged at byte {spans[3][0]}: "):
        source.list()


def test_damage_after_the_listing_fails_the_sample_that_is_read(tmp_path: Path) -> None:
    """A record is checked again when it is read, and damage fails its sample with the location."""
    shard, spans = examples(FIVE)
    source = source_of(tmp_path, {SHARD: shard})
    listing = source.list()
    (tmp_path / SHARD).write_bytes(flipped(shard, spans[1][0] + 50))
    row = listing.offsets.tolist().index(spans[1][0])
    with pytest.raises(
        CorruptImage, match=rf"record at byte {spans[1][0]} of train-00000-of-00001"
    ):
        source.read(listing.located(row))


def test_image_records_by_their_flag(tmp_path: Path) -> None:
    """With one label or several, the first one is the class and all are values."""
    one_label = source_of(
        tmp_path, {"val.rec": image_records([([i], image(i)) for i in (1, 0)])[0]}
    )
    listing = one_label.list()
    assert list(listing.classes) == ["1", "0"]
    assert list(intact(one_label, listing).values()) == [image(1), image(0)]
    assert listing.values is None
    rows = [([1.0, 0.5, -2.0], image(1)), ([0.0, 0.5, -2.0], image(0)), ([1.0, 2.0], image(2))]
    several_labels = source_of(tmp_path, {"val.rec": image_records(rows)[0]})
    listing = several_labels.list()
    assert list(listing.classes)[:2] == ["1", "0"]
    assert list(intact(several_labels, listing).values()) == [image(1), image(0)]
    assert listing.values is not None
    assert listing.values[:2].tolist() == [[1, 0.5, -2], [0, 0.5, -2]]
    assert reasons(listing) == {"val.rec/00000002": "2 labels, where most have 3"}


LABELLED: dict[
    str, tuple[list[dict[str, Any]], dict[str, Any], list[str], list[str], list[str]]
] = {
    "TFDS counts from 0": (
        [
            {"image": image(i), "label": label, "file_name": b"%d.JPEG" % i}
            for i, label in enumerate([1, 2, 0, -1])
        ],
        {},
        ["0", "1", "2"],
        ["0/2.JPEG", "1/0.JPEG", "2/1.JPEG"],
        ["label -1 is no class: classes count from 0"],
    ),
    "numbers other than in the order of names": (
        [
            {"image/encoded": image(i), "image/class/label": 3 - i, "image/class/synset": name}
            for i, name in enumerate([b"a", b"b", b"c"])
        ],
        {},
        ["c", "b", "a"],
        [f"{SHARD}/{i:08}" for i in range(3)],
        [],
    ),
    "texts, as build_image_data.py writes them": (
        [
            {"image/encoded": image(i), "image/class/label": 1 + i % 2, "image/class/text": name}
            for i, name in enumerate([b"roses", b"daisies", b"roses"])
        ],
        {},
        ["roses", "daisies"],
        [f"{SHARD}/{i:08}" for i in range(3)],
        [],
    ),
    "texts without numbers": (
        [
            {"image/encoded": image(i), "image/class/text": name}
            for i, name in enumerate([b"roses", b"daisies", b"roses"])
        ],
        {},
        ["daisies", "roses"],
        [f"{SHARD}/{i:08}" for i in range(3)],
        [],
    ),
    "one number among texts": (
        [
            {"image/encoded": image(0), "image/class/text": b"roses", "image/class/label": 1},
            {"image/encoded": image(1), "image/class/text": b"daisies"},
        ],
        {},
        ["0"],
        [f"{SHARD}/{0:08}"],
        ["no label"],
    ),
    "file names that have their folders": (
        [
            {"image/encoded": image(i), "image/class/label": 1, "image/filename": name}
            for i, name in enumerate([b"cats/1.jpg", b"\xff.jpg"])
        ],
        {},
        ["0"],
        ["0/\udcff.jpg", "cats/1.jpg"],
        [],
    ),
    **{
        f"names that are not unique: {names}": (
            [
                {"image/encoded": image(i), "image/class/label": 1, "image/filename": name}
                for i, name in enumerate(names)
            ],
            {},
            ["0"],
            [f"{SHARD}/{i:08}" for i in range(2)],
            [],
        )
        for names in ([b"1.jpg", b"1.jpg"], [b"1.jpg", b""], [b"a/1.jpg", b"a/1.jpg"])
    },
    "a layout": (
        [{"jpeg": image(i), "y": i, "id": b"%d" % i} for i in range(2)],
        {"layout": {"jpeg": "encoded", "y": "label", "id": "filename"}},
        ["0", "1"],
        ["0/0", "1/1"],
        [],
    ),
    "a sound record without an image": (
        [customary(0), {"other": b"x"}, customary(2)],
        {},
        ["n00000000", "n00000002"],
        ["n00000000/n00000000_1.JPEG", "n00000002/n00000002_1.JPEG"],
        ["it does not have one image under"],
    ),
}


@pytest.mark.parametrize(
    ("rows", "options", "space", "names", "failed"), LABELLED.values(), ids=LABELLED
)
def test_names_and_classes_of_records(
    tmp_path: Path,
    rows: list[dict[str, Any]],
    options: dict[str, Any],
    space: list[str],
    names: list[str],
    failed: list[str],
) -> None:
    """Names and classes come from features of the record. A record without them fails."""
    source = source_of(tmp_path, {SHARD: examples(rows)[0]}, **options)
    listing = source.list()
    assert spaces(listing) == space
    assert sorted(intact(source, listing)) == names
    reasons_found = list(reasons(listing).values())
    assert len(reasons_found) == len(failed)
    assert all(part in reason for part, reason in zip(failed, reasons_found, strict=True))


def test_keys_that_are_not_known_are_refused(tmp_path: Path) -> None:
    """The error names the keys of the records, and the option that maps them."""
    with pytest.raises(SourceError, match=r"its keys are 'id', 'jpeg', 'y'.*records\.layout"):
        listed(tmp_path, {"jpeg": image(1), "y": 1, "id": b"1"})


@pytest.mark.parametrize(
    ("labels", "option", "classes"),
    [
        ([1, 2, 3], None, ["0", "1", "2"]),
        ([0, 1, 2], None, ["0", "1", "2"]),
        ([1, 2, 3], 0, ["1", "2", "3"]),
        ([2, 3, 4], 2, ["0", "1", "2"]),
    ],
)
def test_customary_labels_count_from_one_unless_there_is_a_zero(
    tmp_path: Path, labels: list[int], option: int | None, classes: list[str]
) -> None:
    """Without a label of 0 and without the option, labels count from 1, and a note says so."""
    rows = [{"image/encoded": image(i), "image/class/label": n} for i, n in enumerate(labels)]
    listing = listed(tmp_path, *rows, label_offset=option)
    assert spaces(listing) == classes
    assumed = any("0 is taken for the background" in note for note in listing.notes)
    assert assumed is (option is None and min(labels) == 1)


def test_a_file_names_the_classes_of_numbers(tmp_path: Path) -> None:
    """Line i names class i, and a number beyond the lines fails."""
    names = tmp_path / "names.txt"
    names.write_text("n01440764 tench, Tinca tinca\nn01443537 goldfish\ncat\n")
    rows = [((float(number),), image(number)) for number in (2, 0, 3)]
    source = source_of(tmp_path, {"a.rec": image_records(rows)[0]}, class_names=str(names))
    listing = source.list()
    assert spaces(listing) == ["n01440764", "n01443537", "cat"]
    assert list(listing.classes) == ["cat", "n01440764", ""]
    assert list(reasons(listing).values()) == ["label 3 has no name in class_names"]


def test_the_order_of_records_is_kept_beside_that_of_names(tmp_path: Path) -> None:
    """An unshuffled job writes records in their order."""
    listing = listed(tmp_path, *(customary(number) for number in (3, 1, 2)))
    assert listing.order is not None
    classes = [listing.classes[row] for row in listing.order]
    assert classes == ["n00000003", "n00000001", "n00000002"]


def test_the_same_images_twice_need_a_choice(tmp_path: Path) -> None:
    """Both formats, or the shard sets of two runs, are not read together."""
    files = {
        SHARD: examples([customary(1)])[0],
        f"{SHARD}.rec": image_records([((7.0,), image(7))])[0],
    }
    with pytest.raises(SourceError, match=r"records\.format"):
        source_of(tmp_path, files).list()
    files["train-00000-of-00002"] = files[SHARD]
    for incomplete in (False, True):
        source = source_of(tmp_path, files, format="tfrecord", incomplete=incomplete)
        with pytest.raises(SourceError, match="several sets"):
            source.list()
    listing = source_of(tmp_path, files, format="recordio").list()
    assert list(listing.containers) == [f"{SHARD}.rec"]


def test_a_set_of_shards_has_to_be_whole(tmp_path: Path) -> None:
    """A missing shard is refused, unless an option or a single shard is requested."""
    names = [f"train-{number:05}-of-00003" for number in range(3)]
    files = {names[0]: examples([customary(0)])[0], names[2]: examples([customary(2)])[0]}
    with pytest.raises(SourceError, match=r"has 2 of 3 shards 'train-\*-of-00003'"):
        source_of(tmp_path, files).list()
    assert len(source_of(tmp_path, files, incomplete=True).list()) == 2
    single_shard = open_source(str(tmp_path / names[2]), "records", None, RecordsOptions())
    assert list(single_shard.list().classes) == ["n00000002"]
    assert len(source_of(tmp_path, {names[1]: b""}).list()) == 2


NAMES = {
    "train-00000-of-01024": "train",
    "validation-00000-of-00128": "validation",
    "train-00000-of-00012.rec": "train",
    "imagenet2012-train.tfrecord-00000-of-01024": "train",
    "flowers_train_00000-of-00005.tfrecord": "train",
    "train_0.rec": "train",
    "x-val-00000-of-00001": "validation",
    "val.rec": "validation",
    "training.tfrecords": "train",
    "x.eval.tfrec": "validation",
}


@pytest.mark.parametrize(("name", "split"), NAMES.items())
def test_shards_and_their_splits_are_known_by_name(name: str, split: str) -> None:
    """Names of TensorFlow, TFDS, slim and im2rec are known, and those of other files are not."""
    assert is_shard_name(name)
    assert is_shard_name(f"folder.d/{name}")
    names = [name, "test_0.rec", "test_1.rec"]
    assert shards_of(names, split, "here", incomplete=True) == [name]
    for beside in (
        f"{name}.idx",
        "train.lst",
        "labels.json",
        ".hidden.rec",
        "train-0-of-1",
        "READ",
    ):
        assert not is_shard_name(beside)


def test_splits_that_are_not_clear_are_named() -> None:
    """An unclear split is named, a single set needs no split, and a whole stem selects its set."""
    names = ["a_1.rec", "a_0.rec"]
    assert shards_of(names, "train", "here", incomplete=False) == ["a_0.rec", "a_1.rec"]
    for names in (["a-train.rec", "b-train.rec"], ["a.rec", "b.rec"]):
        with pytest.raises(SourceError, match=r"here has several sets of shards, 'a"):
            shards_of(names, "train", "here", incomplete=False)
    assert shards_of(["a-x.rec", "b-x.rec"], "b-x", "here", incomplete=False) == ["b-x.rec"]


def test_one_split_of_several_is_read(tmp_path: Path) -> None:
    """The other splits are not read, and an unknown split is refused."""
    files = {
        "imagenet2012-train.tfrecord-00000-of-00001": examples([customary(1)])[0],
        "imagenet2012-validation.tfrecord-00000-of-00001": examples([customary(2)])[0],
    }
    listing = source_of(tmp_path, files, split="val").list()
    assert list(listing.classes) == ["n00000002"]
    with pytest.raises(SourceError, match=r"several sets.*records\.split"):
        source_of(tmp_path, files, split="test").list()


SIX = [f"a/train-{number:05}-of-00006" for number in range(6)]


@pytest.mark.parametrize(
    ("missing", "message"),
    [([2], "5 of 6 shards 'a/train-\\*-of-00006'"), ([0], "5 of 6"), ([3, 5], "4 of 6")],
)
def test_missing_shards_are_counted(missing: list[int], message: str) -> None:
    """Missing shards are counted, with a remedy."""
    names = [name for number, name in enumerate(SIX) if number not in missing]
    with pytest.raises(SourceError, match=f"here has {message}.*incomplete=true"):
        shards_of(names, "train", "here", incomplete=False)
    assert shards_of(names, "train", "here", incomplete=True) == names


@pytest.mark.parametrize(
    "names",
    [SIX, [f"x_{number:05}-of-00003.tfrecord" for number in (1, 2, 3)], ["y.rec"]],
    ids=["from 0", "from 1", "without number"],
)
def test_sets_that_are_whole(names: list[str]) -> None:
    """A complete set has no missing shard, for any first number."""
    assert shards_of(names, "train", "here", incomplete=False) == names


@pytest.mark.parametrize("form", ["tfrecord", "recordio"])
@given(
    count=st.integers(1, 5),
    damage=st.lists(st.tuples(st.integers(0), st.integers(1, 255)), max_size=3),
    cut=st.integers(0, 40),
    block=st.integers(16, 900),
)
def test_a_shard_is_read_whole_or_refused(
    form: str, count: int, damage: list[tuple[int, int]], cut: int, block: int
) -> None:
    """The records of a damaged shard are listed, or an error names the shard."""
    if form == "tfrecord":
        shard, spans = examples([customary(number) for number in range(count)])
    else:
        rows = [([1.0, 2.0][: 1 + i % 2], image(i) + MAGIC * (i % 3)) for i in range(count)]
        shard, spans = image_records(rows)
    data = bytearray(shard[: len(shard) - cut])
    for position, bits in damage:
        data[position % len(data)] ^= bits
    store = MemoryStore("memory://damaged")
    info = store.put("x", data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shard_reader, "_BLOCK_BYTES", block)
        try:
            scanned = scan(store, info, None)
        except SourceError as error:
            assert damage or cut
            assert str(error).startswith("x: damaged at byte ")  # noqa: PT017
            return
    assert [entry.name for entry in scanned] == [f"x/{number:08}" for number in range(len(scanned))]
    assert all(entry.problem or entry.bytes <= len(data) for entry in scanned)
    if not damage and not cut:
        assert [(entry.offset, entry.problem) for entry in scanned] == [(at, "") for at, _ in spans]


drawn_records = st.builds(
    ScannedRecord,
    labels=st.lists(st.sampled_from([-1.0, 0.0, 1.0, 2.0, 2.5, 7.0, float("nan")]), max_size=2),
    synset=st.sampled_from(["", "n01", "n02", "\udcff"]),
    text=st.sampled_from(["", "a", "b"]),
    filename=st.sampled_from(["", "1.jpg", "2.jpg", "k/1.jpg"]),
    problem=st.sampled_from(["", "", "", "damaged"]),
)


@given(
    drawn=st.lists(drawn_records, max_size=8),
    given_names=st.sampled_from([None, LabelSpace.of("xyz")]),
)
def test_every_record_has_a_class_of_the_space_or_a_reason(
    drawn: list[ScannedRecord], given_names: LabelSpace | None
) -> None:
    """Each record has a class or a reason, whatever its content is."""
    records = [record._replace(name=f"a/{i}") for i, record in enumerate(drawn)]
    problems = {row: record.problem for row, record in enumerate(records) if record.problem}
    numbers, values = class_numbers([record.labels for record in records], problems)
    if given_names:
        classes = classes_from_numbers(numbers, len(records), given_names, problems, "records")
    else:
        synsets, texts = [entry.synset for entry in records], [entry.text for entry in records]
        classes = classes_of_records(synsets, texts, numbers, problems)
    assert len(classes.names) == len(records)
    for row, name in enumerate(classes.names):
        if row in problems:
            continue
        if classes.space is None:  # samples without classes have the label -1
            assert name == ""
            assert numbers.get(row, -1) == -1
        else:
            assert name in classes.space.index
    assert values is None or len(values) == len(records)
    names = sample_names(records, classes.names)
    assert len(set(names)) == len(names) == len(records)


def test_boxes_that_are_not_carried_over_are_noted(tmp_path: Path) -> None:
    """A single record with a bounding box causes the note."""
    plain, boxed = customary(1), {**customary(2), "image/object/bbox/xmin": [0.25]}
    for rows, noted in (([plain], 0), ([plain, boxed], 1)):
        notes = listed(tmp_path, *rows).notes
        assert len([note for note in notes if "bounding boxes" in note]) == noted


def test_several_values_are_all_labels(tmp_path: Path) -> None:
    """A layout with values has them as labels. With one label there is only a class."""
    layout = {"i": "encoded", "l": "label", "v": "values"}
    rows = [{"i": image(i), "l": i, "v": [float(i), 0.5]} for i in range(2)]
    values = listed(tmp_path, *rows, layout=layout).values
    assert values is not None
    assert values.tolist() == [[0, 0.5], [1, 0.5]]
    assert listed(tmp_path, *({**row, "v": []} for row in rows), layout=layout).values is None


@pytest.fixture(scope="module")
def output_folder(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The drawn tree resized, in both formats, with a fifth for validation. Read only."""
    output = tmp_path_factory.mktemp("made") / "out"
    config = {
        "source": str(tree),
        "output": str(output),
        "format": ["tfrecord", "recordio"],
        "image": {"size": 48},
        "validation": "20%",
        "shard_size": "1.2MB",
        "dask": {"workers": 1, "processes": False},
    }
    dataprep.shard(dataprep.ShardConfig.model_validate(config))
    return output


@pytest.fixture
def copied(output_folder: Path, tmp_path: Path) -> Path:
    """A copy of the output that a test may damage."""
    return Path(shutil.copytree(output_folder, tmp_path / "copy"))


class TestOwnOutput:
    """An output of this program is read by its tables."""

    @pytest.mark.parametrize("form", ["tfrecord", "recordio"])
    @pytest.mark.parametrize("split", ["train", "validation"])
    def test_it_is_what_the_data_set_is(
        self, output_folder: Path, form: str, split: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Names, classes and images are those of the data set, and no shard is scanned."""
        monkeypatch.setattr("dataprep.sources.records.scan", None)
        source = source_of(output_folder, {}, split=split, format=form)
        listing = source.list()
        data = dataprep.open(output_folder, split, format=form)
        written = data.samples[data.samples["status"] == "written"]
        assert intact(source, listing) == {
            name: bytes(sample.image) for name, sample in zip(written["source"], data, strict=True)
        }
        assert listing.label_space == data.label_space
        groups = dict(zip(written["source"], written["synset"], strict=True))
        assert list(listing.classes) == [groups[name] for name in listing.names]
        assert all(len(source.read(listing.located(i))) == listing.sizes[i] for i in range(3))

    @pytest.mark.parametrize("form", ["tfrecord", "recordio"])
    def test_tables_of_earlier_versions(self, copied: Path, form: str) -> None:
        """Tables of earlier versions lack the size of images, and are read nevertheless."""
        source = source_of(copied, {}, format=form)
        expected = intact(source, source.list())
        path = copied / "train.samples.parquet"
        pq.write_table(pq.read_table(path).drop_columns(["image_bytes"]), path)
        manifest = copied / "train.manifest.json"
        content = json.loads(manifest.read_text())
        del content["table"]
        manifest.write_text(json.dumps(content))
        source = source_of(copied, {}, format=form)
        assert intact(source, source.list()) == expected

    def test_a_truncated_shard_fails_what_is_cut(self, copied: Path) -> None:
        """Samples before the cut are read, and those behind it fail with the shard's name."""
        shard = copied / "tfrecord/train-00000-of-00001"
        source = source_of(copied, {})
        listing = source.list()
        cut = int(np.sort(listing.offsets)[10]) + 5
        shard.write_bytes(shard.read_bytes()[:cut])
        read = 0
        for row in range(len(listing)):
            if listing.offsets[row] < cut - 5:
                read += len(source.read(listing.located(row))) == listing.sizes[row]
            else:
                with pytest.raises(CorruptImage, match="tfrecord/train-00000-of-00001"):
                    source.read(listing.located(row))
        assert read == 10

    def test_what_is_not_complete_is_refused(self, copied: Path) -> None:
        """A missing split, shard or manifest is named before anything is read."""
        with pytest.raises(SourceError, match=r"no split 'test': it has train, validation"):
            source_of(copied, {}, split="test").list()
        (copied / "tfrecord/train-00000-of-00001").unlink()
        with pytest.raises(SourceError, match="lacks tfrecord/train-00000-of-00001"):
            source_of(copied, {}).list()
        assert len(source_of(copied, {}, format="recordio").list()) > 0
        for manifest in copied.glob("*.manifest.json"):
            manifest.unlink()
        with pytest.raises(SourceError, match="not complete: split 'train' has no manifest"):
            source_of(copied, {}).list()

    @pytest.mark.parametrize(
        "name",
        ["labels.json", "train.samples.parquet", "train.plan.parquet", "train.manifest.json"],
    )
    def test_tables_that_cannot_be_read_are_an_error(self, copied: Path, name: str) -> None:
        """The error names the split and a remedy."""
        (copied / name).write_bytes(b"nonsense")
        with pytest.raises(SourceError, match="tables of split 'train' cannot be read"):
            source_of(copied, {}).list()

    def test_all_labels_come_from_the_plan(self, copied: Path) -> None:
        """Samples that had several labels in the plan have them again."""
        path = copied / "train.plan.parquet"
        table = pq.read_table(path)
        values = [[float(label), 0.25] for label in table["label"].to_pylist()]
        sink = io.BytesIO()
        pq.write_table(table.append_column("values", [values]), sink)
        path.write_bytes(sink.getvalue())
        listing = source_of(copied, {}).list()
        assert listing.values is not None
        assert listing.label_space is not None
        index = listing.label_space.index
        assert listing.values[:, 0].tolist() == [index[group] for group in listing.classes]
        assert set(listing.values[:, 1].tolist()) == {0.25}


def test_identity_records_are_named(tmp_path: Path) -> None:
    """Records of faces without an image, whose values are record numbers, are skipped."""
    rows = [((5.0, 7.0), b""), *RECS[:4], ((1.0, 3.0), b""), ((3.0, 5.0), b"")]
    source = source_of(tmp_path, {"train.rec": image_records(rows)[0]})
    listing = source.list()
    assert spaces(listing) == ["0", "1", "2", "3"]
    assert len(intact(source, listing)) == 4
    assert {*listing.problems.values()} == {
        ("skipped", "identity record without an image: its values are record numbers, no labels")
    }


def test_records_for_detection_are_refused(tmp_path: Path) -> None:
    """The width of im2rec's header is not used as the class of every image."""
    labels = (4.0, 5.0, 120.0, 90.0, 1.0, 0.1, 0.2, 0.6, 0.7)
    rows = [(labels, image(0)), (labels, image(1))]
    with pytest.raises(SourceError, match=r"train\.rec is im2rec's list for detection"):
        source_of(tmp_path, {"train.rec": image_records(rows)[0]}).list()


def test_several_labels_of_records_are_kept(tmp_path: Path) -> None:
    """The first of several labels is the label of its sample, even with missing numbers."""
    rows = [((4.0, 0.5), image(0)), ((7.0, 0.25), image(1))]
    listing = source_of(tmp_path, {"train.rec": image_records(rows)[0]}).list()
    assert listing.values is not None
    assert listing.values.tolist() == [[4, 0.5], [7, 0.25]]
    assert spaces(listing) == [str(number) for number in range(8)]
