"""Shards that TensorFlow and MXNet write are sources with the same images and labels."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from dataprep.errors import SourceError
from dataprep.formats.recordio import MAGIC
from dataprep.sources import open_source
from dataprep.sources.options import RecordsOptions

pytestmark = [
    pytest.mark.frameworks,
    # MXNet packs a list of labels with ndarray.tostring.
    pytest.mark.filterwarnings("ignore:tostring\\(\\) is deprecated:DeprecationWarning"),
]

IMAGES = [b"\xff\xd8" + bytes([number]) * 5_000 + (b"\0\0" + MAGIC * number) for number in range(6)]


def class_by_image(source: str | Path, **options: Any) -> dict[bytes, str]:
    """The class of each image of a source of records."""
    opened = open_source(str(source), "records", None, RecordsOptions(**options))
    listing = opened.list()
    assert not listing.problems
    rows = range(len(listing))
    return {opened.read(listing.located(row)): listing.classes[row] for row in rows}


def example(tf: ModuleType, **features: Any) -> bytes:
    """A serialised Example of TensorFlow."""
    results = {}
    for key, value in features.items():
        if isinstance(value, bytes):
            results[key.replace("__", "/")] = tf.train.Feature(
                bytes_list=tf.train.BytesList(value=[value])
            )
        else:
            results[key.replace("__", "/")] = tf.train.Feature(
                int64_list=tf.train.Int64List(value=[value])
            )
    message = tf.train.Example(features=tf.train.Features(feature=results))
    return bytes(message.SerializeToString())


def test_customary_keys(tensorflow: ModuleType, tmp_path: Path) -> None:
    """Two shards with the keys of build_imagenet_data.py are read."""
    for shard in range(2):
        path = tmp_path / f"train-{shard:05}-of-00002"
        with tensorflow.io.TFRecordWriter(str(path)) as writer:
            for number in range(shard, 6, 2):
                synset = b"n%08d" % number
                writer.write(
                    example(
                        tensorflow,
                        image__encoded=IMAGES[number],
                        image__class__label=number + 1,
                        image__class__synset=synset,
                        image__filename=synset + b"_1.JPEG",
                    )
                )
    assert class_by_image(tmp_path) == {data: f"n{number:08}" for number, data in enumerate(IMAGES)}


def test_tfds_keys(tensorflow: ModuleType, tmp_path: Path) -> None:
    """A shard with the names and keys of TFDS is read, with its prefix as the source."""
    path = tmp_path / "imagenet2012-train.tfrecord-00000-of-00001"
    with tensorflow.io.TFRecordWriter(str(path)) as writer:
        for number, data in enumerate(IMAGES):
            writer.write(example(tensorflow, image=data, label=number, file_name=b"%d.j" % number))
    expected = {data: str(number) for number, data in enumerate(IMAGES)}
    assert (
        class_by_image(tmp_path)
        == class_by_image(tmp_path / "imagenet2012-train.tfrecord")
        == expected
    )


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
def test_compressed_shards_are_refused(
    tensorflow: ModuleType, tmp_path: Path, compression: str
) -> None:
    """Shards that TensorFlow has compressed are refused under any name."""
    path = tmp_path / "train-00000-of-00001"
    with tensorflow.io.TFRecordWriter(str(path), compression) as writer:
        writer.write(example(tensorflow, image=IMAGES[0], label=0))
    with pytest.raises(SourceError, match="compressed as a whole"):
        class_by_image(tmp_path)


@pytest.mark.parametrize("label_width", [False, True])
@pytest.mark.parametrize("indexed", [False, True])
def test_recordio(mxnet: ModuleType, tmp_path: Path, indexed: bool, label_width: bool) -> None:
    """RecordIO is read with .idx or without, with one label or several, and split at magics."""
    recordio = mxnet.recordio
    path = str(tmp_path / "train.rec")
    writer = (
        recordio.MXIndexedRecordIO(str(tmp_path / "train.idx"), path, "w")
        if indexed
        else recordio.MXRecordIO(path, "w")
    )
    for number, data in enumerate(IMAGES):
        label = np.array([number, 0.5], np.float32) if label_width else float(number)
        packed = recordio.pack(recordio.IRHeader(0, label, number, 0), data)
        if indexed:
            writer.write_idx(number, packed)
        else:
            writer.write(packed)
    writer.close()
    assert class_by_image(tmp_path) == {data: str(number) for number, data in enumerate(IMAGES)}
    values = open_source(path, "records").list().values
    assert (values is not None) is label_width
