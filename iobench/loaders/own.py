"""PURE. What is known of this package's own loaders without importing them."""

from __future__ import annotations

SYNTHETIC = frozenset({"mock", "null"})
"""Read nothing: they measure the harness, and supply nothing."""

UNDECODED = SYNTHETIC | {"raw"}
"""Make no pixels: what is done to images is nothing to them."""

BY_SAMPLE = frozenset({"torch-map"})
"""Read parts of files, in any order."""

TAKE_PIXELS = frozenset({"torch-map", "torch-iterable", "raw"})
"""Read images that are stored decoded."""

FROM_MEMORY = frozenset({"torch-iterable", "torch-map", "torch-folder"})
"""Can be given samples that lie in memory: loops over them have all rungs of the ladder."""
