"""All hostile files of a seed, or a share of every mutator's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import numpy as np

from tests.reliability.images import bombs, containers, fields, metadata, pixels, structure
from tests.reliability.images.bases import jpegs
from tests.reliability.images.case import Case, Cases, Files

Mutator = Callable[[Files, np.random.Generator], Cases]

MUTATORS: tuple[Mutator, ...] = (
    *(structure.sound, structure.cut, structure.lengths, structure.missing, structure.doubled),
    *(structure.swapped, structure.foreign_tables, structure.trailing, structure.stray),
    *(fields.sizes, fields.sampling, fields.components, fields.precision),
    *(fields.scan_parameters, fields.restarts, fields.adobe),
    *(pixels.scans_left_out, pixels.scan_bombs, pixels.flipped, pixels.no_pixels),
    *(pixels.twelve_bits, pixels.lossless),
    *(metadata.exif, metadata.profiles, metadata.further),
    *(containers.sound, containers.cut, containers.damaged, containers.png_chunks),
    containers.no_images,
    *(bombs.beyond, bombs.thin, bombs.packed),
)
LARGE: tuple[Mutator, ...] = (bombs.just_below,)
"""These take seconds each, and hundreds of megabytes of memory."""


def corpus(seed: int, each: int | None = None, *, large: bool = True) -> list[Case]:
    """The cases of every mutator, at most ``each`` of one, evenly chosen; always the same ones.

    Args:
        seed: of what is random in them.
        each: of one mutator; None for all there are.
        large: whether images as large as the limit allows are among them.
    """
    found: dict[str, list[Case]] = defaultdict(list)
    for number, mutator in enumerate((*MUTATORS, *(LARGE if large else ()))):
        for case in mutator(jpegs(), np.random.default_rng([seed, number])):
            found[case.mutator].append(case)
    rng = np.random.default_rng(seed)
    chosen = []
    for cases in found.values():
        if each is not None and len(cases) > each:
            kept = sorted(rng.choice(len(cases), each, replace=False).tolist())
            cases = [cases[i] for i in kept]
        chosen += cases
    return chosen
