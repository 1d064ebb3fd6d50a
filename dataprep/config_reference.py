"""Every key of a sharding config as Markdown: ``python -m dataprep.config_reference``."""

from __future__ import annotations

import sys

from dataprep.config import ShardConfig
from dataprep.config_page import config_page

_HEAD = """\
# Keys of a sharding config

`source` and `output` are needed, everything else has a default. A key stands in a YAML file, or is
given as an option (`dataprep shard --help`) or by `--set`, as in `--set image.quality=90`; an
unknown key is refused with the nearest known one. `dataprep shard --print-config` prints a config
with all its defaults.

This page is made by `python -m dataprep.config_reference`.
"""
_SECTIONS = (
    ("The job", "ShardConfig"),
    ("image", "ImagePolicy"),
    ("labels", "LabelOptions"),
    ("boxes", "BoxOptions"),
    ("boxes.columns", "BoxNames"),
    ("ilsvrc", "ILSVRCOptions"),
    ("listing", "ListingOptions"),
    ("records", "RecordsOptions"),
    ("store, source_store", "StoreOptions"),
    ("dask", "DaskOptions"),
    ("plan", "PlanOptions"),
)


def reference() -> str:
    """The whole page, Markdown."""
    return config_page(_HEAD, ShardConfig.model_json_schema(), _SECTIONS)


if __name__ == "__main__":
    sys.stdout.write(reference())
