"""Image files without class folders, whose classes are told elsewhere (``labels``)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dataprep.sources.classes import NOT_NAMED_AS_IMAGE
from dataprep.sources.imagefolder import ImageFolder, entry_problem, promises_image
from dataprep.sources.protocol import Listing, Problem
from dataprep.stores import ObjectInfo


class FlatFolder(ImageFolder):
    """All images below a folder, in no class: ILSVRC2012's validation images as unpacked."""

    def _listing(self, entries: Sequence[ObjectInfo]) -> Listing:
        problems = {row: p for row, entry in enumerate(entries) if (p := entry_problem(entry))}
        for row, entry in enumerate(entries):
            if row not in problems and not promises_image(entry.key):
                problems[row] = Problem("skipped", NOT_NAMED_AS_IMAGE)
        return Listing(
            names=[entry.key for entry in entries],
            sizes=np.array([entry.bytes for entry in entries], dtype=np.int64),
            classes=[""] * len(entries),
            problems=problems,
        )
