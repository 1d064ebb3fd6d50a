"""Items of torch's data sets whose images are finished: nothing is decoded or drawn at random."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from dataprep.adapters.torch import Items
from dataprep.formats.records import Buffer


class FinishedItems(Items):
    """Of ``items`` the labels and names; images are uint8 (3, ``side``, ``side``) as they lie."""

    def __init__(self, items: Items, side: int) -> None:
        self.__dict__.update(items.__dict__)
        self.transform = None
        self._shape = 3, side, side

    def item(self, data: Buffer, number: int, epoch: int) -> tuple[Any, int]:
        """(image, label) of sample ``number``; the image is a view."""
        pixels = np.frombuffer(data, np.uint8).reshape(self._shape)
        return torch.from_numpy(pixels), int(self.labels[number])
