"""Bounding boxes: read beside the images, kept with the plan, moved with the pixels."""

from dataprep.boxes.columns import Annotated, BoxColumns
from dataprep.boxes.geometry import Shown, follow
from dataprep.boxes.options import BoxOptions

__all__ = ["Annotated", "BoxColumns", "BoxOptions", "Shown", "follow"]
