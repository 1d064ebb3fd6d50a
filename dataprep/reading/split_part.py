"""PURE. The part of a split that a data set has: all samples, some shards, or some samples.

A sample and a shard have two numbers. The number *in the split* counts all samples or shards of the
split from 0. The number *in the part* counts only those of the part from 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np

from dataprep.output.manifest import FormatEntry, Manifest
from dataprep.reading.epoch_order import Integers


@dataclass(frozen=True, eq=False)
class SplitPart:
    """The shards and the samples of a split that a data set has.

    Attributes:
        first_samples: for each shard of the split, the number of its first sample in the split; at
            the end, the number of all samples of the split.
        chosen_shards: the shards that were given to ``Dataset.of_shards``, by their numbers in the
            split, ascending; None for all shards.
        selected_samples: the samples of a subset, by their numbers in the split, ascending: int64
            of shape (samples,); None for all samples of the shards.
        queries: the queries that selected these samples, if any; None if ``Dataset.select`` was
            used.
    """

    first_samples: Sequence[int]
    chosen_shards: tuple[int, ...] | None = None
    selected_samples: Integers | None = None
    queries: tuple[str, ...] | None = ()

    @property
    def is_whole(self) -> bool:
        """Whether the part has all samples of the split."""
        return self.chosen_shards is None and self.selected_samples is None

    @property
    def samples_in_split(self) -> int:
        """The number of all samples of the split."""
        return self.first_samples[-1]

    @cached_property
    def shards(self) -> tuple[int, ...]:
        """The shards that contain samples of the part, by their numbers in the split, ascending."""
        if self.selected_samples is not None:
            return tuple(np.unique(self._shards_of(self.selected_samples)).tolist())
        if self.chosen_shards is not None:
            return self.chosen_shards
        return tuple(range(len(self.first_samples) - 1))

    @property
    def numbers(self) -> Integers:
        """The number in the split of each sample, ascending: int64 of shape (samples,).

        The array is new, so that the caller may change it.
        """
        if self.selected_samples is not None:
            return self.selected_samples.copy()
        numbers_by_shard = []
        for shard in self.shards:
            first, following = self.first_samples[shard], self.first_samples[shard + 1]
            numbers_by_shard.append(np.arange(first, following))
        return np.concatenate(numbers_by_shard)

    def samples_by_shard(self) -> list[range]:
        """Return the samples of each shard in ``shards``, by their numbers in the part."""
        shards, samples = self.shards, self.selected_samples
        if samples is None:
            sizes = [self.first_samples[shard + 1] - self.first_samples[shard] for shard in shards]
            starts = list(accumulate(sizes, initial=0))
        else:
            starts_in_split = [self.first_samples[shard] for shard in shards]
            starts = [*np.searchsorted(samples, starts_in_split).tolist(), len(samples)]
        return [range(start, stop) for start, stop in pairwise(starts)]

    def manifest_of(self, manifest: Manifest) -> Manifest:
        """Return the manifest of the split with only the shards of this part.

        Each shard is described as a whole, also if the part has only some of its samples.
        """
        if self.is_whole:
            return manifest
        formats = {}
        for name, entry in manifest.formats.items():
            shards = tuple(entry.shards[number] for number in self.shards)
            formats[name] = replace(
                entry,
                records=sum(shard.records for shard in shards),
                bytes=sum(shard.bytes for shard in shards),
                shards=shards,
            )
        if self.chosen_shards is not None:
            # A data set of chosen shards is never the share of a host.
            return replace(manifest, formats=formats, share=None)
        return replace(manifest, formats=formats)

    def of_shards(self, numbers: Sequence[int]) -> SplitPart:
        """Return a part with some of the shards of this part.

        Args:
            numbers: the numbers of these shards in this part, ascending.
        """
        shards = tuple(self.shards[number] for number in numbers)
        samples = self.selected_samples
        if samples is not None:
            samples = samples[np.isin(self._shards_of(samples), shards)]
        return replace(self, chosen_shards=shards, selected_samples=samples)

    def of_samples(self, numbers: Integers, queries: tuple[str, ...] | None) -> SplitPart:
        """Return a part with some of the samples of this part.

        Args:
            numbers: the numbers of these samples in this part, ascending: int64 of shape
                (samples,).
            queries: all queries that selected the samples; None if they were not selected by
                queries alone.
        """
        return replace(self, selected_samples=self.numbers[numbers], queries=queries)

    def _shards_of(self, numbers: Integers) -> Integers:
        """Return the shard of each sample. Shards and samples have their numbers in the split."""
        shards: Integers = np.searchsorted(self.first_samples, numbers, side="right") - 1
        return shards


def first_samples(entry: FormatEntry) -> list[int]:
    """Return the number of the first sample of each shard, then the number of all samples."""
    return list(accumulate((shard.records for shard in entry.shards), initial=0))
