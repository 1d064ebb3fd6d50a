"""``inspect`` shows shards that TensorFlow and MXNet wrote."""

from __future__ import annotations

import io
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from PIL import Image

from dataprep.checking.inspection import inspect

pytestmark = [
    pytest.mark.frameworks,
    # MXNet packs a list of labels with ndarray.tostring.
    pytest.mark.filterwarnings("ignore:tostring\\(\\) is deprecated:DeprecationWarning"),
]

COUNT = 20


def image(number: int) -> bytes:
    """An image of noise of about 20 kB. Its width gives its number."""
    pixels = np.random.default_rng(number).integers(0, 256, (120, 160 + number, 3), np.uint8)
    sink = io.BytesIO()
    Image.fromarray(pixels).save(sink, "PNG" if number % 5 == 4 else "JPEG", quality=95)
    return sink.getvalue()


@pytest.fixture(scope="module")
def tfrecord(tensorflow: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shard with the customary keys, in the order in which protobuf writes them."""
    path = tmp_path_factory.mktemp("theirs") / "train-00000-of-00001"
    train = tensorflow.train

    def text(value: bytes) -> object:
        return train.Feature(bytes_list=train.BytesList(value=[value]))

    def number(value: int) -> object:
        return train.Feature(int64_list=train.Int64List(value=[value]))

    with tensorflow.io.TFRecordWriter(str(path)) as writer:
        for i in range(COUNT):
            features = {
                "image/encoded": text(image(i)),
                "image/class/label": number(i + 1),
                "image/class/synset": text(b"n%08d" % i),
                "image/filename": text(b"%d.JPEG" % i),
                "image/height": number(120),
                "image/width": number(160 + i),
            }
            example = train.Example(features=train.Features(feature=features))
            writer.write(example.SerializeToString())
    return path


@pytest.fixture(scope="module")
def recordio(mxnet: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Image records of MXNet. Every third one has two labels."""
    path = tmp_path_factory.mktemp("theirs") / "x.rec"
    writer = mxnet.recordio.MXRecordIO(str(path), "w")
    for i in range(COUNT):
        label = float(i) if i % 3 else np.array([i, 0.5], np.float32)
        header = mxnet.recordio.IRHeader(0, label, i, 0)
        writer.write(mxnet.recordio.pack(header, image(i)))
    writer.close()
    return path


def test_tensorflows_table(tensorflow: ModuleType, tfrecord: Path) -> None:
    """The table has every record that TensorFlow reads, with its values."""
    lengths = [len(r.numpy()) + 16 for r in tensorflow.data.TFRecordDataset(str(tfrecord))]
    content = inspect(tfrecord).content
    assert content["fault"] is None
    assert [record["length"] for record in content["records"]] == lengths
    for i, record in enumerate(content["records"]):
        assert record["offset"] == sum(lengths[:i])
        assert record["labels"] == (i + 1,)
        assert (record["synset"], record["filename"]) == (f"n{i:08}", f"{i}.JPEG")
        assert (record["width"], record["height"]) == (160 + i, 120)
        assert record["format"] == ("PNG" if i % 5 == 4 else "JPEG")


def test_tensorflows_record(tfrecord: Path, tmp_path: Path) -> None:
    """A record is shown with the names and types of its features, and its image byte for byte."""
    content = inspect(tfrecord, record=9, save=tmp_path / "x.png").content
    assert (tmp_path / "x.png").read_bytes() == image(9)
    assert {(field["name"], field["type"], field["count"]) for field in content["fields"]} == {
        ("image/encoded", "bytes", 1),
        ("image/class/label", "int64", 1),
        ("image/class/synset", "bytes", 1),
        ("image/filename", "bytes", 1),
        ("image/height", "int64", 1),
        ("image/width", "int64", 1),
    }
    assert content["facts"]["container"] == "PNG"


def test_mxnets_table(recordio: Path) -> None:
    """The table has every record of MXNet, with one label or two, and the size of its image."""
    content = inspect(recordio).content
    assert content["fault"] is None
    for i, record in enumerate(content["records"]):
        assert record["labels"] == ((i,) if i % 3 else (i, 0.5))
        assert (record["width"], record["height"]) == (160 + i, 120)
    assert len(content["records"]) == COUNT


def test_mxnets_record(recordio: Path, tmp_path: Path) -> None:
    """A record is shown with its header, and its image byte for byte."""
    content = inspect(recordio, record=6, save=tmp_path / "x.jpg").content
    fields = {field["name"]: field["shown"] for field in content["fields"]}
    assert (fields["flag"], fields["label"], fields["id"]) == ("2", "6, 0.5", "6")
    assert (tmp_path / "x.jpg").read_bytes() == image(6)


def test_a_sheet_of_both(tfrecord: Path, recordio: Path, tmp_path: Path) -> None:
    """A contact sheet shows an image of each format."""
    for path in (tfrecord, recordio):
        sheet = tmp_path / f"{path.stem}.png"
        assert inspect(path, contact_sheet=sheet, images=20).ok
        with Image.open(sheet) as drawn:
            assert drawn.width > 4 * 176
