"""Somebody's own program with a source of its own: ``python drawers.py PHOTOS OUTPUT``.

``READING=NAME=SIGNAL`` is the fault at which its native code reads one file; with ``CRASHING=fail``
that file cannot be read. ``WORKERS`` says how many processes convert, 0 that threads do.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

import dataprep
from dataprep.errors import UnreadableImage
from dataprep.sources import Located
from tests.reliability.around_folder import AroundFolder

NAME, _, FAULT = os.environ.get("READING", "").rpartition("=")


class Drawers(AroundFolder):
    """Photos as they lie in drawers: called by a name of its own, read by code of its own."""

    def read(self, item: Located) -> bytes:
        """One photo."""
        if item.name == NAME:
            if os.environ["CRASHING"] == "fail":
                raise UnreadableImage("marked")
            signal.pthread_kill(threading.get_ident(), signal.Signals[FAULT])
        return super().read(item)


def main() -> None:
    """Shards of it."""
    source, output = sys.argv[1:]
    workers = int(os.environ["WORKERS"])
    config = dataprep.ShardConfig.model_validate(
        {
            "source": source,
            "output": output,
            "kind": "drawers",
            "format": ["tfrecord", "recordio"],
            "shard_size": "1.2MB",
            "max_failures": 10,
            "dask": {
                "processes": workers > 0,
                "workers": workers or 2,
                "dashboard": "127.0.0.1:0",
            },
        }
    )
    dataprep.shard(config)


if __name__ == "__main__":
    main()
