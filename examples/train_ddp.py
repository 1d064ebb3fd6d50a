"""Train a small network on shards with DistributedDataParallel.

    torchrun --nproc-per-node 2 examples/train_ddp.py s3://bucket/imagenet --global-batch 512
    torchrun --nproc-per-node 2 examples/train_ddp.py /nvme/imagenet       --global-batch 512

``DATA`` is an output of ``dataprep shard``, a copy of it, or the share of this host that
``dataprep stage`` has copied. All ranks make the same number of steps. Images stay uint8 until they
are on the device, which normalises them.

The program writes a checkpoint every few steps. If you start it again, it resumes within the epoch,
at the step of the last checkpoint, also with another number of ranks.

``--watch FOLDER`` measures how long the loop waits for its batches (``iobench.watch``). With
``--replay N`` it also measures how fast the loop is without its loader.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

import dataprep

_COLOURS = 3


def network(classes: int) -> nn.Module:
    """Return a network of a few convolutions, which is small enough for machines without a GPU."""
    return nn.Sequential(
        nn.Conv2d(_COLOURS, 32, 7, stride=4),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, stride=2),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, classes),
    )


def save(path: Path, model: nn.Module, batches: Any) -> None:
    """Write a checkpoint. If the process is killed meanwhile, the previous checkpoint remains."""
    unfinished = path.with_suffix(".new")
    torch.save({"model": model.state_dict(), "batches": batches.state_dict()}, unfinished)
    unfinished.replace(path)


def read_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", metavar="DATA")
    parser.add_argument("--global-batch", type=int, default=512)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--size", type=int, default=224, help="side of the images in pixels")
    parser.add_argument("--checkpoint", type=Path, default=Path("checkpoint.pt"))
    parser.add_argument("--every", type=int, default=10, help="steps between checkpoints")
    parser.add_argument("--watch", metavar="FOLDER", help="measure the loop, write a report here")
    parser.add_argument(
        "--replay", type=int, metavar="N", help="with --watch: also train on N repeated batches"
    )
    return parser.parse_args()


def main() -> None:
    """Train on this rank. Rank 0 prints a line for each epoch."""
    options = read_arguments()
    distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    rank, world_size = distributed.get_rank(), distributed.get_world_size()
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))

    dataset = dataprep.open(options.data, "train")
    batches = dataprep.to_torch(
        dataset,
        iterable=True,
        transform=dataprep.Augmentation(size=options.size, normalise=False),
        batch_size=dataprep.per_rank_batch(options.global_batch, rank, world_size),
        global_batch=options.global_batch,
        rank=rank,
        world_size=world_size,
        even="drop",
    )
    model = network(len(dataset.label_space.labels)).to(device)
    if options.checkpoint.exists():
        saved = torch.load(options.checkpoint, map_location=device)
        model.load_state_dict(saved["model"])
        batches.load_state_dict(saved["batches"])
    begin = batches.state_dict()
    if begin["samples"] and rank == 0:
        print(f"epoch {begin['epoch']} resumes after {begin['samples']:,} samples", flush=True)
    parallel = DistributedDataParallel(model)
    optimiser = torch.optim.SGD(parallel.parameters(), lr=0.05)
    watched = batches
    if options.watch:
        import iobench

        replay = {} if options.replay is None else {"replay": options.replay}
        watched = iobench.watch(batches, options.watch, device=device.type == "cuda", **replay)

    for epoch in range(begin["epoch"], options.epochs):
        # Each loop over the batches reads the next epoch. After a resume, the first loop reads the
        # rest of its epoch.
        for step, (images, labels) in enumerate(watched, start=1):
            images = dataprep.normalise(images.to(device))
            loss = nn.functional.cross_entropy(parallel(images), labels.to(device))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            if rank == 0 and step % options.every == 0:
                save(options.checkpoint, model, batches)
        if rank == 0:
            samples = batches.state_dict()["samples"]
            print(f"epoch {epoch}: {samples:,} samples on {world_size} ranks", flush=True)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
