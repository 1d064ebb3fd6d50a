"""Memory for batches."""

from __future__ import annotations

import contextlib
import math
import weakref
from collections import deque

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import get_worker_info


def empty(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """A new tensor; in a DataLoader's worker in shared memory, as torch's own collate has it."""
    if get_worker_info() is None:
        return torch.empty(shape, dtype=dtype)
    storage = torch.UntypedStorage._new_shared(  # type: ignore[no-untyped-call]
        math.prod(shape) * dtype.itemsize
    )
    return torch.tensor([], dtype=dtype).set_(storage).view(shape)


class Lender:
    """Memory that is lent again when nobody holds the array that lay in it.

    Of new memory every page costs as much as a quarter of what fills it. At most ``spare``
    pieces are kept for later.
    """

    def __init__(self, spare: int) -> None:
        self._free: deque[NDArray[np.uint8]] = deque(maxlen=spare)

    def lend(self, shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> NDArray[np.generic]:
        """An array whose values are whatever they were; its memory is its own while it lives."""
        size = math.prod(shape) * dtype.itemsize
        memory = self._fitting(size)
        lent = memory[:size].view(dtype).reshape(shape)
        # torch.from_numpy keeps the array itself alive, and so does every view of the tensor.
        weakref.finalize(lent, self._free.append, memory).atexit = False
        return lent

    def _fitting(self, size: int) -> NDArray[np.uint8]:
        with contextlib.suppress(IndexError):  # nothing there, or another thread was first
            while True:
                memory = self._free.pop()
                if len(memory) >= size:
                    return memory
        return np.empty(size, np.uint8)
