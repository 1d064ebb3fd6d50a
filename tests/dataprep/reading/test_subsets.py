"""A query, or numbers, select a subset of a data set."""

from __future__ import annotations

import io
import pickle
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dataprep
from dataprep.errors import ConfigError, CorruptRecord, DatasetChanged, DatasetError
from dataprep.reading import sample_rows as module
from dataprep.reading.query import Query
from dataprep.reading.record_reader import Records
from dataprep.stores.memory import MemoryStore
from tests.commandline import FORMATS
from tests.dataprep.conftest import Calls

COUNT = 120
MANIFEST = "train.manifest.json"
TABLE = "train.samples.parquet"
QUERIES = [
    "label < 3 and source_width >= 400",
    "label in [-1, 2, 4]",
    "label not in (0, 1)",
    "not label < 3 or source_bytes > 50_000",
    "(label < 3) & (source_width > 300) | ~(label < 8)",
    "not (label < 5 and source_width > 400)",
    "2 < label < 7",
    "synset == 'n01440764'",
    'synset in ["n01440764", "n01443537"] and label != 0',
    "source_width * 2 - source_height // 3 > -label + 100 and label % 2 == 1",
    "source_width / source_height > 1.4",
    "status == 'written'",
    "exif_orientation == 6",
    "source >= 'n0144'",
]


@pytest.fixture(params=FORMATS)
def dataset(uri_of_dataset: str, request: pytest.FixtureRequest) -> dataprep.Dataset:
    """The drawn tree in memory, in each format. Read only."""
    return dataprep.open(uri_of_dataset, format=request.param)


@pytest.fixture
def opened(uri_of_dataset: str) -> dataprep.Dataset:
    """The drawn tree in memory, in one format. Read only."""
    return dataprep.open(uri_of_dataset)


class TestSelect:
    """``select`` returns a subset."""

    def test_a_subset_has_these_samples_in_ascending_order(self, dataset: dataprep.Dataset) -> None:
        """The samples, labels, rows, locations and images are those of the whole data set."""
        part = dataset.select([70, np.int64(3), np.uint8(119), 4])
        numbers = [3, 4, 70, 119]
        assert isinstance(part, dataprep.Dataset)
        assert len(part) == 4
        assert part.numbers.tolist() == numbers
        assert list(part) == part[:] == [dataset[number] for number in numbers]
        assert part[-1] == dataset[119]
        assert part.labels.tolist() == dataset.labels[numbers].tolist()
        assert part.label_space == dataset.label_space
        assert part.written["source"].tolist() == dataset.written["source"].iloc[numbers].tolist()
        assert part.samples.equals(part.written)
        assert [part.place(i) for i in range(4)] == [dataset.place(i) for i in numbers]
        for image, number in zip(part.images, numbers, strict=True):
            assert np.array_equal(image, dataset.images[number])
        assert f"{dataset.format}: 4 of 120 samples" in repr(part)
        with pytest.raises(IndexError, match="sample 4 of 4"):
            part[4]

    @given(
        st.sets(st.integers(0, COUNT - 1), min_size=1),
        st.sampled_from(FORMATS),
        st.randoms(use_true_random=False),
    )
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
    def test_any_samples(
        self, uri_of_dataset: str, chosen: set[int], format: str, random: Any
    ) -> None:
        """All ways of reading agree for every subset, also in a pickled copy."""
        dataset = dataprep.open(uri_of_dataset, format=format)
        shuffled = list(chosen)
        random.shuffle(shuffled)
        numbers = sorted(chosen)
        part = dataset.select(shuffled)
        expected = [dataset[number] for number in numbers]
        copy = pickle.loads(pickle.dumps(part))
        assert list(copy) == list(part) == expected
        assert copy.subset == part.subset
        records = Records(part)
        images = [bytes(image) for image in records.fetch(range(len(part)))]
        assert images == [sample.image for sample in expected]
        by_shard = [sample for shard in part.shards() for sample in shard]
        assert by_shard == expected
        assert sum(len(shard) for shard in part.shards()) == len(part)
        assert all(len(shard) for shard in part.shards())

    @pytest.mark.parametrize(
        ("numbers", "message"),
        [
            ([3, 120], "number 120 is out of range: .* numbers 0 to 119"),
            ([-1], "number -1 is out of range"),
            (np.array([0, 2**63], np.uint64), "number 9223372036854775808 is out of range"),
            ([10**30], "number 1000000"),
            ([5, 7, 5], "number 5 is repeated"),
            (np.array([7, 7]), "number 7 is repeated"),
            ([], "at least one number"),
            (np.array([], np.int64), "at least one number"),
            ([True, False], "not booleans: give numpy.flatnonzero"),
            (np.ones(COUNT, np.bool_), "not booleans"),
            (pd.Series([True, False]), "not booleans"),
            ([1.0], "whole numbers"),
            (np.array([1.5]), "whole numbers"),
            (["3"], "whole numbers"),
            ("3", "whole numbers"),
            (3, "whole numbers"),
        ],
        ids=str,
    )
    def test_refused_numbers(self, opened: dataprep.Dataset, numbers: Any, message: str) -> None:
        """Repeated numbers, numbers beyond the samples and other values are named in the error."""
        with pytest.raises(ConfigError, match=message):
            opened.select(numbers)

    @pytest.mark.parametrize(
        "make", [iter, set, tuple, np.array, pd.Index, pd.Series, lambda numbers: range(2, 9, 3)]
    )
    def test_kinds_of_numbers(self, opened: dataprep.Dataset, make: Callable[..., Any]) -> None:
        """Any iterable of integers is accepted."""
        assert opened.select(make([8, 2, 5])).numbers.tolist() == [2, 5, 8]

    def test_subsets_compose(self, dataset: dataprep.Dataset) -> None:
        """Numbers count in the data set that is asked, and ``numbers`` in the whole split."""
        part = dataset.where("label >= 3").where("source_width > 400")
        assert part.numbers.tolist() == dataset.matching("label>=3 and source_width>400").tolist()
        few = part.select([5, 0, 2])
        assert few.numbers.tolist() == part.numbers[[0, 2, 5]].tolist()
        assert list(few) == [part[0], part[2], part[5]]
        assert few.matching("label >= 0").tolist() == [0, 1, 2]

    def test_shards_of_subsets_and_subsets_of_shards(self, dataset: dataprep.Dataset) -> None:
        """A subset lists the shards of its samples. Shards and samples can be combined."""
        shards = dataset.shards()
        inside = [*shards[1].samples][::3], [*shards[3].samples][::2]
        part = dataset.select([*inside[0], *inside[1]])
        assert [shard.key for shard in part.shards()] == [shards[1].key, shards[3].key]
        assert [shard.number for shard in part.shards()] == [0, 1]
        assert [shard.sha256 for shard in part.shards()] == [shards[1].sha256, shards[3].sha256]
        first, second = part.shards()
        assert (first.samples, second.samples.stop) == (range(len(inside[0])), len(part))
        assert part.of_shards([1]).numbers.tolist() == inside[1]
        assert list(part.of_shards([1])) == list(second)
        both = dataset.of_shards([1, 3])
        assert both.numbers.tolist() == [*shards[1].samples, *shards[3].samples]
        again = both.select([0, len(both) - 1])
        assert again.numbers.tolist() == [shards[1].samples[0], shards[3].samples[-1]]
        assert list(pickle.loads(pickle.dumps(again))) == [both[0], both[-1]]
        assert list(part.iterate([second, first])) == [*second, *first]
        with pytest.raises(ConfigError, match="is not a shard of"):
            list(part.iterate([shards[1]]))

    def test_numbers_are_those_of_inspect(self, dataset: dataprep.Dataset) -> None:
        """The number of a sample is that of ``inspect --record``."""
        part = dataset.select([17, 81])
        for position, number in enumerate(part.numbers.tolist()):
            inspection = dataprep.inspect(dataset.store.uri, record=number, format=dataset.format)
            assert inspection.content["known"]["source"] == part.written["source"].iloc[position]
            assert inspection.content["offset"] == part.place(position).offset

    def test_samples_that_were_not_written_have_no_number(self, tree: Path, tmp_path: Path) -> None:
        """Only written samples have numbers, and queries see only these."""
        source = Path(shutil.copytree(tree, tmp_path / "photos"))
        for path in sorted(source.rglob("*.JPEG"))[::7]:
            path.write_bytes(b"")
        config = {
            "source": str(source),
            "output": f"memory://{secrets.token_hex(4)}",
            "image": {"size": 96},
            "max_failures": "50%",
            "dask": {"workers": 2, "processes": False},
        }
        dataprep.shard(dataprep.ShardConfig.model_validate(config))
        dataset = dataprep.open(config["output"])  # type: ignore[arg-type]
        assert (len(dataset.samples), len(dataset)) == (120, 102)
        assert len(dataset.matching("status != 'written'")) == 0
        part = dataset.where("label == 2")
        assert part.written["source"].tolist() == [
            name for name in dataset.written["source"] if part.written["synset"][0] in name
        ]
        assert list(part) == [dataset[number] for number in part.numbers]
        with pytest.raises(ConfigError, match="number 102 is out of range"):
            dataset.select([102])

    def test_closing(self, uri_of_dataset: str) -> None:
        """A subset is a context manager like the whole data set."""
        with dataprep.open(uri_of_dataset).select([1]) as part:
            assert part[0].image
        with pytest.raises(DatasetError, match="is closed"):
            list(part)

    def test_a_subset_is_named_by_its_numbers(self, opened: dataprep.Dataset) -> None:
        """The name depends only on the numbers, and the whole data set has none."""
        by_query = opened.where("label == 3")
        assert by_query.subset == opened.select(by_query.numbers[::-1]).subset
        assert by_query.subset != opened.select(by_query.numbers[1:]).subset
        assert (opened.subset, opened.is_subset, by_query.is_subset) == (None, False, True)
        assert opened.of_shards([0]).subset is None

    def test_the_numbers_are_a_copy(self, opened: dataprep.Dataset) -> None:
        """Changing the returned numbers does not change the subset."""
        part = opened.select([4, 5])
        part.numbers[:] = 0
        numbers_given = np.array([7, 8])
        other = opened.select(numbers_given)
        numbers_given[:] = 0
        assert (part.numbers.tolist(), other.numbers.tolist()) == ([4, 5], [7, 8])


class TestReading:
    """Only the needed bytes are read, and they are checked."""

    def test_the_table_is_read_by_where_only(self, uri_of_dataset: str, calls: Calls) -> None:
        """Opening and ``select`` read no table, and subsets share the table in memory."""
        read = calls(module, "stored_table")
        dataset = dataprep.open(uri_of_dataset)
        part = dataset.select(range(0, COUNT, 2))
        assert (len(part), len(part.shards()), len(read)) == (60, len(dataset.shards()), 0)
        part = dataset.where("label < 5")
        assert len(read) == 1
        assert len(part.where("source_width > 400")) > 0
        assert len(part.labels) == len(part)
        assert len(read) == 1

    def test_only_ranges_with_samples_are_read(
        self, dataset: dataprep.Dataset, calls: Calls, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Distant samples are read singly, and neighbours by one request."""
        monkeypatch.setattr("dataprep.reading.ranges._REMOTE_GAP_BYTES", 1000)
        part = dataset.select([0, 1, 2, 50, 119])
        length = sum(part.place(i).length for i in range(5))
        read = calls(MemoryStore, "get_versioned")
        assert len(list(part)) == 5
        sizes = [call[3] for call in read if call[1].startswith(dataset.format)]
        assert len(sizes) == 3
        assert sum(sizes) == length
        read.clear()
        records = Records(part)
        assert len(list(records.stream(np.arange(5)))) == 5
        sizes = [call[3] for call in read if call[1].startswith(dataset.format)]
        assert (len(sizes), sum(sizes)) == (3, length)

    def test_gaps_count_in_the_memory_of_a_window(
        self, opened: dataprep.Dataset, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The gaps between samples of a window count in its memory."""
        monkeypatch.setattr("dataprep.reading.read_ahead.WINDOW_BYTES", 600_000)
        window_bytes = []
        for part in (opened, opened.select(range(0, COUNT, 3))):
            records = Records(part)
            numbers = np.arange(len(part))[: records.window_samples]
            locations = part.places
            end = int(locations.offsets[numbers[-1]] + locations.lengths[numbers[-1]])
            assert locations.shards[numbers[-1]] == 0
            window_bytes.append(end - int(locations.offsets[0]))
        assert max(window_bytes) < 2 * min(window_bytes)

    @pytest.mark.parametrize("check", [True, False])
    def test_checksums(self, changeable: MemoryStore, check: bool) -> None:
        """A record of a subset is compared with its own checksum in the table."""
        dataset = dataprep.open(changeable.uri, format="recordio", check=check)
        part = dataset.select([5, 60])
        location = dataset.place(60)
        data = bytearray(changeable.get(location.key))
        data[location.offset + location.length // 2] ^= 1
        changeable.put(location.key, bytes(data))
        assert part[0].image == dataset[5].image
        reads: list[Callable[[], object]] = [
            lambda: part[1],
            lambda: list(part),
            lambda: Records(part, check=check).fetch([0, 1]),
        ]
        for read in reads:
            if check:
                with pytest.raises(CorruptRecord, match=r"sample 1 of the subset, 60 of the split"):
                    read()
            else:
                assert read()

    def test_a_split_that_was_made_anew(self, changeable: MemoryStore) -> None:
        """Subsets of a replaced split are refused, and earlier ones cannot be read any more."""
        dataset = dataprep.open(changeable.uri)
        part = dataset.select([1, 2])
        manifest = changeable.get(MANIFEST)
        changeable.put(MANIFEST, manifest.replace(b'"created": "2', b'"created": "3'))
        for read in (
            lambda: dataset.select([1]),
            lambda: dataset.where("label < 3"),
            lambda: list(part),
        ):
            with pytest.raises(DatasetChanged):
                read()

    @pytest.mark.parametrize("edit", [None, b"no table"], ids=["missing", "damaged"])
    def test_without_a_table(self, changeable: MemoryStore, edit: bytes | None) -> None:
        """A query without a table is refused with the command that writes the table again."""
        changeable.delete(TABLE)
        if edit is not None:
            changeable.put(TABLE, edit)
        dataset = dataprep.open(changeable.uri)
        with pytest.raises(DatasetError, match="dataprep finalize"):
            dataset.where("label < 3")

    @pytest.mark.parametrize("edit", [None, b"no table"], ids=["missing", "damaged"])
    @pytest.mark.parametrize("format", ["recordio", "webdataset"])
    def test_records_are_not_read_unchecked(
        self, changeable: MemoryStore, format: str, edit: bytes | None
    ) -> None:
        """Without the checksums in the table, records are only read on request."""
        changeable.delete(TABLE)
        if edit is not None:
            changeable.put(TABLE, edit)
        with pytest.raises(DatasetError, match="dataprep finalize"):
            next(iter(dataprep.open(changeable.uri, format=format)))
        unchecked = dataprep.open(changeable.uri, format=format, check=False)
        assert next(iter(unchecked)).image

    def test_a_table_with_fewer_rows(self, changeable: MemoryStore) -> None:
        """A table with fewer rows is an error, even without its checksum in the manifest."""
        manifest = changeable.get(MANIFEST)
        begin, end = manifest.index(b' "table": {'), manifest.index(b"}", manifest.index(b'"table'))
        changeable.put(MANIFEST, manifest[:begin] + b' "table": null' + manifest[end + 1 :])
        table = pq.read_table(io.BytesIO(changeable.get(TABLE))).slice(0, 100)
        sink = io.BytesIO()
        pq.write_table(table, sink)
        changeable.put(TABLE, sink.getvalue())
        part = dataprep.open(changeable.uri).select([3])
        with pytest.raises(DatasetError, match=r"100 written samples, the manifest has 120"):
            part[0]


class TestQueries:
    """Queries select rows of the table of samples."""

    @pytest.mark.parametrize("query", QUERIES)
    def test_pandas_agrees(self, opened: dataprep.Dataset, query: str) -> None:
        """A query selects the rows that pandas' own ``query`` selects."""
        expected = opened.written.query(query, engine="python").index
        assert opened.matching(query).tolist() == expected.tolist()
        if len(expected):
            assert opened.where(query).numbers.tolist() == expected.tolist()

    def test_some_queries_match(self, opened: dataprep.Dataset) -> None:
        """Most of the queries above select some and not all samples."""
        counts = [len(opened.matching(query)) for query in QUERIES]
        assert sum(0 < count < COUNT for count in counts) >= 10

    def test_unknown_values(self, opened: dataprep.Dataset) -> None:
        """An unknown text is an empty one, and an unknown number is not equal to any number."""
        assert len(opened.matching("reason == ''")) == COUNT
        assert len(opened.matching("reason != ''")) == 0
        table = pd.DataFrame({"label": [1.0, None], "synset": [None, "a"]})
        schema = pa.Schema.from_pandas(table)

        def answers(query: str) -> list[bool]:
            matches: list[bool] = Query.parse(query, schema).matches(table).tolist()
            return matches

        assert answers("label == 1") == [True, False]
        assert answers("label != 1") == [False, True]
        assert answers("label < 2") == [True, False]
        assert answers("synset < 'b'") == [True, True]
        assert answers("synset == '' or label > 5") == [True, False]

    @pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
    def test_products_do_not_overflow(self, dtype: str) -> None:
        """Results of queries can exceed the small integer types of the table."""
        table = pd.DataFrame({"width": [100, 120]}, dtype=dtype)
        query = Query.parse("width * width * 10000000000000000 > 1", pa.Schema.from_pandas(table))
        assert query.matches(table).tolist() == [True, True]

    def test_lines_and_line_separators(self) -> None:
        """A query may have several lines, comments, and texts with line separators."""
        table = pd.DataFrame({"label": [1, 2, 3], "synset": ["a", "a\u2028b", "c"]})
        schema = pa.Schema.from_pandas(table)
        query = "(label < 3  # the first ones\n and synset != 'a')"
        assert Query.parse(query, schema).matches(table).tolist() == [False, True, False]
        query = "synset == 'a\u2028b'"
        assert Query.parse(query, schema).matches(table).tolist() == [False, True, False]

    @pytest.mark.parametrize(
        "query",
        [
            "__import__('os').system('false') == 0",
            "len(source) > 3",
            "source.str.len() > 3",
            "label.__class__ == 3",
            "@secret > 3",
            "label > @secret",
            "`label` > 3",
            "label[0] > 3",
            "label > 3 if label else 4",
            "[x for x in label] == 3",
            "f'{label}' == '3'",
            "lambda: label",
            "label ** 99999 > 3",
            "'a' * 99999 == source",
            "label << 3 > 1",
            "label is 3",
            "label == None",
            "label == True",
            "label == b'3'",
            "label == 3j",
            "label == [3]",
            "label in source",
            "3 in label",
            "label in [[3]]",
            "label in [label]",
            "label in {3}",
            "label in [1 + 2]",
            "(label := 3) > 2",
            "label = 3",
            "label > 3; label < 5",
            "label > 3\nlabel < 5",
            "label",
            "label + 1",
            "3",
            "3 > 2",
            "label > 3 and 3 > 2",
            "label and synset",
            "not label",
            "-synset == 'a'",
            "label < 3 & source_width > 2",
            "not (label < 5) & (source_width > 400)",
            "(label < 3) | (label < 5) and (source_width > 400)",
            "2 < 3 < label",
            "synset == 'a' == 'a'",
            "label + (label < 3) > 3",
            "(label < 3) == (label < 4)",
            "1 < label in [2]",
            "label == '3'",
            "synset > 3",
            "synset in [3]",
            "synset in ['a', 3]",
            "",
            "   ",
            "label <",
            "label < 3 \0",
            "(" * 5000 + "label < 3" + ")" * 5000,
            "-" * 50_000 + "label < 3",
            "label < 3" + " " * 10**6 + "and label > 1",
        ],
        ids=lambda query: query[:40],
    )
    def test_refused(self, opened: dataprep.Dataset, query: str) -> None:
        """Everything but comparisons of columns is refused before pandas reads it."""
        with pytest.raises(ConfigError, match="query"):
            opened.where(query)

    @pytest.mark.parametrize("query", [None, 3, b"label < 3", ["label < 3"]], ids=str)
    def test_other_types(self, opened: dataprep.Dataset, query: Any) -> None:
        """A query of another type is refused."""
        with pytest.raises(ConfigError, match="not a text"):
            opened.where(query)

    def test_names_of_the_program_are_no_columns(self, opened: dataprep.Dataset) -> None:
        """The error lists the existing columns, and variables are never read."""
        width = 3
        with pytest.raises(ConfigError, match=r"no column 'widht': the table has source, label"):
            opened.where(f"widht > {width}")
        for name in ("width_of", "np", "index", "__name__", "COUNT"):
            with pytest.raises(ConfigError, match=f"no column '{name}'"):
                opened.where(f"{name} == 3")

    def test_columns_of_lists(self) -> None:
        """A column of lists cannot be compared."""
        schema = pa.schema([("values", pa.list_(pa.float32()))])
        with pytest.raises(ConfigError, match="column 'values' contains lists"):
            Query.parse("values == 3", schema)

    def test_no_matching_sample(self, opened: dataprep.Dataset) -> None:
        """If no sample matches, the error has the query and the number of samples."""
        with pytest.raises(ConfigError, match=r"none of the 120 samples .* matches 'label > 500'"):
            opened.where("label > 500")
        part = opened.where("label < 2")
        with pytest.raises(ConfigError, match=f"none of the {len(part)} samples"):
            part.where("label == 2")

    @given(st.text("label()<>=!&|~ andortin'\"[],.@`%*/+-0123456789\\\n_#{}:", max_size=30))
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
    def test_any_text(self, uri_of_dataset: str, query: str) -> None:
        """Any text is a query with a result for each sample, or is refused."""
        dataset = dataprep.open(uri_of_dataset)
        try:
            numbers = dataset.matching(query)
        except ConfigError:
            return
        assert 0 <= len(numbers) <= COUNT
