"""A few samples converted before there is a plan: how large records of a source become."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dataprep import estimate
from dataprep.config import ShardConfig
from dataprep.errors import ImageError, SourceChanged, SourceError
from dataprep.formats import Sample, get_format
from dataprep.image import Converted
from dataprep.job.journal import Journal
from dataprep.names import escape, to_bytes
from dataprep.outcomes import convert_sample
from dataprep.read_ahead import read_one
from dataprep.sources import Listing, Source

_MOST_THREADS = 16


def calibrate(
    listing: Listing,
    rows: NDArray[np.int64],
    source: Source,
    config: ShardConfig,
    journal: Journal | None = None,
) -> estimate.Calibration:
    """Convert a few samples to learn how large records of this source become.

    A sample that cannot be converted counts as one of no bytes, whatever it failed of.

    Raises:
        SourceChanged, StoreError: one could not be read.
        SampleLost: as ``isolated_outcomes``, where the journal asks for isolation.
    """
    journal = journal or Journal(None)
    sizes = listing.sizes[rows]
    chosen = rows[estimate.pick(sizes, estimate.sample_size(len(rows)))].tolist()
    measure = _Measure(listing, config)
    if journal.isolated:
        from dataprep.isolation import isolated_outcomes

        items = [listing.located(row) for row in chosen]
        found = isolated_outcomes(source, items, config.image, config.sample_limit, journal)
        images = (outcome.converted for outcome in found)
        return estimate.Calibration.fit(measure.all(chosen, images))

    def convert(row: int) -> Converted | ImageError:
        item = listing.located(row)
        journal.take(item.name)
        try:
            data = read_one(source, item, config.image.max_source_bytes)
            return convert_sample(data, config.image, item.name)
        except ImageError as error:
            return error
        except SourceChanged:
            raise SourceError(
                f"{escape(item.name)} changed while the job was planned: run the same command again"
            ) from None
        finally:
            journal.lay_down()

    workers = max(config.dask.worker_count, source.concurrency)
    with ThreadPoolExecutor(min(workers, _MOST_THREADS)) as pool:
        measured = pool.map(lambda row: measure.one(row, convert(row)), chosen)
        return estimate.Calibration.fit(list(measured))


class _Measure:
    """Bytes of a sample's file, and of its largest record in any format of the job."""

    def __init__(self, listing: Listing, config: ShardConfig) -> None:
        self._listing = listing
        self._formats = [get_format(name) for name in config.format]
        self._options = config.record_options

    def all(
        self, rows: Sequence[int], images: Iterable[Converted | ImageError]
    ) -> list[tuple[int, int]]:
        return [self.one(row, image) for row, image in zip(rows, images, strict=True)]

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
