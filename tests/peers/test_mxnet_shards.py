"""MXNet's own readers read the shards of a job."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import dataprep
from dataprep.reading.mxnet_compat import import_mxnet

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("default"), pytest.mark.smoke]


@pytest.fixture(scope="module")
def mx() -> Any:
    """MXNet. The tests are skipped if it is not installed."""
    try:
        return import_mxnet()
    except ImportError as error:
        pytest.skip(f"MXNet is not installed: {error}")


@pytest.fixture(scope="module")
def output(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The drawn tree as RecordIO in several shards, with images of one size and quality 100."""
    folder = tmp_path_factory.mktemp("mxnet") / "out"
    config = dataprep.ShardConfig.model_validate(
        {
            "source": str(tree),
            "output": str(folder),
            "format": ("recordio",),
            "image": {"mode": "exact", "size": 320, "upscale": True, "quality": 98},
            "shard_size": "1.2MB",
        }
    )
    dataprep.shard(config)
    return folder


def shards(output: Path) -> list[tuple[Path, Path]]:
    """Each shard with its index."""
    count = sorted((output / "recordio").iterdir())
    assert len(count) >= 3
    return [(path, output / "index/recordio" / f"{path.stem}.idx") for path in count]


def test_indexed_records(mx: Any, output: Path) -> None:
    """MXIndexedRecordIO reads every record by its key, with header, label and image."""
    dataset = dataprep.open(str(output))
    keys: list[int] = []
    for path, index in shards(output):
        reader = mx.recordio.MXIndexedRecordIO(str(index), str(path), "r")
        for key in reversed(reader.keys):
            header, image = mx.recordio.unpack(reader.read_idx(key))
            assert (header.flag, header.id, header.id2) == (0, key, 0)
            assert header.label == dataset.labels[key]
            assert image == bytes(dataset[key].image)
            keys.append(key)
        reader.close()
    assert sorted(keys) == list(range(120))


def test_sequential_records(mx: Any, output: Path) -> None:
    """MXRecordIO reads each shard from its beginning to its end."""
    labels = []
    for path, _ in shards(output):
        reader = mx.recordio.MXRecordIO(str(path), "r")
        while record := reader.read():
            labels.append(int(mx.recordio.unpack(record)[0].label))
        reader.close()
    assert labels == dataprep.open(str(output)).labels.tolist()


def test_image_iterator(mx: Any, output: Path) -> None:
    """ImageRecordIter returns the images and labels of each shard, in order."""
    dataset = dataprep.open(str(output))
    start = 0
    for path, index in shards(output):
        count = len(index.read_text().splitlines())
        batches = mx.io.ImageRecordIter(
            path_imgrec=str(path),
            path_imgidx=str(index),
            data_shape=(3, 320, 320),
            batch_size=1,
            preprocess_threads=1,
            shuffle=False,
        )
        counted = 0
        for batch in batches:
            position = start + counted
            assert int(batch.label[0].asnumpy()[0]) == dataset.labels[position]
            if counted % 8 == 0:
                pixels = batch.data[0].asnumpy()[0].transpose(1, 2, 0)
                image = Image.open(io.BytesIO(bytes(dataset[position].image))).convert("RGB")
                difference = np.abs(pixels - np.asarray(image, dtype=np.float32))
                assert difference.mean() < 1.0
            counted += 1
        assert counted == count
        start += count
    assert start == 120


def test_list_file(output: Path, tree: Path) -> None:
    """The .lst beside each shard has the form of im2rec: index, label, path."""
    dataset = dataprep.open(str(output))
    lines = [
        line.split("\t")
        for _, index in shards(output)
        for line in index.with_suffix(".lst").read_text().splitlines()
    ]
    assert [int(number) for number, _, _ in lines] == list(range(120))
    assert [float(label) for _, label, _ in lines] == dataset.labels.tolist()
    assert all((tree / name).is_file() for _, _, name in lines)
