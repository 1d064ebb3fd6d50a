"""Convert image collections to verified shards (TFRecord, RecordIO, WebDataset), and read them.

>>> import dataprep
>>> policy = dataprep.ImagePolicy(size=256)
>>> config = dataprep.ShardConfig(source="photos", output="out", image=policy)
>>> dataprep.shard(config)                                          # doctest: +SKIP
>>> dataprep.open("out")[0].label                                   # doctest: +SKIP

Each public name is imported from its module when it is first used. Therefore ``import dataprep``
alone is fast.
"""

# A docstring that begins with PURE marks a module that uses no files, network, clock, threads or
# random numbers. Its functions depend on their arguments only.

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dataprep._version import __version__

if TYPE_CHECKING:
    from dataprep.checking import Fault, Verification, verify
    from dataprep.checking.inspection import inspect
    from dataprep.checking.result import Inspection
    from dataprep.config.shard_config import DaskOptions, PlanOptions, ShardConfig
    from dataprep.errors import (
        ConfigError,
        CorruptArchive,
        CorruptImage,
        CorruptRecord,
        DataprepError,
        DatasetChanged,
        DatasetError,
        DecoderCrashed,
        DecoderHung,
        FormatMissing,
        ImageError,
        ImageTooLarge,
        ImageTooSmall,
        JobError,
        LeaseLost,
        ManifestMissing,
        NotAnArchive,
        NotAnImage,
        ObjectNotFound,
        OutputConflict,
        PermissionRefused,
        RecordError,
        RefusedImage,
        SampleLost,
        SchemaTooNew,
        ShardsMissing,
        SourceChanged,
        SourceError,
        SourceNotFound,
        StoredBytesDiffer,
        StoreError,
        StoreFull,
        StoreUnreachable,
        TooManyFailures,
        TruncatedArchive,
        TruncatedRecord,
        UnreadableImage,
        UnsupportedImage,
        WorkerLost,
    )
    from dataprep.formats import Box, RecordOptions, Sample
    from dataprep.formats.protocol import RawRecord
    from dataprep.formats.record_file import RecordFile
    from dataprep.formats.recordio import RecordIOWriter, read_recordio
    from dataprep.formats.tfrecord import TFRecordWriter, read_tfrecords
    from dataprep.image import Converted, ImagePolicy, convert
    from dataprep.image.output_size import Geometry
    from dataprep.job.finish import finalize
    from dataprep.job.parts import Part
    from dataprep.job.plan_command import plan
    from dataprep.job.plan_report import Estimate, SplitEstimate
    from dataprep.job.report import PartSummary, Summary, Understood, ValidationShare
    from dataprep.job.run import shard, shard_part
    from dataprep.labels.options import BoxOptions, LabelOptions
    from dataprep.output.manifest import Manifest
    from dataprep.reading.augment import Augmentation
    from dataprep.reading.dataset import Dataset, Shard
    from dataprep.reading.dataset import open_dataset as open
    from dataprep.reading.epoch_order import per_rank_batch
    from dataprep.reading.frameworks import to_mxnet, to_tf, to_torch
    from dataprep.reading.normalisation import normalise
    from dataprep.reading.read_counter import ReadCounter, ReadTotals, WindowsInUse
    from dataprep.reading.sample_rows import Place
    from dataprep.reading.sequences import Images
    from dataprep.reading.staging import Staged, stage
    from dataprep.reading.transforms import PillowTransform
    from dataprep.sources.options import (
        ILSVRCOptions,
        ListingOptions,
        ParquetOptions,
        RecordsOptions,
        WebDatasetOptions,
    )
    from dataprep.stores import StoreOptions

_MODULE_BY_NAME = {
    "Augmentation": "dataprep.reading.augment",
    "Box": "dataprep.formats",
    "BoxOptions": "dataprep.labels.options",
    "ConfigError": "dataprep.errors",
    "Converted": "dataprep.image",
    "CorruptArchive": "dataprep.errors",
    "CorruptImage": "dataprep.errors",
    "CorruptRecord": "dataprep.errors",
    "DaskOptions": "dataprep.config.shard_config",
    "DataprepError": "dataprep.errors",
    "Dataset": "dataprep.reading.dataset",
    "DatasetChanged": "dataprep.errors",
    "DatasetError": "dataprep.errors",
    "DecoderCrashed": "dataprep.errors",
    "DecoderHung": "dataprep.errors",
    "Estimate": "dataprep.job.plan_report",
    "Fault": "dataprep.checking",
    "FormatMissing": "dataprep.errors",
    "Geometry": "dataprep.image.output_size",
    "ILSVRCOptions": "dataprep.sources.options",
    "ImageError": "dataprep.errors",
    "ImagePolicy": "dataprep.image",
    "ImageTooLarge": "dataprep.errors",
    "ImageTooSmall": "dataprep.errors",
    "Images": "dataprep.reading.sequences",
    "Inspection": "dataprep.checking.result",
    "JobError": "dataprep.errors",
    "LabelOptions": "dataprep.labels.options",
    "LeaseLost": "dataprep.errors",
    "ListingOptions": "dataprep.sources.options",
    "Manifest": "dataprep.output.manifest",
    "ManifestMissing": "dataprep.errors",
    "NotAnArchive": "dataprep.errors",
    "NotAnImage": "dataprep.errors",
    "ObjectNotFound": "dataprep.errors",
    "OutputConflict": "dataprep.errors",
    "ParquetOptions": "dataprep.sources.options",
    "Part": "dataprep.job.parts",
    "PartSummary": "dataprep.job.report",
    "PermissionRefused": "dataprep.errors",
    "PillowTransform": "dataprep.reading.transforms",
    "Place": "dataprep.reading.sample_rows",
    "PlanOptions": "dataprep.config.shard_config",
    "RawRecord": "dataprep.formats.protocol",
    "ReadCounter": "dataprep.reading.read_counter",
    "ReadTotals": "dataprep.reading.read_counter",
    "RecordError": "dataprep.errors",
    "RecordFile": "dataprep.formats.record_file",
    "RecordIOWriter": "dataprep.formats.recordio",
    "RecordOptions": "dataprep.formats",
    "RecordsOptions": "dataprep.sources.options",
    "RefusedImage": "dataprep.errors",
    "Sample": "dataprep.formats",
    "SampleLost": "dataprep.errors",
    "SchemaTooNew": "dataprep.errors",
    "Shard": "dataprep.reading.dataset",
    "ShardConfig": "dataprep.config.shard_config",
    "ShardsMissing": "dataprep.errors",
    "SourceChanged": "dataprep.errors",
    "SourceError": "dataprep.errors",
    "SourceNotFound": "dataprep.errors",
    "SplitEstimate": "dataprep.job.plan_report",
    "Staged": "dataprep.reading.staging",
    "StoreError": "dataprep.errors",
    "StoreFull": "dataprep.errors",
    "StoreOptions": "dataprep.stores",
    "StoreUnreachable": "dataprep.errors",
    "StoredBytesDiffer": "dataprep.errors",
    "Summary": "dataprep.job.report",
    "TFRecordWriter": "dataprep.formats.tfrecord",
    "TooManyFailures": "dataprep.errors",
    "TruncatedArchive": "dataprep.errors",
    "TruncatedRecord": "dataprep.errors",
    "Understood": "dataprep.job.report",
    "UnreadableImage": "dataprep.errors",
    "UnsupportedImage": "dataprep.errors",
    "ValidationShare": "dataprep.job.report",
    "Verification": "dataprep.checking",
    "WebDatasetOptions": "dataprep.sources.options",
    "WindowsInUse": "dataprep.reading.read_counter",
    "WorkerLost": "dataprep.errors",
    "convert": "dataprep.image",
    "finalize": "dataprep.job.finish",
    "inspect": "dataprep.checking.inspection",
    "normalise": "dataprep.reading.normalisation",
    "open": "dataprep.reading.dataset:open_dataset",
    "per_rank_batch": "dataprep.reading.epoch_order",
    "plan": "dataprep.job.plan_command",
    "read_recordio": "dataprep.formats.recordio",
    "read_tfrecords": "dataprep.formats.tfrecord",
    "shard": "dataprep.job.run",
    "shard_part": "dataprep.job.run",
    "stage": "dataprep.reading.staging",
    "to_mxnet": "dataprep.reading.frameworks",
    "to_tf": "dataprep.reading.frameworks",
    "to_torch": "dataprep.reading.frameworks",
    "verify": "dataprep.checking",
}
"""The module that defines each public name.

If the object has a different name in its module, this name follows after a colon.
"""

__all__ = [
    "Augmentation",
    "Box",
    "BoxOptions",
    "ConfigError",
    "Converted",
    "CorruptArchive",
    "CorruptImage",
    "CorruptRecord",
    "DaskOptions",
    "DataprepError",
    "Dataset",
    "DatasetChanged",
    "DatasetError",
    "DecoderCrashed",
    "DecoderHung",
    "Estimate",
    "Fault",
    "FormatMissing",
    "Geometry",
    "ILSVRCOptions",
    "ImageError",
    "ImagePolicy",
    "ImageTooLarge",
    "ImageTooSmall",
    "Images",
    "Inspection",
    "JobError",
    "LabelOptions",
    "LeaseLost",
    "ListingOptions",
    "Manifest",
    "ManifestMissing",
    "NotAnArchive",
    "NotAnImage",
    "ObjectNotFound",
    "OutputConflict",
    "ParquetOptions",
    "Part",
    "PartSummary",
    "PermissionRefused",
    "PillowTransform",
    "Place",
    "PlanOptions",
    "RawRecord",
    "ReadCounter",
    "ReadTotals",
    "RecordError",
    "RecordFile",
    "RecordIOWriter",
    "RecordOptions",
    "RecordsOptions",
    "RefusedImage",
    "Sample",
    "SampleLost",
    "SchemaTooNew",
    "Shard",
    "ShardConfig",
    "ShardsMissing",
    "SourceChanged",
    "SourceError",
    "SourceNotFound",
    "SplitEstimate",
    "Staged",
    "StoreError",
    "StoreFull",
    "StoreOptions",
    "StoreUnreachable",
    "StoredBytesDiffer",
    "Summary",
    "TFRecordWriter",
    "TooManyFailures",
    "TruncatedArchive",
    "TruncatedRecord",
    "Understood",
    "UnreadableImage",
    "UnsupportedImage",
    "ValidationShare",
    "Verification",
    "WebDatasetOptions",
    "WindowsInUse",
    "WorkerLost",
    "__version__",
    "convert",
    "finalize",
    "inspect",
    "normalise",
    "open",
    "per_rank_batch",
    "plan",
    "read_recordio",
    "read_tfrecords",
    "shard",
    "shard_part",
    "stage",
    "to_mxnet",
    "to_tf",
    "to_torch",
    "verify",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _MODULE_BY_NAME:
        raise AttributeError(f"module 'dataprep' has no attribute {name!r}")
    module, _, attribute = _MODULE_BY_NAME[name].partition(":")
    value = getattr(import_module(module), attribute or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, also those that have not been imported yet."""
    return __all__
