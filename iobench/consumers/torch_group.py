"""Processes of this host that train one network: torch's process group, gradients averaged."""

from __future__ import annotations

import datetime
import importlib
from typing import Any

from iobench.consumers import requirements

# Who hangs is ended by the trial's own limit, and by whoever notices that a rank has failed.
_PATIENCE = datetime.timedelta(days=7)


class TorchGroup:
    """Rank ``rank`` of ``world_size``; joining waits for all others.

    As torch documents it: NCCL and a process for each GPU, which becomes the current device; gloo
    on processors. ``meeting`` is a path by which the ranks find each other, the same file for
    all: no port is taken for that.
    """

    def __init__(self, rank: int, world_size: int, meeting: str, *, on_gpu: bool) -> None:
        self.rank, self.world_size, self.on_gpu = rank, world_size, on_gpu
        self.backend = "nccl" if on_gpu else "gloo"
        self._torch = torch = requirements.framework("torch")
        self._distributed: Any = importlib.import_module("torch.distributed")
        if on_gpu:
            torch.cuda.set_device(rank)
        store = self._distributed.FileStore(meeting, world_size)
        store.set_timeout(_PATIENCE)
        self._distributed.init_process_group(
            self.backend, store=store, rank=rank, world_size=world_size, timeout=_PATIENCE
        )

    def shared(self, net: Any) -> Any:
        """``net``, on its device already, whose gradients are the mean over all ranks."""
        parallel = self._torch.nn.parallel.DistributedDataParallel
        return parallel(net, device_ids=[self.rank] if self.on_gpu else None)

    def wait(self) -> None:
        """For all ranks to be here."""
        self._distributed.barrier(device_ids=[self.rank] if self.on_gpu else None)

    def leave(self) -> None:
        """When all are done."""
        self.wait()
        self._distributed.destroy_process_group()
