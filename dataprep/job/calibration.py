"""A few samples converted before there is a plan: how large records of a source become."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dataprep import estimate
from dataprep.config import ShardConfig
from dataprep.errors import ImageError, SourceChanged, SourceError
from dataprep.formats import Sample, get_format
from dataprep.image import Converted
from dataprep.job.worker import Outcome
from dataprep.names import to_bytes
from dataprep.sources import Listing, Located

Convert = Callable[[Sequence[Located]], Iterable[Outcome]]
"""Converts samples in order, wherever that is done."""

_STEP = 16


def calibrate(
    listing: Listing, rows: NDArray[np.int64], config: ShardConfig, convert: Convert
) -> estimate.Calibration:
    """Convert a few samples to learn how large records of this source become.

    A sample that cannot be converted counts as one of no bytes, whatever the reason.

    Raises:
        SourceError, StoreError: one could not be read.
    """
    sizes = listing.sizes[rows]
    by_size = rows[estimate.pick(sizes, estimate.sample_size(len(rows)))].tolist()
    # Whoever converts some in a row gets large and small ones.
    chosen = [row for start in range(_STEP) for row in by_size[start::_STEP]]
    measure = _Measure(listing, config)
    try:
        outcomes = convert([listing.located(row) for row in chosen])
        pairs = [measure.one(row, found) for row, (found, _) in zip(chosen, outcomes, strict=True)]
    except SourceChanged as error:
        raise SourceError(
            f"the source changed while the job was planned ({error}): run the same command again"
        ) from None
    return estimate.Calibration.fit(pairs)


class _Measure:
    """Bytes of a sample's file, and of its largest record in any format of the job."""

    def __init__(self, listing: Listing, config: ShardConfig) -> None:
        self._listing = listing
        self._formats = [get_format(name) for name in config.format]
        self._options = config.record_options

    def one(self, row: int, image: Converted | ImageError) -> tuple[int, int]:
        size = int(self._listing.sizes[row])
        if isinstance(image, ImageError):
            return size, 0
        group = to_bytes(self._listing.classes[row])
        sample = Sample(
            image=image.data,
            label=0,
            width=image.width,
            height=image.height,
            channels=image.channels,
            colorspace=image.colorspace,
            encoding=image.encoding,
            filename=to_bytes(self._listing.names[row].rpartition("/")[2]),
            synset=group,
            text=group,
        )
        writers = [form.writer(_Nowhere(), self._options) for form in self._formats]
        return size, max(writer.write(sample)[1] for writer in writers)


class _Nowhere:
    """A sink that keeps nothing."""

    def write(self, data: Any, /) -> None:
        """Forget ``data``."""
