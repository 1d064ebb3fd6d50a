"""One of several ranks that read two epochs: ``python -m tests.e2e.ranks FOLDER RANK WORLD STEPS``.

The rank comes from torch.distributed. After each step, rank 0 writes which samples all ranks have
read in each epoch, and a state to resume from. After ``STEPS`` steps all ranks kill themselves, as
when a machine is taken away. With ``fork`` or ``spawn`` as a further argument, workers of a
DataLoader read the samples.
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
from torch.utils.data import DataLoader

import dataprep

GLOBAL_BATCH = 14
SEEN = "seen.json"


def main(folder: Path, rank: int, world_size: int, steps: int, context: str = "") -> None:
    """Read the rest of two epochs, together with the other ranks."""
    rendezvous = f"file://{folder}/rendezvous-{world_size}"
    distributed.init_process_group("gloo", rendezvous, rank=rank, world_size=world_size)
    dataset = dataprep.open(folder / "out")
    path = folder / SEEN
    saved: dict[str, Any] = {"epochs": [[]], "state": None, "start": 0}
    if path.exists():
        saved = json.loads(path.read_text())
    samples_by_epoch: list[list[int]] = saved["epochs"]
    # The samples of workers are counted in steps, those of this process by the data set.
    counted = {"epoch": len(samples_by_epoch) - 1, "start": saved["start"]} if context else {}
    batches = dataprep.to_torch(
        dataset,
        iterable=True,
        batch_size=dataprep.per_rank_batch(GLOBAL_BATCH, rank, world_size),
        global_batch=GLOBAL_BATCH,
        even="keep",
        seed=5,
        **counted,
    )
    loader: Any = batches
    if context:
        loader = DataLoader(
            batches, batch_size=None, num_workers=2, multiprocessing_context=context
        )
    elif saved["state"]:
        batches.load_state_dict(saved["state"])
    numbers = {bytes(sample.image): number for number, sample in enumerate(dataset)}
    step = 0
    while True:
        reading = iter(loader)
        while True:
            images, _ = next(reading, ((), ()))
            gathered: list[Any] = [None] * world_size
            distributed.all_gather_object(gathered, [numbers[image] for image in images])
            if not any(gathered):
                break
            samples_by_epoch[-1] += [number for part in gathered for number in part]
            step += 1
            if rank == 0:
                state = None if context else batches.state_dict()
                saved = {
                    "epochs": samples_by_epoch,
                    "state": state,
                    "start": len(samples_by_epoch[-1]),
                }
                path.with_suffix(".new").write_text(json.dumps(saved))
                path.with_suffix(".new").replace(path)
            distributed.barrier()
            if step == steps:
                os.kill(os.getpid(), signal.SIGKILL)
        if len(samples_by_epoch) == 2:
            break
        samples_by_epoch.append([])
    distributed.destroy_process_group()


if __name__ == "__main__":
    torch.set_num_threads(1)
    rank, world_size, steps = map(int, sys.argv[2:5])
    main(Path(sys.argv[1]), rank, world_size, steps, *sys.argv[5:])
