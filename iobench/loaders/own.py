"""PURE. Properties of this package's own loaders, known without importing them."""

from __future__ import annotations

from collections.abc import Mapping

SYNTHETIC = frozenset({"mock", "null"})
"""Loaders that read nothing: they measure the harness."""

UNDECODED = SYNTHETIC | {"raw"}
"""Loaders that make no pixels: settings of images have no effect on them."""

BY_SAMPLE = frozenset({"torch-map"})
"""Loaders that read parts of files, in any order."""

TAKE_PIXELS = frozenset({"torch-map", "torch-iterable", "raw"})
"""Loaders that read images stored as pixels."""

FORMAT_READ: Mapping[str, str] = {
    "dali": "tfrecord",
    "dali-gpu": "tfrecord",
    "mxnet-record": "recordio",
    "webdataset": "webdataset",
}
"""The format of loaders that need a particular one; the others read any format of shards."""

GIVE_UINT8 = frozenset(
    {"torch-iterable", "torch-map", "torch-folder", "tf-data", "dali", "dali-gpu", "webdataset"}
)
"""Loaders whose images can be uint8, so that the device normalises them."""

GIVE_FLOAT32_ALONE = frozenset({"mxnet-record"})
"""Loaders whose images are float32 in any case."""

FROM_MEMORY = frozenset({"torch-iterable", "torch-map", "torch-folder"})
"""Loaders that can take samples from memory: their training loops have all rungs of the ladder."""
