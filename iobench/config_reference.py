"""Every key of a benchmark config as Markdown: ``python -m iobench.config_reference``."""

from __future__ import annotations

import sys

from dataprep.config_page import config_page
from iobench.config import BenchConfig

_HEAD = """\
# Keys of a benchmark config

Parts that are left out are not measured. A key that takes several values takes one of them or a
list. Sizes are written as `64MiB`, `8MB` or bytes. `--set` overrides a key, as in
`--set data.images=5000`, and in lists by number: `--set training.0.steps=50`.
`iobench run CONFIG --print-config` prints a config with all its defaults.

Editors complete and check these keys by their JSON schema, `configs/bench/schema.json`, which
`iobench schema` prints, and `dataprep schema` for sharding. The first line of each example names
it, as a file beside it:

    # yaml-language-server: $schema=schema.json

`dataprep init` copies both. Elsewhere write the schema's path, or put a copy beside your config
(`iobench schema > schema.json`): YAML's language server looks from the file that is open, and some
versions of it do not follow `..`. Loaders, consumers and clients are not listed there, since other
packages may bring them.

This page is made by `python -m iobench.config_reference`.
"""
_SECTIONS = (
    ("The run", "BenchConfig"),
    ("data", "DataSettings"),
    ("data.bucket", "BucketSettings"),
    ("disk", "DiskSettings"),
    ("disk.targets", "DiskTarget"),
    ("object_store", "ObjectStoreSettings"),
    ("object_store.targets", "StoreTarget"),
    ("loaders", "LoaderGrid"),
    ("training", "Training"),
    ("sampling", "SamplingSettings"),
    ("limits", "LimitSettings"),
    ("limits.targets", "TargetLimit"),
    ("cost", "CostSettings"),
    ("scale", "ScaleSettings"),
    ("data.store, data.bucket.store, object_store.targets.store", "StoreOptions"),
)


def reference() -> str:
    """The whole page, Markdown."""
    return config_page(_HEAD, BenchConfig.model_json_schema(), _SECTIONS)


if __name__ == "__main__":
    sys.stdout.write(reference())
