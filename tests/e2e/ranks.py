"""One of several ranks that read an epoch: ``python -m tests.e2e.ranks FOLDER RANK WORLD STEPS``.

After each step rank 0 writes what all ranks have read, and the state to go on from. After ``STEPS``
steps all kill themselves, as a machine that is taken away.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import torch
from torch import distributed

import dataprep

GLOBAL_BATCH = 14
SEEN = "seen.json"


def main(folder: Path, rank: int, world_size: int, steps: int) -> None:
    """Read what is left of the epoch, together with the other ranks."""
    rendezvous = f"file://{folder}/rendezvous-{world_size}"
    distributed.init_process_group("gloo", rendezvous, rank=rank, world_size=world_size)
    dataset = dataprep.open(folder / "out")
    batches = dataprep.to_torch(
        dataset,
        iterable=True,
        batch_size=dataprep.per_rank_batch(GLOBAL_BATCH, rank, world_size),
        global_batch=GLOBAL_BATCH,
        rank=rank,
        world_size=world_size,
        even="keep",
        seed=5,
    )
    numbers = {bytes(sample.image): number for number, sample in enumerate(dataset)}
    path = folder / SEEN
    seen: list[int] = []
    if path.exists():
        saved = json.loads(path.read_text())
        seen = saved["seen"]
        batches.load_state_dict(saved["state"])
    step, reading = 0, iter(batches)
    while True:
        images, _ = next(reading, ((), ()))
        found: list[Any] = [None] * world_size
        distributed.all_gather_object(found, [numbers[image] for image in images])
        seen += [number for each in found for number in each]
        if not any(found):
            break
        step += 1
        if rank == 0:
            path.with_suffix(".new").write_text(
                json.dumps({"seen": seen, "state": batches.state_dict()})
            )
            path.with_suffix(".new").replace(path)
        distributed.barrier()
        if step == steps:
            os.kill(os.getpid(), signal.SIGKILL)
    distributed.destroy_process_group()


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
