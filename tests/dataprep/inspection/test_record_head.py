"""A record without its image."""

from __future__ import annotations

import io
import struct

import pytest

from dataprep.formats.example import BytesList, Feature, Int64List, encode_example
from dataprep.formats.recordio import MAGIC, RecordIOWriter, pack_image_header
from dataprep.formats.tfrecord import TFRecordWriter
from dataprep.inspection.framing import recordio_spans, tfrecord_spans
from dataprep.inspection.record_head import Head, read_head
from tests.dataprep.inspection.held import Held
from tests.dataprep.inspection.test_image_facts import encoded


def of_payload(payload: bytes, form: str = "tfrecord") -> tuple[Head, int]:
    """The head of a shard's one record, and how many bytes that took."""
    sink = io.BytesIO()
    writer = TFRecordWriter(sink) if form == "tfrecord" else RecordIOWriter(sink)
    writer.write(payload)
    held = Held(sink.getvalue())
    (span,) = (tfrecord_spans if form == "tfrecord" else recordio_spans)(held, "x")
    return read_head(held, span, form), held.bytes_read


def jpeg(extra: int = 0) -> bytes:
    """37 x 23, with as many bytes after its end."""
    return encoded("JPEG") + bytes(extra)


class TestExample:
    def test_customary_keys(self) -> None:
        """Label, synset, name and size stand in the record; of the image its first bytes do."""
        features: dict[str, Feature] = {
            "image/encoded": BytesList([jpeg(100_000)]),
            "image/filename": BytesList([b"n01_1.JPEG"]),
            "image/class/label": Int64List([7]),
            "image/class/synset": BytesList([b"n01440764"]),
            "image/height": Int64List([123]),
            "image/width": Int64List([456]),
        }
        head, bytes_read = of_payload(encode_example(features))
        assert (head.labels, head.synset, head.filename) == ((7,), "n01440764", "n01_1.JPEG")
        assert (head.width, head.height, head.container) == (456, 123, "JPEG")
        assert bytes_read < 3000

    def test_tfds_keys(self) -> None:
        """TFDS's keys are known as well; the size is then the image's own."""
        features: dict[str, Feature] = {
            "image": BytesList([jpeg(100_000)]),
            "file_name": BytesList([b"x.JPEG"]),
            "label": Int64List([0]),
        }
        head, bytes_read = of_payload(encode_example(features))
        assert head[:6] == ((0,), "", "x.JPEG", 37, 23, "JPEG")
        assert bytes_read < 5000

    def test_other_keys(self) -> None:
        """With other keys the largest byte string is looked at."""
        features: dict[str, Feature] = {
            "picture": BytesList([encoded("PNG") + bytes(9000)]),
            "thumb": BytesList([jpeg(3000)]),
        }
        head, _ = of_payload(encode_example(features))
        assert head[:6] == ((), "", "", 37, 23, "PNG")

    def test_a_small_image(self) -> None:
        """An image that is small enough to be read whole is told like any other."""
        features: dict[str, Feature] = {"image/encoded": BytesList([jpeg()])}
        head, _ = of_payload(encode_example(features))
        assert (head.width, head.height, head.container) == (37, 23, "JPEG")

    def test_a_late_size(self) -> None:
        """Where a JPEG's own header is long, more of it is read."""
        data = jpeg(100_000)
        late = data[:2] + b"\xff\xe1" + struct.pack(">H", 30_000) + bytes(29_998) + data[2:]
        head, bytes_read = of_payload(encode_example({"image": BytesList([late])}))
        assert (head.width, head.height) == (37, 23)
        assert bytes_read < 70_000

    @pytest.mark.parametrize("payload", [b"hello", b"\xff" * 50])
    def test_no_example(self, payload: bytes) -> None:
        """A payload that is something else is said to be."""
        assert of_payload(payload)[0].problem == "not a tf.train.Example"

    def test_an_empty_example(self) -> None:
        """An example without features tells nothing, and is no problem."""
        assert of_payload(b"")[0] == Head()


class TestImageRecord:
    def test_one_label(self) -> None:
        """The header's label, and the size of the image after it."""
        payload = pack_image_header([5.0], 9) + jpeg(100_000)
        head, bytes_read = of_payload(payload, "recordio")
        assert (head.labels, head.width, head.height, head.container) == ((5.0,), 37, 23, "JPEG")
        assert bytes_read < 3000

    def test_several_labels(self) -> None:
        """Labels that follow the header are all told."""
        payload = pack_image_header([1.0, 2.5, 3.0], 9) + jpeg(5000)
        head, _ = of_payload(payload, "recordio")
        assert (head.labels, head.width) == ((1.0, 2.5, 3.0), 37)

    def test_a_split_one(self) -> None:
        """A record in parts is joined before it is looked at."""
        payload = pack_image_header([5.0], 9) + jpeg(-len(jpeg()) % 4) + MAGIC * 3 + bytes(4000)
        head, _ = of_payload(payload, "recordio")
        assert (head.labels, head.width, head.image) == ((5.0,), 37, None)

    def test_too_short(self) -> None:
        """A record shorter than its header is said to be none."""
        assert of_payload(b"abc", "recordio")[0].problem == "not an image record"
        flag = struct.pack("<I", 2**32 - 1)
        assert of_payload(flag + bytes(100), "recordio")[0].problem == "not an image record"
