"""The read side: a complete split as a sequence of samples."""

from __future__ import annotations

import io
import json
import pickle
import secrets
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import dataprep
from dataprep.errors import DatasetError, ManifestMissing, SchemaTooNew
from dataprep.stores import StoreOptions
from dataprep.stores.memory import MemoryStore
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


@pytest.fixture(scope="module")
def uri(tree: Path) -> str:
    """The drawn tree in memory. Read only."""
    return make(tree, f"memory://dataset-{secrets.token_hex(4)}")


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

    @pytest.fixture
    def copy(self, uri: str) -> MemoryStore:
        """A copy, to be changed."""
        store = MemoryStore(f"memory://{secrets.token_hex(4)}")
        original = MemoryStore(uri)
        for info in original.list():
            store.put(info.key, original.get(info.key))
        return store

    def test_incomplete(self, copy: MemoryStore) -> None:
        """Shards without a manifest are no data set."""
        copy.delete("train.manifest.json")
        with pytest.raises(ManifestMissing, match=r"train\.manifest\.json"):
            dataprep.open(copy.uri)

    def test_newer(self, copy: MemoryStore) -> None:
        """A manifest of a later schema asks for an upgrade."""
        content = json.loads(copy.get("train.manifest.json"))
        copy.put("train.manifest.json", json.dumps({**content, "schema": 2}).encode())
        with pytest.raises(SchemaTooNew, match="upgrade dataprep-iobench"):
            dataprep.open(copy.uri)

    def test_broken(self, copy: MemoryStore) -> None:
        """A manifest that is none is a DatasetError with its name."""
        copy.put("train.manifest.json", b"{}")
        with pytest.raises(DatasetError, match=r"train\.manifest\.json: not a manifest"):
            dataprep.open(copy.uri)

    def test_a_damaged_record(self, copy: MemoryStore) -> None:
        """Reading a damaged record is an error that names the shard, never a wrong sample."""
        key = dataprep.open(copy.uri).manifest.formats["tfrecord"].shards[0].key
        data = bytearray(copy.get(key))
        data[400] ^= 1
        copy.put(key, data)
        dataset = dataprep.open(copy.uri)
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
        get_range, get = S3Store.get_range, S3Store.get

        def ranged(store: S3Store, key: str, offset: int, length: int) -> bytes:
            ranges.append((key, offset, length))
            return get_range(store, key, offset, length)

        def counted(store: S3Store, key: str) -> bytes:
            whole.append(key)
            return get(store, key)

        monkeypatch.setattr(S3Store, "get_range", ranged)
        monkeypatch.setattr(S3Store, "get", counted)
        assert dataset[50].label == labels[50]
        row = dataset.samples.iloc[50]
        entry = dataset.manifest.formats["tfrecord"].shards[int(row["shard"])]
        assert ranges == [(entry.key, row["tfrecord_offset"], row["tfrecord_length"])]
        assert whole == []
        assert [sample.label for sample in dataset] == labels.tolist()
        assert whole == [shard.key for shard in dataset.manifest.formats["tfrecord"].shards]
