"""The same samples as whole shards, as records by offset and as small files."""

from iobench.probes.layout.run import run

__all__ = ["run"]
