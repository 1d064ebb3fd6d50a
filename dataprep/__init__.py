"""Image collections into verified TFRecord and RecordIO shards.

>>> import dataprep
>>> config = dataprep.ShardConfig(source="photos", output="out", image={"size": 256})
>>> dataprep.shard(config)                                          # doctest: +SKIP
>>> dataprep.open("out")[0].label                                   # doctest: +SKIP

Names are loaded when they are first used: ``import dataprep`` alone is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dataprep._version import __version__

if TYPE_CHECKING:
    from dataprep.adapters import to_mxnet, to_tf, to_torch
    from dataprep.adapters.augment import Augmentation
    from dataprep.assign import per_rank_batch
    from dataprep.config import ShardConfig
    from dataprep.dataset import Dataset
    from dataprep.dataset import open_dataset as open
    from dataprep.errors import DataprepError
    from dataprep.formats import Sample
    from dataprep.formats.recordio import RecordIOWriter, read_recordio
    from dataprep.formats.tfrecord import TFRecordWriter, read_tfrecords
    from dataprep.image import Converted, ImagePolicy, convert
    from dataprep.inspection import inspect
    from dataprep.job import Part, PartSummary, Summary, finalize, shard, shard_part
    from dataprep.record_file import RecordFile
    from dataprep.stores import StoreOptions
    from dataprep.verification import verify

_HOMES = {
    "Augmentation": "dataprep.adapters.augment",
    "Converted": "dataprep.image",
    "DataprepError": "dataprep.errors",
    "Dataset": "dataprep.dataset",
    "ImagePolicy": "dataprep.image",
    "Part": "dataprep.job",
    "PartSummary": "dataprep.job",
    "RecordFile": "dataprep.record_file",
    "RecordIOWriter": "dataprep.formats.recordio",
    "Sample": "dataprep.formats",
    "ShardConfig": "dataprep.config",
    "StoreOptions": "dataprep.stores",
    "Summary": "dataprep.job",
    "TFRecordWriter": "dataprep.formats.tfrecord",
    "convert": "dataprep.image",
    "finalize": "dataprep.job",
    "inspect": "dataprep.inspection",
    "open": "dataprep.dataset:open_dataset",
    "per_rank_batch": "dataprep.assign",
    "read_recordio": "dataprep.formats.recordio",
    "read_tfrecords": "dataprep.formats.tfrecord",
    "shard": "dataprep.job",
    "shard_part": "dataprep.job",
    "to_mxnet": "dataprep.adapters",
    "to_tf": "dataprep.adapters",
    "to_torch": "dataprep.adapters",
    "verify": "dataprep.verification",
}

__all__ = [
    "Augmentation",
    "Converted",
    "DataprepError",
    "Dataset",
    "ImagePolicy",
    "Part",
    "PartSummary",
    "RecordFile",
    "RecordIOWriter",
    "Sample",
    "ShardConfig",
    "StoreOptions",
    "Summary",
    "TFRecordWriter",
    "__version__",
    "convert",
    "finalize",
    "inspect",
    "open",
    "per_rank_batch",
    "read_recordio",
    "read_tfrecords",
    "shard",
    "shard_part",
    "to_mxnet",
    "to_tf",
    "to_torch",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dataprep' has no attribute {name!r}")
    module, _, attribute = _HOMES[name].partition(":")
    value = getattr(import_module(module), attribute or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
