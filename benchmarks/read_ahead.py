"""Measure read-ahead: the first batch over a slow link, and the rate over a link with latency.

``python -m benchmarks.read_ahead SHARDS --against CHECKOUT`` measures this checkout and another
one. The measurements of both are interleaved, and each is in a process of its own. The store is
``limited_store``.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

BATCH = 64
LINK_BYTES_PER_S = 12e6
LATENCY_S = 0.05
WARM_IMPORTS = ("torch", "boto3", "cv2")


def measured(url: str, uri: str, epochs: int, workers: int) -> dict[str, float]:
    """Measure the time to the first batch, or the rate of epochs with their starts.

    Args:
        url: the endpoint of the store.
        uri: the address of the data set.
        epochs: the number of epochs; 0 to measure only the first batch.
        workers: the number of workers of a DataLoader; 0 for threads of this process.

    Returns:
        ``first_batch_s``: the seconds from ``to_torch`` to the first batch; or ``samples_per_s``.
    """
    import dataprep
    from dataprep.stores import StoreOptions

    for name in WARM_IMPORTS:
        __import__(name)
    from torch.utils.data import DataLoader

    # The module that ``to_torch`` imports on its first call; an older checkout has it elsewhere.
    for name in ("dataprep.reading.torch", "dataprep.adapters.torch"):
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(name)

    dataset = dataprep.open(uri, "train", options=StoreOptions(endpoint_url=url))
    begun_s = time.perf_counter()
    augmentation = dataprep.Augmentation(normalise=False)
    batches: Any = dataprep.to_torch(
        dataset, transform=augmentation, iterable=True, batch_size=BATCH, threads=None
    )
    if workers:
        batches = DataLoader(batches, batch_size=None, num_workers=workers, persistent_workers=True)
    if not epochs:
        next(iter(batches))
        return {"first_batch_s": time.perf_counter() - begun_s}
    samples = 0
    for _ in range(epochs):
        samples += sum(len(labels) for _, labels in batches)
    return {"samples_per_s": samples / (time.perf_counter() - begun_s)}


def once(checkout: Path, arguments: list[Any]) -> float:
    """Run ``measured`` with the package of a checkout, and return its figure.

    Args:
        checkout: the folder of the checkout.
        arguments: the arguments of ``measured``.
    """
    done = subprocess.run(
        [sys.executable, __file__, "--child", json.dumps(arguments)],
        env={**os.environ, "PYTHONPATH": str(checkout)},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    (figure,) = json.loads(done.stdout).values()
    return float(figure)


def main() -> None:
    """Measure each case, and print the median figure and the median ratio of the pairs."""
    from benchmarks.limited_store import Limits, limited_store

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shards", type=Path)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--epochs", type=int, default=4)
    options = parser.parse_args()
    here = Path(__file__).parent.parent
    link, away = Limits(bytes_per_s=LINK_BYTES_PER_S), Limits(latency_s=LATENCY_S)
    cases = [
        ("first batch behind 12 MB/s, s", link, 0, 0),
        ("two threads over 50 ms, samples/s", away, options.epochs, 0),
        ("two workers over 50 ms, samples/s", away, options.epochs, 2),
    ]
    for name, limits, epochs, workers in cases:
        with limited_store(limits, options.shards) as store:
            arguments = [store.url, store.uri, epochs, workers]
            figures: list[float] = []
            ratios: list[float] = []
            for _ in range(options.pairs):
                figures.append(once(here, arguments))
                if options.against is not None:
                    ratios.append(figures[-1] / once(options.against, arguments))
        line = f"{name}: median {statistics.median(figures):,.2f} of {figures}"
        if ratios:
            line += f"; {statistics.median(ratios):.3f} of the other checkout's, {sorted(ratios)}"
        print(line, flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(measured(*json.loads(sys.argv[2]))))
    else:
        main()
