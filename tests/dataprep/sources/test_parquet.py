"""Parquet files with images are a source with columns, classes and an order, or are refused."""

from __future__ import annotations

import io
import pickle
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ByteSize

import dataprep as library
from dataprep.errors import SourceChanged, SourceError, SourceNotFound, UnreadableImage
from dataprep.job.calibration import Calibration
from dataprep.job.split_planning import make_plans
from dataprep.labels import LabelSpace
from dataprep.sources import parquet_row_groups
from dataprep.sources.options import ParquetOptions
from dataprep.sources.parquet import ParquetSource
from dataprep.sources.protocol import Listing
from dataprep.stores import StoreOptions
from dataprep.stores.s3 import S3Store
from iobench.servers.fault_proxy import FaultProxy
from iobench.servers.moto_server import MotoServer
from tests.commandline import Finished, in_process
from tests.parquet_files import IMAGE, images, parquet_of
from tests.small_photos import jpeg
from tests.source_folders import reads_of, shard_folder, write_files

DATA = [bytes([number]) * (10 + number) for number in range(10)]


def source_of(folder: Path, files: Mapping[str, bytes], **options: Any) -> ParquetSource:
    """A folder of files as a source."""
    section = ParquetOptions.model_validate(options)
    return ParquetSource(write_files(folder / "tables", files), None, section)


def listed(folder: Path, columns: Mapping[str, Any], **options: Any) -> Listing:
    """The listing of one file with these columns."""
    return source_of(folder, {"a.parquet": parquet_of(columns)}, **options).list()


def in_order(listing: Listing) -> list[int]:
    """The rows of samples in the order of the source."""
    assert listing.order is not None
    return [row for row in listing.order.tolist() if row not in listing.problems]


def classes(listing: Listing) -> list[str]:
    """The class of each sample, in the order of the source."""
    return [listing.classes[row] for row in in_order(listing)]


def reasons(listing: Listing) -> dict[str, str]:
    """The problems of rows that are no samples, by the end of their name."""
    return {
        listing.names[row].rpartition("/")[2]: problem.reason
        for row, problem in listing.problems.items()
    }


def read(source: ParquetSource, listing: Listing) -> list[bytes | UnreadableImage]:
    """The bytes of all samples, in order."""
    return [*source.read_runs([listing.located(row) for row in in_order(listing)])]


def labelled(**more: Any) -> dict[str, Any]:
    """The columns of ten images with the labels 0 to 2."""
    return {"image": images(*DATA), "label": pa.array([n % 3 for n in range(10)]), **more}


class TestColumns:
    @pytest.mark.parametrize(
        "column",
        [
            images(*DATA),
            pa.array(DATA, pa.binary()),
            pa.array(DATA, pa.large_binary()),
            pa.array(DATA, pa.binary()).dictionary_encode(),
            pa.array([{"bytes": data} for data in DATA], pa.struct([("bytes", pa.binary())])),
        ],
        ids=["struct", "binary", "large", "dictionary", "bytes-alone"],
    )
    def test_images_of_any_binary_type(self, tmp_path: Path, column: pa.Array) -> None:
        """Structs and binary values of any encoding are read byte for byte, in order."""
        data = parquet_of({"id": pa.array(range(10)), "photo": column, "label": ["a"] * 10})
        source = source_of(tmp_path, {"a.parquet": data})
        assert read(source, source.list()) == DATA

    def test_a_column_in_a_struct(self, tmp_path: Path) -> None:
        """A name with dots selects a field of a struct, and a null struct has no image."""
        rows = [{"image": {"bytes": data, "path": "x"}, "kind": "k"} for data in DATA[:3]]
        column = pa.array([*rows, None], pa.struct([("image", IMAGE), ("kind", pa.string())]))
        data = parquet_of({"sample": column, "other": pa.array(DATA[:4])})
        section = {"image": "sample.image", "label": "sample.kind"}
        source = source_of(tmp_path, {"a.parquet": data}, **section)
        listing = source.list()
        assert read(source, listing) == DATA[:3]
        assert classes(listing) == ["k"] * 3
        assert reasons(listing) == {"00000003": "no label"}

    @pytest.mark.parametrize(
        ("columns", "options", "message"),
        [
            ({"a": DATA, "b": DATA}, {}, "images is not clear: 'a', 'b' could.*parquet.image"),
            ({"a": ["x"] * 10, "n": [1] * 10}, {}, "no column of images.*columns are 'a', 'n'"),
            ({"a": [DATA] * 10}, {}, "no column of images"),
            ({"a": DATA}, {"image": "z"}, r"no column 'z' \(parquet.image\): it has 'a'"),
            ({"a": DATA, "n": [1] * 10}, {"image": "n"}, "'n' .*is of type int64: give"),
            ({"a": DATA, "label": [1] * 10, "cls": [1] * 10}, {}, "'label', 'cls' could"),
            ({"a": DATA, "label": [0.5] * 10, "cls": [0.5] * 10}, {}, "'label', 'cls' could"),
            ({"a": DATA, "label": [[1]] * 10}, {}, "'label' is of type list.*parquet.label=false"),
            ({"a": DATA, "n": [0.5] * 10}, {"label": "n"}, "'n' is of type double"),
            (
                {"a": DATA, "label": [0.5] * 10, "n": [1] * 10, "m": [0.1] * 10},
                {},
                "another of its columns, 'n', with --set parquet.label=NAME",
            ),
            ({"a": DATA, "label": [0.5] * 10}, {}, "or a text: read no classes with --set"),
            (
                {"a": DATA, "s": [{"label": 1}] * 10, "s.label": [2] * 10},
                {},
                "several columns are called 's.label'",
            ),
        ],
    )
    def test_what_is_not_clear_is_refused(
        self, tmp_path: Path, columns: Mapping[str, Any], options: Mapping[str, str], message: str
    ) -> None:
        """The refusal names the columns, and the key that chooses."""
        with pytest.raises(SourceError, match=message):
            listed(tmp_path, columns, **options)

    def test_metadata_choose(self, tmp_path: Path) -> None:
        """Of several columns, those that the schema calls Image and ClassLabel are read."""
        features = {"b": {"_type": "Image"}, "y": {"_type": "ClassLabel", "names": ["u", "v"]}}
        columns = {"a": DATA[::-1], "b": DATA, "label": [7] * 10, "y": [n % 2 for n in range(10)]}
        source = source_of(tmp_path, {"a.parquet": parquet_of(columns, features=features)})
        listing = source.list()
        assert read(source, listing) == DATA
        assert classes(listing) == ["u", "v"] * 5


class TestClasses:
    def test_numbers_have_the_names_of_the_schema(self, tmp_path: Path) -> None:
        """The names of the schema are the classes of the numbers, without a synset before them."""
        names = ("n01440764 tench", "n02123045", "n02124075 Egyptian cat", "n03445777")
        data = parquet_of(labelled(), names=names)
        listing = source_of(tmp_path, {"a.parquet": data}).list()
        assert listing.label_space is not None
        labels = [(label.synset, label.text) for label in listing.label_space.labels]
        assert labels[:2] == [("n01440764", "tench"), ("n02123045", "")]
        assert classes(listing)[:3] == ["n01440764", "n02123045", "n02124075"]

    @pytest.mark.parametrize("kind", [pa.uint8(), pa.int64(), pa.bool_()])
    def test_numbers_of_any_type(self, tmp_path: Path, kind: pa.DataType) -> None:
        """Whole numbers and booleans without names are labels as they are."""
        column = pa.array([number % 2 for number in range(10)], pa.int8()).cast(kind)
        listing = listed(tmp_path, {"image": images(*DATA), "label": column})
        assert classes(listing) == ["0", "1"] * 5

    @pytest.mark.parametrize("encoded", [False, True])
    def test_texts_are_classes(self, tmp_path: Path, encoded: bool) -> None:
        """Texts are classes, also from a dictionary. Null and empty ones fail."""
        column = pa.array(["cat", "dog", None, " "] + ["cat"] * 6)
        column = column.dictionary_encode() if encoded else column
        listing = listed(tmp_path, {"image": images(*DATA), "class": column})
        assert classes(listing) == ["cat", "dog"] + ["cat"] * 6
        assert reasons(listing) == {"0002.jpg": "no label", "0003.jpg": "no label"}

    def test_labels_that_are_no_class_fail(self, tmp_path: Path) -> None:
        """Null, a number without a name and a negative number fail, each with its reason."""
        labels = pa.array([0, 1, None, 2, -1] + [0] * 5)
        data = parquet_of(labelled(label=labels), names=("a", "b"))
        assert reasons(source_of(tmp_path, {"a.parquet": data}).list()) == {
            "0002.jpg": "no label",
            "0003.jpg": "label 2 has no name in the schema",
            "0004.jpg": "label -1 is no class: classes count from 0",
        }

    @pytest.mark.parametrize(
        "labels",
        [
            pa.array([-1] * 10),
            pa.array([None] * 10, pa.int64()),
            pa.array([None] * 10, pa.string()),
        ],
        ids=["minus-one", "null-numbers", "null-texts"],
    )
    def test_no_sample_has_a_class_where_all_are_unknown(
        self, tmp_path: Path, labels: pa.Array
    ) -> None:
        """Labels of -1 or null in a whole test split are no classes, and no failures."""
        data = parquet_of(labelled(label=labels), names=("a", "b"))
        listing = source_of(tmp_path, {"a.parquet": data}).list()
        assert {*listing.classes} == {""}
        assert not listing.problems

    def test_a_file_names_numbers(self, tmp_path: Path) -> None:
        """``parquet.class_names`` takes precedence over the schema."""
        (tmp_path / "names.txt").write_text("x\ny\nz\n")
        data = parquet_of(labelled(), names=("a", "b", "c"))
        options = {"class_names": str(tmp_path / "names.txt")}
        assert classes(source_of(tmp_path, {"a.parquet": data}, **options).list())[:3] == [*"xyz"]

    def test_repeated_names_are_refused(self, tmp_path: Path) -> None:
        """A schema that names a class twice is refused."""
        data = parquet_of(labelled(), names=("a", "b", "a"))
        with pytest.raises(SourceError, match=r"names of 'label', name 3: the class 'a'"):
            source_of(tmp_path, {"a.parquet": data}).list()


class TestRows:
    def test_names_and_order(self, tmp_path: Path) -> None:
        """Rows keep the order of files and rows, and an unusable path is replaced by a number."""
        paths = ["b.jpg", "a.jpg", "twice.jpg", "twice.jpg", "/root/x.jpg", "../y", None, "7"]
        column = pa.array([{"bytes": b"x", "path": path} for path in paths], IMAGE)
        data = parquet_of({"image": column, "label": [0] * 8})
        listing = source_of(tmp_path, {"1.parquet": data, "0.parquet": data}).list()
        ends = ["b.jpg", "a.jpg", *(f"{number:08}" for number in range(2, 8))]
        expected = [f"{file}.parquet/{end}" for file in range(2) for end in ends]
        assert [listing.names[row] for row in in_order(listing)] == expected

    def test_other_files_are_accounted_for(self, tmp_path: Path) -> None:
        """Files without the ending, hidden files and empty tables are skipped with the reason."""
        files = {"a.parquet": parquet_of(labelled()), "README.md": b"text", ".x.parquet": b""}
        files["b.parquet"] = parquet_of({"image": images(), "label": pa.array([], pa.int64())})
        listing = source_of(tmp_path, files).list()
        assert {**reasons(listing)} == {
            "README.md": "no Parquet file by its name (.parquet, .pq)",
            ".x.parquet": "hidden or system file",
            "b.parquet": "a Parquet file without rows",
        }
        assert len(in_order(listing)) == 10

    def test_without_any_row(self, tmp_path: Path) -> None:
        """Files without any row are no source."""
        sink = io.BytesIO()
        pq.ParquetWriter(sink, pa.schema([("image", IMAGE)])).close()
        with pytest.raises(SourceNotFound, match="no rows"):
            source_of(tmp_path, {"a.parquet": sink.getvalue()}).list()

    def test_null_images_fail_when_they_are_read(self, tmp_path: Path) -> None:
        """An image without bytes is unreadable, and empty bytes are passed to the decoder."""
        data = parquet_of({"image": images(b"x", None, b""), "label": [0] * 3})
        source = source_of(tmp_path, {"a.parquet": data})
        first, second, third = read(source, source.list())
        assert (first, third) == (b"x", b"")
        assert "its value is null" in str(second)

    def test_images_that_are_only_paths_are_refused(self, tmp_path: Path) -> None:
        """A table in which no image has bytes is refused."""
        with pytest.raises(SourceError, match=r"only named by their paths.*--kind listing"):
            listed(tmp_path, {"image": images(None, None), "label": [0, 1]})

    def test_of_small_row_groups_are_in_one_shard(self, tmp_path: Path) -> None:
        """Shards are cut between small row groups, so that no group is read twice."""
        contents = [bytes([number % 251]) * 10_000 for number in range(400)]
        columns = {"image": pa.array(contents), "label": [0] * 400}
        data = parquet_of(columns, group=7, compression="none", use_dictionary=False)
        source = source_of(tmp_path, {"a.parquet": data})
        listing = source.list()
        config = library.ShardConfig(
            source=source.uri,
            output=str(tmp_path / "out"),
            kind="parquet",
            shard_size=ByteSize(1_200_000),
        )
        space = LabelSpace.of(["0"])
        plan = make_plans(listing, space, Calibration(((10_000, 10_000),)), config)["train"]
        assert plan.shard_count == 3
        shards_of_group: dict[str, set[int]] = {}
        for container, shard in zip(plan.containers, plan.shards.tolist(), strict=True):
            shards_of_group.setdefault(container, set()).add(shard)
        assert [len(shards) for shards in shards_of_group.values()] == [1] * 58

    def test_any_choice_of_rows_can_be_read(self, tmp_path: Path) -> None:
        """Any rows, out of order or alone, are the same images, also by a copy of the source."""
        contents = [bytes([number]) for number in range(60)]
        data = parquet_of({"image": pa.array(contents), "label": [0] * 60}, group=50)
        source = source_of(tmp_path, {"a.parquet": data})
        listing = source.list()
        items = [listing.located(row) for row in in_order(listing)]
        copy = pickle.loads(pickle.dumps(source))
        chosen = [49, 3, 20, 20, 1, 58, 51]
        assert [*copy.read_runs([items[at] for at in chosen])] == [contents[at] for at in chosen]
        assert [copy.read(item) for item in items] == contents


class TestFiles:
    @pytest.mark.parametrize(
        "damage",
        [
            lambda data: b"",
            lambda data: data[:-20],
            lambda data: b"no Parquet" * 9,
            lambda data: data[: len(data) - 200] + b"\xff" * 150 + data[len(data) - 50 :],
        ],
        ids=["empty", "cut", "magic", "footer"],
    )
    def test_that_cannot_be_read_are_refused(self, tmp_path: Path, damage: Any) -> None:
        """A damaged file is refused by name. If it is excluded, the others are read."""
        good = parquet_of(labelled())
        source = source_of(tmp_path, {"a.parquet": good, "[a].parquet": damage(good)})
        message = r"\[a\]\.parquet cannot be read.*--exclude '\[\[\]a\]\.parquet'"
        with pytest.raises(SourceError, match=message):
            source.list()
        source.leave_out(("[[]a].parquet",))
        assert len(in_order(source.list())) == 10

    @pytest.mark.parametrize(
        ("other", "message"),
        [
            (parquet_of(labelled(), names=("a", "c", "b")), "the names of the classes"),
            (parquet_of(labelled(label=["a"] * 10)), "the type of 'label'"),
            (parquet_of({"img": images(*DATA), "label": [0] * 10}), "their column of images"),
            (parquet_of({"image": images(*DATA)}), "their column of classes"),
        ],
    )
    def test_that_differ_are_refused(self, tmp_path: Path, other: bytes, message: str) -> None:
        """Files with other columns or class names are not merged."""
        first = parquet_of(labelled(), names=("a", "b", "c"))
        with pytest.raises(SourceError, match=f"a.parquet and b.parquet differ in {message}"):
            source_of(tmp_path, {"a.parquet": first, "b.parquet": other}).list()
        with pytest.raises(SourceError, match=r"as in --exclude 'b\[\*\]\.parquet'"):
            source_of(tmp_path, {"a.parquet": first, "b*.parquet": other}).list()

    def test_of_several_splits_are_refused(self, tmp_path: Path) -> None:
        """Each command of the refusal reads one split."""
        data = parquet_of(labelled())
        names = (
            *("data/train-00000-of-00002.parquet", "data/train-00001-of-00002.parquet"),
            "data/validation-00000-of-00001.parquet",
        )
        source = source_of(tmp_path, dict.fromkeys(names, data))
        with pytest.raises(SourceError, match="Parquet files of different splits") as refusal:
            source.list()
        lines = str(refusal.value).splitlines()
        for split, count in (("train", 20), ("validation", 10)):
            (line,) = [line for line in lines if f"--split {split} " in line]
            source.leave_out((line.split("--exclude ")[1].split(" ")[0].strip("'"),))
            assert len(in_order(source.list())) == count

    def test_that_change_are_a_changed_source(self, tmp_path: Path) -> None:
        """A file that is replaced or removed after the listing is not read."""
        source = source_of(tmp_path, {"a.parquet": parquet_of(labelled())})
        listing = source.list()
        path = tmp_path / "tables/a.parquet"
        path.write_bytes(parquet_of(labelled(), compression="none"))
        with pytest.raises(SourceChanged):
            read(source, listing)
        path.unlink()
        with pytest.raises(SourceChanged):
            read(source, listing)

    def test_of_another_size_have_another_digest(self, tmp_path: Path) -> None:
        """A file of another size changes the digest, even if its images have the same mean size."""
        digests = {
            source_of(tmp_path, {"a.parquet": parquet_of(labelled(note=[text] * 10))})
            .list()
            .digest()
            for text in ("", "a longer text")
        }
        assert len(digests) == 2

    @pytest.mark.parametrize("pages", [16, 1000])
    def test_a_damaged_page_fails_the_rows_behind_it(self, tmp_path: Path, pages: int) -> None:
        """Rows fail from a damaged batch on, whichever rows are read. Others are valid."""
        contents = [bytes([number]) * 2000 for number in range(100)]
        columns = {"image": pa.array(contents), "label": [0] * 100}
        options: dict[str, Any] = {
            "data_page_size": 1,
            "write_batch_size": pages,
            "use_dictionary": False,
        }
        data = bytearray(parquet_of(columns, group=50, compression="snappy", **options))
        chunk = pq.read_metadata(io.BytesIO(bytes(data))).row_group(1).column(0)
        middle = chunk.data_page_offset + chunk.total_compressed_size // 2
        begin = chunk.data_page_offset if pages == 1000 else middle
        data[begin : begin + 600] = b"\xff" * 600
        source = source_of(tmp_path, {"a.parquet": bytes(data)})
        listing = source.list()
        items = [listing.located(row) for row in in_order(listing)]
        outcomes = [*source.read_runs(items)]
        assert outcomes[:50] == contents[:50]
        failed = [isinstance(outcome, UnreadableImage) for outcome in outcomes]
        assert failed == sorted(failed)
        assert 50 <= failed.index(True) < 100
        for cut in (60, 77, 90):
            parts = [*source.read_runs(items[:cut]), *source.read_runs(items[cut:])]
            assert [*map(str, parts)] == [*map(str, outcomes)]

    def test_damaged_labels_fail_their_row_group(self, tmp_path: Path) -> None:
        """Rows whose classes cannot be read fail, and those of other row groups are samples."""
        data = bytearray(parquet_of(labelled(), use_dictionary=False, compression="snappy"))
        chunk = pq.read_metadata(io.BytesIO(bytes(data))).row_group(1).column(2)
        begin = chunk.data_page_offset
        data[begin : begin + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
        listing = source_of(tmp_path, {"a.parquet": bytes(data)}).list()
        assert sorted(reasons(listing)) == [f"{row:04}.jpg" for row in range(4, 8)]
        assert {*reasons(listing).values()} == {
            "damaged: the classes of its row group cannot be read"
        }


@pytest.mark.slow
def test_a_row_group_costs_one_request(bucket: str, s3_server: MotoServer) -> None:
    """After the footer, each run of a row group is one GET of one column chunk."""
    contents = [bytes([number]) * 2_500_000 for number in range(20)]
    columns = {"image": pa.array(contents), "label": [0] * 20}
    store = S3Store(f"s3://{bucket}/tables", StoreOptions(endpoint_url=s3_server.url))
    store.put("a.parquet", parquet_of(columns, group=5, compression="none", use_dictionary=False))
    with FaultProxy(s3_server.url) as proxy:
        source = ParquetSource(store.uri, StoreOptions(endpoint_url=proxy.url))
        listing = source.list()
        items = [listing.located(row) for row in in_order(listing)]
        before = reads_of(proxy, "a.parquet")
        assert [*source.read_runs(items)] == contents
        assert reads_of(proxy, "a.parquet") == before + 4
        assert [*source.read_runs(items[3:13])] == contents[3:13]
        assert reads_of(proxy, "a.parquet") == before + 7


@pytest.mark.slow
def test_a_large_row_group_is_streamed(
    bucket: str, s3_server: MotoServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A column chunk above the limit is read by several requests, with the same images."""
    contents = [bytes([number]) * 1_000_000 for number in range(30)]
    columns = {"image": pa.array(contents), "label": [0] * 30}
    options: dict[str, Any] = {"use_dictionary": False, "write_batch_size": 1}
    store = S3Store(f"s3://{bucket}/large", StoreOptions(endpoint_url=s3_server.url))
    store.put("a.parquet", parquet_of(columns, group=30, compression="none", **options))
    monkeypatch.setattr(parquet_row_groups, "MAX_CHUNK_BYTES_AT_ONCE", 20_000_000)
    with FaultProxy(s3_server.url) as proxy:
        source = ParquetSource(store.uri, StoreOptions(endpoint_url=proxy.url))
        listing = source.list()
        before = reads_of(proxy, "a.parquet")
        assert read(source, listing) == contents
        assert 2 <= reads_of(proxy, "a.parquet") - before <= 8


def shard(folder: Path, *more: str, code: int) -> Finished:
    """Shard the folder of tables."""
    return shard_folder("parquet", folder / "tables", *more, code=code)


class TestCommand:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        """Two files of photos with named classes, sorted by class."""
        for file in range(2):
            photos = [jpeg(number) for number in range(20 * file, 20 * file + 20)]
            labels = [(20 * file + number) // 4 for number in range(20)]
            columns = {"image": images(*photos), "label": labels}
            data = parquet_of(columns, names=[f"c{number}" for number in range(10)])
            source_of(tmp_path, {f"train-0000{file}-of-00002.parquet": data})
        return tmp_path

    def test_says_what_was_understood(self, folder: Path) -> None:
        """The summary has the kind and the labels, and the order is that of the rows."""
        done = shard(folder, code=0)
        assert "images in Parquet, 10 classes, 40 images; labels 0 to 9 as the schema" in done.out
        assert in_process("verify", folder / "out", "--deep").code == 0
        table = library.open(str(folder / "out")).samples
        assert [*table["label"]] == [number // 4 for number in range(40)]
        assert [*table["source_bytes"]] == [len(jpeg(number)) for number in range(40)]

    def test_can_be_planned(self, folder: Path) -> None:
        """``plan`` has the same understanding and writes nothing."""
        job = ("--kind", "parquet", "--source", str(folder / "tables"))
        done = in_process("plan", *job, "--output", folder / "out", code=0)
        assert "images in Parquet, 10 classes, 40 images" in done.out
        assert not (folder / "out").exists()

    def test_shuffling_is_refused(self, folder: Path) -> None:
        """``shuffle: true`` is refused with the reason, and the printed config has ``false``."""
        refusal = shard(folder, "--set", "shuffle=true", code=2)
        assert "keeps the order of its source" in refusal.complaints[0]
        assert not (folder / "out").exists()
        assert "shuffle: false" in shard(folder, "--print-config", code=0).out

    def test_validation_takes_whole_row_groups(self, folder: Path) -> None:
        """No row group is in two splits, and the share is close to the requested one."""
        done = shard(folder, "--validation", "20%", code=0)
        assert "validation has 2 row groups with 20.0% of the samples" in done.out
        validation_labels = [
            *library.open(str(folder / "out"), split="validation").samples["label"]
        ]
        train_labels = [*library.open(str(folder / "out"), split="train").samples["label"]]
        assert len(validation_labels) == 8
        assert not {*validation_labels} & {*train_labels}

    def test_a_large_row_group_for_a_small_validation_split(self, folder: Path) -> None:
        """The summary says how large the split became."""
        photos = [jpeg(number) for number in range(20)]
        data = parquet_of({"image": images(*photos), "label": [0, 1] * 10}, group=10)
        for path in (folder / "tables").iterdir():
            path.unlink()
        source_of(folder, {"all.parquet": data})
        done = shard(folder, "--validation", "5%", code=0)
        note = "validation has 1 row group with 50.0% of the samples, for --validation 5%"
        assert note in done.out

    def test_unlabelled(self, folder: Path) -> None:
        """Classes contradict --unlabelled, and the message says how to ignore them."""
        refusal = shard(folder, "--unlabelled", code=2)
        assert "--set parquet.label=false" in refusal.complaints[0]
        done = shard(folder, "--unlabelled", "--set", "parquet.label=false", code=0)
        assert "40 images; no labels" in done.out

    def test_without_classes(self, folder: Path) -> None:
        """A table without a column of classes is refused with its columns."""
        for path in (folder / "tables").iterdir():
            path.write_bytes(parquet_of({"image": images(*[jpeg(1)] * 4), "breed": ["x"] * 4}))
        refusal = shard(folder, code=2)
        assert "it has 'breed': --set parquet.label=NAME" in refusal.complaints[0]

    def test_a_changed_class_is_a_changed_source(self, folder: Path) -> None:
        """An unchanged job can be resumed, and one with other labels is refused."""
        shard(folder, code=0)
        assert "nothing to do" in shard(folder, code=0).out + shard(folder, code=0).err
        columns = {"image": images(*map(jpeg, range(20))), "label": [1] * 20}
        data = parquet_of(columns, names=[f"c{number}" for number in range(10)])
        source_of(folder, {"train-00000-of-00002.parquet": data})
        assert "source" in shard(folder, code=2).complaints[0]

    def test_bad_images_fail_alone(self, folder: Path) -> None:
        """Null, empty and broken images fail with a reason, and no row is lost."""
        photos = [jpeg(0), None, b"", b"text", *map(jpeg, range(4, 20))]
        columns = {"image": images(*photos), "label": [0] * 20}
        data = parquet_of(columns, names=[f"c{number}" for number in range(10)])
        source_of(folder, {"train-00000-of-00002.parquet": data})
        shard(folder, "--max-failures", "3", code=0)
        table = library.open(str(folder / "out")).samples
        assert [*table["status"]] == ["written", *["failed"] * 3, *["written"] * 36]
        assert "its value is null" in table["reason"][1]


_PEAK = """
import sys
import pyarrow
from dataprep.sources.parquet import ParquetSource

def resident():
    with open("/proc/self/status") as status:
        lines = dict(line.split(":", 1) for line in status)
    return int(lines["VmHWM"].split()[0]) * 1024

source = ParquetSource(sys.argv[1])
listing = source.list()
items = [listing.located(row) for row in listing.order.tolist()]
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
before = resident()
count = sum(len(data) > 0 for data in source.read_runs(items))
print(count, resident() - before, pyarrow.default_memory_pool().max_memory())
"""


@pytest.mark.slow
@pytest.mark.process
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """10,000 rows in row groups of 100 need as much memory as 2,000 rows.

    The same holds for one row group that is as large as the file.
    """
    peaks = {}
    for rows, group in ((2_000, 100), (10_000, 100), (10_000, 10_000)):
        contents = [number.to_bytes(4, "big") * 2_000 for number in range(rows)]
        columns = {"image": images(*contents), "label": [0] * rows}
        options: dict[str, Any] = {"use_dictionary": False, "write_batch_size": 16}
        options["compression"] = "none"
        path = tmp_path / f"{rows}-{group}.parquet"
        path.write_bytes(parquet_of(columns, group=group, **options))
        program = [sys.executable, "-c", _PEAK, str(path)]
        done = subprocess.run(program, capture_output=True, text=True, check=True)
        count, *peaks[rows, group] = map(int, done.stdout.split())
        assert count == rows
    for measured in peaks.values():
        for bytes_here, bytes_small in zip(measured, peaks[2_000, 100], strict=True):
            assert bytes_here < bytes_small + 12_000_000
