"""Writes the binary files of this folder with TensorFlow's and MXNet's own writers.

From the root of the repository::

    pip install -e '.[tensorflow,mxnet]' 'numpy<2'
    PYTHONPATH=. python tests/golden/make_golden.py
"""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import tensorflow as tf
from PIL import Image

from dataprep.reading.mxnet_compat import import_mxnet
from tests.golden.expected import BOXES, CLASSES, FILENAMES, LABELS, MAGIC

HERE = Path(__file__).parent


def images() -> list[bytes]:
    """Three JPEGs of 16 x 12 pixels. RecordIO has to split the third one at the magic."""
    jpegs = []
    for number in range(3):
        pixels = np.full((12, 16, 3), (90 * number, 60, 200), dtype=np.uint8)
        buffer = io.BytesIO()
        Image.fromarray(pixels).save(buffer, "JPEG", quality=50)
        jpegs.append(buffer.getvalue())
    # A comment after SOI: its text begins at byte 6, two bytes before a multiple of 4.
    text = b"\0\0" + MAGIC + MAGIC + b"not aligned" + MAGIC
    comment = b"\xff\xfe" + (2 + len(text)).to_bytes(2, "big") + text
    jpegs[2] = jpegs[2][:2] + comment + jpegs[2][2:]
    return jpegs


def example(number: int, image: bytes) -> bytes:
    """An Example of the customary ImageNet keys, with an empty list and a negative number."""
    synset, text = CLASSES[number]
    boxes = BOXES[number]
    feature = {
        "image/channels": ints([3]),
        "image/class/label": ints([number + 1]),
        "image/class/synset": strings([synset]),
        "image/class/text": strings([text]),
        "image/colorspace": strings([b"RGB"]),
        "image/encoded": strings([image]),
        "image/filename": strings([FILENAMES[number]]),
        "image/format": strings([b"JPEG"]),
        "image/height": ints([12]),
        "image/width": ints([16]),
        "image/object/bbox/label": ints([-1, 300, number + 1][: len(boxes)]),
        "image/object/bbox/xmin": tf.train.Feature(float_list=tf.train.FloatList(value=boxes)),
    }
    message = tf.train.Example(features=tf.train.Features(feature=feature))
    return bytes(message.SerializeToString(deterministic=True))


def ints(values: list[int]) -> tf.train.Feature:
    """A Feature of int64 values."""
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def strings(values: list[bytes]) -> tf.train.Feature:
    """A Feature of bytes values."""
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def main() -> None:
    """Write every file again."""
    mx = import_mxnet()
    jpegs = images()
    for number, jpeg in enumerate(jpegs):
        (HERE / f"image-{number}.jpg").write_bytes(jpeg)
    with tf.io.TFRecordWriter(str(HERE / "tensorflow-2.21.tfrecord")) as tfrecord:
        for number, jpeg in enumerate(jpegs):
            tfrecord.write(example(number, jpeg))
    paths = str(HERE / "mxnet-1.9.1.idx"), str(HERE / "mxnet-1.9.1.rec")
    recordio = mx.recordio.MXIndexedRecordIO(*paths, "w")
    for number, (labels, jpeg) in enumerate(zip(LABELS, jpegs, strict=True)):
        label = labels[0] if len(labels) == 1 else labels
        header = mx.recordio.IRHeader(0, label, number, 0)
        recordio.write_idx(number, mx.recordio.pack(header, jpeg))
    recordio.close()


if __name__ == "__main__":
    main()
