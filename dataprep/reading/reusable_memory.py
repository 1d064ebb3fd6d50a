"""Large arrays whose memory is used again when nothing refers to the array any more.

The kernel fills new memory with zeros, page by page. Writing a batch of float32 images into new
memory therefore takes twice as long as writing it into memory that was used before.
"""

from __future__ import annotations

import weakref
from collections import deque

import numpy as np
from numpy.typing import DTypeLike, NDArray


def reusable_array(
    shape: tuple[int, ...], dtype: DTypeLike, free_memory: deque[NDArray[np.generic]]
) -> NDArray[np.generic]:
    """Return an array in memory from ``free_memory``, or in new memory if there is none.

    The memory returns to ``free_memory`` when the array and all views and tensors of it are gone.

    Args:
        shape: the shape of the array, the same in all calls with one ``free_memory``.
        dtype: the type of the array, the same in all calls with one ``free_memory``.
        free_memory: arrays that nothing refers to any more.
    """
    try:
        memory = free_memory.pop()
    except IndexError:
        memory = np.empty(shape, dtype)
    # The view is returned instead of the memory itself. Views and tensors of it keep it alive, and
    # when it is gone, ``memory`` still exists.
    array = memory[:]
    weakref.finalize(array, free_memory.append, memory).atexit = False
    return array
