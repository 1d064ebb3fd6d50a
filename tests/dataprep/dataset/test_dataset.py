"""The read side: a complete split as a sequence of samples."""

from __future__ import annotations

import io
import json
import multiprocessing
import pickle
import secrets
import shutil
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import dataprep
from dataprep.errors import DatasetError, ManifestMissing, ObjectNotFound, SchemaTooNew
from dataprep.stores import StoreOptions
from dataprep.stores.memory import MemoryStore
from dataprep.stores.protocol import Versioned
from dataprep.stores.s3 import S3Store
from iobench.s3_server import MotoServer


def make(tree: Path, output: str, **options: object) -> str:
    """Shard ``tree`` in both formats, several shards each."""
    content = {
        "source": str(tree),
        "output": output,
        "format": ("tfrecord", "recordio"),
        "image": {"size": 256},
        "shard_size": "1.2MB",
        "dask": {"workers": 2, "processes": False},
        **options,
    }
    dataprep.shard(dataprep.ShardConfig.model_validate(content))
    return output


@pytest.fixture
def uri(uri_of_dataset: str) -> str:
    """The drawn tree in memory. Read only."""
    return uri_of_dataset


@pytest.fixture(params=["tfrecord", "recordio"])
def dataset(uri: str, request: pytest.FixtureRequest) -> dataprep.Dataset:
    """It, opened, in each format."""
    return dataprep.open(uri, format=request.param)


class TestSequence:
    def test_len(self, dataset: dataprep.Dataset) -> None:
        """It has as many samples as were written."""
        assert len(dataset) == 120

    def test_several_shards(self, dataset: dataprep.Dataset) -> None:
        """The tests below cross the bounds of shards."""
        assert len(dataset.manifest.formats[dataset.format].shards) >= 3

    def test_iteration_is_indexing(self, dataset: dataprep.Dataset) -> None:
        """Iterating gives every sample once, in the order of the indices."""
        walked = [bytes(sample.image) for sample in dataset]
        assert len(walked) == len(set(walked)) == 120
        assert walked == [bytes(dataset[i].image) for i in range(120)]

    def test_negative(self, dataset: dataprep.Dataset) -> None:
        """Negative indices count from the end."""
        assert dataset[-1] == dataset[119]
        assert dataset[-120] == dataset[0]

    @pytest.mark.parametrize("index", [120, -121, 10**9])
    def test_out_of_range(self, dataset: dataprep.Dataset, index: int) -> None:
        """What is not there is an IndexError that says so."""
        with pytest.raises(IndexError, match=f"sample {index} of 120"):
            dataset[index]

    @pytest.mark.parametrize(
        "cut",
        [slice(0, 3), slice(-2, None), slice(None, None, 50), slice(5, 0, -2), slice(7, 7)],
        ids=str,
    )
    def test_slice(self, dataset: dataprep.Dataset, cut: slice) -> None:
        """A slice is a list of samples, as for any sequence."""
        assert dataset[cut] == [dataset[i] for i in range(120)[cut]]

    def test_numpy_index(self, dataset: dataprep.Dataset) -> None:
        """NumPy's integers are indices too, since samplers give them."""
        assert dataset[5] == dataset[np.int64(5)] == dataset[np.uint8(5)]
        assert dataset[np.int64(-1)] == dataset[119]

    def test_repr(self, dataset: dataprep.Dataset) -> None:
        """Its repr says what and how many."""
        assert "'train'" in repr(dataset)
        assert "120 samples" in repr(dataset)


class TestContent:
    def test_images(self, dataset: dataprep.Dataset) -> None:
        """Each image is a JPEG whose short side is at most the size that was asked for."""
        for sample in dataset:
            image = Image.open(io.BytesIO(bytes(sample.image)))
            assert image.format == "JPEG"
            assert min(image.size) <= 256

    def test_labels_count_from_0(self, dataset: dataprep.Dataset) -> None:
        """Labels are 0-based and those of the folders, whatever the records add to them."""
        offsets = {name: entry.label_offset for name, entry in dataset.manifest.formats.items()}
        assert offsets == {"tfrecord": 1, "recordio": 0}
        folders = [source.partition("/")[0] for source in dataset.samples["source"]]
        wanted = [sorted(set(folders)).index(folder) for folder in folders]
        assert [sample.label for sample in dataset] == wanted
        assert dataset.labels.tolist() == wanted
        assert dataset.labels.dtype == np.int64

    def test_label_space(self, dataset: dataprep.Dataset) -> None:
        """The classes can be asked for by label."""
        for i in range(0, 120, 17):
            label = dataset.label_space.labels[dataset[i].label]
            assert dataset.samples["source"][i].startswith(f"{label.synset}/")

    def test_both_formats_hold_the_same(self, uri: str) -> None:
        """The same image and label stand at the same index of either format."""
        tfrecord = dataprep.open(uri, format="tfrecord")
        recordio = dataprep.open(uri, format="recordio")
        for one, other in zip(tfrecord, recordio, strict=True):
            assert bytes(one.image) == bytes(other.image)
            assert one.label == other.label

    def test_a_custom_offset(self, tree: Path) -> None:
        """An offset of one's own is taken off again."""
        offsets = {"label_offset": {"tfrecord": -7, "recordio": 500}, "image": {"size": 32}}
        uri = make(tree, f"memory://offset-{secrets.token_hex(4)}", **offsets)
        for form in ("tfrecord", "recordio"):
            dataset = dataprep.open(uri, format=form)
            assert [sample.label for sample in dataset] == dataset.labels.tolist()
            assert set(dataset.labels.tolist()) == set(range(6))

    def test_only_what_was_written(self, tree: Path, tmp_path: Path) -> None:
        """Samples that failed have a row in the table, and no place in the sequence."""
        source = tmp_path / "photos"
        for i, image in enumerate(sorted(tree.rglob("*.JPEG"))[::10]):
            folder = source / image.parent.name
            folder.mkdir(parents=True, exist_ok=True)
            (folder / image.name).write_bytes(image.read_bytes() if i % 3 else b"")
        uri = make(source, f"memory://{secrets.token_hex(4)}", max_failures="50%")
        dataset = dataprep.open(uri)
        assert len(dataset) == 8
        assert len(dataset.samples) == 12
        written = dataset.samples[dataset.samples["status"] == "written"]
        assert [sample.label for sample in dataset] == written["label"].tolist()
        assert [dataset[i].label for i in range(8)] == written["label"].tolist()


class TestSharing:
    def test_pickled(self, dataset: dataprep.Dataset) -> None:
        """A pickled copy reads the same, in little space even after the table was read."""
        assert len(dataset.samples) == 120
        data = pickle.dumps(dataset)
        assert len(data) < 2000
        copy = pickle.loads(data)
        assert (copy.split, copy.format, len(copy)) == ("train", dataset.format, 120)
        assert copy[7] == dataset[7]

    def test_samples_are_pickled(self, dataset: dataprep.Dataset) -> None:
        """A sample by itself crosses to another process, as loaders with workers need."""
        assert pickle.loads(pickle.dumps(dataset[3])) == dataset[3]
        assert pickle.loads(pickle.dumps(next(iter(dataset)))) == dataset[0]

    def test_threads(self, dataset: dataprep.Dataset) -> None:
        """Eight threads on one instance get what one gets."""
        wanted = [bytes(sample.image) for sample in dataset]
        order = [i * 37 % 120 for i in range(360)]
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda i: bytes(dataset[i].image), order))
        assert found == [wanted[i] for i in order]


class TestOpening:
    def test_default_format(self, uri: str) -> None:
        """Without a choice it is TFRecord."""
        assert dataprep.open(uri).format == "tfrecord"

    def test_the_only_format(self, tree: Path) -> None:
        """Where there is no TFRecord, it is what there is."""
        uri = make(tree, f"memory://{secrets.token_hex(4)}", format=("recordio",))
        assert dataprep.open(uri).format == "recordio"

    def test_unknown_format(self, uri: str) -> None:
        """A format that was not made is refused with those that were."""
        with pytest.raises(DatasetError, match="it has tfrecord, recordio"):
            dataprep.open(uri, format="webdataset")

    def test_missing_split(self, uri: str) -> None:
        """A split that is not there is a FileNotFoundError that names it."""
        with pytest.raises(ManifestMissing, match="no complete split 'test'") as caught:
            dataprep.open(uri, "test")
        assert isinstance(caught.value, FileNotFoundError)

    def test_nothing(self, tmp_path: Path) -> None:
        """Nor is anything in a folder that does not exist."""
        with pytest.raises(ManifestMissing):
            dataprep.open(str(tmp_path / "nowhere"))

    def test_incomplete(self, changeable: MemoryStore) -> None:
        """Shards without a manifest are no data set."""
        changeable.delete("train.manifest.json")
        with pytest.raises(ManifestMissing, match=r"train\.manifest\.json"):
            dataprep.open(changeable.uri)

    def test_newer(self, changeable: MemoryStore) -> None:
        """A manifest of a later schema asks for an upgrade."""
        content = json.loads(changeable.get("train.manifest.json"))
        changeable.put("train.manifest.json", json.dumps({**content, "schema": 2}).encode())
        with pytest.raises(SchemaTooNew, match="upgrade dataprep-iobench"):
            dataprep.open(changeable.uri)

    def test_broken(self, changeable: MemoryStore) -> None:
        """A manifest that is none is a DatasetError with its name."""
        changeable.put("train.manifest.json", b"{}")
        with pytest.raises(DatasetError, match=r"train\.manifest\.json: not a manifest"):
            dataprep.open(changeable.uri)

    def test_no_formats(self, changeable: MemoryStore) -> None:
        """Nor is one without a format a data set."""
        content = json.loads(changeable.get("train.manifest.json"))
        changeable.put("train.manifest.json", json.dumps({**content, "formats": {}}).encode())
        with pytest.raises(DatasetError, match=f"{changeable.uri}/.*not a manifest.*no formats"):
            dataprep.open(changeable.uri)

    @pytest.mark.parametrize("key", ["labels.json", "tfrecord/train-00000"])
    def test_an_object_is_missing(self, changeable: MemoryStore, key: str) -> None:
        """What is missing is named in full, and so is what tells more."""
        for info in list(changeable.list(key)):
            changeable.delete(info.key)
        dataset = dataprep.open(changeable.uri)
        with pytest.raises(ObjectNotFound) as caught:
            _ = dataset.label_space if key == "labels.json" else dataset[0]
        assert str(caught.value).startswith(f"{changeable.uri}/{key}")
        assert f"dataprep verify {changeable.uri}" in str(caught.value)

    def test_labels_that_are_none(self, changeable: MemoryStore) -> None:
        """Labels that cannot be read are named in full too."""
        changeable.put("labels.json", b"[")
        with pytest.raises(DatasetError, match=f"^{changeable.uri}/labels.json cannot be read"):
            dataprep.open(changeable.uri).label_space  # noqa: B018

    def test_a_damaged_record(self, changeable: MemoryStore) -> None:
        """Reading a damaged record is an error that names the shard, never a wrong sample."""
        key = dataprep.open(changeable.uri).manifest.formats["tfrecord"].shards[0].key
        data = bytearray(changeable.get(key))
        data[400] ^= 1
        changeable.put(key, data)
        dataset = dataprep.open(changeable.uri)
        with pytest.raises(dataprep.DataprepError, match="tfrecord/train-00000"):
            dataset[0]
        with pytest.raises(dataprep.DataprepError, match="tfrecord/train-00000"):
            list(dataset)
        assert dataset[1].image


class TestOnS3:
    def test_one_range_request_a_sample(
        self, tree: Path, bucket: str, s3_server: MotoServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """On S3 an index fetches its record alone, and iteration each shard once."""
        options = StoreOptions(endpoint_url=s3_server.url)
        uri = make(tree, f"s3://{bucket}/out", store=options.model_dump(), image={"size": 96})
        dataset = dataprep.open(uri, options=options)
        labels = dataset.labels
        ranges: list[tuple[str, int, int]] = []
        whole: list[str] = []
        get_versioned = S3Store.get_versioned

        def counted(
            store: S3Store, key: str, offset: int = 0, length: int | None = None
        ) -> Versioned:
            if length is None:
                whole.append(key)
            else:
                ranges.append((key, offset, length))
            return get_versioned(store, key, offset, length)

        monkeypatch.setattr(S3Store, "get_versioned", counted)
        assert dataset[50].label == labels[50]
        row = dataset.samples.iloc[50]
        entry = dataset.manifest.formats["tfrecord"].shards[int(row["shard"])]
        assert ranges == [(entry.key, row["tfrecord_offset"], row["tfrecord_length"])]
        assert whole == []
        assert [sample.label for sample in dataset] == labels.tolist()
        assert whole == [shard.key for shard in dataset.manifest.formats["tfrecord"].shards]

    def test_a_forked_process_has_its_own_connection(
        self, tree: Path, bucket: str, s3_server: MotoServer
    ) -> None:
        """Parent and forked child read at the same time, each through its own client."""
        options = StoreOptions(endpoint_url=s3_server.url)
        uri = make(tree, f"s3://{bucket}/out", store=options.model_dump(), image={"size": 96})
        dataset = dataprep.open(uri, options=options)
        wanted = [sample.image for sample in dataset]
        context = multiprocessing.get_context("fork")
        answers = context.SimpleQueue()
        child = context.Process(target=_read_all, args=(dataset, answers))
        child.start()
        assert [dataset[i].image for i in range(120)] == wanted
        client, images = answers.get()
        child.join()
        assert images == wanted
        assert isinstance(dataset.store, S3Store)
        assert client != id(dataset.store._client())

    def test_a_new_process(self, tree: Path, bucket: str, s3_server: MotoServer) -> None:
        """A process that is started anew opens the data set that was pickled for it."""
        options = StoreOptions(endpoint_url=s3_server.url)
        uri = make(tree, f"s3://{bucket}/out", store=options.model_dump(), image={"size": 96})
        dataset = dataprep.open(uri, format="recordio", options=options)
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            assert pool.submit(dataset.__getitem__, 7).result(60) == dataset[7]

    def test_close(self, tree: Path, bucket: str, s3_server: MotoServer) -> None:
        """At the end of the block connections are closed."""
        options = StoreOptions(endpoint_url=s3_server.url)
        uri = make(tree, f"s3://{bucket}/out", store=options.model_dump(), image={"size": 96})
        with dataprep.open(uri, options=options) as dataset:
            store = dataset.store
            assert isinstance(store, S3Store)
            assert dataset[3].image
            assert store._opened is not None
        assert store._opened is None


def _read_all(dataset: dataprep.Dataset, answers: Any) -> None:
    assert isinstance(dataset.store, S3Store)
    images = [dataset[i].image for i in range(120)]
    answers.put((id(dataset.store._client()), images))


class TestClosing:
    def test_nothing_is_read_afterwards(self, uri: str) -> None:
        """A closed data set says so; what was read before stays, and its length is known."""
        with dataprep.open(uri) as dataset:
            labels = dataset.labels
            samples = iter(dataset)
            next(samples)
            rest = len(dataset.shards()[0]) - 1
        assert len(dataset) == 120
        assert dataset.labels is labels
        for read in (lambda: dataset[0], lambda: dataset.label_space, lambda: next(iter(dataset))):
            with pytest.raises(DatasetError, match="is closed: open it again"):
                read()
        with pytest.raises(ValueError, match="closed"):
            [next(samples) for _ in range(rest + 1000)]

    def test_closed_twice(self, uri: str) -> None:
        """Closing again does nothing."""
        dataset = dataprep.open(uri)
        dataset.close()
        dataset.close()

    def test_after_an_error(self, uri: str) -> None:
        """It is closed however the block ends."""
        with pytest.raises(KeyError), dataprep.open(uri) as dataset:
            raise KeyError
        with pytest.raises(DatasetError):
            dataset[0]

    def test_a_pickled_copy_is_open(self, uri: str) -> None:
        """A copy in another place is opened anew."""
        dataset = dataprep.open(uri)
        dataset.close()
        assert pickle.loads(pickle.dumps(dataset))[0].image


class TestColumns:
    def test_written(self, tree: Path, tmp_path: Path) -> None:
        """Row i of ``written`` tells of sample i, its places as whole numbers."""
        source = tmp_path / "photos"
        shutil.copytree(tree, source)
        for path in sorted(source.rglob("*.JPEG"))[::7]:
            path.write_bytes(b"")
        uri = make(source, f"memory://{secrets.token_hex(4)}", max_failures="50%")
        dataset = dataprep.open(uri)
        assert len(dataset.written) == len(dataset) < len(dataset.samples)
        assert dataset.written["tfrecord_offset"].dtype == np.int64
        for i in range(0, len(dataset), 9):
            row = dataset.written.iloc[i]
            assert dataset[i].filename.decode() == row["source"].rpartition("/")[2]
            assert dataset[i].label == row["label"]

    def test_place(self, dataset: dataprep.Dataset) -> None:
        """Where a record lies is told by any number that is an index."""
        key, offset, length = dataset.place(np.int64(-1))
        assert key == dataset.shards()[-1].key
        data = dataset.store.get_range(key, offset, length)
        assert bytes(dataset[119].image) in data
        with pytest.raises(IndexError, match="sample 120 of 120"):
            dataset.place(120)

    def test_the_table_is_fetched_once(self, uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """However many columns are asked for, the table is read once."""
        read: list[str] = []
        get = MemoryStore.get

        def counted(store: MemoryStore, key: str) -> bytes:
            read.append(key)
            return get(store, key)

        dataset = dataprep.open(uri)
        monkeypatch.setattr(MemoryStore, "get", counted)
        assert len(dataset.labels) == len(dataset.written) == len(dataset.samples) == 120
        assert read == ["train.samples.parquet"]
