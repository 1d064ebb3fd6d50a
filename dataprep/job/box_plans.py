"""The boxes of a listing's images, read once: afterwards the plan has them."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pyarrow.compute as pc

from dataprep.boxes import BoxColumns
from dataprep.boxes.columns import UNREADABLE
from dataprep.boxes.match import boxes_of
from dataprep.boxes.read import read_annotations
from dataprep.config import ShardConfig
from dataprep.counted import counted
from dataprep.errors import ConfigError, StoreError
from dataprep.formats import get_format
from dataprep.labels import LabelSpace
from dataprep.names import escape
from dataprep.plan import labels_of, sample_rows
from dataprep.sources import Listing


def find_boxes(
    config: ShardConfig, listing: Listing, label_space: LabelSpace, note: Callable[[str], None]
) -> BoxColumns | None:
    """The boxes of each entry of ``listing``; None where the job has none.

    Raises:
        ConfigError: no format keeps boxes, no image has any, or an annotation is of two images.
        SourceError, StoreError: the boxes cannot be read.
    """
    options = config.boxes
    if options is None:
        return None
    if not any(get_format(name).keeps_boxes(config.record_options) for name in config.format):
        raise ConfigError(
            "boxes would be lost: no format of this job keeps them. Use tfrecord with layout "
            "'imagenet', or with a mapping that has bbox/xmin and the others"
        )
    started_s = time.monotonic()
    try:
        stores = config.source_store or config.store
        annotations = read_annotations(options, stores, config.dask.worker_count)
    except StoreError as error:
        error.exit_code = 2  # nothing has been written
        raise
    rows = sample_rows(listing)
    labels = labels_of(listing, label_space)[rows]
    names = [listing.names[row] for row in rows.tolist()]
    found = boxes_of(annotations, names, labels, label_space.index, options)
    seconds = time.monotonic() - started_s
    annotated = int((np.diff(found.starts) > 0).sum())
    note(
        f"{options.source}: {counted(len(annotations), 'annotation')} read in {seconds:,.0f} s; "
        f"{annotated:,} of {counted(len(rows), 'image')} have {counted(len(found.labels), 'box')}"
    )
    problems = annotations.filter(pc.is_valid(annotations["problem"]))
    if (found.widths == UNREADABLE).any():
        key = escape(problems["key"][0].as_py().decode("utf-8", "surrogateescape"))
        note(
            f"{counted(len(problems), 'annotation')} cannot be read, such as {key!r}: "
            f"{problems['problem'][0].as_py()}; their images have no boxes"
        )
    if unknown := int((found.labels < 0).sum()):
        note(
            f"{counted(unknown, 'box')} of classes that labels.json does not know: they get the "
            "label of their image"
        )
    by_entry = np.full(len(listing), -1, dtype=np.int64)
    by_entry[rows] = np.arange(len(rows))
    return found.take(by_entry)
