"""Memory of large arrays that is used again when nobody uses the array any more.

New memory of a large array comes from the kernel, which fills it with zeros page by page. Writing a
batch of float32 images into new memory takes twice as long as into memory that was used before.
"""

from __future__ import annotations

import weakref
from collections import deque

import numpy as np
from numpy.typing import DTypeLike, NDArray


def lend(
    shape: tuple[int, ...], dtype: DTypeLike, free: deque[NDArray[np.generic]]
) -> NDArray[np.generic]:
    """An array in memory from ``free``, if there is any, or in new memory.

    Its memory returns to ``free`` when the array and all views and tensors of it are gone. All
    arrays of one ``free`` have the same shape and type.
    """
    try:
        memory = free.pop()
    except IndexError:
        memory = np.empty(shape, dtype)
    # Views and tensors keep ``lent`` alive, not ``memory`` alone.
    lent = memory[:]
    weakref.finalize(lent, free.append, memory).atexit = False
    return lent
