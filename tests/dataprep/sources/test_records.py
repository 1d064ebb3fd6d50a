"""Tests of dataprep.sources.records and record_scan: shards of anybody's making."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dataprep.errors import CorruptImage, SourceError, SourceNotFound
from dataprep.formats.tfrecord import masked_crc32c
from dataprep.sources import Listing, open_source
from dataprep.sources.options import RecordsOptions
from dataprep.sources.records import RecordsSource
from tests.dataprep.sources.shards import customary, examples, flipped, image, image_records


def source_of(folder: Path, files: Mapping[str, bytes], **options: Any) -> RecordsSource:
    """A folder with these files as a source."""
    for name, data in files.items():
        (folder / name).write_bytes(data)
    found = open_source(str(folder), "records", None, RecordsOptions(**options))
    assert isinstance(found, RecordsSource)
    return found


def intact(source: RecordsSource, listing: Listing) -> dict[str, bytes]:
    """The bytes of each sample that has no problem."""
    return {
        name: source.read(listing.located(row))
        for row, name in enumerate(listing.names)
        if row not in listing.problems
    }


def reasons(listing: Listing) -> dict[str, str]:
    """Why entries are no samples."""
    return {listing.names[row]: problem.reason for row, problem in listing.problems.items()}


def spaces(listing: Listing) -> list[str]:
    """Classes in the order of their labels."""
    assert listing.label_space is not None
    return [label.synset for label in listing.label_space.labels]


FIVE = [customary(number) for number in range(5)]


def test_one_request_reads_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An image is one range of its shard, not a shard read and cut."""
    source = source_of(tmp_path, {"train-00000-of-00001": examples(FIVE)[0]})
    listing = source.list()
    asked = []
    ranged = source._store.get_range

    def counted(key: str, offset: int, length: int) -> bytes:
        asked.append(length)
        return ranged(key, offset, length)

    monkeypatch.setattr(source._store, "get_range", counted)
    assert source.read(listing.located(3)) == image(3)
    assert len(asked) == 1
    assert asked[0] < len(image(3)) + 4096


def test_labels_long_before_the_image_take_a_second_request(tmp_path: Path) -> None:
    """A record whose other features are larger than the room around the image is read whole."""
    rows = [customary(0, a__note=b"x" * 100_000)]
    source = source_of(tmp_path, {"train-00000-of-00001": examples(rows)[0]})
    assert list(intact(source, source.list()).values()) == [image(0)]


def test_a_damaged_record_fails_alone(tmp_path: Path) -> None:
    """A checksum that does not match fails its record; those after it are found."""
    shard, spans = examples(FIVE)
    damaged = flipped(shard, spans[2][0] + 100)
    source = source_of(tmp_path, {"train-00000-of-00001": damaged})
    listing = source.list()
    assert sorted(intact(source, listing).values()) == sorted(image(i) for i in (0, 1, 3, 4))
    ((name, reason),) = reasons(listing).items()
    assert name == "train-00000-of-00001/00000002"
    assert f"byte {spans[2][0]}" in reason
    assert "the checksum of the record does not match" in reason


def test_damage_to_a_length_ends_a_tfrecord_shard(tmp_path: Path) -> None:
    """TFRecord has no mark to go on from: what is before is kept, the rest of the shard named."""
    shard, spans = examples(FIVE)
    files = {
        "train-00000-of-00002": flipped(shard, spans[2][0]),
        "train-00001-of-00002": examples([customary(9)])[0],
    }
    source = source_of(tmp_path, files)
    listing = source.list()
    assert sorted(intact(source, listing).values()) == sorted(image(i) for i in (0, 1, 9))
    assert "what follows cannot be found" in reasons(listing)["train-00000-of-00002/00000002"]


@pytest.mark.parametrize("kept", [1, 11, 12, 200, -1])
def test_a_truncated_tfrecord_shard_gives_what_is_whole(tmp_path: Path, kept: int) -> None:
    """Records before the cut are samples, the one that is cut is named."""
    shard, spans = examples(FIVE)
    cut = spans[3][0] + kept if kept > 0 else sum(spans[3]) + kept
    source = source_of(tmp_path, {"train-00000-of-00001": shard[:cut]})
    listing = source.list()
    assert sorted(intact(source, listing).values()) == sorted(image(i) for i in range(3))
    ((name, reason),) = reasons(listing).items()
    assert (name, "ends inside" in reason) == ("train-00000-of-00001/00000003", True)


RECS = [((float(number),), image(number)) for number in range(5)]


@pytest.mark.parametrize("at", [0, 5, 7], ids=["magic", "length", "flag"])
def test_recordio_goes_on_after_damage(tmp_path: Path, at: int) -> None:
    """Where a record's head is damaged, the next magic begins the next record."""
    shard, spans = image_records(RECS)
    damaged = bytearray(shard)
    damaged[spans[2][0] + at] ^= 0x20
    source = source_of(tmp_path, {"train.rec": bytes(damaged)})
    listing = source.list()
    assert list(intact(source, listing).values()) == [image(i) for i in (0, 1, 3, 4)]
    ((name, reason),) = reasons(listing).items()
    assert name == "train.rec/00000002"
    assert reason.startswith(f"damaged at byte {spans[2][0]}: ")


def test_a_truncated_recordio_file_gives_what_is_whole(tmp_path: Path) -> None:
    """The record that is cut is named; headers alone do not make a sample of it."""
    shard, spans = image_records(RECS)
    source = source_of(tmp_path, {"train.rec": shard[: spans[4][0] + 100]})
    listing = source.list()
    assert list(intact(source, listing).values()) == [image(i) for i in range(4)]
    assert reasons(listing) == {
        "train.rec/00000004": f"damaged at byte {spans[4][0]}: the file ends inside the record"
    }


def test_damage_after_the_listing_fails_the_sample_that_is_read(tmp_path: Path) -> None:
    """A record is checked again when it is read: its sample fails, with where it lies."""
    shard, spans = examples(FIVE)
    source = source_of(tmp_path, {"train-00000-of-00001": shard})
    listing = source.list()
    (tmp_path / "train-00000-of-00001").write_bytes(flipped(shard, spans[1][0] + 50))
    row = listing.offsets.tolist().index(spans[1][0])
    with pytest.raises(
        CorruptImage, match=rf"record at byte {spans[1][0]} of train-00000-of-00001"
    ):
        source.read(listing.located(row))


def test_a_record_that_swallowed_others_is_noticed_when_read(tmp_path: Path) -> None:
    """RecordIO has no checksum, but no whole record lies inside another one."""
    shard, spans = image_records(RECS)
    grown = bytearray(shard)
    length = int.from_bytes(shard[4:8], "little") + spans[1][1]
    grown[4:8] = length.to_bytes(4, "little")
    source = source_of(tmp_path, {"train.rec": bytes(grown)})
    listing = source.list()
    with pytest.raises(CorruptImage, match="another record begins inside it"):
        source.read(listing.located(0))


@pytest.mark.parametrize("several", [False, True])
def test_image_records_by_their_flag(tmp_path: Path, several: bool) -> None:
    """One label or several: the first is the class, all of them are values."""
    rows = [([float(i), 0.5, -2.0][: 3 if several else 1], image(i)) for i in (1, 0)]
    source = source_of(tmp_path, {"val.rec": image_records(rows)[0]})
    listing = source.list()
    assert list(listing.classes) == ["1", "0"]
    assert list(intact(source, listing).values()) == [image(1), image(0)]
    if several:
        assert listing.values is not None
        assert np.array_equal(listing.values, np.array([[1, 0.5, -2], [0, 0.5, -2]], np.float32))
    else:
        assert listing.values is None


def test_another_number_of_labels_fails_its_record(tmp_path: Path) -> None:
    """Most records decide how many there are."""
    rows = [([1.0, 2.0], image(0)), ([1.0, 2.0], image(1)), ([1.0, 2.0, 3.0], image(2))]
    listing = source_of(tmp_path, {"a.rec": image_records(rows)[0]}).list()
    assert reasons(listing) == {"a.rec/00000002": "3 labels, where most records have 2"}


def test_tfds_keys_count_from_zero(tmp_path: Path) -> None:
    """Labels of TFDS are taken as they are; -1 is no class."""
    rows = [
        {"image": image(i), "label": label, "file_name": b"%d.JPEG" % i}
        for i, label in enumerate([1, 2, 0, -1])
    ]
    name = "imagenet2012-train.tfrecord-00000-of-00001"
    listing = source_of(tmp_path, {name: examples(rows)[0]}).list()
    assert listing.names[:3] == ["0/2.JPEG", "1/0.JPEG", "2/1.JPEG"]
    assert list(reasons(listing).values()) == ["label -1 is no class: classes count from 0"]


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
    """0 is the background by custom; an option overrules; a note tells what was taken."""
    rows = [{"image/encoded": image(i), "image/class/label": n} for i, n in enumerate(labels)]
    source = source_of(tmp_path, {"train-00000-of-00001": examples(rows)[0]}, label_offset=option)
    listing = source.list()
    assert spaces(listing) == classes
    assumed = any("0 is taken for the background" in note for note in listing.notes)
    assert assumed is (option is None and min(labels) == 1)


def test_numbers_of_synsets_are_kept(tmp_path: Path) -> None:
    """Where records number their classes otherwise than by name, their numbers hold."""
    rows = [
        {"image/encoded": image(i), "image/class/label": 3 - i, "image/class/synset": name}
        for i, name in enumerate([b"a", b"b", b"c"])
    ]
    listing = source_of(tmp_path, {"train-00000-of-00001": examples(rows)[0]}).list()
    assert spaces(listing) == ["c", "b", "a"]


def test_texts_name_classes_that_have_no_synset(tmp_path: Path) -> None:
    """build_image_data.py writes a label and its text: the text is the class."""
    rows = [
        {"image/encoded": image(i), "image/class/label": 1 + i % 2, "image/class/text": name}
        for i, name in enumerate([b"roses", b"daisies", b"roses"])
    ]
    listing = source_of(
        tmp_path, {"flowers_train_00000-of-00001.tfrecord": examples(rows)[0]}
    ).list()
    assert spaces(listing) == ["roses", "daisies"]
    assert sorted(listing.classes) == ["daisies", "roses", "roses"]


def test_texts_are_classes_where_there_are_no_numbers(tmp_path: Path) -> None:
    """They are sorted; where some records have a number these count, and the others fail."""
    rows: list[dict[str, Any]] = [
        {"image/encoded": image(i), "image/class/text": name}
        for i, name in enumerate([b"roses", b"daisies", b"roses"])
    ]
    listing = source_of(tmp_path, {"train-00000-of-00001": examples(rows)[0]}).list()
    assert spaces(listing) == ["daisies", "roses"]
    assert list(listing.classes) == ["roses", "daisies", "roses"]
    rows[0]["image/class/label"] = 1
    listing = source_of(tmp_path, {"train-00000-of-00001": examples(rows)[0]}).list()
    assert spaces(listing) == ["0"]
    assert list(reasons(listing).values()) == ["no label", "no label"]


def test_a_file_names_the_classes_of_numbers(tmp_path: Path) -> None:
    """Line i names class i, the label staying what it is; a number beyond them fails."""
    names = tmp_path / "names.txt"
    names.write_text("n01440764 tench, Tinca tinca\nn01443537 goldfish\ncat\n")
    rows = [((float(number),), image(number)) for number in (2, 0, 3)]
    source = source_of(tmp_path, {"a.rec": image_records(rows)[0]}, class_names=str(names))
    listing = source.list()
    assert spaces(listing) == ["n01440764", "n01443537", "cat"]
    assert list(listing.classes) == ["cat", "n01440764", ""]
    assert list(reasons(listing).values()) == ["label 3 has no name in class_names"]


@pytest.mark.parametrize(
    "filenames",
    [[b"1.jpg", b"1.jpg"], [b"1.jpg", b""], [b"a/1.jpg", b"a/1.jpg"]],
    ids=["same", "missing", "same path"],
)
def test_names_that_are_not_unique_become_numbers(tmp_path: Path, filenames: list[bytes]) -> None:
    """Every sample then is its shard and number, in the order of the records."""
    rows = [
        {"image/encoded": image(i), "image/class/label": 1, "image/filename": name}
        for i, name in enumerate(filenames)
    ]
    listing = source_of(tmp_path, {"train-00000-of-00001": examples(rows)[0]}).list()
    assert listing.names == [f"train-00000-of-00001/{i:08}" for i in range(2)]


def test_a_file_name_with_folders_is_the_name(tmp_path: Path) -> None:
    """A name that has its folder already gets no other; other bytes than UTF-8 are kept."""
    rows = [
        {"image/encoded": image(i), "image/class/label": 1, "image/filename": name}
        for i, name in enumerate([b"cats/1.jpg", b"\xff.jpg"])
    ]
    listing = source_of(tmp_path, {"train-00000-of-00001": examples(rows)[0]}).list()
    assert sorted(listing.names) == ["0/\udcff.jpg", "cats/1.jpg"]


def test_keys_of_ones_own(tmp_path: Path) -> None:
    """A mapping tells which feature holds what."""
    rows = [{"jpeg": image(i), "y": i, "id": b"%d" % i} for i in range(2)]
    files = {"train-00000-of-00001": examples(rows)[0]}
    layout = {"jpeg": "encoded", "y": "label", "id": "filename"}
    listing = source_of(tmp_path, files, layout=layout).list()
    assert listing.names == ["0/0", "1/1"]
    with pytest.raises(SourceError, match=r"it has 'id', 'jpeg', 'y'.*records\.layout"):
        source_of(tmp_path, files).list()


def test_the_order_of_records_is_kept_beside_that_of_names(tmp_path: Path) -> None:
    """An unshuffled job writes records as they came."""
    rows = [customary(number) for number in (3, 1, 2)]
    listing = source_of(tmp_path, {"train-00000-of-00001": examples(rows)[0]}).list()
    assert listing.order is not None
    assert [listing.classes[row] for row in listing.order] == [
        "n00000003",
        "n00000001",
        "n00000002",
    ]


def test_compressed_shards_are_refused_with_a_word(tmp_path: Path) -> None:
    """A record in a compressed file has no place of its own."""
    files = {"train-00000-of-00001.tfrecord.gz": gzip.compress(examples(FIVE)[0])}
    with pytest.raises(SourceError, match=r"is compressed as a whole.*gzip -d"):
        source_of(tmp_path, files).list()


def test_what_is_no_shard_is_refused(tmp_path: Path) -> None:
    """Neither format begins so."""
    with pytest.raises(SourceError, match="begins neither as TFRecord nor as RecordIO"):
        source_of(tmp_path, {"train.rec": b"<!DOCTYPE html>........"}).list()


def test_a_record_that_is_no_example_is_told_with_its_shard(tmp_path: Path) -> None:
    """Its framing is sound, so that only the content says so."""
    payload = b"\x0b no Example"
    length = len(payload).to_bytes(8, "little")
    shard = b"".join(part + masked_crc32c(part).to_bytes(4, "little") for part in (length, payload))
    with pytest.raises(SourceError, match=r"^train-00000-of-00001: not a tf\.train\.Example"):
        source_of(tmp_path, {"train-00000-of-00001": shard}).list()


def test_a_folder_without_shards_is_no_source(tmp_path: Path) -> None:
    """Names that are expected are told."""
    with pytest.raises(SourceNotFound, match="train-00000-of-00128"):
        source_of(tmp_path, {"a.txt": b"a"}).list()


def test_both_formats_in_one_folder_need_a_choice(tmp_path: Path) -> None:
    """The same images twice are not read twice."""
    files = {
        "train-00000-of-00001": examples([customary(1)])[0],
        "train-00000-of-00001.rec": image_records([((7.0,), image(7))])[0],
    }
    with pytest.raises(SourceError, match=r"records\.format"):
        source_of(tmp_path, files).list()
    listing = source_of(tmp_path, files, format="recordio").list()
    assert list(listing.containers) == ["train-00000-of-00001.rec"]


def test_a_set_of_shards_has_to_be_whole(tmp_path: Path) -> None:
    """A missing shard is refused unless one asks for what is there, or for one shard by name."""
    names = [f"train-{number:05}-of-00003" for number in range(3)]
    files = {names[0]: examples([customary(0)])[0], names[2]: examples([customary(2)])[0]}
    with pytest.raises(SourceError, match=r"lacks 1 of 3 shards, such as 'train-00001-of-00003'"):
        source_of(tmp_path, files).list()
    assert len(source_of(tmp_path, files, incomplete=True).list()) == 2
    one = open_source(str(tmp_path / names[2]), "records", None, RecordsOptions())
    assert list(one.list().classes) == ["n00000002"]
    assert len(source_of(tmp_path, {names[1]: b""}).list()) == 2


def test_sets_of_two_runs_are_not_mixed(tmp_path: Path) -> None:
    """Whatever is asked for, samples are not read twice; one format is a set of its own."""
    files = {
        "train-00000-of-00001": examples([customary(0)])[0],
        "train-00000-of-00002": examples([customary(0)])[0],
        "train-00000-of-00001.rec": image_records([((7.0,), image(7))])[0],
    }
    for incomplete in (False, True):
        source = source_of(tmp_path, files, format="tfrecord", incomplete=incomplete)
        with pytest.raises(SourceError, match="several sets"):
            source.list()
    assert len(source_of(tmp_path, files, format="recordio").list()) == 1


def test_one_split_of_several_is_read(tmp_path: Path) -> None:
    """Shards are told apart by their names; a split that cannot be told is refused."""
    files = {
        "imagenet2012-train.tfrecord-00000-of-00001": examples([customary(1)])[0],
        "imagenet2012-validation.tfrecord-00000-of-00001": examples([customary(2)])[0],
    }
    listing = source_of(tmp_path, files, split="val").list()
    assert list(listing.classes) == ["n00000002"]
    with pytest.raises(SourceError, match=r"several splits.*records\.split"):
        source_of(tmp_path, files, split="test").list()
