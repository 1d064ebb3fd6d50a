"""Read-ahead: the first batch behind a slow link, and the rate over a store that is far away.

``python -m benchmarks.read_ahead SHARDS --against CHECKOUT`` measures this checkout and another one
in interleaved pairs, each measurement in a process of its own. The store is ``limited_store``.
"""

from __future__ import annotations

import argparse
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
    """Seconds from ``to_torch`` to the first batch, or samples/s of epochs with their starts."""
    import dataprep
    from dataprep.stores import StoreOptions

    for name in WARM_IMPORTS:
        __import__(name)
    from torch.utils.data import DataLoader

    import dataprep.adapters.torch

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
    """One measurement with the package of a checkout."""
    done = subprocess.run(
        [sys.executable, __file__, "--child", json.dumps(arguments)],
        env={**os.environ, "PYTHONPATH": str(checkout)},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return float(next(iter(json.loads(done.stdout).values())))


def main() -> None:
    """Measure, and print the median of each checkout and of the ratio of the pairs."""
    from benchmarks.limited_store import Limits, limited_store

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shards", type=Path)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--epochs", type=int, default=4)
    chosen = parser.parse_args()
    here = Path(__file__).parent.parent
    link, away = Limits(bytes_per_s=LINK_BYTES_PER_S), Limits(latency_s=LATENCY_S)
    cases = [
        ("first batch behind 12 MB/s, s", link, 0, 0),
        ("two threads over 50 ms, samples/s", away, chosen.epochs, 0),
        ("two workers over 50 ms, samples/s", away, chosen.epochs, 2),
    ]
    for name, limits, epochs, workers in cases:
        with limited_store(limits, chosen.shards) as store:
            arguments = [store.url, store.uri, epochs, workers]
            figures: list[float] = []
            ratios: list[float] = []
            for _ in range(chosen.pairs):
                figures.append(once(here, arguments))
                if chosen.against is not None:
                    ratios.append(figures[-1] / once(chosen.against, arguments))
        line = f"{name}: median {statistics.median(figures):,.2f} of {figures}"
        if ratios:
            line += f"; {statistics.median(ratios):.3f} of the other checkout's, {sorted(ratios)}"
        print(line, flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(measured(*json.loads(sys.argv[2]))))
    else:
        main()
