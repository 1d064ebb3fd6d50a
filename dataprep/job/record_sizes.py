"""Estimate the size of the records of a source, by converting a few of its samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from dataprep.config.shard_config import ShardConfig
from dataprep.errors import SourceChanged, SourceError
from dataprep.formats import Sample, get_format
from dataprep.image import Converted
from dataprep.job.calibration import (
    Calibration,
    calibration_samples,
    choose_evenly,
    choose_run_starts,
)
from dataprep.job.conversion import Outcome
from dataprep.job.sample_order import in_source_order
from dataprep.job.shard_buffer import Records
from dataprep.names import to_bytes
from dataprep.sources import Listing, Located
from dataprep.sources.protocol import Integers

Convert = Callable[[Sequence[Located]], Iterable[Outcome]]
"""Converts samples, and returns their outcomes in the same order."""

_INTERLEAVE_STRIDE = 16
"""Samples that are neighbours in size are this far apart in the list of calibration samples."""


def calibrate(
    listing: Listing, rows: Integers, config: ShardConfig, convert: Convert
) -> Calibration:
    """Convert a few samples, and return the function that predicts record sizes from them.

    A sample that cannot be converted counts as a record of 0 bytes.

    Args:
        listing: the entries of the source.
        rows: the rows of the samples in the listing.
        config: the config of the job.
        convert: converts samples.

    Raises:
        SourceError, StoreError: a sample could not be read.
    """
    chosen_rows = _choose_rows(listing, rows)
    pairs = []
    try:
        outcomes = convert([listing.located(row) for row in chosen_rows])
        for row, outcome in zip(chosen_rows, outcomes, strict=True):
            record_bytes = 0
            if isinstance(outcome.converted, Converted):
                record_bytes = _max_record_bytes(outcome.converted, listing, row, config)
            pairs.append((int(listing.sizes[row]), record_bytes))
    except SourceChanged as error:
        raise SourceError(
            f"the source changed while the job was planned ({error}): run the same command again"
        ) from None
    if listing.in_runs:
        pairs = _average_by_source_size(pairs)
    return Calibration.fit(pairs)


def _choose_rows(listing: Listing, rows: Integers) -> list[int]:
    """Choose the samples to convert. They are evenly spread over the sizes of source files."""
    count = calibration_samples(len(rows))
    if listing.in_runs:
        ordered = in_source_order(listing, rows)
        containers = [listing.containers[row] for row in ordered.tolist()]
        positions = choose_run_starts(containers, listing.sizes[ordered], count)
        chosen_rows: list[int] = ordered[positions].tolist()
        return chosen_rows
    by_size = rows[choose_evenly(listing.sizes[rows], count)].tolist()
    # Interleave large and small files, because each worker converts neighbours in this list.
    interleaved = []
    for start in range(_INTERLEAVE_STRIDE):
        interleaved.extend(by_size[start::_INTERLEAVE_STRIDE])
    return interleaved


def _average_by_source_size(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Replace record bytes by their mean over all pairs with the same source bytes.

    All samples of a run have the same source bytes, so that this is the mean of the run.
    """
    records_by_size: dict[int, list[int]] = {}
    for source_bytes, record_bytes in pairs:
        records_by_size.setdefault(source_bytes, []).append(record_bytes)
    averaged = []
    for source_bytes, _ in pairs:
        records = records_by_size[source_bytes]
        averaged.append((source_bytes, sum(records) // len(records)))
    return averaged


def _max_record_bytes(image: Converted, listing: Listing, row: int, config: ShardConfig) -> int:
    """The size of a sample's record in the format with the largest record."""
    class_name = to_bytes(listing.classes[row])
    sample = Sample(
        image=image.data,
        label=0,
        width=image.width,
        height=image.height,
        channels=image.channels,
        colorspace=image.colorspace,
        encoding=image.encoding,
        filename=to_bytes(listing.names[row].rpartition("/")[2]),
        synset=class_name,
        text=class_name,
    )
    sizes = []
    for name in config.format:
        records = Records.of(get_format(name), config.record_options, [sample])
        sizes.append(records.lengths[0])
    return max(sizes)
